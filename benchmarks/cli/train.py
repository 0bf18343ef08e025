"""``turngym train``: every field of the training settings as an option."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import tyro

from turngym.benchmarks.cli.options.help import asks_help
from turngym.benchmarks.cli.options.own_data import with_training_data
from turngym.benchmarks.cli.options.parsing import find_env, key_values, require_text_env, strict
from turngym.benchmarks.cli.options.prompts import template_text
from turngym.benchmarks.cli.options.quickstart import with_quickstart
from turngym.benchmarks.cli.options.sources import with_source
from turngym.benchmarks.cli.options.training_options import default_arguments, named_options
from turngym.benchmarks.cli.options.training_words import last_given, training_packages, with_config, with_folder
from turngym.benchmarks.cli.options.usage import read_words
from turngym.envs.multiagent.registration import GAMES, is_game, require_no_seat
from turngym.errors import ConfigError, RunStopped, TurngymError
from turngym.imports import collection_paused
from turngym.terminal.interrupted import INTERRUPTED, acknowledged
from turngym.terminal.output import print_json

if TYPE_CHECKING:
    from turngym.terminal.console import Console
    from turngym.trainers.loop.job import JobResult
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


def main(argv: Sequence[str]) -> int:
    """Train; an interrupted run keeps a checkpoint and prints how to resume, a stopped one prints why as well.

    Returns:
        0 finished, 3 stopped by a fault (``diagnosis.json`` in the run folder), 130 interrupted.
    """
    from turngym.terminal.console import Console

    argv = with_config(argv)
    config, run_dir, resume = parse_train(argv)
    with training_packages():
        from turngym.benchmarks.cli.terminal.training import result_as_json
        from turngym.trainers.engine.ranks.launch import is_first_here
        from turngym.trainers.loop.job import train
        from turngym.trainers.records.run_folder import RunFolder
        from turngym.trainers.settings.presets import preset_sentence
    console = Console(highlight=False, quiet=not is_first_here())  # other ranks say nothing
    if resume and (run_dir / "done").exists():
        console.print(_finished(run_dir), markup=False, soft_wrap=True)
        if "--json" in argv and is_first_here():
            print_json(result_as_json(RunFolder.open(run_dir), finished=True))
        return 0
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
        _print_result(console, result)
    if "--json" in argv and is_first_here():
        print_json(result_as_json(RunFolder.open(result.path), result.finished))
    if result.finished:
        return 0
    console.print(_way_on(result.path), markup=False, soft_wrap=True)
    return INTERRUPTED


def _print_result(console: Console, result: JobResult) -> None:
    """Print what a finished run has reached, and how to evaluate its model."""
    from turngym.benchmarks.cli.terminal.training import evaluation_commands, result_sentences, shown_mode
    from turngym.trainers.records.run_folder import RunFolder
    from turngym.trainers.report.explanation import look_at
    from turngym.trainers.report.findings import read_run
    from turngym.trainers.report.headline import control_sentence

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


def _way_on(run_dir: Path) -> str:
    return f"interrupted: `turngym train --resume --run-dir {shlex.quote(str(run_dir))}` continues"


def _finished(run_dir: Path) -> str:
    run, model = shlex.quote(str(run_dir)), shlex.quote(str(run_dir / "model"))
    return (
        f"the run in {run} is finished, so there is nothing to resume. To train its model further, start another run: "
        f"turngym train --config {run} --model {model} --warmup.demonstrations 0 --run-dir OTHER"
    )


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
    with training_packages():
        from turngym.trainers.records.run_folder import RunFolder
        from turngym.trainers.settings.config import DEFAULT_ENV, TrainConfig
        from turngym.trainers.settings.memory import with_memory_settings
        from turngym.trainers.settings.presets import with_preset
    argv = with_training_data(with_source(with_config(with_folder(argv)), "--env-options"))
    is_help = asks_help(argv)
    words = list(argv) if is_help else with_quickstart(argv)
    env = last_given(words, "env", "game")
    start = TrainConfig() if env in (None, DEFAULT_ENV) else TrainConfig(env=env, env_options={})
    default = "rae" if is_game(start.env) else start.algorithm
    start = dataclasses.replace(start, algorithm=last_given(argv, "algorithm") or default)
    if "--resume" in argv and not is_help:
        stored = RunFolder.open(_run_dir(argv, start)).config()
        _require_same(dataclasses.replace(stored, algorithm=last_given(argv, "algorithm") or stored.algorithm), stored)
        config, _ = _parsed(argv, stored)
        resumed = with_memory_settings(stored, config)
        _require_same(config, resumed)
        return resumed, _run_dir(argv, stored), True
    config, run_dir = _parsed(words, with_preset(start, *_choice(words)))
    for env in config.envs or (config.env,):
        if not is_game(env):
            if last_given(words, "game") is not None:
                require_no_seat(env)
            require_text_env(find_env(env, GAMES))
    return config, run_dir or default_run_dir(config), False


def default_options() -> Any:
    """Return all options with their defaults, as an object whose class the parser reads.

    Raises:
        MissingExtra: The packages that training needs are not installed.
    """
    with training_packages():
        from turngym.trainers.algorithms import parts
        from turngym.trainers.settings.config import TrainConfig
    start = TrainConfig()
    return default_arguments(start, {name: kind() for name, kind in parts(start.algorithm)})


def _choice(argv: Sequence[str]) -> Choice:
    """Return the preset that is asked for, or the one for the model; a model that cannot be read is refused later."""
    from turngym.trainers.settings.config import EMBEDDED
    from turngym.trainers.settings.presets import PRESETS, Choice, preset_for

    model, given = last_given(argv, "model"), last_given(argv, "preset")
    for name in PRESETS:
        if given == name:
            return Choice(name, "it was asked for")
    if model in (None, EMBEDDED):
        return Choice("quickstart", "no other model than the embedded one was given")
    with collection_paused():
        from turngym.agents.models.size import parameter_count

    try:
        return preset_for(parameter_count(model), has_adapters=last_given(argv, "lora-rank") not in (None, "0"))
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
        default = default_arguments(start, methods, None if asks_help(words) else named_options(words))
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
    given = last_given(argv, "run-dir")
    if given is not None:
        return Path(given)
    seed = last_given(argv, "seed") or ""
    return default_run_dir(dataclasses.replace(config, seed=int(seed)) if seed.isdecimal() else config)
