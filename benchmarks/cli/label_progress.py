"""``turngym label-progress``: progress of every turn of recorded episodes, from what solved ones have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.errors import ConfigError, RunFolderExists
from turngym.storage.folders import require_folder
from turngym.terminal.console import Console
from turngym.terminal.output import print_json
from turngym.trainers.core.wording import counted
from turngym.trainers.reward_models.base.labels import find_recipes, label_progress, with_progress
from turngym.trainers.reward_models.base.recordings import read_trajectories, write_trajectories

RECIPES, LABELLED = "recipes.json", "labelled.jsonl"


@dataclass(frozen=True)
class Arguments:
    """Label every turn of recorded episodes with its progress, for any environment.

    Solved episodes of a task give recipes (longest common subsequences of their steps); a turn's progress is the
    largest completed share of a recipe. The output folder has `recipes.json`, for `--wrapper
    recipe_progress:path=FILE`, which provides this progress as `info["progress"]`, and `labelled.jsonl`, for `turngym
    fit-reward FILE --model progrm --option labels=environment`.

    Args:
        folders: Folders of evaluations or recordings, or JSON Lines files.
        out: New folder for recipes and labels.
        match: Steps to compare: canonical actions, or the resulting states.
        scope: Solved episodes that form recipes: of the same task, or of the whole environment.
        most: Maximum number of recipes per task, one per route.
        similarity: Share of its initial steps that a recipe keeps when further solved episodes join it, in (0, 1].
        json: Print the findings as JSON.
    """

    folders: Positional[tuple[Path, ...]]
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    match: Literal["action", "state"] = "action"
    scope: Literal["task", "environment"] = "task"
    most: int = 4
    similarity: float = 0.5
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Write the labels and print how many turns have one."""
    arguments = parse(Arguments, argv, "label-progress")
    if not arguments.folders:
        raise ConfigError(
            "label-progress needs a folder with recorded episodes: turngym eval ENV --out FOLDER makes one."
        )
    require_folder(arguments.out)
    if arguments.out.exists() and any(arguments.out.iterdir()):
        raise RunFolderExists(f"{arguments.out} exists already and is not empty: pass another folder as -o.")
    if arguments.most < 1 or not 0 < arguments.similarity <= 1:
        raise ConfigError(
            f"most must be at least 1 and similarity in (0, 1], got {arguments.most} and {arguments.similarity}."
        )
    episodes = [each for folder in arguments.folders for each in read_trajectories(folder)]
    book = find_recipes(
        episodes,
        match=arguments.match,
        scope=arguments.scope,
        most=arguments.most,
        similarity=arguments.similarity,
    )
    if not book.known:
        raise ConfigError(f"none of the {len(episodes)} episodes solved its task: there is nothing to make recipes of.")
    labels = label_progress(episodes, book)
    arguments.out.mkdir(parents=True, exist_ok=True)
    book.write(arguments.out / RECIPES)
    write_trajectories(
        arguments.out / LABELLED, [with_progress(each, own) for each, own in zip(episodes, labels, strict=True)]
    )
    steps = [len(recipe.steps) for recipes in book.known.values() for recipe in recipes]
    found = {
        "episodes": len(episodes),
        "solved": sum(each.success == 1 for each in episodes),
        "labelled": sum(own is not None for own in labels),
        "tasks": len(book.known),
        "recipes": len(steps),
        "steps_per_recipe": math.fsum(steps) / len(steps),
    }
    if arguments.json:
        print_json(found, sort_keys=True)
        return 0
    console = Console(highlight=False)
    console.print(
        f"{found['labelled']} of {counted(len(episodes), 'episode')} labelled by {counted(len(steps), 'recipe')} of "
        f"{counted(len(book.known), 'task')}, {found['steps_per_recipe']:.1f} steps each"
    )
    console.print(f"written to {arguments.out}", markup=False, soft_wrap=True)
    return 0
