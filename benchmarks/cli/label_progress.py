"""``turngym label-progress``: labels of every turn of recorded episodes, from what solved ones share or playouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.cli.options.parsing import parse
from turngym.errors import ConfigError, RunFolderExists
from turngym.storage.folders import require_folder
from turngym.terminal.console import Console
from turngym.terminal.output import print_json
from turngym.trainers.core.wording import counted
from turngym.trainers.reward_models.base.labels import find_recipes, label_progress, with_progress
from turngym.trainers.reward_models.base.playouts import Label, label_by_playouts, read_playouts
from turngym.trainers.reward_models.base.recordings import read_trajectories, write_trajectories

RECIPES, LABELLED = "recipes.json", "labelled.jsonl"


@dataclass(frozen=True)
class Arguments:
    """Label every turn of recorded episodes with its progress, for any environment.

    Solved episodes of a task give recipes (longest common subsequences of their steps); a turn's progress is the
    largest completed share of a recipe. The output folder has `recipes.json`, for `--wrapper
    recipe_progress:path=FILE`, which provides this progress as `info["progress"]`, and `labelled.jsonl`, for `turngym
    fit-reward FILE --model progrm --option labels=environment`.

    With `--playouts`, an evaluation that continued these episodes from every turn labels them instead (`turngym eval
    --from FOLDER@every --agent AGENT --repeats 8 --out PLAYOUTS`), for `turngym fit-reward FILE --model shepherd`.

    Args:
        folders: Folders of evaluations or recordings, or JSON Lines files.
        out: New folder for recipes and labels.
        playouts: Evaluation that continued the episodes from every turn; it labels them instead of recipes.
        label: Label of a turn by playouts: the share of those after it that succeed, whether any does, or whether the
            shortest success after it takes fewer steps than the one before it (with --agent expert).
        match: Steps to compare: canonical actions, or the resulting states.
        scope: Solved episodes that form recipes: of the same task, or of the whole environment.
        most: Maximum number of recipes per task, one per route.
        similarity: Share of its initial steps that a recipe keeps when further solved episodes join it, in (0, 1].
        json: Print the findings as JSON.
    """

    folders: Positional[tuple[Path, ...]]
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    playouts: Path | None = None
    label: Label = "share"
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
    found, text = (_by_recipes if arguments.playouts is None else _by_playouts)(arguments, episodes)
    if arguments.json:
        print_json(found, sort_keys=True)
        return 0
    console = Console(highlight=False)
    console.print(f"{found['labelled']} of {counted(len(episodes), 'episode')} labelled by {text}")
    console.print(f"written to {arguments.out}", markup=False, soft_wrap=True)
    return 0


def _by_recipes(arguments: Arguments, episodes: Sequence[Trajectory]) -> tuple[dict[str, Any], str]:
    """Write recipes and labels; return the findings, and what has labelled.

    Raises:
        ConfigError: No episode solved its task.
    """
    book = find_recipes(
        episodes,
        match=arguments.match,
        scope=arguments.scope,
        most=arguments.most,
        similarity=arguments.similarity,
    )
    if not book.known:
        raise ConfigError(f"none of the {len(episodes)} episodes solved its task: there is nothing to make recipes of.")
    found = _written(arguments, episodes, label_progress(episodes, book))
    book.write(arguments.out / RECIPES)
    steps = [len(recipe.steps) for recipes in book.known.values() for recipe in recipes]
    found |= {"tasks": len(book.known), "recipes": len(steps), "steps_per_recipe": math.fsum(steps) / len(steps)}
    recipes, tasks = counted(len(steps), "recipe"), counted(len(book.known), "task")
    return found, f"{recipes} of {tasks}, {found['steps_per_recipe']:.1f} steps each"


def _by_playouts(arguments: Arguments, episodes: Sequence[Trajectory]) -> tuple[dict[str, Any], str]:
    """Write labels by playouts; return the findings, and what has labelled.

    Raises:
        ConfigError: There are no playouts, or none of these episodes.
    """
    assert arguments.playouts is not None
    playouts = read_playouts(arguments.playouts)
    labels = label_by_playouts(episodes, playouts, arguments.label)
    known = [value for own in labels if own is not None for value in own]
    if not known:
        raise ConfigError(
            f"{arguments.playouts} continues none of the {len(episodes)} episodes from each of its turns: write it "
            "with `turngym eval --from FOLDER@every`."
        )
    found = _written(arguments, episodes, labels)
    found |= {"turns": len(known), "mean_label": math.fsum(known) / len(known)}
    count = counted(sum(map(len, playouts.values())), "playout")
    return found, f"{count}: {counted(len(known), 'turn')}, label {found['mean_label']:.3f} in the mean"


def _written(
    arguments: Arguments, episodes: Sequence[Trajectory], labels: Sequence[Sequence[float] | None]
) -> dict[str, Any]:
    """Write the labelled episodes, and return how many there are."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_trajectories(
        arguments.out / LABELLED, [with_progress(each, own) for each, own in zip(episodes, labels, strict=True)]
    )
    return {
        "episodes": len(episodes),
        "solved": sum(each.success == 1 for each in episodes),
        "labelled": sum(own is not None for own in labels),
    }
