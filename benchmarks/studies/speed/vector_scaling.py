"""What vectors cost as they grow: worker processes beside one process, memory per slot, and steps of many slots.

- speed-up of worker processes over ``sync`` for a game of pure Python whose step costs 200 us of processor time, beside
  that of two programs that know nothing of each other, which is all that the machine can give;
- memory per slot at 64 and 1024 slots, as the proportional set size of all processes (shared pages counted once);
- steps per second of ``sync`` at 16 and at 1024 slots.

Interleaved repeats, medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.core import Outcome, TextEnv
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.types import JSONValue

STEP_SECONDS, SLOTS = 200e-6, 64
GAMES = ("turngym/GuessTheNumber-v0", "turngym/FrozenLake-v0", "turngym/Sokoban-v0")
TARGET = Path(__file__).parents[2] / "results" / "vector_scaling.json"


class Busy(TextEnv[str]):
    """Every step does a fixed amount of work in pure Python.

    Args:
        amount: How much.
        max_turns: Turns of an episode.
        split: Ignored.
        env_id: Registered id.
        render_mode: Ignored.
    """

    def __init__(
        self,
        amount: int = 1000,
        *,
        max_turns: int = 100,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self.amount = amount

    def begin(self, task: str | int | None) -> str:
        self.total = 0
        return "begin"

    def apply_action(self, action: str) -> Outcome[str]:
        total = self.total
        for number in range(self.amount):
            total = (total * 31 + number) % 1_000_003
        self.total = total
        return Outcome(str(total))

    def anchor(self) -> str:
        return str(self.total)

    def save_state(self) -> JSONValue:
        return self.total

    def load_state(self, state: JSONValue) -> None:
        self.total = state


def calibrated() -> int:
    """Return the amount of work that makes a step cost ``STEP_SECONDS``, the vector's own part left out."""
    env = Busy(10_000, max_turns=100_000)
    env.reset(seed=0)
    costs = []
    for _ in range(30):
        began = time.process_time()
        env.step("")
        costs.append(time.process_time() - began)
    return round(10_000 * STEP_SECONDS / statistics.median(costs))


def lockstep(vector: TextVectorEnv, actions: list[str], seconds: float) -> float:
    """Return steps per second of whole vector steps."""
    began, count = time.perf_counter(), 0
    while time.perf_counter() < began + seconds:
        vector.step(actions)
        count += len(actions)
    return count / (time.perf_counter() - began)


def halves(vector: TextVectorEnv, actions: list[str], seconds: float) -> float:
    """Return steps per second if half of the slots is under way while the other half is read and sent on."""
    count = 0
    vector.send(actions)
    began = time.perf_counter()
    while time.perf_counter() < began + seconds:
        slots = vector.recv(len(actions) // 2)[0]
        vector.send([actions[slot] for slot in slots], slots)
        count += len(slots)
    elapsed = time.perf_counter() - began
    vector.recv(len(actions))
    return count / elapsed


def alone(amount: int, seconds: float) -> int:
    """Step one environment for some seconds and print the rate: run in a process of its own."""
    env = Busy(amount, max_turns=100_000)
    env.reset(seed=0)
    began, count = time.perf_counter(), 0
    while time.perf_counter() < began + seconds:
        env.step("")
        count += 1
    print(count / (time.perf_counter() - began))
    return 0


def ceiling(amount: int, seconds: float) -> float:
    """Return how many times the rate of one program two have together that run at once."""
    arguments = [sys.executable, __file__, "--alone", str(amount), str(seconds)]
    rates = []
    for count in (1, 2):
        running = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        rates.append(sum(float(program.communicate()[0]) for program in running))
    return rates[1] / rates[0]


def speed_up(repeats: int, seconds: float) -> dict[str, Any]:
    """Return the rates of ``sync`` and of two worker processes, and what the processes gain."""
    amount = calibrated()
    fns = [lambda: Busy(amount)] * SLOTS
    vectors = {"sync": make_vec(env_fns=fns), "process": make_vec(env_fns=fns, backend="process", num_workers=2)}
    rates: dict[str, list[float]] = {"sync": [], "process": [], "process, halves": []}
    for vector in vectors.values():
        vector.reset(seed=0)
    limits = []
    for _ in range(repeats):
        limits.append(ceiling(amount, seconds))
        rates["sync"].append(lockstep(vectors["sync"], [""] * SLOTS, seconds))
        rates["process"].append(lockstep(vectors["process"], [""] * SLOTS, seconds))
        rates["process, halves"].append(halves(vectors["process"], [""] * SLOTS, seconds))
    vectors["process"].close()
    medians = {name: statistics.median(values) for name, values in rates.items()}
    gains = {
        name: statistics.median(one / sync for one, sync in zip(values, rates["sync"], strict=True))
        for name, values in rates.items()
        if name != "sync"
    }
    gains["two independent programs"] = statistics.median(limits)
    return {"slots": SLOTS, "num_workers": 2, "steps_per_second": medians, "speed_up": gains, "target": 1.7}


def growth(repeats: int, seconds: float) -> dict[str, Any]:
    """Return the steps per second of ``sync`` at 16 and 1024 slots; the actions are always the same."""
    found = {}
    for game in GAMES:
        vectors = {count: make_vec(game, count) for count in (16, 1024)}
        first = {count: vector.reset(seed=0)[1].rows[0]["legal_actions"][0] for count, vector in vectors.items()}
        actions = {count: [action] * count for count, action in first.items()}
        rates: dict[int, list[float]] = {count: [] for count in vectors}
        for _ in range(repeats):
            for count, vector in vectors.items():
                rates[count].append(lockstep(vector, actions[count], seconds))
        medians = {count: statistics.median(values) for count, values in rates.items()}
        losses = [1 - many / few for few, many in zip(rates[16], rates[1024], strict=True)]
        found[game] = {"steps_per_second": medians, "loss": statistics.median(losses), "target": 0.25}
    return found


def memory_mib(pid: int) -> float:
    """Return the proportional set size of a process and all that it has started, in MiB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return own / 1024 + sum(memory_mib(child) for child in children)


def fill(game: str, backend: str, count: int) -> int:
    """Make a vector, play a little, and print the memory of all its processes: run in a process of its own."""
    if count:
        vector = make_vec(game, count, backend=backend, num_workers=2 if backend == "process" else None)
        _, infos = vector.reset(seed=0)
        for _ in range(5):
            infos = vector.step([row["legal_actions"][0] if row["legal_actions"] else "" for row in infos.rows])[4]
    else:
        make_vec(game, 1).reset(seed=0)
    print(memory_mib(os.getpid()))
    return 0


def memory() -> dict[str, Any]:
    """Return the memory of each backend at 64 and 1024 slots, in all and per slot beyond an empty program."""
    found: dict[str, Any] = {}
    for game in GAMES[::2]:
        empty = measured(game, "sync", 0)
        rows: dict[str, Any] = {"empty program, MiB": empty}
        for backend in ("sync", "thread", "process"):
            for count in (64, 1024):
                total = measured(game, backend, count)
                rows[f"{backend}, {count} slots"] = {"MiB": total, "KiB per slot": (total - empty) / count * 1024}
        found[game] = rows
    return found


def measured(game: str, backend: str, count: int) -> float:
    """Return what :func:`fill` prints in a fresh process."""
    arguments = [sys.executable, __file__, "--fill", game, backend, str(count)]
    return float(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Measure, print, and write ``benchmarks/results/vector_scaling.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5, help="length of each window")
    parser.add_argument("--output", type=Path, default=TARGET)
    parser.add_argument("--fill", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        return alone(int(arguments.alone[0]), float(arguments.alone[1]))
    if arguments.fill:
        game, backend, count = arguments.fill
        return fill(game, backend, int(count))
    result = {
        "machine": machine("gymnasium", "numpy"),
        "settings": {"repeats": arguments.repeats, "window_seconds": arguments.seconds, "step_seconds": STEP_SECONDS},
        "speed_up": speed_up(arguments.repeats, arguments.seconds),
        "growth": growth(arguments.repeats, arguments.seconds),
        "memory": memory(),
    }
    arguments.output.write_text(json.dumps(result, indent=2) + "\n", "utf8")
    print(json.dumps({name: result[name] for name in ("speed_up", "growth", "memory")}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
