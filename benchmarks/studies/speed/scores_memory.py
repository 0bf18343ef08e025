"""Memory and time of log-probabilities with entropy over a large vocabulary, and their difference to the dense form.

    python benchmarks/studies/speed/scores_memory.py

With 151,936 words and 16,384 read positions: the peak of memory above hidden states, head and their gradients, forward
and backward, beside what the dense form would take, computed and not run. In double precision, with fewer positions:
the largest difference to the dense form. Each is measured in a process of its own with one thread; memory is the peak
of resident memory, reset before the measurement (Linux), and time is the processor's.
``benchmarks/results/scores_memory.json`` has the figures; ``lora_memory.py`` measures whole updates of a model.
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
from pathlib import Path
from typing import Any

import torch

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json
from turngym.trainers.engine.chunked_scores import chunk_size, flat_scores
from turngym.trainers.engine.head import Head

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "benchmarks" / "results" / "scores_memory.json"
WORDS, READS, WIDTH = 151_936, 16_384, 128
COMPARED, COMPARED_CHUNK = 96, 32
MIB = 2**20


def resident(key: str) -> float:
    """Return the resident memory of this process in MiB: VmRSS is what it has now, VmHWM its peak."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{key}:")).split()[1]) / 1024


def peak() -> dict[str, Any]:
    """Measure forward and backward over the large vocabulary in chunks."""
    torch.manual_seed(0)
    weight, hidden = torch.randn(WORDS, WIDTH).mul_(0.05).requires_grad_(), torch.randn(READS, WIDTH).requires_grad_()
    targets = torch.randint(WORDS, (READS,))
    weight.grad, hidden.grad = torch.zeros_like(weight), torch.zeros_like(hidden)
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    before, start = resident("VmRSS"), time.process_time()
    scores = flat_scores(Head(weight), hidden, torch.arange(READS), targets, 1.0, with_entropy=True)
    assert scores.entropy is not None
    (scores.logprobs + 0.01 * scores.entropy).mean().backward()
    seconds = time.process_time() - start
    logits = 4 * WORDS * READS / MIB
    return {
        "peak_above_mib": round(resident("VmHWM") - before),
        "before_mib": round(before),
        "cpu_seconds": round(seconds, 1),
        "chunk": chunk_size(WORDS),
        "one_tensor_of_all_logits_mib": round(logits),
        "dense_at_least_mib": round(3 * logits),
    }


def difference() -> dict[str, Any]:
    """Return the largest differences of scores and gradients to the dense form, in double precision."""
    torch.manual_seed(0)
    weight = torch.randn(WORDS, WIDTH, dtype=torch.float64).mul_(0.05).requires_grad_()
    hidden = torch.randn(COMPARED, WIDTH, dtype=torch.float64).requires_grad_()
    each, found = torch.arange(COMPARED), []
    for chunk in (COMPARED, COMPARED_CHUNK):
        scores = flat_scores(Head(weight), hidden, each, each, 0.7, True, chunk)
        assert scores.entropy is not None
        total = (scores.logprobs * torch.linspace(-1, 1, COMPARED) + scores.entropy).sum()
        found.append([scores.logprobs, scores.entropy, *torch.autograd.grad(total, [hidden, weight])])
    names = ("log-probability", "entropy", "gradient of hidden states", "gradient of the head")
    return {name: float((a - b).detach().abs().max()) for name, a, b in zip(names, *found, strict=True)}


def apart(part: str) -> dict[str, Any]:
    """Return what a process of its own measures."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--part", part]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["peak", "difference"], help="what this process measures")
    given = parser.parse_args()
    if given.part:
        print(json.dumps(peak() if given.part == "peak" else difference()))
        return 0
    content = {
        "words": WORDS,
        "reads": READS,
        "width": WIDTH,
        "float32": apart("peak"),
        "difference_in_float64": {"reads": COMPARED, "chunk": COMPARED_CHUNK, **apart("difference")},
        "machine": machine("torch"),
    }
    print(json.dumps(content, indent=1))
    write_json(TARGET, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
