"""An evaluation in one call: what ``turngym eval`` does, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from turngym.agents.core import Agent, EagerAgent, require_follow
from turngym.agents.episodes.evaluate import evaluate as evaluate_env
from turngym.agents.episodes.rollout import Schedule
from turngym.agents.players import AgentSettings, make_agent, settings_for
from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.agents.trajectory import Trajectory
from turngym.agents.verifiers import Verifier, make_verifier
from turngym.benchmarks.evaluation.plan import Execution, make_plan
from turngym.benchmarks.evaluation.records import Evaluation
from turngym.benchmarks.evaluation.run import EvaluationRun, Watcher
from turngym.benchmarks.evaluation.states import States
from turngym.benchmarks.suites import SUITES, Suite, find_suite, single_suite
from turngym.display import data_frame
from turngym.envs.own import find_spec
from turngym.errors import ConfigError
from turngym.options import Amount, Options, Positive, above, at_most
from turngym.storage.files import path_of
from turngym.types import StrPath


class _Call(Options):
    """Arguments of a call that are checked before anything is made, settings of an agent included."""

    episodes: Positive | None = None
    options: Mapping[str, Any] | None = None
    wrappers: tuple[str, ...] = ()
    repeats: Positive = 1
    seed: int = 0
    num_envs: Positive = 32
    time_budget: Annotated[float, above(0)] | None = None
    format: str | None = None
    style: str | None = None
    temperature: Amount | None = None
    top_p: Annotated[float, above(0), at_most(1)] | None = None
    max_new_tokens: Positive | None = None
    prompt: Mapping[str, Any] | None = None
    server: Mapping[str, Any] | None = None


def evaluate(
    target: str | Suite | States,
    agent: str | Agent,
    *,
    episodes: int | None = None,
    options: Mapping[str, Any] | None = None,
    wrappers: Sequence[str] = (),
    repeats: int = 1,
    seed: int = 0,
    num_envs: int = 32,
    backend: str = "sync",
    schedule: Schedule | None = None,
    baselines: bool = False,
    verifier: str | Verifier = "",
    time_budget: float | None = None,
    out: StrPath | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
    names: Mapping[str, str] | None = None,
    made_with: AgentSettings | None = None,
    **settings: Any,
) -> Evaluation:
    """Evaluate an agent on a suite or an environment.

    Args:
        target: A suite or its name, or an environment: its id, ``"module:id"``, ``"module:Class"`` or
            ``"path/to/file.py:Class"``. Or states of recorded episodes, from
            :func:`~turngym.benchmarks.evaluation.states.recorded_states`, to play on from.
        agent: The agent, or what ``turngym eval --agent`` takes: ``"random"``, ``"hf:PATH"``, ``"openai:MODEL@URL"``.
        episodes: Episodes per environment, on distinct tasks (default: the suite's number, or up to 100).
        options: Options of the environment; the split is ``"test"`` unless given. A suite has its own.
        wrappers: Wrappers around the environment, the first innermost. A suite has its own.
        repeats: Attempts at each task.
        seed: Seed of the agent and, outside a suite, of the choice of tasks.
        num_envs: Number of parallel environments.
        backend: Backend of the vector.
        schedule: ``"lockstep"`` or ``"continuous"``; what fits the agent unless given.
        baselines: Also evaluate the random and the expert agent on the same tasks.
        verifier: Scores the attempts at each task, so that the best one can be chosen: a verifier, or what ``turngym
            eval --verifier`` takes.
        time_budget: Minutes after which no further episode starts; None has no limit.
        out: A folder for metadata, configuration, results, episodes and transcripts; nothing is written unless given.
        resume: Continue the evaluation in that folder.
        watcher: Receives the progress.
        names: Names in the results of an ``"agent"`` and a ``"verifier"`` that have been made; those of their classes
            unless given.
        made_with: The settings that an agent has been made with.
        **settings: Fields of :class:`~turngym.agents.players.AgentSettings` for an agent given by name, such as
            ``temperature`` (0 unless given), ``max_new_tokens``, ``format`` and ``prompt``.

    Raises:
        ConfigError: An option is wrong, or the environment has fewer tasks than episodes asked for.
        UnknownName: There is no such suite, environment or agent.
        RunFolderExists: The folder is not empty, and ``resume`` was not given.

    >>> evaluate("turngym/GuessTheNumber-v0", "expert", episodes=4).mean.value
    1.0
    """
    given = {"episodes": episodes, "options": options, "wrappers": wrappers, "repeats": repeats, "seed": seed}
    _Call.build("turngym.evaluate", {**given, "num_envs": num_envs, "time_budget": time_budget, **settings})
    if resume and out is None:
        raise ConfigError("resume continues with what a folder holds: pass the folder as out.")
    suite = _suite(target, episodes, options, wrappers, seed)
    player, name, made_with = _player(agent, seed, settings, made_with)
    if isinstance(target, States):
        require_follow(player)
    judge = make_verifier(verifier, made_with, player) if isinstance(verifier, str) and verifier else verifier
    asked = {"agent": name, "verifier": verifier if isinstance(verifier, str) else type(verifier).__name__}
    asked |= names or {}
    return EvaluationRun(
        make_plan(suite, episodes, repeats, backend),
        player,
        asked["agent"],
        made_with,
        Execution(num_envs, backend, schedule or _fitting(player)),
        {"random": RandomAgent(seed), "expert": ExpertAgent()} if baselines else {},
        None if out is None else path_of(out, "out"),
        resume,
        time_budget,
        watcher or Watcher(),
        verifier=None if isinstance(judge, str) else judge,
        verifier_name=asked["verifier"],
    ).run()


class Episodes(list[Trajectory]):
    """Episodes in the order of their tasks."""

    def to_frame(self) -> Any:
        """Return the turns of all episodes as a data frame of polars or pandas."""
        return data_frame(
            {"episode": number, "seed": each.spec.seed, **row}
            for number, each in enumerate(self)
            for row in each.rows()
        )


def rollout(
    env: str,
    agent: str | Agent,
    *,
    episodes: int = 1,
    options: Mapping[str, Any] | None = None,
    wrappers: Sequence[str] = (),
    seed: int = 0,
    num_envs: int = 32,
    backend: str = "sync",
    schedule: Schedule | None = None,
    **settings: Any,
) -> Episodes:
    """Play episodes on distinct tasks and return them with all turns.

    Args:
        env: An environment, named as for :func:`evaluate`.
        agent: The agent, or its name as for :func:`evaluate`.
        episodes: Number of episodes.
        options: Options of the environment; the split is ``"test"`` unless given.
        wrappers: Wrappers around the environment, the first innermost.
        seed: Seed of the agent and of the choice of tasks.
        num_envs: Number of parallel environments.
        backend: Backend of the vector.
        schedule: ``"lockstep"`` or ``"continuous"``; what fits the agent unless given.
        **settings: As for :func:`evaluate`.

    Raises:
        ConfigError: An option is wrong, or the environment has fewer tasks than episodes asked for.
        UnknownName: There is no such environment or agent.

    >>> [len(each.turns) > 0 for each in rollout("turngym/GuessTheNumber-v0", "expert", episodes=2)]
    [True, True]
    """
    given = {"episodes": episodes, "options": options, "wrappers": wrappers, "seed": seed, "num_envs": num_envs}
    _Call.build("turngym.rollout", {**given, **settings})
    player, *_ = _player(agent, seed, settings, None)
    _, episodes_played = evaluate_env(
        find_spec(_named(env)).id,
        player,
        episodes=episodes,
        env_kwargs=options,
        num_envs=num_envs,
        backend=backend,
        schedule=schedule or _fitting(player),
        seed=seed,
        wrappers=wrappers,
    )
    return Episodes(episodes_played)


def _fitting(player: Agent) -> Schedule:
    return "continuous" if isinstance(player, EagerAgent) else "lockstep"


def _player(
    agent: str | Agent, seed: int, settings: Mapping[str, Any], made_with: AgentSettings | None
) -> tuple[Agent, str, AgentSettings]:
    """Return the agent, its name in the results, and its settings."""
    if isinstance(agent, str):
        made_with = settings_for(agent, **{"seed": seed, "temperature": 0.0, **settings})
        return make_agent(agent, made_with), agent, made_with
    if not isinstance(agent, Agent):
        raise ConfigError(f"the agent must be a name or an object of a class of turngym.Agent, got {agent!r}.")
    if settings:
        raise ConfigError(f"{', '.join(sorted(settings))}: an agent that has been made takes no settings.")
    return agent, type(agent).__name__, made_with or AgentSettings(seed=seed)


def _named(target: object) -> str:
    if not isinstance(target, str | os.PathLike):
        raise ConfigError(
            f'pass an environment by name, as "my/Lock-v0" or "path/to/file.py:Lock" (a class, too), got {target!r}.'
        )
    return os.fspath(target)


def _suite(
    target: str | Suite | States,
    episodes: int | None,
    options: Mapping[str, Any] | None,
    wrappers: Sequence[str],
    seed: int,
) -> Suite | States:
    suite = target if isinstance(target, Suite | States) else find_suite(_named(target))
    if suite is None:
        env_id = find_spec(_named(target), SUITES, "suite or environment").id
        return single_suite(env_id, {"split": "test", **(options or {})}, tuple(wrappers), episodes, seed)
    if options or wrappers:
        name = suite.suite.name if isinstance(suite, States) else suite.name
        raise ConfigError(f"the suite {name!r} has its own options and wrappers: leave yours out.")
    return suite
