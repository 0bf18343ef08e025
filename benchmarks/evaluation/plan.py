"""Episodes of an evaluation, and running the unfinished ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turngym.agents.core import Agent
from turngym.agents.episodes.continuing import Continuing
from turngym.agents.episodes.evaluate import open_vector, play_all, summarise_records
from turngym.agents.episodes.rollout import Schedule
from turngym.agents.players.styled import learns_between_tries
from turngym.agents.recordings.states import State
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.agents.usage import Usage, total
from turngym.benchmarks.evaluation.folder import Key
from turngym.benchmarks.evaluation.states import States
from turngym.benchmarks.evaluation.tries import ReadTranscript, remind, require_fitting_style
from turngym.benchmarks.suites import Suite, SuiteEntry, SuiteResult
from turngym.errors import ConfigError


@dataclass(frozen=True)
class Plan:
    """The episodes of an evaluation.

    Args:
        suite: The suite.
        seeds: The seeds of each entry, from :meth:`SuiteEntry.find_seeds`.
        repeats: Attempts at each task.
        states: Label of an entry -> where each of its tasks begins; empty where episodes begin with a reset.
    """

    suite: Suite
    seeds: tuple[tuple[int, ...], ...]
    repeats: int = 1
    states: Mapping[str, Sequence[State]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ConfigError(f"an evaluation has at least 1 attempt at each task, got {self.repeats}.")

    def state(self, key: Key) -> State | None:
        """Return the recorded state that an episode continues; None if it begins with a reset."""
        label, task, _ = key
        return self.states[label][task] if self.states else None

    def about(self, key: Key) -> dict[str, Any]:
        """Return what the record of an episode has besides what was played."""
        state = self.state(key)
        return {} if state is None else {"state": state.as_json()}

    def require_sound(self, key: Key, played: Trajectory) -> None:
        """Raise if what was played is not the episode that was asked for.

        Raises:
            TurngymError: It has left the recorded episode that it continues.
        """
        if state := self.state(key):
            state.require_reached(played)

    def player(self, agent: Agent, keys: Mapping[int, Key]) -> Agent:
        """Return who plays the episodes of an environment, given by their numbers."""
        states = {number: state for number, key in keys.items() if (state := self.state(key)) is not None}
        return Continuing(agent, {number: state.beginning for number, state in states.items()}) if states else agent

    def entries(self) -> Iterator[tuple[SuiteEntry, tuple[int, ...]]]:
        """Yield each entry with its seeds."""
        return zip(self.suite.entries, self.seeds, strict=True)

    def episodes(self) -> Iterator[Key]:
        """Yield every episode, in the order in which they are written down: all attempts at a task together."""
        for entry, seeds in self.entries():
            yield from ((entry.label, task, attempt) for task in range(len(seeds)) for attempt in range(self.repeats))

    def specs(self, entry: SuiteEntry, seeds: Sequence[int], done: Mapping[Key, Any]) -> dict[int, tuple[Key, int]]:
        """Return number of the episode -> episode and seed, for those that are not done; first attempts first.

        The numbers fix what an agent draws. They do not depend on what is done, nor on how many attempts follow.
        """
        found = {}
        for attempt in range(self.repeats):
            for task, seed in enumerate(seeds):
                key = (entry.label, task, attempt)
                if key not in done:
                    found[attempt * len(seeds) + task] = key, seed
        return found


@dataclass(frozen=True)
class Execution:
    """Execution settings, which do not affect the episodes of a deterministic agent.

    Args:
        num_envs: Number of parallel environments.
        backend: Backend of the vector.
        schedule: ``lockstep`` or ``continuous``.
    """

    num_envs: int = 32
    backend: str = "sync"
    schedule: Schedule = "lockstep"


def make_plan(suite: Suite | States, episodes: int | None = None, repeats: int = 1, backend: str = "sync") -> Plan:
    """Return which episodes of a suite are played, or which recorded states are continued.

    An environment with a single instance is played as often as episodes were asked for.

    Args:
        suite: The suite, or the states.
        episodes: Episodes of each environment; the suite's number unless given.
        repeats: Attempts at each task.
        backend: Backend of the vector that looks for the tasks.

    Raises:
        ConfigError: There are fewer instances than episodes asked for, and more than one.
    """
    if isinstance(suite, States):
        seeds = tuple(entry.find_seeds(episodes) for entry in suite.suite.entries)
        return Plan(suite.suite, seeds, repeats, suite.states)
    try:
        return Plan(suite, tuple(entry.find_seeds(episodes, backend) for entry in suite.entries), repeats)
    except ConfigError:
        if repeats > 1 or episodes is None:
            raise
        seeds = tuple(entry.find_seeds(1, backend) for entry in suite.entries)
        if any(entry.has_more_than(1, backend) for entry in suite.entries):
            raise
        return Plan(suite, seeds, episodes)


def play_plan(
    plan: Plan,
    agent: Agent,
    execution: Execution,
    done: Mapping[Key, Any],
    on_episode: Callable[[SuiteEntry, Key, Trajectory], None],
    may_begin: Callable[[], bool] | None = None,
    transcript_of: ReadTranscript | None = None,
) -> None:
    """Play the episodes of a plan that are not done.

    Args:
        plan: The episodes.
        agent: Agent.
        execution: Execution settings.
        done: Episodes that are finished already.
        on_episode: Called once for each episode as it ends; one that faults is first played once more.
        may_begin: Asked before episodes start; once it says no, the others are left out.
        transcript_of: Gives the transcript of an episode that is over, for an agent that learns from one try at a task
            to the next; its attempts are played one after another.

    Raises:
        ConfigError: Such an agent has a single try, or there are no transcripts for it.
    """
    is_learning = learns_between_tries(agent)
    require_fitting_style(agent, [entry.env_id for entry in plan.suite.entries], plan.repeats)
    if is_learning and transcript_of is None:
        raise ConfigError(
            "an agent that learns between attempts needs the transcripts of its attempts: pass transcript_of."
        )
    for entry, seeds in plan.entries():
        waiting = plan.specs(entry, seeds, done)
        if not waiting:
            continue
        if may_begin is not None and not may_begin():
            return

        player = plan.player(agent, {number: key for number, (key, _) in waiting.items()})

        def tell(
            trajectory: Trajectory, entry: SuiteEntry = entry, waiting: dict[int, tuple[Key, int]] = waiting
        ) -> None:
            key, _ = waiting[trajectory.spec.episode]
            plan.require_sound(key, trajectory)
            on_episode(entry, key, trajectory)

        num_envs = min(execution.num_envs, len(waiting))
        with open_vector(entry.env_id, entry.env_kwargs, num_envs, execution.backend, entry.wrappers) as vector:
            for specs in _waves(waiting, is_learning):
                if is_learning and transcript_of is not None:
                    for spec in specs:
                        remind(agent, waiting[spec.episode][0], spec.episode, transcript_of)
                play_all(vector, player, specs, execution.schedule, tell, may_begin)
                if may_begin is not None and not may_begin():
                    break


def _waves(waiting: Mapping[int, tuple[Key, int]], one_by_one: bool) -> Iterator[list[EpisodeSpec]]:
    """Yield the episodes that may be played side by side: all, or try by try at each task."""
    specs = [(key[2], EpisodeSpec(number, seed, key[1])) for number, (key, seed) in waiting.items()]
    if not one_by_one:
        yield [spec for _, spec in specs]
        return
    for attempt in sorted({attempt for attempt, _ in specs}):
        yield [spec for own, spec in specs if own == attempt]


def result_of(plan: Plan, rows: Mapping[Key, Mapping[str, Any]]) -> SuiteResult:
    """Return the means with intervals over the finished episodes, whatever order they were played in."""
    by_label: dict[str, list[Mapping[str, Any]]] = {entry.label: [] for entry in plan.suite.entries}
    for key in plan.episodes():
        if key in rows:
            by_label[key[0]].append(rows[key])
    results = tuple(summarise_records(entry.env_id, by_label[entry.label]) for entry in plan.suite.entries)
    return SuiteResult(plan.suite, results)


def unplayed(plan: Plan, rows: Mapping[Key, Any]) -> dict[str, list[dict[str, int]]]:
    """Return label -> the episodes that have not been played, for the environments that have such."""
    seeds = {entry.label: own for entry, own in plan.entries()}
    found: dict[str, list[dict[str, int]]] = {}
    for label, task, attempt in plan.episodes():
        if (label, task, attempt) not in rows:
            found.setdefault(label, []).append({"seed": seeds[label][task], "task": task, "attempt": attempt})
    return found


def usage_of_rows(rows: Mapping[Key, Mapping[str, Any]]) -> Usage:
    """Return the total usage of all episodes."""
    return total(Usage.from_json(seat) for key in sorted(rows) for seat in rows[key]["seats"].values())
