"""ALFWorld's two layouts on disk, filled with generated households; and the real data, where it is."""

import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.household.env import Household
from turngym.envs.household.pddl import write_problem
from turngym.envs.household.world import KINDS

REAL = Path(__file__).parents[3] / "shared" / "data" / "alfworld"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="ALFWorld's games are not beside this checkout")
GRAMMAR = """grammar :: \"\"\"
{"intro": [{"rhs": "Hello.\\n\\n#look.feedback#\\n\\n#task#"}],
 "task": [{"rhs": "Your task is to: {goal_text}."}]}
\"\"\";
action help {
    template :: "help";
    feedback :: "
Write a command.
";
}
"""


def generated(count: int, split: str = "train") -> list[dict[str, Any]]:
    """Return games as the compact layout holds them; the walkthroughs are the planner's."""
    games = []
    for seed in range(count):
        kind = KINDS[seed % len(KINDS)]
        env = Household(kind=kind, split=split, expert="planner", receptacles=6, distractors=3)
        env.reset(seed=seed)
        world, walkthrough, success = env.house.world, [], -1
        while success < 0:
            walkthrough.append(env.expert_action())
            success = env.step(walkthrough[-1])[4]["success"]
        games.append(
            {
                "id": f"{kind}-{seed}/trial_{seed}",
                "task_type": kind,
                "goal_text": world.task.removeprefix("Your task is to: ").removesuffix("."),
                "pddl_problem": write_problem(world),
                "walkthrough": walkthrough,
            }
        )
    return games


def write_compact(folder: Path, games: Sequence[dict[str, Any]], fold: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "alfred.twl2").write_text(GRAMMAR)
    with lzma.open(folder / f"games.{fold}.jsonl.xz", "wt") as file:
        file.writelines(json.dumps(game) + "\n" for game in games)


def write_official(folder: Path, games: Sequence[dict[str, Any]], fold: str) -> None:
    for game in games:
        trial = folder / "json_2.1.1" / fold / game["id"]
        trial.mkdir(parents=True)
        content = {
            "pddl_domain": "",
            "grammar": GRAMMAR.replace("{goal_text}", game["goal_text"]),
            "pddl_problem": game["pddl_problem"],
            "walkthrough": game["walkthrough"],
            "solvable": True,
        }
        (trial / "game.tw-pddl").write_text(json.dumps(content))
