"""Success of a model that reads the solution of its task, as teachers of self-distillation do (sdpo, sdft).

    turngym train --algorithm grpo --iterations 0 --max-seconds 0 --no-control --seed 1 --run-dir runs/start
    python benchmarks/studies/checks/shown_solutions.py runs/start

On lakes of the test split, sampled: without, with the expert's solution of the lake as a system message, written as
``--teacher-prompt sibling`` writes it, and with that of the next lake.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from turngym.agents.episodes.rollout import rollout
from turngym.agents.intervals import wilson
from turngym.agents.players import make_agent, settings_for
from turngym.agents.trajectory import EpisodeSpec
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.trainers.engine.lessons import transcript

LAKES, TRIES = range(1000, 1060), 5
ENV = "turngym/FrozenLake-v0"


def success(vector: TextVectorEnv, model: str, lesson: Callable[[int], str]) -> dict[str, Any]:
    """Return success and invalid actions of a model on all lakes, its system message being the lesson of the lake."""
    played = []
    for lake in LAKES:
        settings = settings_for(model, ENV, seed=lake, temperature=1.0, prompt={"system": lesson(lake)})
        played += rollout(vector, make_agent(model, settings), [EpisodeSpec(k, seed=lake) for k in range(TRIES)])
    turns = [turn for each in played for turn in each.turns]
    solved = sum(each.success == 1 for each in played)
    return {
        "episodes": len(played),
        "success": solved / len(played),
        "interval": wilson(solved, len(played)),
        "invalid_actions": sum(not turn.action_is_valid for turn in turns) / len(turns),
    }


def study(run: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of the warm-up of a run without and with solutions."""
    options = json.loads((run / "config.json").read_text("utf8"))["env_options"]
    vector = make_vec(ENV, 16, autoreset_mode="disabled", **options, split="test")
    [*solutions] = rollout(vector, make_agent("expert"), [EpisodeSpec(k, seed=lake) for k, lake in enumerate(LAKES)])
    texts = [
        "This solves the task:\n" + transcript(replace(each, turns=[replace(t, completion="") for t in each.turns]))
        for each in solutions
    ]
    model, first = f"hf:{run / 'warmup'}", LAKES.start
    lessons: dict[str, Callable[[int], str]] = {
        "without": lambda lake: "",
        "solution of the lake": lambda lake: texts[lake - first],
        "solution of the next lake": lambda lake: texts[(lake - first + 1) % len(texts)],
    }
    return {name: success(vector, model, lesson) for name, lesson in lessons.items()}


def main(argv: Sequence[str]) -> int:
    """Measure, write and print."""
    parser = arguments(__doc__, "shown_solutions.json")
    parser.add_argument("run", type=Path, help="a training run on FrozenLake, with its folder warmup")
    given = parser.parse_args(argv)
    found = study(given.run)
    for name, each in found.items():
        print(f"{name}: success {100 * each['success']:.1f} %, invalid actions {100 * each['invalid_actions']:.1f} %")
    write_result(given.out, {"lessons": found})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
