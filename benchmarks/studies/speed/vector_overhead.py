"""Steps per second of ``turngym.make_vec`` (sync) beside Gymnasium's SyncVectorEnv: same environments, same actions.

Interleaved repeats in one process, medians. Random legal actions; resets are part of the work on both sides.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import SyncVectorEnv

import turngym
from turngym.benchmarks.machine import machine
from turngym.seeding import stream

REPEATS, SLOTS, STEPS = 7, 32, 400
IDS = ("turngym/GuessTheNumber-v0", "turngym/Sokoban-v0", "turngym/TowerOfHanoi-v0")
TARGET = Path(__file__).parents[2] / "results" / "vector_overhead.json"


def steps_per_second(vector: Any) -> float:
    """Play ``STEPS`` vector steps with random legal actions and return environment steps per second."""
    generator = stream("vector overhead")
    _, infos = vector.reset(seed=0)
    start = time.perf_counter()
    for _ in range(STEPS):
        legal = infos["legal_actions"]
        actions = tuple(options[int(generator.random() * len(options))] if options else "" for options in legal)
        *_, infos = vector.step(actions)
    return STEPS * SLOTS / (time.perf_counter() - start)


def compare(env_id: str) -> dict[str, float]:
    """Return the medians of both sides for one environment."""
    theirs = SyncVectorEnv([lambda: gymnasium.make(env_id)] * SLOTS)
    ours = turngym.make_vec(env_id, SLOTS)
    found: dict[str, list[float]] = {"gymnasium": [], "turngym": []}
    for _ in range(REPEATS):
        found["gymnasium"].append(steps_per_second(theirs))
        found["turngym"].append(steps_per_second(ours))
    medians = {name: statistics.median(values) for name, values in found.items()}
    return {**medians, "ratio": medians["turngym"] / medians["gymnasium"]}


def main() -> int:
    """Measure, print, and write ``benchmarks/results/vector_overhead.json``."""
    result = {env_id: compare(env_id) for env_id in IDS}
    settings = {"slots": SLOTS, "steps": STEPS, "repeats": REPEATS}
    content = {"machine": machine("gymnasium", "numpy"), "settings": settings, "steps_per_second": result}
    TARGET.write_text(json.dumps(content, indent=2) + "\n", "utf8")
    for env_id, row in result.items():
        print(f"{env_id:28} gymnasium {row['gymnasium']:9.0f}  turngym {row['turngym']:9.0f}  ratio {row['ratio']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
