"""Replays the walkthrough of every game of ALFWorld's folds, in both styles of its verb, and lists what does not win.

    ALFWORLD_DATA=FOLDER python benchmarks/studies/checks/alfworld_walkthroughs.py [FOLD ...]

A walkthrough counts if each of its commands is valid, the last one and no other ends the game, with success, within
ALFWorld's 50 turns, and all conditions of the goal hold then. Writes ``benchmarks/results/alfworld_walkthroughs.json``.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.progress import track

from turngym.benchmarks.machine import machine
from turngym.envs.household.alfworld import ALFWorld
from turngym.envs.household.alfworld_games import FOLDS, find_data, open_games
from turngym.storage.files import write_json

TARGET = Path(__file__).parents[2] / "results" / "alfworld_walkthroughs.json"
_MOVE = re.compile(r"move (.+) to (.+)")
STYLES: dict[str, Callable[[str], str]] = {
    "move X to Y": str,
    "put X in/on Y": lambda command: _MOVE.sub(r"put \1 in/on \2", command),
}


def replay(env: ALFWorld, name: str, commands: Sequence[str]) -> tuple[str, list[float]]:
    """Play commands and return what went wrong, empty if nothing did, and the progress after each of them."""
    _, info = env.reset(seed=0, options={"task": name})
    progress = [info["progress"]]
    for turn, command in enumerate(commands, 1):
        *_, terminated, truncated, info = env.step(command)
        progress.append(info["progress"])
        if not info["action_is_valid"]:
            return f"turn {turn}: {command!r} is not valid", progress
        if terminated != (turn == len(commands)) or truncated:
            return f"turn {turn} of {len(commands)}: terminated {terminated}, truncated {truncated}", progress
    if info["success"] != 1 or info["score"] != 1.0 or info["progress"] != 1.0:
        return f"ended with success {info['success']}, goal conditions {info['progress']}", progress
    return "", progress


def fold_rows(fold: str) -> dict[str, Any]:
    """Return what became of the games of a fold."""
    env, games = ALFWorld(split=fold), open_games(find_data(""), fold)
    failures: dict[str, dict[str, str]] = {style: {} for style in STYLES}
    lengths, halfway, kinds = [], [], dict.fromkeys(games.kinds.values(), 0)
    for name in track(env.tasks(), fold):
        walkthrough = games.read(name).walkthrough
        for style, write in STYLES.items():
            wrong, progress = replay(env, name, [write(command) for command in walkthrough])
            if wrong:
                failures[style][name] = wrong
        lengths.append(len(walkthrough))
        halfway.append(progress[len(progress) // 2])
        kinds[games.kinds[name]] += 1
    return {
        "games": len(lengths),
        "won": {style: len(lengths) - len(found) for style, found in failures.items()},
        "failures": failures,
        "kinds": kinds,
        "mean_turns": statistics.mean(lengths),
        "most_turns": max(lengths),
        "mean_goal_conditions_halfway": statistics.mean(halfway),
    }


def main(folds: list[str]) -> int:
    """Replay, print and write; 1 if a game was not won."""
    unknown = [fold for fold in folds if fold not in FOLDS.values()]
    if unknown:
        print(f"no fold named {unknown[0]}; there are: {', '.join(FOLDS.values())}")
        return 2
    rows = {fold: fold_rows(fold) for fold in folds or ("valid_unseen", "valid_seen")}
    for fold, row in rows.items():
        print(f"{fold}: {row['games']} games, won {row['won']}, failures {row['failures']}")
    if not folds:
        write_json(TARGET, {"machine": machine(), "folds": rows})
    return int(any(found for row in rows.values() for found in row["failures"].values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
