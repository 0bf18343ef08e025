"""The options of ``turngym train``, made for each command line: every field of the training settings is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import tyro

from turngym.benchmarks.cli.options.own_data import DATA, REWARD, TOOLS
from turngym.benchmarks.cli.options.parsing import as_pairs, loosened, relaxed
from turngym.benchmarks.cli.options.quickstart import QUICKSTART
from turngym.benchmarks.cli.options.training_words import DATA_OPTIONS, NO_OPTIONS

if TYPE_CHECKING:
    from turngym.trainers.settings.config import TrainConfig

_ALWAYS = {"env", "env_options", "per_env"}
_OTHER_NAMES = {"game": "env", "from": "start", "wrapper": "wrappers"}
_OWN_LINES = f"""
        data: {DATA}
        reward: {REWARD}
        tools: {TOOLS}
        run_dir: Run folder (default: `runs/ENVIRONMENT-ALGORITHM-seedSEED`).
        resume: Resume the run in that folder, with its settings; `--resume FOLDER` for short.
        config: File with options by name (YAML, TOML or JSON), or the folder of a run to repeat; options of the command
            line override it.
        json: Print the result as JSON.
"""
_QUICKSTART_LINES = f"""Without --env, --env-options, --data, --model and --preset, the quickstart runs with:
    {" ".join(QUICKSTART)}"""
_ENV = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        aliases=["--game"],
        metavar="ID [ID ...]",
        help="Id of an environment, several ids, or a multi-agent game, which is trained by self-play.",
    ),
]
_PER_ENV = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        metavar="[NAME.SETTING=VALUE ...]",
        help="Settings of single environments, such as FrozenLake.env_options.size=4 FrozenLake.rollout.format=boxed.",
    ),
]
_ENV_OPTIONS = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        metavar="[KEY=VALUE ...]",
        help="Environment options, such as view=grid max_turns=20; empty by default for another environment.",
    ),
]
_WRAPPERS = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(
        name="wrapper",
        metavar="SPEC",
        help="Wrapper, such as history:k=4; the first is innermost.",
    ),
]
_START = Annotated[str, tyro.conf.arg(aliases=["--from"], metavar="FOLDER[:EPISODE]@TURN")]
_TRACK: Any = tyro.conf.arg(
    metavar="NAME",
    help="Tracker, repeatable: wandb, mlflow, trackio, prometheus, or tensorboard, written anyway if installed.",
)


def named_options(words: Sequence[str]) -> set[str]:
    """Return the fields and sections that a command line names, and those that are always read.

    >>> sorted(named_options(["--self-play.opponents", "random", "--no-control", "--from=a@2"]) - _ALWAYS)
    ['control', 'from', 'no_control', 'self_play', 'start']
    """
    options = (word[2:].partition("=")[0].partition(".")[0] for word in words if word.startswith("--"))
    found = {option.replace("-", "_") for option in options}
    return found | {_OTHER_NAMES.get(name, name.removeprefix("no_")) for name in found} | _ALWAYS


def default_arguments(start: TrainConfig, methods: Mapping[str, Any], named: Collection[str] | None = None) -> Any:
    """Return an object of a class made for this command line: its fields are the options, its values the defaults.

    Args:
        start: The defaults.
        methods: The parts of the algorithm, with their defaults.
        named: The fields to read, as the parser spends its time on those; None reads all.
    """
    hints = get_type_hints(type(start))
    kinds: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(start):
        value = getattr(start, field.name)
        if field.name in NO_OPTIONS or (named is not None and field.name not in named):
            continue
        if field.name == "env":
            kinds[field.name], values[field.name] = _ENV, start.envs or (value,)
        elif field.name == "per_env":
            kinds[field.name], values[field.name] = _PER_ENV, as_pairs(dict(value))
        elif field.name == "env_options":
            kinds[field.name], values[field.name] = _ENV_OPTIONS, as_pairs(dict(value))
        elif field.name == "wrappers":
            kinds[field.name], values[field.name] = _WRAPPERS, value
        elif field.name == "start":
            kinds[field.name], values[field.name] = _START, value
        elif field.name == "track":
            kinds[field.name] = Annotated[hints[field.name], tyro.conf.UseAppendAction, _TRACK]
            values[field.name] = value
        else:
            is_nested = dataclasses.is_dataclass(value)
            kinds[field.name] = relaxed(hints[field.name]) if is_nested else hints[field.name]
            values[field.name] = loosened(value)
    for name, method in methods.items():
        if named is not None and name not in named:
            continue
        kind: Any = type(method)
        kinds[name], values[name] = relaxed(kind), loosened(method)
    flag: Any = tyro.conf.FlagCreatePairsOff[bool]
    kinds |= DATA_OPTIONS  # for --help: they have become --env-options
    kinds |= {"run_dir": Path | None, "resume": flag, "config": Path | None, "json": flag}
    values |= {"data": "", "reward": "", "tools": (), "run_dir": None, "resume": False, "config": None, "json": False}
    doc = (type(start).__doc__ or "").rstrip().replace("``", "`") + _OWN_LINES
    doc = "Train a language model on an environment" + doc.partition("A training run")[2]
    doc = doc.replace("\n\n    Args:", f"\n\n    {_QUICKSTART_LINES}\n\n    Args:", 1)
    names = {"__doc__": doc, "__module__": __package__}  # the parser searches that module for this class's source
    made = dataclasses.make_dataclass("Arguments", list(kinds.items()), namespace=names, frozen=True)
    return made(**values)
