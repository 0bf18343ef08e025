"""MiniWoB in turngym and in BrowserGym: the same pages, seeds and clicks, the same browser program, side by side.

Both sides look at the page after every turn. Both take a screenshot, of nearly the same number of pixels, and the
accessibility tree of Chromium with ids for the elements; BrowserGym a snapshot of the document besides, turngym what it
knows of the visible elements. A last row shows what turngym's text of the page costs without picture and tree. In
BrowserGym's favour, its wait of 0.5 s before each observation and its slow motion are switched off. Both begin each
episode on a clean page: BrowserGym by a new browser, turngym by loading the page anew, or by rewinding it where tests
show that to be equal. That both were given the same tasks is checked. Needs ``make .venvs/browsergym``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from turngym.benchmarks.machine import machine
from turngym.envs.web.driver.chromium import FLAGS, find_browser
from turngym.envs.web.driver.thread import close_shared_pool
from turngym.envs.web.miniwob.env import MiniWoB
from turngym.envs.web.miniwob.tasks import pages_folder

TARGET = Path(__file__).parents[2] / "results" / "miniwob_vs_browsergym.json"
SIDE = Path(__file__).parent / "browsergym_side.py"
PEER = Path(__file__).parents[3] / ".venvs" / "browsergym" / "bin" / "python"
TASKS = (
    "click-button",
    "login-user",
    "enter-text",
    "click-checkboxes",
    "click-link",
    "use-slider",
    "choose-list",
    "focus-text",
)
TURNS = 5
Episode = tuple[str, int, list[tuple[int, int]]]
Result = dict[str, Any]


def episodes(repeat: int, count: int) -> list[Episode]:
    """Return the episodes of one repeat: task, seed, and where to click; those of a task follow one another.

    The clicks are low on the page, where little ends a task.
    """
    found: list[Episode] = []
    for number in range(count):
        choice = random.Random(f"{repeat} {number}")
        clicks = [(choice.randrange(100, 156), choice.randrange(150, 206)) for _ in range(TURNS)]
        found.append((TASKS[number * len(TASKS) // count], 1000 * repeat + number, clicks))
    return found


def share(work: Sequence[Episode], slot: int, slots: int) -> Sequence[Episode]:
    """Return the episodes of one slot, those of a task together."""
    return work[slot * len(work) // slots : (slot + 1) * len(work) // slots]


class SamePage(MiniWoB):
    """MiniWoB on the very page that BrowserGym makes of a seed."""

    page_seed = 0

    def draw(self, generate: Any, text: Any) -> Any:
        self.instance = text((self.names[0], self.page_seed))
        return self.names[0], self.page_seed


async def play(env: SamePage, work: Sequence[Episode], found: Result) -> list[str]:
    """Play episodes in one slot, and return their goals."""
    goals: list[str] = []
    for task, seed, clicks in work:
        env.names = (task,)
        env.page_seed = int(np.random.RandomState(seed).randint(0, 1_000_000))
        began = time.perf_counter()
        await env.async_reset(seed=seed)
        found["resets"].append(time.perf_counter() - began)
        goals.append(env.screen.goal)
        for x, y in clicks:
            began = time.perf_counter()
            _, _, terminated, truncated, _ = await env.async_step(f"click {x},{y}")
            found["steps"].append(time.perf_counter() - began)
            if terminated or truncated:
                break
    return goals


def ours(work: Sequence[Episode], slots: int, *, whole: bool) -> Result:
    """Play episodes on turngym's side, in slots of one process; the browser starts before the clock does."""
    sys.path.insert(0, str(Path(__file__).parent))
    from browsergym_side import memory_mib

    found: Result = {"resets": [], "steps": []}
    observation = "tree" if whole else "page"
    envs = [SamePage("all", observation=observation, image=whole, marks=False, max_turns=100) for _ in range(slots)]

    async def run() -> list[str]:
        goals = await asyncio.gather(*(play(env, share(work, slot, slots), found) for slot, env in enumerate(envs)))
        return [goal for each in goals for goal in each]

    try:
        for env in envs:
            env.reset(seed=0)
        began = time.monotonic()
        found["goals"] = asyncio.run(run())
        found["seconds"] = time.monotonic() - began
        found["memory_mib"] = memory_mib()
    finally:
        for env in envs:
            env.close()
        close_shared_pool()
    return found


def theirs(work: Sequence[Episode], slots: int, python: Path) -> Result:
    """Play episodes on BrowserGym's side, a process for each slot; imports are done before the clock starts."""
    sides = [
        subprocess.Popen([python, SIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(slots)
    ]
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    for slot, side in enumerate(sides):
        task = {
            "pages": f"{pages_folder().as_uri()}/miniwob/",
            "browser": find_browser("the benchmark"),
            "flags": flags,
            "episodes": share(work, slot, slots),
        }
        _tell(side, json.dumps(task))
    for side in sides:
        _hear(side)
    began = time.monotonic()
    for side in sides:
        _tell(side, "go")
    answers = [json.loads(_hear(side)) for side in sides]
    seconds = time.monotonic() - began
    for side in sides:
        side.communicate(timeout=60)
    return {
        "resets": [value for answer in answers for value in answer["resets"]],
        "steps": [value for answer in answers for value in answer["steps"]],
        "goals": [goal for answer in answers for goal in answer["goals"]],
        "memory_mib": sum(answer["memory_mib"] for answer in answers),
        "seconds": seconds,
    }


def _tell(side: subprocess.Popen[str], line: str) -> None:
    assert side.stdin is not None
    side.stdin.write(line + "\n")
    side.stdin.flush()


def _hear(side: subprocess.Popen[str]) -> str:
    assert side.stdout is not None
    line = side.stdout.readline()
    if not line:
        raise RuntimeError(f"BrowserGym's side ended with {side.wait()}; what it printed stands above")
    return line


def summary(runs: Sequence[Result]) -> Result:
    """Return the medians of several runs of one cell."""
    return {
        "steps_per_second": statistics.median(len(run["steps"]) / run["seconds"] for run in runs),
        "reset_ms": statistics.median(1000 * value for run in runs for value in run["resets"]),
        "step_ms": statistics.median(1000 * value for run in runs for value in run["steps"]),
        "memory_mib": statistics.median(run["memory_mib"] for run in runs),
        "rates": [len(run["steps"]) / run["seconds"] for run in runs],
        "episodes": sum(len(run["resets"]) for run in runs),
        "steps": sum(len(run["steps"]) for run in runs),
    }


def main() -> None:
    """Measure, print a table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=32, help="episodes of a repeat")
    parser.add_argument("--slots", type=int, default=4, help="slots of the second part")
    parser.add_argument("--peer", type=Path, default=PEER, help="Python with browsergym-miniwob 0.14.3")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    if not options.peer.exists():
        sys.exit(f"there is no {options.peer}: make .venvs/browsergym")
    runs: dict[str, list[Result]] = {}
    for repeat in range(options.repeats):
        for slots in (1, options.slots):
            work = episodes(repeat, options.episodes)
            found = {
                f"BrowserGym {slots}": theirs(work, slots, options.peer),
                f"turngym {slots}": ours(work, slots, whole=True),
                f"turngym {slots} page text alone": ours(work, slots, whole=False),
            }
            goals = [result.pop("goals") for result in found.values()]
            if goals.count(goals[0]) != len(goals):
                sys.exit("the sides were not given the same tasks")
            for name, result in found.items():
                runs.setdefault(name, []).append(result)
    cells = {name: summary(each) | {"slots": int(name.split()[1])} for name, each in runs.items()}
    for name, cell in cells.items():
        base = cells[f"BrowserGym {cell['slots']}"]
        cell["ratio"] = cell["steps_per_second"] / base["steps_per_second"]
        print(
            f"{name:26} {cell['steps_per_second']:7.2f} steps/s with resets  {cell['ratio']:6.1f}x  "
            f"reset {cell['reset_ms']:7.1f} ms  step {cell['step_ms']:6.1f} ms  "
            f"{cell['memory_mib'] / cell['slots']:5.0f} MiB a slot"
        )
    kept = {"machine": machine("turngym", "playwright", "miniwob"), "tasks": TASKS, "turns": TURNS, "cells": cells}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(kept, indent=1) + "\n", "utf8")


if __name__ == "__main__":
    main()
