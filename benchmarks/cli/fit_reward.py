"""``turngym fit-reward``: a reward model from recorded episodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import Pairs, key_values, parse
from turngym.errors import ConfigError, RunFolderExists
from turngym.storage.folders import require_folder
from turngym.terminal.console import Console
from turngym.terminal.output import print_json
from turngym.trainers.core.wording import counted
from turngym.trainers.reward_models import make_reward_model, reward_model_class
from turngym.trainers.reward_models.base.recordings import read_trajectories

USES_OWN_MODULES = True  # a reward model may be one of the user's own; the episodes name nothing


@dataclass(frozen=True)
class Arguments:
    """Fit a reward model to episodes written by `turngym eval --out` or the wrapper `record`.

    Use the output folder in `turngym train --reward-model MODEL:path=FOLDER` and `turngym eval --best-of 4 --verifier
    reward_model:FOLDER`. One episode in ten is held out.

    Args:
        folders: Folders of evaluations or recordings, or JSON Lines files.
        model: Reward model (see `turngym list reward_models`), or path/to/file.py:Class, module:Class.
        out: New folder for the reward model.
        option: Reward model option, such as epochs=40 or features=trained:FOLDER.
        seed: Seed of the fit.
        json: Print the findings as JSON.
    """

    folders: Positional[tuple[Path, ...]]
    model: str
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    option: Pairs = ()
    seed: int = 0
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Fit the model, write it, and print how well it fits."""
    arguments = parse(Arguments, argv, "fit-reward")
    if not arguments.folders:
        raise ConfigError("fit-reward needs a folder with recorded episodes: turngym eval ENV --out FOLDER makes one.")
    require_folder(arguments.out)
    if arguments.out.exists() and any(arguments.out.iterdir()):
        raise RunFolderExists(f"{arguments.out} exists already and is not empty: pass another folder as -o.")
    if not reward_model_class(arguments.model).is_trainable:
        raise ConfigError(
            f"the reward model {arguments.model!r} is a rule, there is nothing to fit: "
            f"turngym train --reward-model {arguments.model}."
        )
    options = key_values(arguments.option, "--option")
    text = ",".join(f"{key}={json.dumps(value)}" for key, value in options.items())
    model = make_reward_model(f"{arguments.model}:{text}" if text else arguments.model)
    episodes = [each for folder in arguments.folders for each in read_trajectories(folder)]
    found = model.fit(episodes, arguments.seed)
    model.save(arguments.out)
    if arguments.json:
        print_json(found, sort_keys=True)
        return 0
    _show(arguments, found, Console(highlight=False))
    return 0


def _show(arguments: Arguments, found: dict[str, float], console: Console) -> None:
    episodes, left_out = int(found["episodes"] - found.get("held_out_episodes", 0)), int(found["left_out"])
    console.print(f"fitted {arguments.model} to {counted(episodes, 'episode')}, loss {found['loss']:.4f}")
    if left_out:
        were = "was" if left_out == 1 else "were"
        console.print(f"{left_out} {were} left out: broken, without a turn, or without a label")
    if "held_out_ranking" in found:
        share = 100 * found["held_out_ranking"]
        held = counted(int(found["held_out_episodes"]), "held-out episode")
        console.print(f"{held}: a solved one scores above a failed one in {share:.0f} % of pairs")
    console.print(f"written to {arguments.out}", markup=False, soft_wrap=True)
