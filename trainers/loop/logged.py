"""Demonstrations from logs: recorded episodes in the policy's prompts and answer format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from turngym.agents.core import Request
from turngym.agents.episodes.turn_writer import TurnWriter
from turngym.agents.models.agent import ModelAgent
from turngym.agents.recordings.imports import LoggedEpisode, read_episodes
from turngym.agents.recordings.imports.atif import CALL
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.tools.tool_schema import CALL_MARK, ToolSet, find_call
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError
from turngym.seeding import stream_seed
from turngym.trainers.core.context import require_turns
from turngym.trainers.core.wording import counted
from turngym.trainers.loop.tasks.starts import require_recorded_for
from turngym.trainers.settings.config import TrainConfig
from turngym.wrappers.actions.action_format import FORMATS

_PROBES = 8
"""Number of instances used to read an environment's rules and first legal actions."""
_SHOWN = 80


class _Form(NamedTuple):
    """Parts of an environment's prompts that a log must match.

    Args:
        rules: Rules and answer format; empty if they differ between instances.
        finds_action: True if the environment finds the action in a whole completion.
        tools: Tools with native calls.
        legal: Legal first actions; empty if they cannot be enumerated.
    """

    rules: str
    finds_action: bool
    tools: ToolSet | None
    legal: frozenset[str]


def logged_demonstrations(
    path: Path, vector: TextVectorEnv, student: ModelAgent, config: TrainConfig
) -> list[Trajectory]:
    """Return the first solved episodes of a log (all if it has no scores) as episodes of the policy.

    Observations are the log's, rules and answer format the environment's. The log is not replayed.

    Args:
        path: Log of another suite, or folder of ``turngym eval``.
        vector: The environment.
        student: The policy.
        config: Settings of the run.

    Raises:
        ConfigError: The log cannot be read, has no solved episode, or does not fit the environment's prompts.
    """
    solved = examples_of(path, config)
    form = _form_of(vector, config)
    chosen = enumerate(solved[: config.warmup.demonstrations])
    found = [_demonstration(path, number, each, student, form) for number, each in chosen]
    require_turns(found)
    _require_legal(path, found, form, config.env)
    return found


def examples_of(path: Path, config: TrainConfig) -> list[LoggedEpisode]:
    """Return the episodes of a log to imitate: the solved ones, or all if it has no scores.

    Args:
        path: Log of another suite, or folder of ``turngym eval``.
        config: Settings of the run.

    Raises:
        ConfigError: The log cannot be read, has no such episode, or belongs to another environment.
    """
    episodes = read_episodes(path)
    solved = list(filter(_is_example, episodes))
    if not solved:
        raise ConfigError(
            f"{path} has no solved episode without invalid actions among {len(episodes)}, and only those are imitated."
        )
    if config.rollout.prompt.legal_actions:
        raise ConfigError(
            f"{path} does not have the legal actions that prompts are to list: leave out "
            "--rollout.prompt.legal-actions, or --warmup.log."
        )
    for each in solved:
        if each.environment:  # only turngym's logs name the environment
            require_recorded_for(path, each.environment, config, "imitating")
    return solved


def _is_example(episode: LoggedEpisode) -> bool:
    is_good = (episode.success or not episode.is_scored) and not episode.fault
    return is_good and bool(episode.turns) and all(turn["action_is_valid"] for turn in episode.turns)


def _form_of(vector: TextVectorEnv, config: TrainConfig) -> _Form:
    count = min(_PROBES, vector.num_envs)
    slots, mask = list(range(count)), np.arange(vector.num_envs) < count
    rules, legal = set[str](), list[frozenset[str]]()
    while len(legal) < _PROBES:  # a few slots show a few instances at a time
        numbers = range(len(legal), len(legal) + vector.num_envs)
        seeds = [stream_seed("logged", config.seed, number) % 2**31 for number in numbers]
        observations, infos = vector.reset(seed=seeds, options={"reset_mask": mask})
        if isinstance(observations, dict):
            raise ConfigError(f"observations of {config.env} have images, which logs lack: leave out --warmup.log.")
        rules |= {str(each) for each in vector.call("instructions", indices=slots)}
        legal += [frozenset(infos.rows[slot].get("legal_actions", ())) for slot in slots]
    return _Form(
        rules.pop() if len(rules) == 1 else "",
        all(vector.call("finds_action", indices=slots)),
        vector.call("native_tools", indices=slots)[0],
        frozenset().union(*legal) if all(legal) else frozenset(),
    )


def _demonstration(path: Path, number: int, episode: LoggedEpisode, student: ModelAgent, form: _Form) -> Trajectory:
    rules = form.rules or episode.instructions
    writer = TurnWriter(Trajectory(EpisodeSpec(number, 0, number)))
    for position, turn in enumerate(episode.turns):
        seen = str(turn["observation"])
        if rules and not position:
            seen = seen.removeprefix(rules).lstrip("\n")
        request = Request(0, number, position, seen, {}, rules, finds_action=form.finds_action, tools=form.tools)
        place = f"{path}, task {episode.task[:_SHOWN]}, turn {position + 1}"
        action = _action(place, turn, request, student)
        decision = student.follow(request, action, str(turn["completion"]))
        if decision.fault:
            raise ConfigError(f"{path}: {decision.fault}")
        if decision.too_long:
            writer.end_without_room(request, decision.too_long)
            break
        writer.decided(request, decision)
        writer.earned(float(turn["reward"]), {"action_is_valid": True})
    else:
        writer.end(episode.final_observation, {"success": 1, "score": episode.score}, terminated=True)
    student.forget(number)
    return writer.trajectory


def _action(place: str, turn: Mapping[str, Any], request: Request, student: ModelAgent) -> str:
    """Return the action of a turn: the recorded one, its tool call, or the one in its completion.

    Raises:
        ConfigError: There is no action in the run's format, or the called tool does not exist.
    """
    action, completion = str(turn["action"]), str(turn["completion"])
    if action.startswith(CALL_MARK):
        return _called(place, action, request.tools)
    if action != completion:
        return action
    form = student.format_of(request)
    found = form.read(completion, student.thinking)
    if found is None:
        raise ConfigError(
            f"{place}: no action in the format {form.name!r} is in the answer {completion[:_SHOWN]!r}: pass "
            f"{_fitting_format(completion, student)}, or another log."
        )
    return found


def _called(place: str, action: str, tools: ToolSet | None) -> str:
    """Return a tool call as the action, or the argument of a call of ``act``, which may be any action."""
    known = [str(tool["name"]) for tool in tools.tools] if tools else []
    name, arguments = action[:_SHOWN], None
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        call = json.loads(find_call(action) or "")
        name, arguments = str(call["name"]), call.get("arguments")
    acted = arguments.get("action") if name == CALL and isinstance(arguments, dict) and len(arguments) == 1 else None
    is_action = name not in known and isinstance(acted, str)
    if name not in known and not is_action:
        there = ", ".join(known) or "no tools"
        raise ConfigError(
            f"{place}: calls the tool {name[:_SHOWN]!r}, and the environment has {there}: the log does not fit it."
        )
    if action.count(CALL_MARK) > 1:
        raise ConfigError(f"{place}: several calls in one turn, of which environments make the first alone.")
    return str(acted) if is_action else action


def _fitting_format(completion: str, student: ModelAgent) -> str:
    """Return the option with a format that has a possible action in an answer, or without one where none has."""
    for name, form in FORMATS.items():
        action = form.read(completion, student.thinking)
        if action and "\n" not in action and len(action) <= _SHOWN:
            return f"--rollout.format {name}, which reads it as {action[:_SHOWN]!r}"
    return "the --rollout.format that the log was written in"


def _require_legal(path: Path, found: list[Trajectory], form: _Form, env: str) -> None:
    """Raise if no episode starts with a legal action of the environment."""
    first = [each.turns[0].action for each in found if each.turns]
    if form.legal and first and not {each.casefold() for each in form.legal} & {each.casefold() for each in first}:
        raise ConfigError(
            f"{path}: none of its {counted(len(first), 'episode')} starts with a legal action of {env} "
            f"({', '.join(sorted(form.legal)[:5])}), but with {first[0][:_SHOWN]!r}: the log does not fit it."
        )
