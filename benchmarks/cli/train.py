"""``turngym train``: every field of the training settings as an option."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import tyro

from turngym.benchmarks.cli.options.config_file import as_words, checked, is_given, read_config, take_config
from turngym.benchmarks.cli.options.help import asks_help
from turngym.benchmarks.cli.options.own_data import DATA, NAMES, REWARD, TOOLS, lifted, with_training_data
from turngym.benchmarks.cli.options.parsing import (
    as_pairs,
    find_env,
    key_values,
    loosened,
    relaxed,
    require_text_env,
    strict,
)
from turngym.benchmarks.cli.options.prompts import template_text
from turngym.benchmarks.cli.options.quickstart import QUICKSTART, with_quickstart
from turngym.benchmarks.cli.options.sources import with_source
from turngym.benchmarks.cli.options.usage import read_words
from turngym.envs.multiagent.registration import GAMES, is_game
from turngym.errors import ConfigError, RunStopped, TurngymError, missing_extra
from turngym.imports import collection_paused
from turngym.options import OptionError
from turngym.terminal.interrupted import INTERRUPTED, acknowledged
from turngym.terminal.output import print_json

if TYPE_CHECKING:
    from turngym.trainers.settings.config import TrainConfig
    from turngym.trainers.settings.presets import Choice

USES_OWN_MODULES = True
SHOWN = {
    "Task": ("--env", "--weights", "--env-options", "--wrapper", "--data", "--reward", "--tools"),
    "Model": ("--model", "--preset", "--lora-rank"),
    "Method": ("--algorithm", "--rollout.groups", "--rollout.group-size", "--update.learning-rate"),
    "Length": ("--iterations", "--max-seconds", "--rollout.max-new-tokens"),
    "Evaluation": ("--evaluation.every", "--evaluation.episodes", "--control"),
    "Run": ("--seed", "--run-dir", "--resume", "--config", "--track"),
}
"""Options in ``--help``."""
_STOPPED = 3
_FINISHING = "interrupted: finishing and saving the iteration in progress; another Ctrl-C stops at once"
_DATA_OPTIONS: dict[str, Any] = {"data": str, "reward": str, "tools": tuple[str, ...]}
_NO_OPTIONS = ("algorithm_options", "preset_reason", "envs")
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
        help="Id of the environment, or several, or of a multi-agent game, which is trained by self-play.",
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


def main(argv: Sequence[str]) -> int:
    """Train; an interrupted run keeps a checkpoint and prints how to resume, a stopped one prints why as well.

    Returns:
        0 finished, 3 stopped by a fault (``diagnosis.json`` in the run folder), 130 interrupted.
    """
    from turngym.terminal.console import Console

    argv = with_config(argv)
    config, run_dir, resume = parse_train(argv)
    with _training_packages():
        from turngym.benchmarks.cli.terminal.training import (
            evaluation_commands,
            result_as_json,
            result_sentences,
            shown_mode,
        )
        from turngym.trainers.engine.ranks.launch import is_first_here
        from turngym.trainers.loop.job import train
        from turngym.trainers.records.run_folder import RunFolder
        from turngym.trainers.report.explanation import look_at
        from turngym.trainers.report.findings import read_run
        from turngym.trainers.report.headline import control_sentence
        from turngym.trainers.settings.presets import preset_sentence
    console = Console(highlight=False, quiet=not is_first_here())  # other ranks say nothing
    if not resume:
        if (words := with_quickstart(argv)) != list(argv):
            console.print(f"quickstart: turngym train {shlex.join(words)}", markup=False, soft_wrap=True)
        console.print(preset_sentence(config), markup=False, soft_wrap=True)
    try:
        with acknowledged(_FINISHING):
            result = train(config, run_dir, resume)
    except RunStopped as error:
        print(error, file=sys.stderr)
        return _STOPPED
    except KeyboardInterrupt:  # in the warm-up or the last evaluation, which a resumed run does again
        if not (run_dir / "config.json").is_file():
            raise
        console.print(_way_on(run_dir), markup=False, soft_wrap=True)
        return INTERRUPTED
    if result.finished:
        folder = RunFolder.open(result.path)
        console.print(f"report: {result.report}", markup=False, soft_wrap=True)
        mode = shown_mode(folder, folder.config())
        run = read_run(folder)
        for sentence in (result.explanation, *look_at(run)):
            console.print(sentence, markup=False, soft_wrap=True)
        if against := control_sentence(run, mode):
            console.print(against, markup=False, soft_wrap=True)
        sentences = "\n".join(result_sentences(folder, mode))
        console.print(f"{sentences} Evaluate the model with:", markup=False, soft_wrap=True)
        for command in evaluation_commands(folder, folder.config(), mode):
            console.print(f"  {command}", markup=False, soft_wrap=True)
    if "--json" in argv and is_first_here():
        print_json(result_as_json(RunFolder.open(result.path), result.finished))
    if result.finished:
        return 0
    console.print(_way_on(result.path), markup=False, soft_wrap=True)
    return INTERRUPTED


def _way_on(run_dir: Path) -> str:
    return f"interrupted: `turngym train --resume --run-dir {shlex.quote(str(run_dir))}` continues"


def parse_train(argv: Sequence[str]) -> tuple[TrainConfig, Path, bool]:
    """Return the settings, the run folder, and whether to resume.

    The options depend on the algorithm, and the defaults on the environment and the model, so these are looked at
    first. Without an environment, a model and a preset the run is the quickstart. With ``--resume`` the settings of the
    run are the defaults, and nothing may differ from them but what only bounds memory.

    Raises:
        UnknownName: There is no such algorithm or environment.
        ConfigError: A setting is wrong, or differs from those of the run that is resumed.
        CheckpointError: There is no run to resume.
        MissingExtra: The packages that training needs are not installed.
    """
    with _training_packages():
        from turngym.trainers.records.run_folder import RunFolder
        from turngym.trainers.settings.config import DEFAULT_ENV, TrainConfig
        from turngym.trainers.settings.memory import with_memory_settings
        from turngym.trainers.settings.presets import with_preset
    argv = with_training_data(with_source(with_config(_with_folder(argv)), "--env-options"))
    is_help = asks_help(argv)
    words = list(argv) if is_help else with_quickstart(argv)
    env = _given(words, "env", "game")
    start = TrainConfig() if env in (None, DEFAULT_ENV) else TrainConfig(env=env, env_options={})
    default = "rae" if is_game(start.env) else start.algorithm
    start = dataclasses.replace(start, algorithm=_given(argv, "algorithm") or default)
    if "--resume" in argv and not is_help:
        stored = RunFolder.open(_run_dir(argv, start)).config()
        config, _ = _parsed(argv, stored)
        resumed = with_memory_settings(stored, config)
        _require_same(config, resumed)
        return resumed, _run_dir(argv, stored), True
    config, run_dir = _parsed(words, with_preset(start, *_choice(words)))
    for env in config.envs or (config.env,):
        if not is_game(env):
            require_text_env(find_env(env, GAMES))
    return config, run_dir or default_run_dir(config), False


def default_options() -> Any:
    """Return all options with their defaults, as an object whose class the parser reads.

    Raises:
        MissingExtra: The packages that training needs are not installed.
    """
    with _training_packages():
        from turngym.trainers.algorithms import parts
        from turngym.trainers.settings.config import TrainConfig
    start = TrainConfig()
    return _default_arguments(start, {name: kind() for name, kind in parts(start.algorithm)})


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
    with _training_packages():
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
    hints = {**get_type_hints(TrainConfig, include_extras=True), **kinds, **_DATA_OPTIONS, "run_dir": Path | None}
    hints |= dict.fromkeys(("env", "game"), hints.pop("envs")) | {"wrapper": hints["wrappers"], "from": hints["start"]}
    allowed = {name: hint for name, hint in hints.items() if name not in _NO_OPTIONS and name[0] != "_"}
    values = {name: _as_word(value) for name, value in checked(content, allowed, owner, "train").items()}
    wrappers = [f"--wrapper={each}" for name in ("wrapper", "wrappers") for each in values.pop(name, ())]
    trackers = [f"--track={each}" for each in values.pop("track", ())]
    dropped = set(kinds) - set(dict(parts(_given(argv, "algorithm") or "+".join(kinds))))
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


def _choice(argv: Sequence[str]) -> Choice:
    """Return the preset that is asked for, or the one for the model; a model that cannot be read is refused later."""
    from turngym.trainers.settings.config import EMBEDDED
    from turngym.trainers.settings.presets import PRESETS, Choice, preset_for

    model, given = _given(argv, "model"), _given(argv, "preset")
    for name in PRESETS:
        if given == name:
            return Choice(name, "it was asked for")
    if model in (None, EMBEDDED):
        return Choice("quickstart", "no other model than the embedded one was given")
    with collection_paused():
        from turngym.agents.models.size import parameter_count

    try:
        return preset_for(parameter_count(model), has_adapters=_given(argv, "lora-rank") not in (None, "0"))
    except TurngymError:
        return Choice("small", "the size of the model cannot be read")


def default_run_dir(config: TrainConfig) -> Path:
    """Return the folder of a run that was given none."""
    from turngym.trainers.settings.mixture import labels_of

    name = (
        "+".join(labels_of(config.envs))
        or Path(str(config.env_options.get("data", ""))).stem
        or config.env.rpartition("/")[2].rpartition("-v")[0]
        or config.env
    )
    safe = "".join(character if character.isalnum() or character in "+_-" else "-" for character in name)
    method = "+".join(part.rpartition(":")[2] for part in config.algorithm.split("+"))
    return Path("runs") / f"{safe}-{method}-seed{config.seed}".lower()


def _parsed(argv: Sequence[str], start: TrainConfig) -> tuple[TrainConfig, Path | None]:
    from turngym.trainers.algorithms import build, parts
    from turngym.trainers.settings.config import TrainConfig
    from turngym.trainers.settings.mixture import nested

    kinds = dict(parts(start.algorithm))
    methods = {name: kind(**start.algorithm_options.get(name, {})) for name, kind in kinds.items()}

    def read(words: Sequence[str]) -> Any:
        default = _default_arguments(start, methods, None if asks_help(words) else _named(words))
        return tyro.cli(type(default), default=default, args=list(words), prog="turngym train")

    found = read_words(read, argv, SHOWN)
    if not found.env:
        raise ConfigError("--env takes one id or several, got none.")
    values = {field.name: getattr(found, field.name, getattr(start, field.name)) for field in dataclasses.fields(start)}
    values["env_options"] = key_values(found.env_options, "--env-options")
    values |= {"env": found.env[0], "envs": found.env if len(found.env) > 1 else ()}
    values["per_env"] = nested(key_values(found.per_env, "--per-env", is_dotted=True), "--per-env")
    for name, hint in get_type_hints(TrainConfig).items():
        if dataclasses.is_dataclass(hint) and hasattr(found, name):
            values[name] = strict(values[name], hint, is_part=True)
    if hasattr(found, "rollout"):
        prompt = values["rollout"]["prompt"]
        prompt["chat_template"] = template_text(prompt["chat_template"])
    chosen = {name: strict(getattr(found, name), kind) for name, kind in kinds.items() if hasattr(found, name)}
    config = TrainConfig.build("the run", {**values, "algorithm_options": _differences(methods | chosen)})
    build(config.algorithm, config.algorithm_options)
    return config, found.run_dir


def _named(words: Sequence[str]) -> set[str]:
    """Return the fields and sections that a command line names, and those that are always read.

    >>> sorted(_named(["--self-play.opponents", "random", "--no-control", "--from=a@2"]) - _ALWAYS)
    ['control', 'from', 'no_control', 'self_play', 'start']
    """
    options = (word[2:].partition("=")[0].partition(".")[0] for word in words if word.startswith("--"))
    found = {option.replace("-", "_") for option in options}
    return found | {_OTHER_NAMES.get(name, name.removeprefix("no_")) for name in found} | _ALWAYS


def _default_arguments(start: TrainConfig, methods: Mapping[str, Any], named: Collection[str] | None = None) -> Any:
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
        if field.name in _NO_OPTIONS or (named is not None and field.name not in named):
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
    kinds |= _DATA_OPTIONS  # for --help: they have become --env-options
    kinds |= {"run_dir": Path | None, "resume": flag, "config": Path | None, "json": flag}
    values |= {"data": "", "reward": "", "tools": (), "run_dir": None, "resume": False, "config": None, "json": False}
    doc = (type(start).__doc__ or "").rstrip().replace("``", "`") + _OWN_LINES
    doc = "Train a language model on an environment" + doc.partition("A training run")[2]
    doc = doc.replace("\n\n    Args:", f"\n\n    {_QUICKSTART_LINES}\n\n    Args:", 1)
    names = {"__doc__": doc, "__module__": __package__}  # the parser searches that module for this class's source
    made = dataclasses.make_dataclass("Arguments", list(kinds.items()), namespace=names, frozen=True)
    return made(**values)


def _differences(chosen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return part -> the settings that differ from the defaults of that part."""
    found: dict[str, dict[str, Any]] = {}
    for name, config in chosen.items():
        default = type(config)()
        values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
        changed = {key: value for key, value in values.items() if value != getattr(default, key)}
        if changed:
            found[name] = changed
    return found


def _require_same(config: TrainConfig, stored: TrainConfig) -> None:
    """Refuse settings given with ``--resume`` that differ from those of the run."""
    if different := config.first_difference(stored):
        name, asked, has = different
        raise ConfigError(
            f"--resume continues with the settings of the run, whose {name} is {has!r} and not {asked!r}: leave that "
            "option out, or start a new run in another --run-dir, from this one's model with --model FOLDER/model."
        )


def _run_dir(argv: Sequence[str], config: TrainConfig) -> Path:
    """Return the run folder before the command line is parsed."""
    given = _given(argv, "run-dir")
    if given is not None:
        return Path(given)
    seed = _given(argv, "seed") or ""
    return default_run_dir(dataclasses.replace(config, seed=int(seed)) if seed.isdecimal() else config)


def _with_folder(argv: Sequence[str]) -> list[str]:
    """Return a command line whose ``--resume FOLDER`` is ``--resume --run-dir FOLDER``.

    >>> _with_folder(["--resume", "runs/first", "--json"])
    ['--resume', '--run-dir', 'runs/first', '--json']
    """
    words = list(argv)
    place = words.index("--resume") + 1 if "--resume" in words else len(words)
    if words[place : place + 1] and not words[place].startswith("-"):
        words.insert(place, "--run-dir")
    return words


def _given(argv: Sequence[str], *names: str) -> str | None:
    """Return what an option of some names is set to, the last time that it occurs.

    >>> _given(["--algorithm", "ppo", "--run_dir=x"], "run-dir")
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
def _training_packages() -> Iterator[None]:
    """Name the extra where a package is absent; an absent module of turngym itself is a bug and stays as it is."""
    try:
        with collection_paused():
            yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "turngym"):
            raise
        raise missing_extra("training", package, "train") from error
