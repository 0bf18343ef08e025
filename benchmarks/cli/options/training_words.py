"""Command lines of ``turngym train`` as words: what a configuration file, a folder to resume or an option says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

from turngym.benchmarks.cli.options.config_file import as_words, checked, is_given, read_config, take_config
from turngym.benchmarks.cli.options.own_data import NAMES, lifted
from turngym.benchmarks.cli.options.parsing import as_pairs
from turngym.envs.multiagent.registration import is_game
from turngym.errors import missing_extra
from turngym.imports import collection_paused
from turngym.options import OptionError

DATA_OPTIONS: dict[str, Any] = {"data": str, "reward": str, "tools": tuple[str, ...]}
NO_OPTIONS = ("algorithm_options", "preset_reason", "envs")


def with_config(argv: Sequence[str]) -> list[str]:
    """Return a command line with the options of its ``--config`` file in front, except for those that it sets itself.

    Raises:
        ConfigError: The file cannot be read, or has a wrong option.
    """
    file, rest = take_config(argv)
    return rest if file is None else [*words_of(read_config(file, "train"), rest, str(file)), *rest]


def words_of(content: Mapping[str, Any], argv: Sequence[str], owner: str) -> list[str]:
    """Return options by name as words of a command line.

    Args:
        content: The options; ``algorithm_options`` are those of the algorithm's parts, as a run writes them.
        argv: Other words. Where they name another algorithm or environment, its options are left out.
        owner: Origin of the options, for messages.

    Raises:
        OptionError: There is no such option, or its value is wrong.
    """
    with training_packages():
        from turngym.agents.models.settings import RUN_MODELS
        from turngym.trainers.algorithms import parts
        from turngym.trainers.records.run_folder import ALGORITHM_DEFAULTS
        from turngym.trainers.settings.config import TrainConfig
    content = {name: value for name, value in content.items() if name not in ("preset_reason", RUN_MODELS)}
    for name in (ALGORITHM_DEFAULTS, "algorithm_options"):
        content |= _of_parts(content.pop(name, {}), name, owner)
    content = lifted(content)
    if several := content.pop("envs", ()):
        content["env"] = several
    if {"env", "game"} <= content.keys():
        raise OptionError("env", "and game are the same option: leave one of them out.", owner)
    asked = content.get("env", content.get("game", ""))
    first = asked[0] if isinstance(asked, list | tuple) and asked else asked
    default = "rae" if is_game(str(first)) else TrainConfig().algorithm
    kinds = dict(parts(str(content.get("algorithm", default))))
    hints = {**get_type_hints(TrainConfig, include_extras=True), **kinds, **DATA_OPTIONS, "run_dir": Path | None}
    hints |= dict.fromkeys(("env", "game"), hints.pop("envs")) | {"wrapper": hints["wrappers"], "from": hints["start"]}
    allowed = {name: hint for name, hint in hints.items() if name not in NO_OPTIONS and name[0] != "_"}
    values = {name: _as_word(value) for name, value in checked(content, allowed, owner, "train").items()}
    wrappers = [f"--wrapper={each}" for name in ("wrapper", "wrappers") for each in values.pop(name, ())]
    trackers = [f"--track={each}" for each in values.pop("track", ())]
    dropped = set(kinds) - set(dict(parts(last_given(argv, "algorithm") or "+".join(kinds))))
    if is_given(argv, "env", "game") or (is_given(argv, "data") and not content.get("data")):
        dropped |= {"env", "game", "env_options", "weights", "per_env"}
    if is_given(argv, "env", "game"):
        dropped |= set(NAMES)
    left = {name: value for name, value in values.items() if name.partition(".")[0] not in dropped}
    kept = {name: value for name, value in left.items() if not is_given(argv, name)}
    wrappers = [] if is_given(argv, "wrapper") else wrappers
    return [*as_words(kept), *wrappers, *([] if is_given(argv, "track") else trackers)]


def _of_parts(options: Any, name: str, owner: str) -> dict[str, Any]:
    if not isinstance(options, Mapping) or not all(isinstance(each, Mapping) for each in options.values()):
        raise OptionError(name, f"must be a table with a table of options for each algorithm, got {options!r}.", owner)
    return {f"{part}.{name}": value for part, values in options.items() for name, value in values.items()}


def _as_word(value: Any) -> Any:
    return as_pairs(value) if isinstance(value, dict) else value


def with_folder(argv: Sequence[str]) -> list[str]:
    """Return a command line whose ``--resume FOLDER`` is ``--resume --run-dir FOLDER``.

    >>> with_folder(["--resume", "runs/first", "--json"])
    ['--resume', '--run-dir', 'runs/first', '--json']
    """
    words = [part for word in argv for part in (word.split("=", 1) if _is_folder(word) else [word])]
    place = words.index("--resume") + 1 if "--resume" in words else len(words)
    if words[place : place + 1] and not words[place].startswith("-"):
        words.insert(place, "--run-dir")
    return words


def _is_folder(word: str) -> bool:
    """Return whether a word is ``--resume=FOLDER``."""
    return word.startswith("--resume=") and word.partition("=")[2] not in ("", "True", "true")


def last_given(argv: Sequence[str], *names: str) -> str | None:
    """Return what an option of some names is set to, the last time that it occurs.

    >>> last_given(["--algorithm", "ppo", "--run_dir=x"], "run-dir")
    'x'
    """
    found = None
    for position, word in enumerate(argv):
        name, sign, value = word.partition("=")
        if name.replace("_", "-") not in [f"--{option}" for option in names]:
            continue
        if sign:
            found = value
        elif position + 1 < len(argv):
            found = argv[position + 1]
    return found


@contextmanager
def training_packages() -> Iterator[None]:
    """Name the extra where a package is absent; an absent module of turngym itself is a bug and stays as it is."""
    try:
        with collection_paused():
            yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "turngym"):
            raise
        raise missing_extra("training", package, "train") from error
