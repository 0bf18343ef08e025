"""Ten thousand episodes over all games with random Unicode actions: ``python benchmarks/studies/checks/soak.py``.

Half of the actions are random Unicode texts, half are legal ones where there is a list. Single environments are made
anew every few episodes; then every game is played on a process vector too. After each tenth of the work the open file
descriptors, child processes, threads and resident memory are noted. Writes ``benchmarks/results/soak.json``.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path
from typing import Any

import gymnasium
from rich.progress import track

import turngym
from turngym.benchmarks.machine import machine
from turngym.envs.spaces import Unicode
from turngym.envs.textgames import SPECS
from turngym.seeding import stream
from turngym.storage.files import write_json

EPISODES = 10_000
PER_ENVIRONMENT = 5
NOTES = 10
RESULTS = Path(__file__).parents[2] / "results"


def usage() -> dict[str, int]:
    """Return what this process holds: descriptors, children, threads, resident memory in KiB."""
    gc.collect()
    pid = os.getpid()
    status = Path(f"/proc/{pid}/status").read_text("utf8")
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf8").split()
    return {
        "file_descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "children": len(children),
        "threads": threading.active_count(),
        "resident_kib": int(resident.split()[1]),
    }


def play_some(env_id: str, first_seed: int, count: int) -> int:
    """Play ``count`` episodes in one fresh environment and return the turns taken."""
    env: Any = gymnasium.make(env_id)
    generator = stream("soak", env_id, first_seed)
    text = Unicode(generator)
    turns = 0
    for seed in range(first_seed, first_seed + count):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            legal = info["legal_actions"]
            is_legal = legal and generator.random() < 0.5
            action = legal[int(generator.integers(len(legal)))] if is_legal else text.sample()
            observation, _, terminated, truncated, info = env.step(action)
            if not env.observation_space.contains(observation) or (terminated and truncated):
                raise AssertionError(f"{env_id}, seed {seed}: {observation!r}, {terminated}, {truncated}")
            over = terminated or truncated
        turns += env.turn
    env.close()
    return turns


def play_vector(env_id: str, slots: int, steps: int) -> dict[str, int]:
    """Play random Unicode on a process vector and return its faults."""
    with turngym.make_vec(env_id, slots, backend="process", num_workers=2) as vector:
        vector.reset(seed=0)
        vector.action_space.seed(0)
        for _ in range(steps):
            vector.step(vector.action_space.sample())
        return dict(vector.stats()["faults"])


def main() -> int:
    """Play, print the notes, and write them."""
    ids = sorted(SPECS)
    blocks = EPISODES // PER_ENVIRONMENT
    turns, notes = 0, []
    for block in track(range(blocks), "playing"):
        turns += play_some(ids[block % len(ids)], block * PER_ENVIRONMENT, PER_ENVIRONMENT)
        if (block + 1) % (blocks // NOTES) == 0:
            notes.append({"episodes": (block + 1) * PER_ENVIRONMENT, **usage()})
            print(notes[-1])
    before = usage()
    faults = {env_id: play_vector(env_id, 8, 50) for env_id in track(ids, "process vectors")}
    after = usage()
    print("before and after the process vectors:", before, after)
    content = {
        "episodes": EPISODES,
        "games": len(ids),
        "turns": turns,
        "notes": notes,
        "before_vectors": before,
        "after_vectors": after,
        "faults": {env_id: found for env_id, found in faults.items() if found},
        "machine": machine("gymnasium", "numpy"),
    }
    write_json(RESULTS / "soak.json", content)
    return int(any(faults.values()))


if __name__ == "__main__":
    sys.exit(main())
