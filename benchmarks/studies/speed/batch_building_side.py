"""Processor seconds of building the batch of one iteration, in the checkout on the path.

    PYTHONPATH=CHECKOUT python batch_building_side.py

It is started by ``batch_building.py``, also on versions whose layout of micro-batches lies elsewhere.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.core.flattened import flatten
from turngym.trainers.core.rows import build_batch, micro_batches, rows_of

VOCABULARY = 32_000
EPISODES, TURNS, OBSERVED, SAMPLED = 128, 10, 93, 113
"""145,000 sampled tokens after prompts without a history, and in conversations."""


def turns_of(draw: random.Random, conversation: bool) -> list[Turn]:
    """Return the turns of one episode with random tokens."""
    found: list[Turn] = []
    prompt: tuple[int, ...] = ()
    for _ in range(TURNS):
        new = tuple(draw.randrange(VOCABULARY) for _ in range(OBSERVED))
        prompt = prompt + new if conversation else new
        completion = tuple(draw.randrange(VOCABULARY) for _ in range(SAMPLED))
        found.append(Turn("", "", "", "", prompt, completion, (-1.0,) * SAMPLED))
        prompt += completion
    return found


def batch_of(conversation: bool) -> list[Trajectory]:
    """Return the episodes of one iteration, in groups of eight."""
    draw = random.Random(0)
    specs = [EpisodeSpec(number, number, number // 8) for number in range(EPISODES)]
    return [Trajectory(spec, turns=turns_of(draw, conversation), terminated=True) for spec in specs]


def layout_function() -> Callable[[Any], object]:
    """Return what lays a micro-batch out as the inputs of a network."""
    if find_spec("turngym.trainers.engine.layouts") is None:
        old = import_module("turngym.trainers.engine.scoring")._lay_out
        return lambda sequences: old(sequences, torch.device("cpu"))
    rows = import_module("turngym.trainers.engine.layouts").layout_of("rows")
    return lambda sequences: rows.lay_out(sequences, torch.device("cpu"))


def stages(trajectories: list[Trajectory]) -> dict[str, float]:
    """Return the processor seconds of each stage."""
    seconds: dict[str, float] = {}
    lay_out = layout_function()

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = work()
        seconds[name] = time.process_time() - start
        return found

    rows = timed("rows", lambda: rows_of(flatten(trajectories), with_final_prompts=False))
    batch = timed("batch", lambda: build_batch(rows))
    parts = timed("micro_batches", lambda: micro_batches(batch, range(len(batch.sequences)), 16_384))
    timed("layout", lambda: [lay_out([batch.sequences[int(s)] for s in part.sequences]) for part in parts])
    return {**seconds, "total": sum(seconds.values())}


def main() -> None:
    """Print the seconds of each stage for both kinds of prompts."""
    torch.set_num_threads(1)
    found = {}
    for name in ("window", "conversation"):
        trajectories = batch_of(name == "conversation")
        stages(trajectories[:8])  # imports and caches
        found[name] = stages(trajectories)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
