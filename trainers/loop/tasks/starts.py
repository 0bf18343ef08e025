"""Groups that start from recorded states, in the middle of episodes."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from turngym.agents.core import Agent
from turngym.agents.episodes.continuing import Continuing
from turngym.agents.recordings.states import State, read_states
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.multiagent.registration import is_game
from turngym.errors import ConfigError
from turngym.storage.files import write_json
from turngym.trainers.core.algorithm import Need
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

Play: TypeAlias = Callable[[Agent, Sequence[EpisodeSpec]], list[Trajectory]]
_FILE = "starts.json"
_LONGEST = 300
"""Maximum length of recorded text in messages, in characters."""


class Starts:
    """Recorded states that the groups of a run start from, one for each group.

    A group's state is derived from its reset seed, so a resumed run draws the same states.

    Args:
        config: Settings of the run.

    Raises:
        ConfigError: The states do not exist, or belong to another environment or split.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.env, self.name = config.env, config.start
        self.states = _states_of(config)
        self._episodes = self._turns = 0

    def play(self, agent: Agent, specs: Sequence[EpisodeSpec], play: Play) -> list[Trajectory]:
        """Play episodes from the states of their groups; the trajectories contain only turns after the state.

        Args:
            agent: Agent, which follows the recorded turns first.
            specs: The episodes; branched ones start at their branching point.
            play: Plays episodes from their start.

        Raises:
            TurngymError: A replay differs from its recording.
        """
        states = {each.episode: self.states[each.seed % len(self.states)] for each in specs if each.branch is None}
        beginnings = {episode: state.beginning for episode, state in states.items()}
        seeded = [replace(each, seed=states[each.episode].seed) if each.branch is None else each for each in specs]
        played = play(Continuing(agent, beginnings), seeded)
        for trajectory in played:
            state = states.get(trajectory.spec.episode)
            if state is not None:
                state.require_reached(trajectory)
                del trajectory.turns[: len(state.beginning.turns)]
                self._episodes += 1
                self._turns += len(state.beginning.turns)
        return played

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        found = {"rollout/continued": float(self._episodes), "rollout/recorded_turns": float(self._turns)}
        self._episodes = self._turns = 0
        return found

    def save(self, folder: RunFolder) -> None:
        """Write a description of the states."""
        write_json(folder.path / _FILE, {**_kept(folder), self.env: self._about()})

    def resume(self, folder: RunFolder) -> None:
        """Raise if the recordings have changed since the start of the run.

        Raises:
            ConfigError: The recordings have changed.
        """
        if _kept(folder).get(self.env, self._about()) != self._about():
            raise ConfigError(
                f"{self.name} has other states than when the run began: put the recordings back, or start a new run."
            )

    def _about(self) -> dict[str, Any]:
        told = [[state.seed, state.beginning.digest] for state in self.states]
        return {"states": len(told), "sha256": hashlib.sha256(json.dumps(told).encode()).hexdigest()}


def _kept(folder: RunFolder) -> dict[str, Any]:
    """Return the description of the states, by environment."""
    file = folder.path / _FILE
    try:
        found = json.loads(file.read_text("utf8")) if file.exists() else {}
        if isinstance(found, dict):
            return found
        problem = "it holds no table"
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    raise ConfigError(
        f"{file} cannot be read ({problem}): put it back, or delete it to resume without the check that the recordings "
        "are those that the run began with."
    )


def _states_of(config: TrainConfig) -> tuple[State, ...]:
    read = read_states(config.start)
    if len(read.found) > 1:
        raise ConfigError(
            f"{config.start} has states of {len(read.found)} environments, and a run starts from those of one: record "
            f"`turngym eval {config.env} --split train --out FOLDER`."
        )
    [(environment, states)] = read.found
    require_recorded_for(config.start, environment, config, "training on")
    return states


def require_recorded_for(name: object, environment: Mapping[str, Any], config: TrainConfig, use: str) -> None:
    """Raise unless recorded episodes belong to the run's environment and the split ``train``.

    Args:
        name: Name of the recording.
        environment: Description of the environment in an evaluation's ``config.json``.
        config: Settings of the run.
        use: Use of the episodes for messages, such as ``"training on"``.

    Raises:
        ConfigError: Environment, options or wrappers differ, or the split is not ``train``.
    """
    options, wrappers = environment.get("options"), environment.get("wrappers")
    theirs = dict(options) if isinstance(options, Mapping) else {}
    split = theirs.pop("split", "test")
    if split != "train":
        raise ConfigError(
            f"{name} has episodes of the split {split!s:.80}, and {use} them would spoil evaluations: record them "
            f"with `turngym eval {config.env} --split train --out FOLDER`."
        )
    recorded = environment.get("env"), theirs, wrappers
    mine = config.env, json.loads(json.dumps(dict(config.env_options))), list(config.wrappers)
    for option, other, own in zip(("env", "env_options", "wrappers"), recorded, mine, strict=True):
        if other != own:
            raise ConfigError(
                f"{name} was recorded with {option} {other!r:.200}, and the run has {own!r}: {_way_out(option, other)}."
            )


def _way_out(option: str, recorded: object) -> str:
    """Return the command-line option that sets a recording's value."""
    if isinstance(recorded, Mapping) and recorded:
        pairs = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in recorded.items()]
        return f"pass --env-options {shlex.join(pairs)}"[:_LONGEST]
    if isinstance(recorded, list) and recorded:
        return f"pass {shlex.join(f'--wrapper={each}' for each in recorded)}"[:_LONGEST]
    return f"pass --env {recorded!s:.200}" if option == "env" else f"leave out {option}"


def require_startable(config: TrainConfig, needs: frozenset[Need]) -> None:
    """Raise for settings that are incompatible with recorded states.

    Raises:
        ConfigError: A setting is incompatible.
    """
    settings = config.rollout
    reasons = {
        f"games between seats such as {config.env} are played from deal to end": is_game(config.env),
        "agent programs play whole episodes": config.agent.is_used,
        f"{config.algorithm} branches off from whole episodes by itself": Need.SNAPSHOTS in needs,
        "--rollout.schedule async and --rollout.journal keep whole episodes": settings.is_journaled,
        "workers on a Ray cluster have no recordings": settings.ray.workers > 0,
    }
    for reason, holds in reasons.items():
        if holds and config.start:
            raise ConfigError(f"groups cannot start from {config.start}: {reason}. Leave out --from or that setting.")
