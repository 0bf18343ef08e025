"""Training speed and memory on a GPU: Qwen3-shaped models with random weights, updates alone and whole runs.

    python benchmarks/studies/speed/gpu.py            # on a GPU, within 20 minutes
    python benchmarks/studies/speed/gpu.py --shapes tiny --device cpu --rows 4 --length 32

Every arm is a process of its own. Its batch is ``--rows`` episodes of one turn of ``--length`` tokens, half of them
read and half of them sampled. ``benchmarks/results/gpu.json`` has, of the updates after the first one, tokens a second,
the share of the device's peak in bfloat16 (``--peak``), and the largest memory that was allocated. Floating-point
operations are 6 for each weight and token, plus those of attention and head; operations that checkpointing repeats do
not count. Without a GPU the table says "not run".

Behind these are whole runs on Sokoban with the first shape (``--turns``, ``--groups``, ``--group-size``). The policy's
own network samples, or vLLM in the learner's process, or a server that shares the GPU and sleeps while the learner
learns, or a server beside it (on the second GPU where there is one), that one also asynchronously.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from turngym.agents.models.embedded import build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.benchmarks.studies.speed.gpu_runs import RUNS, Run, measure_run
from turngym.trainers.algorithms import build
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.learner import Learner

_PEAK = 989e12
"""Operations a second of an H100 SXM in bfloat16 without sparsity."""
ANCHORS = {"0.6B": 11_900.0, "4B": 6_200.0}
"""Tokens a second of other trainers on one H100: all weights of 0.6B, adapters on 4B."""


@dataclass(frozen=True)
class Shape:
    """Size of a Qwen3 model."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    words: int


SHAPES = {
    "tiny": Shape(64, 192, 4, 4, 2, 32, 512),
    "0.6B": Shape(1024, 3072, 28, 16, 8, 128, 151_936),
    "4B": Shape(2560, 9728, 36, 32, 8, 128, 151_936),
}


@dataclass(frozen=True)
class Arm:
    """One row of the table.

    Args:
        shape: Name of the model's size.
        rank: Of low-rank adapters; 0 trains all weights.
        checkpointing: Whether layers are computed again in the backward pass.
        layout: How sequences go through the network.
    """

    shape: str
    rank: int = 0
    checkpointing: bool = True
    layout: str = "packed"


def arms(shapes: list[str]) -> list[Arm]:
    """Return the rows of the table: the smaller models with all weights, 4B with adapters."""
    found = []
    for shape in shapes:
        rank = 32 if shape == "4B" else 0
        found += [Arm(shape, rank), Arm(shape, rank, layout="rows")]
        found += [] if rank else [Arm(shape, rank, checkpointing=False)]
    return found


def build_model(shape: Shape, device: str) -> LanguageModel:
    """Return a model with random weights in bfloat16."""
    tokenizer = build_tokenizer(["a door"], 300)
    config = Qwen3Config(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        vocab_size=shape.words,
        max_position_embeddings=40_960,
        tie_word_embeddings=True,
    )
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            network = Qwen3ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)
    return LanguageModel(network, tokenizer, "random")


def operations(shape: Shape, length: int) -> float:
    """Return the floating-point operations of one token, forward and backward, in sequences of that length."""
    attention = shape.hidden * shape.head * (2 * shape.heads + 2 * shape.kv_heads)
    weights = shape.layers * (attention + 3 * shape.hidden * shape.intermediate) + shape.words * shape.hidden
    return 6.0 * weights + 6.0 * shape.layers * shape.heads * shape.head * length


def episodes(rows: int, length: int, words: int) -> list[Trajectory]:
    """Return episodes of one turn with random tokens, half of them sampled."""
    generator = torch.Generator().manual_seed(0)
    half = length // 2
    found = []
    for number in range(rows):
        ids = tuple(torch.randint(words, (2 * half,), generator=generator).tolist())
        tokens = {"prompt_ids": ids[:half], "completion_ids": ids[half:], "logprobs": (-11.0,) * half}
        turn = Turn("o", "o", "a", reward=float(number % 2), **tokens)  # type: ignore[arg-type]
        found.append(Trajectory(EpisodeSpec(number, 0, 0), turns=[turn], terminated=True))
    return found


def wait_for(device: str) -> None:
    """Wait until a GPU has finished its work; a CPU always has."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def measure(arm: Arm, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one arm, of this process."""
    shape, on_gpu = SHAPES[arm.shape], options.device != "cpu"
    model = build_model(shape, options.device)
    if arm.rank:
        model = add_adapters(model, arm.rank, seed=0)
    settings = UpdateConfig(
        learning_rate=1e-6,
        gradient_checkpointing=arm.checkpointing,
        max_micro_batch_tokens=options.micro_batch,
        layout=arm.layout,  # type: ignore[arg-type]
    )
    learner = Learner(model, build("grpo", {"grpo": {"kl_coef": 0.0}}), settings)
    batch = episodes(options.rows, options.length, shape.words)
    learner.update(batch, 0)
    wait_for(options.device)
    start = time.perf_counter()
    for number in range(options.updates):
        learner.update(batch, number + 1)
    wait_for(options.device)
    seconds = time.perf_counter() - start
    tokens = options.updates * sum(len(t.turns[0].prompt_ids) + len(t.turns[0].completion_ids) for t in batch)
    speed = tokens / seconds
    found = {
        "tokens_per_second": round(speed, 1),
        "share_of_peak": round(speed * operations(shape, options.length) / options.peak, 4) if on_gpu else None,
        "memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if on_gpu else None,
    }
    return {**found, "anchor_tokens_per_second": ANCHORS.get(arm.shape) if on_gpu else None}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = arguments(__doc__, "gpu.json")
    made.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=["0.6B", "4B"])
    made.add_argument("--device", default="cuda")
    made.add_argument("--rows", type=int, default=32)
    made.add_argument("--length", type=int, default=2048)
    made.add_argument("--micro-batch", type=int, default=16_384)
    made.add_argument("--updates", type=int, default=3)
    made.add_argument("--peak", type=float, default=_PEAK)
    made.add_argument("--runs", nargs="*", choices=list(RUNS), default=list(RUNS), help="whole runs")
    made.add_argument("--turns", type=int, default=40)
    made.add_argument("--groups", type=int, default=16)
    made.add_argument("--group-size", type=int, default=8)
    made.add_argument("--new-tokens", type=int, default=32)
    made.add_argument("--arm", help=argparse.SUPPRESS)
    made.add_argument("--run", help=argparse.SUPPRESS)
    return made


def apart(words: list[str], why_not: str) -> dict[str, Any]:
    """Return what this script measures in a process of its own, or why it does not."""
    if why_not:
        return {"status": f"not run: {why_not}"}
    done = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"status": f"failed: {' '.join(done.stderr.strip().splitlines()[-3:])}"}
    return {"status": "run", **json.loads(done.stdout.strip().splitlines()[-1])}


def _why_not(run: Run, can_run: bool) -> str:
    """Return why a run is not made here; empty if it is."""
    if not can_run:
        return "there is no GPU here"
    return f"{run.lacks} is not installed" if run.lacks else ""


def main() -> None:
    """Measure every arm and every run in a process of its own, and write the table."""
    options = parser().parse_args()
    if options.arm is not None:
        print(json.dumps(measure(Arm(**json.loads(options.arm)), options)))
        return
    if options.run is not None:
        model = build_model(SHAPES[options.shapes[0]], options.device)
        print(json.dumps(measure_run(RUNS[options.run], model, options)))
        return
    can_run = options.device == "cpu" or torch.cuda.is_available()
    rows, runs = [], []
    for arm in arms(options.shapes):
        found = apart(["--arm", json.dumps(asdict(arm))], "" if can_run else "there is no GPU here")
        rows.append({**asdict(arm), **found})
        print(json.dumps(rows[-1]), flush=True)
    for run in (RUNS[name] for name in options.runs):
        runs.append({**asdict(run), **apart(["--run", run.name], _why_not(run, can_run))})
        print(json.dumps(runs[-1]), flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    names = ("rows", "length", "micro_batch", "updates", "peak", "turns", "groups", "group_size", "new_tokens")
    given = {name: getattr(options, name) for name in names}
    write_result(options.out, {"gpu": device, **given, "arms": rows, "runs": runs}, "torch", "transformers")


if __name__ == "__main__":
    main()
