"""What a turn and a reset on the desktop cost, what a slot needs of memory, and whether the oracle reaches every goal.

Every goal is begun several times, each time with another instance, on one display; then vectors of several slots play
the same goals. Times are wall time, medians and the highest.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.desktop.env import Desktop
from turngym.envs.desktop.goals.table import GOALS
from turngym.envs.vector import make_vec
from turngym.system.processes import descendants

TARGET = Path(__file__).parents[2] / "results" / "desktop.json"


def memory_mib(process: int) -> float:
    """Return the memory of a process and all that descend from it, shared pages counted in proportion."""
    total = 0
    for each in descendants(process):
        try:
            found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{each}/smaps_rollup").read_text(), re.MULTILINE)
        except OSError:
            continue
        total += int(found[1]) if found else 0
    return total / 1024


def play_goals(resets: int, names: Sequence[str], *, image: bool) -> dict[str, Any]:
    """Let the oracle play every goal on one display; return success, times and memory of each."""
    env = Desktop("all", image=image)
    began = time.perf_counter()
    env.reset(seed=0)
    start_seconds = time.perf_counter() - began
    rows = {}
    for name in names:
        env.names = (name,)
        reset_ms, turn_ms, turns, solved, memory = [], [], [], 0, 0.0
        for seed in range(resets):
            began = time.perf_counter()
            env.reset(seed=seed)
            reset_ms.append((time.perf_counter() - began) * 1000)
            assert env.slot.session is not None
            memory = max(memory, memory_mib(env.slot.session.pid))
            is_over, count, reward = False, 0, 0.0
            while not is_over:
                action = env.expert_action()
                began = time.perf_counter()
                _, reward, terminated, truncated, _ = env.step(action)
                turn_ms.append((time.perf_counter() - began) * 1000)
                is_over, count = terminated or truncated, count + 1
            solved += int(reward == 1.0)
            turns.append(count)
        rows[name] = {
            "solved": solved,
            "resets": resets,
            "turns": statistics.median(turns),
            "reset_ms": round(statistics.median(reset_ms), 1),
            "turn_ms": round(statistics.median(turn_ms), 1),
            "turn_ms_highest": round(max(turn_ms), 1),
            "memory_mib": round(memory, 1),
        }
        print(f"{name:22} {rows[name]}", flush=True)
    starts = env.slot.starts
    env.close()
    return {"goals": rows, "first_reset_ms": round(start_seconds * 1000, 1), "displays_started": starts}


def play_slots(slots: int, episodes: int) -> dict[str, float]:
    """Let the oracle play on several displays at once; return turns per second, resets included."""
    vector = make_vec("turngym/Desktop-v0", slots, backend="thread")
    vector.reset(seed=list(range(slots)))
    began, turns, left = time.perf_counter(), 0, episodes
    while left > 0:
        *_, terminations, truncations, _ = vector.step(vector.call("expert_action"))
        turns += slots
        over = terminations | truncations
        left -= int(over.sum())
        if over.any():
            vector.reset(options={"reset_mask": over})
    seconds = time.perf_counter() - began
    memory = sum(memory_mib(slot.session.pid) for slot in vector.get_attr("slot"))
    vector.close()
    return {"turns_per_s": round(turns / seconds, 2), "memory_mib_per_slot": round(memory / slots, 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resets", type=int, default=3)
    parser.add_argument("--goals", nargs="*", default=sorted(GOALS))
    parser.add_argument("--slots", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--episodes", type=int, default=24, help="episodes of each number of slots")
    parser.add_argument("--image", action="store_true", help="whether observations hold the screen")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args(arguments)
    found = play_goals(options.resets, options.goals, image=options.image)
    rows = found["goals"].values()
    result = {
        "machine": machine("gymnasium"),
        "image": options.image,
        "solved": sum(row["solved"] for row in rows),
        "played": sum(row["resets"] for row in rows),
        "reset_ms": statistics.median(row["reset_ms"] for row in rows),
        "turn_ms": statistics.median(row["turn_ms"] for row in rows),
        "memory_mib": max(row["memory_mib"] for row in rows),
        **found,
        "slots": {str(slots): play_slots(slots, options.episodes) for slots in options.slots},
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key != "goals"}, indent=2))


if __name__ == "__main__":
    main()
