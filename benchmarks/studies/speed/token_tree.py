"""Gradients of a batch in separate rows, packed, and as token trees: tokens forwarded, processor seconds, differences.

    python benchmarks/studies/speed/token_tree.py

Three batches: groups of 8 with 10 append-only turns, prompts with a shared beginning, and several answers to a prompt.
The first arm gives every turn a row; ``rows`` appends turns to a row where the prompt allows that. All arms are
differentiated through ``prepare``, with one thread; the arms take turns, and ``benchmarks/results/token_tree.json``
has the medians. Tokens are counted at the network, padding included.
"""

from __future__ import annotations

import argparse
import copy
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from turngym.agents.models.embedded import build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json
from turngym.trainers import build, prepare
from turngym.trainers.core.update_config import LayoutName
from turngym.trainers.engine.layouts import LAYOUTS
from turngym.trainers.engine.layouts.check import require_layout

TARGET = Path(__file__).resolve().parents[2] / "results" / "token_tree.json"
WORDS = 2048


class Arm(NamedTuple):
    """One way of computing the gradient."""

    layout: LayoutName
    merge_rows: bool = True
    max_tokens: int = 0


ARMS = {
    "row_a_turn": Arm("rows", merge_rows=False),
    "rows": Arm("rows"),
    "packed": Arm("packed"),
    "tree_1024": Arm("tree", max_tokens=1024),
    "tree_2048": Arm("tree", max_tokens=2048),
    "tree_4096": Arm("tree", max_tokens=4096),
}


def tokens(draw: random.Random, count: int) -> tuple[int, ...]:
    """Return random tokens."""
    return tuple(draw.randrange(WORDS) for _ in range(count))


def group(draw: random.Random, turns: int, system: int, observed: int, sampled: int, history: bool) -> list[Trajectory]:
    """Return eight episodes that start from the same prompt."""
    system_part, first = tokens(draw, system), tokens(draw, observed)
    found = []
    for number in range(8):
        prompt, made = system_part, []
        for turn in range(turns):
            observation = tokens(draw, observed) if turn else first
            prompt = prompt + observation if history else system_part + observation
            completion = tokens(draw, sampled)
            made.append(Turn("", "", "", "", prompt, completion, (-7.6,) * sampled, reward=draw.random()))
            prompt += completion
        found.append(Trajectory(EpisodeSpec(number, 0, 0), turns=made, terminated=True))
    return found


def batches() -> dict[str, list[Trajectory]]:
    """Return the batches by name."""
    draw = random.Random(0)
    return {
        "8 episodes of 10 append-only turns": group(draw, 10, 200, 60, 20, history=True),
        "8 episodes of 10 prompts after a system part": group(draw, 10, 200, 60, 20, history=False),
        "8 answers of 64 to a prompt of 256": group(draw, 1, 192, 64, 64, history=False),
    }


def made_model(hidden: int, layers: int) -> LanguageModel:
    """Return a model with random weights."""
    heads = hidden // 32
    config = Qwen3Config(
        vocab_size=WORDS,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        head_dim=32,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    network = Qwen3ForCausalLM(config).eval()
    for layout in LAYOUTS.values():
        require_layout(network, layout)  # before tokens are counted
    return LanguageModel(network, build_tokenizer(["one two three"] * 3, 64), "random")


def gradient(model: LanguageModel, trajectories: Sequence[Trajectory], arm: Arm) -> tuple[Tensor, int, float]:
    """Return the gradient, the tokens that went through the network, and the processor seconds."""
    method: Any = build("grpo", {"grpo": {"kl_coef": 0.0}})
    network: Any = model.network
    network.zero_grad(set_to_none=True)
    forwarded = 0

    def count(_module: object, _given: object, named: dict[str, Any]) -> None:
        nonlocal forwarded
        forwarded += named["input_ids"].numel()

    hook = network.base_model.register_forward_pre_hook(count, with_kwargs=True)
    start = time.process_time()
    batch = prepare(
        trajectories, model, method, layout=arm.layout, merge_rows=arm.merge_rows, max_tokens=arm.max_tokens
    )
    for inputs in batch.micro_batches():
        method.loss(inputs).total(inputs).backward()
    seconds = time.process_time() - start
    hook.remove()
    return torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None]), forwarded, seconds


def measured(model: LanguageModel, trajectories: Sequence[Trajectory], repeats: int) -> dict[str, Any]:
    """Return tokens, median seconds and differences of the gradients of every arm."""
    seconds: dict[str, list[float]] = {name: [] for name in ARMS}
    found: dict[str, Any] = {}
    expected, _, _ = gradient(model, trajectories, ARMS["row_a_turn"])
    for repeat in range(repeats):
        for name in list(ARMS)[:: -1 if repeat % 2 else 1]:
            values, forwarded, spent = gradient(model, trajectories, ARMS[name])
            seconds[name].append(spent)
            gap = float((values - expected).abs().max() / expected.abs().max())
            found[name] = {"tokens": forwarded, "relative_difference_float32": gap}
    for name, spent_each in seconds.items():
        found[name]["seconds"] = round(statistics.median(spent_each), 3)
    return {name: {**arm, **_ratios(arm, found)} for name, arm in found.items()}


def _ratios(arm: dict[str, Any], found: dict[str, Any]) -> dict[str, float]:
    """Return how many times fewer tokens and seconds an arm takes than the rows."""
    return {
        f"{unit}_of_{base}_over_own": round(found[base][unit] / arm[unit], 2)
        for base in ("row_a_turn", "rows")
        for unit in ("tokens", "seconds")
    }


def exact_differences(model: LanguageModel, trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return the largest difference from the gradient of separate rows in float64, relative to its largest entry."""
    from transformers.models.qwen3 import modeling_qwen3

    def norm(self: Any, x: Tensor) -> Tensor:
        scaled: Tensor = self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return scaled

    kind: Any = modeling_qwen3.Qwen3RMSNorm
    before = kind.forward  # it computes in float32
    kind.forward = norm
    exact = copy.deepcopy(model)
    exact.network.double()
    expected, _, _ = gradient(exact, trajectories, ARMS["row_a_turn"])
    found = {name: gradient(exact, trajectories, arm)[0] for name, arm in ARMS.items() if name != "row_a_turn"}
    kind.forward = before
    return {name: float((each - expected).abs().max() / expected.abs().max()) for name, each in found.items()}


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model, small = made_model(given.hidden, given.layers), made_model(64, 2)
    content: dict[str, Any] = {**vars(given), "machine": machine("torch", "transformers"), "batches": {}}
    for title, trajectories in batches().items():
        found = measured(model, trajectories, given.repeats)
        for name, gap in exact_differences(small, trajectories).items():
            found[name]["relative_difference_float64"] = gap
        content["batches"][title] = found
        print(title)
        for name, arm in found.items():
            exact = arm.get("relative_difference_float64", 0.0)
            print(
                f"  {name:11} {arm['tokens']:6} tokens, {arm['seconds']:7.3f} s, times fewer than a row a turn: "
                f"{arm['tokens_of_row_a_turn_over_own']:5.2f} tokens, {arm['seconds_of_row_a_turn_over_own']:5.2f} s; "
                f"gradients {arm['relative_difference_float32']:.1e} (float64 {exact:.1e})"
            )
    write_json(TARGET, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
