"""Conversations of all kinds through a real gateway: ``python benchmarks/studies/checks/gateway.py [COUNT]``.

Agent programs edit their histories: thinking is stripped, conversations are compacted, system prompts change, calls are
repeated or broken off, sub-agents run beside one another, tool calls are written down in another way. Each of 1,000
generated conversations is played over HTTP against a tiny random model, in four protocols, streamed and not, with
three chat templates. What the sampler itself was asked for and returned is logged apart from the gateway, and compared
with what the gateway makes of it: turns, training sequences, loss weights, recomputed log-probabilities. Writes
``benchmarks/results/gateway.json``.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from turngym.agents.gateway import Gateway, GatewayEpisode, GatewayLimits, serving, trajectory_of
from turngym.agents.models.completion import Completion
from turngym.agents.models.embedded import CHAT_TEMPLATE, EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.sampler import Sampler
from turngym.agents.sampling import Sampling
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.studies.checks.gateway_talks.talk import SCRIPTS, TEXTS, Talk
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.trainers.algorithms import build
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner

_CONVERSATIONS = 1000
METHODS = ("grpo", "reinforce", "gigpo", "turn_ppo")
KINDS = (
    "answers beyond ASCII",
    "answers with tool calls",
    "calls broken off",
    "changed system prompts",
    "compactions",
    "edited answers",
    "empty answers",
    "parallel sub-agents",
    "repeated requests",
    "requests of chat",
    "requests of completions",
    "requests of messages",
    "requests of responses",
    "retries",
    "streams",
    "stripped thinking",
)
"""What agents do; everything must have occurred."""
_SCRIPTED = 0.6
"""Share of answers with a written text, such as a tool call: a random model would never write one."""
_AT_ONCE = 4
_STRIPPING = (
    "{% for m in messages %}{% set text = m.content %}{% if m.role == 'assistant' and not loop.last %}"
    "{% set text = text.split('</think>')[-1] %}{% endif %}"
    "{% if loop.first and tools %}{{ '<|system|>' + (tools | tojson) + '<|end|>' }}{% endif %}"
    "{{ '<|' + ('user' if m.role == 'tool' else m.role) + '|>\\n' + text }}"
    "{% for call in m.tool_calls or [] %}{{ '<tool_call>' + (call.function | tojson) + '</tool_call>' }}{% endfor %}"
    "{{ '<|end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)
_STRICT = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ '<|' + m.role + '|> ' + m.content | trim + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|> ' }}{% endif %}"
)
TEMPLATES = {"plain": CHAT_TEMPLATE, "tools, stripped thinking": _STRIPPING, "alternating, no system": _STRICT}


def tiny_model(template: str = CHAT_TEMPLATE, seed: int = 0) -> LanguageModel:
    """Return a random model with a chat template."""
    tokenizer = build_tokenizer(TEXTS * 3, 400)
    tokenizer.chat_template = template
    settings = EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=400, context=16_384)
    return LanguageModel(build_model(tokenizer, settings, seed), tokenizer, "tiny")


class Witness:
    """A sampler that sometimes writes a given text, and that remembers what it returned for which prompt.

    Args:
        model: The model.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.log: dict[tuple[int, ...], list[Completion]] = defaultdict(list)
        self._sampler = Sampler(model, appends=True)
        self._end = min(model.stop_ids)
        self._rest: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._scripts = [(*self._encoded(text), self._end) for text in SCRIPTS]

    def _encoded(self, text: str) -> tuple[int, ...]:
        return tuple(self.model.tokenizer.encode(text, add_special_tokens=False))

    def __call__(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt."""
        found = self._sampler(prompts, uniforms, sampling)
        for k, prompt in enumerate(map(tuple, prompts)):
            rest = self._rest.pop(prompt, None)
            draw = float(uniforms[k][0])
            if rest is None and draw < _SCRIPTED:
                rest = self._scripts[int(draw / _SCRIPTED * len(self._scripts))]
            if rest is not None:
                ids = rest[: sampling.max_new_tokens]
                found[k] = Completion(ids, self._logprobs(prompt, ids, sampling.temperature))
                if len(rest) > len(ids):
                    self._rest[prompt + ids] = rest[len(ids) :]
            self.log[prompt].append(found[k])
        return found

    @torch.inference_mode()
    def _logprobs(self, prompt: tuple[int, ...], ids: tuple[int, ...], temperature: float) -> tuple[float, ...]:
        logits = self.model.network(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        chosen = (logits / temperature).log_softmax(-1).gather(-1, torch.tensor(ids)[:, None])
        return tuple(float(each) for each in chosen[:, 0])

    def has_sampled(self, prompt: tuple[int, ...], ids: tuple[int, ...], logprobs: tuple[float, ...]) -> bool:
        """Return whether exactly these tokens with these log-probabilities were sampled behind a prompt, in chunks."""
        if not ids:
            return True
        for chunk in self.log.get(prompt, ()):
            size = min(len(chunk.ids), len(ids))
            is_begun = chunk.ids[:size] == ids[:size] and chunk.logprobs[:size] == logprobs[:size]
            if is_begun and self.has_sampled(prompt + ids[:size], ids[size:], logprobs[size:]):
                return True
        return False


def _check_episode(witness: Witness, episode: GatewayEpisode, played: Trajectory, counts: Counter[str]) -> None:
    """Compare the turns of an episode with what was sampled."""
    for turn in played.turns:
        is_right = witness.has_sampled(turn.prompt_ids, turn.completion_ids, turn.logprobs)
        counts["turns"] += 1
        counts["trained tokens"] += len(turn.completion_ids)
        counts["trained tokens as sampled"] += len(turn.completion_ids) * is_right
    for call in episode.calls:
        counts["answers"] += 1
        counts["answers not delivered"] += not call.delivered
        if call.parent >= 0:
            parent = episode.calls[call.parent]
            counts["kept prompts"] += 1
            left_out = (
                bool(call.prompt_text) and call.kept == len(parent.ids) - 1
            )  # a text goes on without an end token
            is_kept = call.prompt_ids[: call.kept] == parent.ids[: len(parent.ids) - left_out]
            counts["kept prompts that begin with the parent's ids"] += is_kept


def _check_links(episode: GatewayEpisode, talk: Talk, counts: Counter[str]) -> None:
    """Compare how prompts came about with what the client did to its history."""
    by_id = {call.id: call for call in episode.calls}
    for id, expected in talk.expected.items():
        call = by_id[id]
        counts[f"expected {expected}"] += 1
        counts[f"expected {expected} and found"] += call.link == expected
    for id, edited in talk.edited.items():
        call, original = by_id[id], by_id[edited]
        counts["edited histories"] += 1
        counts["edited histories that fork"] += call.prompt_ids[: len(original.ids)] != original.ids


def _check_training(model: LanguageModel, trajectories: Sequence[Trajectory], counts: Counter[str]) -> dict[str, float]:
    """Prepare batches with several methods; return the largest gap of the recomputed log-probabilities."""
    gaps = {}
    for method in METHODS:
        algorithm = build(method, {})
        learner = Learner(model, algorithm, UpdateConfig(old_logprobs="trainer", minibatches=2))
        batch = learner.prepare(trajectories)
        table = batch.table
        assert table.token_trainer_logprob is not None
        gaps[method] = float((table.token_trainer_logprob - table.token_logprob).abs().max())
        trained, tokens = _trained(batch)
        counts["tokens in batches"] += len(table.token_turn)
        counts["tokens read exactly once"] += int((trained == 1).sum())
        counts["targets in batches"] += tokens["reads"]
        counts["targets that were sampled"] += tokens["sampled"]
        for name in algorithm.normalisations:
            counts["sums of loss weights"] += 1
            sums = sum(float(inputs.weights[name].sum()) for inputs in batch.micro_batches())
            counts["sums of loss weights that are 1"] += abs(sums - 1) < 1e-4
    return gaps


def _trained(batch: Any) -> tuple[torch.Tensor, dict[str, int]]:
    """Return how often each token of the table is read, and how many reads have a sampled token as target."""
    table, rows = batch.table, batch._batch
    times = torch.bincount(rows.token[rows.action_mask], minlength=len(table.token_turn))
    ids = torch.tensor([i for each in batch.trajectories for turn in each.turns for i in turn.completion_ids])
    reads = sampled = 0
    for number, sequence in enumerate(rows.sequence_of.tolist()):
        read = rows.sequences[sequence].reads
        mine = rows.token[number][rows.token[number] >= 0]
        targets = torch.from_numpy(read.target[read.target >= 0])
        reads += len(targets)
        sampled += int((targets == ids[mine]).sum())
    return times, {"reads": reads, "sampled": sampled}


def play(count: int, template: str, seed: int = 0, at_once: int = _AT_ONCE) -> dict[str, Any]:
    """Play conversations with one chat template, and return what was counted."""
    model = tiny_model(template, seed)
    witness = Witness(model)
    limits = GatewayLimits(max_new_tokens=96, chunk=16)
    gateway = Gateway(model, witness, context=model.context, limits=limits, seed=seed)
    counts: Counter[str] = Counter()
    with serving(gateway) as url:
        talks = [Talk(url, gateway.open(group=k // 4), seed * 10_000 + k) for k in range(count)]
        with ThreadPoolExecutor(at_once) as threads:
            for talk in threads.map(Talk.run, talks):
                counts.update(talk.counts)
    episodes = [talk.episode for talk in talks]
    for k, episode in enumerate(episodes):
        episode.status, episode.reward = "terminated", float(k % 2)
    played = [trajectory_of(episode) for episode in episodes]
    for talk, trajectory in zip(talks, played, strict=True):
        _check_episode(witness, talk.episode, trajectory, counts)
        _check_links(talk.episode, talk, counts)
    gaps = _check_training(model, played, counts)
    return {"counts": dict(sorted(counts.items())), "gaps": gaps, "report": gateway.report(episodes)}


def pairs(counts: dict[str, int]) -> list[tuple[int, int, str]]:
    """Return the numbers that must be equal, with what they are about."""
    return [
        (counts["trained tokens"], counts["trained tokens as sampled"], "trained tokens are what was sampled"),
        (counts["kept prompts"], counts["kept prompts that begin with the parent's ids"], "kept ids stay"),
        (counts["edited histories"], counts["edited histories that fork"], "edited histories fork"),
        (
            counts["tokens in batches"],
            counts["tokens read exactly once"],
            "no token is trained twice, none is left out",
        ),
        (counts["targets in batches"], counts["targets that were sampled"], "context is not trained"),
        (counts["sums of loss weights"], counts["sums of loss weights that are 1"], "loss weights sum to 1"),
        *(
            (counts.get(f"expected {link}", 0), counts.get(f"expected {link} and found", 0), f"{link} as expected")
            for link in ("root", "extended", "forked")
        ),
    ]


def main() -> int:
    """Play all conversations and write the figures; 1 if something differs."""
    parser = arguments(__doc__, "gateway.json")
    parser.add_argument("count", nargs="?", type=int, default=_CONVERSATIONS, metavar="COUNT", help="conversations")
    given = parser.parse_args()
    torch.set_num_threads(1)
    total = given.count
    began, found = time.process_time(), {}
    for k, (name, template) in enumerate(TEMPLATES.items()):
        found[name] = play(total // len(TEMPLATES) + (k < total % len(TEMPLATES)), template, k)
    wrong = [
        f"{name}: {text}: {first} and {second}"
        for name, result in found.items()
        for first, second, text in pairs(result["counts"])
        if first != second
    ]
    wrong += [f"{name}: no {kind}" for name, each in found.items() for kind in KINDS if not each["counts"].get(kind)]
    gap = max(max(result["gaps"].values()) for result in found.values())
    figures = {"conversations": total, "seconds": round(time.process_time() - began), "largest gap": gap}
    write_result(given.out, {**figures, "differences": wrong, "templates": found}, "torch", "uvicorn")
    print(figures, *wrong, sep="\n")
    return int(bool(wrong) or gap > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
