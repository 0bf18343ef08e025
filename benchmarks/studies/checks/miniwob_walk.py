"""A random policy on every task of MiniWoB, 50 steps each.

    python benchmarks/studies/checks/miniwob_walk.py [TASK ...]

Of each task it looks at the first page of one seed four times, as text and as a screenshot: twice in a row, after the
walk has left its traces, and in an environment that has just been made. The walk takes listed actions, keys, clicks,
drags and scrolls anywhere, in as many episodes as it needs. Writes ``benchmarks/results/miniwob_walk.json`` if no task
is named, and ends with status 1 if a page differed or a fault was met.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from turngym.benchmarks.machine import machine
from turngym.envs.web.driver.tab import BrowserFault
from turngym.envs.web.driver.thread import close_shared_pool
from turngym.envs.web.miniwob import MiniWoB
from turngym.envs.web.miniwob.tasks import TASKS
from turngym.seeding import stream
from turngym.storage.files import write_json

STEPS, SEED = 50, 0
TARGET = Path(__file__).parents[2] / "results" / "miniwob_walk.json"
KEYS = ("Tab", "Enter", "Escape", "Backspace", "ArrowDown", "ArrowLeft", "Space", "Control+a", "x")


def random_action(legal: tuple[str, ...], generator: np.random.Generator) -> str:
    """Return a listed action half of the time, else one of any kind."""
    if legal and generator.random() < 0.5:
        return legal[int(generator.integers(len(legal)))]
    x, y, to_x, to_y = (int(each) for each in generator.integers(0, 210, 4))
    others = (
        f"click {x},{y}",
        f"hover {x},{y}",
        f"drag {x},{y} to {to_x},{to_y}",
        f"press {KEYS[int(generator.integers(len(KEYS)))]}",
        f"scroll {('up', 'down', 'left', 'right')[int(generator.integers(4))]}",
        "type some words",
        f"dblclick {int(generator.integers(1, 20))}",
        "back",
        "wait",
    )
    return others[int(generator.integers(len(others)))]


def walk(env: MiniWoB, task: str, steps: int = STEPS) -> dict[str, Any]:
    """Walk through one task, and tell whether its first page is always the same."""
    env.names = (task,)
    generator = stream("miniwob walk", task)
    began, resets, faults = time.perf_counter(), 0, []
    pages = [_first(env), _first(env)]
    try:
        _, info = env.reset(seed=SEED)
        over = False
        for _ in range(steps):
            if over:
                resets += 1
                _, info = env.reset(seed=SEED + resets)
            _, _, terminated, truncated, info = env.step(random_action(info["legal_actions"], generator))
            over = terminated or truncated
    except BrowserFault as error:
        faults.append(str(error))
    pages.append(_first(env))
    fresh = MiniWoB(task, image=True, marks=False)
    pages.append(_first(fresh))
    fresh.close()
    return {
        "steps": steps,
        "episodes": resets + 1,
        "faults": faults,
        "same_text": all(page[0] == pages[0][0] for page in pages),
        "same_pixels": all(np.array_equal(page[1], pages[0][1]) for page in pages),
        "seconds": time.perf_counter() - began,
    }


def _first(env: MiniWoB) -> tuple[str, Any]:
    observation, _ = env.reset(seed=SEED)
    return observation["text"], observation["image"]


def main(tasks: list[str]) -> int:
    """Walk, print what went wrong, write the result."""
    unknown = [task for task in tasks if task not in TASKS]
    if unknown:
        print(f"MiniWoB has no task named {unknown[0]}")
        return 2
    env = MiniWoB("all", image=True, marks=False)
    rows = {task: walk(env, task) for task in track(tasks or TASKS, "walking")}
    env.close()
    close_shared_pool()
    bad = {task: row for task, row in rows.items() if row["faults"] or not (row["same_text"] and row["same_pixels"])}
    for task, row in bad.items():
        print(task, row)
    steps, resets = (sum(row[name] for row in rows.values()) for name in ("steps", "episodes"))
    print(
        f"{len(rows)} tasks, {steps} steps in {resets} episodes: {len(rows) - len(bad)} tasks without fault or change"
    )
    if not tasks:
        write_json(TARGET, {"machine": machine("playwright", "miniwob"), "seed": SEED, "tasks": rows})
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
