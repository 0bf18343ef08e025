"""ScienceWorld and TextWorldExpress: do their gold paths win, and what does sharing Java processes cost and save.

    python benchmarks/studies/speed/jvm_worlds.py

First the package's gold path of some test variations of every task of ScienceWorld, and of every game of
TextWorldExpress, is played to its end. Then vectors of 1, 4 and 8 slots take random legal actions, in Java processes
that 8 environments share and in one for each, in turn; a side is a process of its own. Steps are counted per second and
per CPU-second, Java's own included, resets included, its start and first reset left out; memory is that of the Java
processes, each shared page divided by those who share it. Writes ``benchmarks/results/jvm_worlds.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.core import TextEnv
from turngym.envs.textworlds.java import SEATS_VARIABLE, close_java, java_pools
from turngym.envs.textworlds.scienceworld.env import ScienceWorld
from turngym.envs.textworlds.scienceworld.tasks import VARIATIONS
from turngym.envs.textworlds.textworld_express.env import TextWorldExpress
from turngym.envs.textworlds.textworld_express.games import GAMES
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.storage.files import write_json

TARGET = Path(__file__).parents[2] / "results" / "jvm_worlds.json"
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "ScienceWorld": ("turngym/ScienceWorld-v0", {"kind": "use-thermometer"}),
    "ScienceWorld with lists": ("turngym/ScienceWorld-v0", {"kind": "use-thermometer", "lists_actions": True}),
    "TextWorldExpress": ("turngym/TextWorldExpress-v0", {"game": "cookingworld"}),
}
SIDES = {"shared": "8", "one each": "1"}
FREE = ("look around", "inventory", "wait1", "look in inventory", "go to hallway", "go to kitchen")
"""What is played where there is no list."""


def follow(env: TextEnv[str], task: int) -> tuple[float, int, str]:
    """Play a gold path; return the score at its end, its length, and why it ended early."""
    env.reset(seed=0, options={"task": task})
    info: dict[str, Any] = {"score": 0.0}
    while env._running:
        try:
            *_, info = env.step(env.expert_action())
        except ConfigError as error:
            return info["score"], env.turn, str(error)
    return info["score"], env.turn, "" if info["success"] == 1 else f"ended after {env.turn} turns"


def prove(env: TextEnv[str], label: str, count: int, full: float) -> dict[str, Any]:
    """Return what the gold paths of a task's first variations reach."""
    rows = [follow(env, task) for task in range(min(count, len(env.tasks())))]
    env.close()
    failures = [[env.tasks()[i], score, why] for i, (score, _, why) in enumerate(rows) if score < full]
    print(f"{label}: {len(rows) - len(failures)} of {len(rows)} gold paths win", flush=True)
    lengths = [length for _, length, _ in rows]
    return {"played": len(rows), "won": len(rows) - len(failures), "turns": lengths, "failures": failures}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its Java processes."""
    total = time.process_time()
    for pool in java_pools():
        for engine in pool.engines:
            fields = Path(f"/proc/{engine.pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def side(world: str, slots: int, seconds: float) -> dict[str, float]:
    """Measure one side; called in a process of its own, whose environment says how many share a Java process."""
    env_id, options = WORLDS[world]
    draw, begun = random.Random(0), time.perf_counter()
    vector = make_vec(env_id, slots, split="test", **options)
    _, infos = vector.reset(seed=0)
    started = time.perf_counter() - begun
    begun, used, rounds = time.perf_counter(), cpu_seconds(), 0
    while time.perf_counter() - begun < seconds:
        *_, infos = vector.step([draw.choice(actions or FREE) for actions in infos["legal_actions"]])
        rounds += 1
    wall, cpu = time.perf_counter() - begun, cpu_seconds() - used
    engines = [engine for pool in java_pools() for engine in pool.engines]
    result = {
        "first_reset_s": started,
        "steps_per_s": rounds * slots / wall,
        "steps_per_cpu_s": rounds * slots / cpu,
        "java_processes": len(engines),
        "java_mib": sum(engine.memory_mib() for engine in engines),
    }
    assert vector.stats()["faults"] == {}
    vector.close()
    close_java()
    return result


def compare(world: str, slots: int, seconds: float, repeats: int) -> dict[str, Any]:
    """Return the medians of both sides, measured in turn."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
    for _ in range(repeats):
        for name, seats in SIDES.items():
            command = [sys.executable, __file__, "--side", world, "--slots", str(slots), "--seconds", str(seconds)]
            environment = {**os.environ, SEATS_VARIABLE: seats}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            runs[name].append(json.loads(done.stdout))
    found = {name: {key: statistics.median(run[key] for run in each) for key in each[0]} for name, each in runs.items()}
    print(world, slots, json.dumps(found), flush=True)
    return found


def main() -> None:
    """Prove, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variations", type=int, default=3, help="variations of each task to prove; 0 for none")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of one measurement")
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each side; 0 for none")
    parser.add_argument("--out", type=Path, default=TARGET, help="the file to write")
    parser.add_argument("--side", choices=WORLDS, help=argparse.SUPPRESS)
    parser.add_argument("--slots", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(side(args.side, args.slots, args.seconds)))
        return
    count = args.variations
    science = {
        kind: prove(ScienceWorld(kind=kind, split="test", max_turns=500), kind, count, 100.0)
        for kind in (VARIATIONS if count else ())
    }
    express = {
        game: prove(TextWorldExpress(game=game, split="test", max_turns=500), game, count, 1.0)
        for game in (GAMES if count else ())
    }
    close_java()
    speed = {
        world: {str(slots): compare(world, slots, args.seconds, args.repeats) for slots in (1, 4, 8)}
        for world in (WORLDS if args.repeats else ())
    }
    content = {
        "machine": machine("scienceworld", "textworld-express", "py4j"),
        "gold_paths": {"ScienceWorld": science, "TextWorldExpress": express},
        "seconds": args.seconds,
        "repeats": args.repeats,
        "speed": speed,
    }
    write_json(args.out, content)


if __name__ == "__main__":
    main()
