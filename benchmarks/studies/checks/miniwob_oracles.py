"""Success of every oracle of MiniWoB on 20 seeds: ``python benchmarks/studies/checks/miniwob_oracles.py [TASK ...]``.

Episodes come from the test split, seeds 0 to 19. Writes ``benchmarks/results/miniwob_oracles.json`` and, for readers,
``benchmarks/results/miniwob_oracles.md`` after every task; named tasks replace their own rows and leave the others.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from rich.progress import track

from turngym.agents.intervals import wilson
from turngym.benchmarks.machine import machine
from turngym.envs.web.driver.thread import close_shared_pool
from turngym.envs.web.miniwob.env import MiniWoB
from turngym.envs.web.miniwob.oracles.table import ORACLES, WITHOUT_ORACLE
from turngym.envs.web.miniwob.tasks import TASKS
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic, write_json

SEEDS = 20
RESULTS = Path(__file__).parents[2] / "results"
Row = dict[str, Any]


def play(env: MiniWoB, task: str) -> Row:
    """Play the episodes of one task with its oracle."""
    env.names = (task,)
    solved, scores, turns, failures = 0, [], [], {}
    for seed in range(SEEDS):
        _, info = env.reset(seed=seed)
        over, why = False, ""
        while not over:
            try:
                action = env.expert_action()
            except ConfigError as error:  # the oracle does not understand the page
                why = str(error)
                break
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        solved += info["success"] == 1
        scores.append(info["score"])
        turns.append(env.turn)
        if info["success"] != 1:
            failures[str(seed)] = why or f"score {info['score']:g} after {env.turn} turns: {env.screen.goal}"
    low, high = wilson(solved, SEEDS)
    return {
        "success": solved / SEEDS,
        "low": low,
        "high": high,
        "mean_score": statistics.mean(scores),
        "mean_turns": statistics.mean(turns),
        "failures": failures,
    }


def as_markdown(rows: dict[str, Row]) -> str:
    """Return the table for readers."""
    whole = sum(row["success"] == 1 for row in rows.values())
    lines = [
        f"Success of the oracles of MiniWoB on {SEEDS} episodes each of the test split (seeds 0 to {SEEDS - 1}), with",
        f"95 % Wilson intervals: {len(rows)} of {len(TASKS)} tasks have an oracle, {whole} are solved every time.",
        "",
        "| task | success | score | turns |",
        "|---|---|---|---|",
    ]
    for task in sorted(rows):
        row = rows[task]
        lines.append(
            f"| {task} | {row['success']:.0%} [{row['low']:.0%}, {row['high']:.0%}] | {row['mean_score']:.2f} | "
            f"{row['mean_turns']:.1f} |"
        )
    lines += ["", "| task without an oracle | why |", "|---|---|"]
    lines += [f"| {task} | {why} |" for task, why in sorted(WITHOUT_ORACLE.items())]
    return "\n".join(lines) + "\n"


def main(tasks: list[str]) -> int:
    """Play, print, write the tables."""
    unknown = [task for task in tasks if task not in ORACLES]
    if unknown:
        print(f"no task with an oracle is named {unknown[0]}; there are: {', '.join(sorted(ORACLES))}")
        return 2
    target = RESULTS / "miniwob_oracles.json"
    rows: dict[str, Row] = json.loads(target.read_text("utf8"))["tasks"] if tasks and target.exists() else {}
    env = MiniWoB("all", split="test")
    for task in track(tasks or sorted(ORACLES), "playing"):
        rows[task] = play(env, task)
        rows = {name: rows[name] for name in sorted(rows) if name in ORACLES}
        content = {"seeds": SEEDS, "split": "test", "machine": machine("playwright", "miniwob"), "tasks": rows}
        write_json(target, content | {"without_oracle": WITHOUT_ORACLE})
        write_atomic(target.with_suffix(".md"), as_markdown(rows))
    env.close()
    close_shared_pool()
    print(as_markdown(rows))
    for task in tasks or rows:
        for seed, why in rows[task]["failures"].items():
            print(f"{task} seed {seed}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
