"""The closing lines of ``turngym train``: the result in one sentence, and the command that evaluates the model."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from turngym.benchmarks.cli.options.parsing import as_pairs
from turngym.envs.multiagent.registration import is_game
from turngym.trainers.core.wording import counted, percent
from turngym.trainers.loop.tasks.task import EVALUATION_SLOTS
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.explanation import explanation
from turngym.trainers.report.findings import read_run
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.mixture import Member

_TABLE_OPTIONS = ("retries", "invalid_penalty")
_DEFAULT_SLOTS = 32


def shown_mode(folder: RunFolder, config: TrainConfig) -> str:
    """Return which of the last evaluations is shown, ``sampled`` or ``greedy``: the headline's if repeatable.

    Games and agent programs sample in another way when they are evaluated later.
    """
    is_repeated = not any(is_game(member.config.env) for member in config.members) and not config.agent.is_used
    return read_run(folder).mode or "greedy" if is_repeated else "greedy"


def result_sentences(folder: RunFolder, mode: str) -> list[str]:
    """Return what the evaluations before and after training found, in a sentence, and one for each of several tasks.

    Args:
        folder: Folder of the run.
        mode: ``sampled`` or ``greedy``.
    """
    evaluations = folder.evaluations()
    labels = [member.label for member in folder.config().members if member.label]
    parts = [f"  {label}: {_result_sentence(evaluations, f'{mode}-on-{label}')}" for label in labels]
    return [_result_sentence(evaluations, mode), *(parts if f"final-{mode}" in evaluations else [])]


def _result_sentence(evaluations: Mapping[str, Mapping[str, Any]], name: str) -> str:
    after, before, mode = evaluations.get(f"final-{name}"), evaluations.get(f"warmup-{name}"), name.partition("-")[0]
    if after is None:
        return "The model was not evaluated (--evaluation.episodes 0)."
    name, scale = ("Success", 100.0) if _is_number(after["success"]["value"]) else ("Return", 1.0)
    key = "success" if name == "Success" else "reward_sum"
    now, then = after[key], None if before is None else before[key]["value"]
    shown = percent if scale > 1 else "{:.3f}".format
    change = shown(now["value"])
    if then is not None and _is_number(then):
        change = f"{shown(then)} before training, {change} after"
    where = counted(int(now["count"]), "game") if is_game(after["env_id"]) else counted(int(now["count"]), "test task")
    interval = f"95 % interval {scale * now['low']:.1f} to {scale * now['high']:.1f}"
    how = "sampled actions" if mode == "sampled" else "the likeliest actions"
    return f"{name} with {how} on {where}: {change} ({interval})."


def result_as_json(folder: RunFolder, finished: bool) -> dict[str, Any]:
    """Return the outcome of a run as JSON can hold it.

    Args:
        folder: Its folder.
        finished: Whether it came to its end.
    """
    config = folder.config()
    return {
        "run_dir": str(folder.path),
        "finished": finished,
        "explanation": explanation(read_run(folder)),
        "preset": {"name": config.preset, "reason": config.preset_reason},
        "iterations": len(folder.metrics()),
        "evaluations": folder.evaluations(),
        "evaluate": "\n".join(evaluation_commands(folder, config, shown_mode(folder, config))) if finished else None,
    }


def evaluation_commands(folder: RunFolder, config: TrainConfig, mode: str) -> list[str]:
    """Return the commands that evaluate the model of a run, one for each environment, as a shell reads them.

    They play the tasks of the run's own last evaluation in the same way, so they find the same numbers. For
    tasks of a package the command serves the model, which the package then evaluates.

    Args:
        folder: Folder of the run.
        config: Its settings.
        mode: ``sampled`` or ``greedy``.
    """
    return [_evaluation_command(folder, member, mode) for member in config.members]


def _evaluation_command(folder: RunFolder, member: Member, mode: str) -> str:
    """Return one of the commands; the model's folder has the options that a file may hold."""
    config, model = member.config, f"hf:{folder.path / 'model'}"
    if config.agent.package:
        return shlex.join(["turngym", "serve-model", str(folder.path / "model")])
    left_out = set(config.model_settings("trained").left_out)
    if is_game(config.env):
        options = {key: value for key, value in config.env_options.items() if key not in _TABLE_OPTIONS}
        others = [name for name in config.self_play.evaluation_opponents if name != "self"]
        players = [f"trained={model}", *(others or [config.self_play.demonstrator])]
        words = ["turngym", "tournament", config.env, "--players", *players, "--temperature", "0"]
        words += _options(options)
        return shlex.join(words)
    words = ["turngym", "eval", config.env, "--agent", model]
    words += _options({key: value for key, value in config.env_options.items() if key in left_out})
    if left_out.intersection(config.wrappers):
        words += [word for wrapper in config.wrappers for word in ("--wrapper", wrapper)]
    if config.agent.command:
        words += ["--agent-command", config.agent.command]
        words += ["--agent-sandbox", config.agent.sandbox] if config.agent.sandbox != "none" else []
        words += [word for mount in config.agent.mounts for word in ("--agent-mount", mount)]
        words += ["--agent-answer", config.agent.answer] if config.agent.answer != "post" else []
    words += ["--temperature", f"{config.rollout.temperature:g}"] if mode == "sampled" else []
    done = folder.evaluations().get(f"final-{mode}-on-{member.label}" if member.label else f"final-{mode}")
    if done is not None:
        episodes = int(done["success"]["count"])
        slots = min(config.rollout.num_envs or EVALUATION_SLOTS, episodes)
        words += ["--episodes", str(episodes)]
        words += ["--num-envs", str(slots)] if slots != min(_DEFAULT_SLOTS, episodes) else []
    words += ["--backend", config.rollout.backend] if config.rollout.backend != "sync" else []
    return shlex.join(words)


def _options(options: Mapping[str, Any]) -> list[str]:
    return [word for pair in as_pairs(dict(options)) for word in ("--option", pair)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)
