"""Replay of successful episodes, as for agents on graphical interfaces (ARPO, Lu et al. 2025, arXiv 2505.16282).

Where every episode of a group fails, its advantages are zero and it teaches nothing. The paper keeps the successes of
each task and puts one into such a group. A modifier: it only changes which episodes the base method is given. A
replayed turn keeps the log-probabilities of the policy that sampled it, so a ratio is the current policy over that one,
whichever way the base takes it.

``failed_groups`` is the paper's form. It needs recurring tasks, since an episode is only comparable with those of
the same task instance. ``own_groups`` is for tasks that never recur: an episode is replayed together with the group
that it was played in, so that it is compared with the same episodes as then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from turngym.agents.trajectory import Trajectory
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Credit, Rollout
from turngym.trainers.core.columns import with_columns, without_counts
from turngym.trainers.core.turn_table import TurnTable, usable

_ReplayMode: TypeAlias = Literal["failed_groups", "own_groups"]
Group: TypeAlias = list[Trajectory]


@dataclass(frozen=True)
class ReplayConfig:
    """Settings of the replay of successful episodes."""

    mode: _ReplayMode = "own_groups"
    """Put a success of the same task instance into groups that failed as a whole, or replay it with its own group."""
    capacity: int = 64
    """Successes, or groups with one, that are kept; the oldest go first."""
    per_iteration: int = 4
    """Maximum number of replays per iteration."""
    max_staleness: int = 20
    """Iterations after which one is forgotten."""

    def __post_init__(self) -> None:
        one_of("mode", self.mode, get_args(_ReplayMode))
        within("capacity", self.capacity, 1)
        within("per_iteration", self.per_iteration, 0)
        within("max_staleness", self.max_staleness, 1)


@dataclass
class Kept:
    """Stored candidate for replay: one success, or the group in which it was played.

    Args:
        episodes: The episodes.
        iteration: When they were played.
        uses: Number of replays.
    """

    episodes: Group
    iteration: int
    uses: int = 0


def groups_of(trajectories: Iterable[Trajectory]) -> dict[int, Group]:
    """Return group -> its episodes, in order."""
    found: dict[int, Group] = {}
    for trajectory in trajectories:
        found.setdefault(trajectory.spec.group, []).append(trajectory)
    return found


def moved(trajectory: Trajectory, episode: int, group: int, place: int) -> Trajectory:
    """Return a copy of an episode under another number and group, and what is kept it is; its turns are copies too."""
    spec = replace(trajectory.spec, episode=episode, group=group)
    found = replace(trajectory, spec=spec, turns=[replace(turn) for turn in trajectory.turns])
    return with_columns(without_counts(found), {"replayed": float(place)})


@ALGORITHMS.register("replay")
class Replay(Modifier[ReplayConfig]):
    """Replay of successful episodes for another method."""

    Config: ClassVar[type[ReplayConfig]] = ReplayConfig

    def __init__(self, config: ReplayConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        self.kept: list[Kept] = []
        self._iteration = 0

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Store the iteration, to find episodes that are too old to be replayed."""
        super().begin_iteration(iteration, num_iterations)
        self._iteration = iteration

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather trajectories as the base does, and add the replayed ones; these have the column ``replayed``."""
        fresh = self.base.collect(rollout)
        candidates = [
            (place, each)
            for place, each in enumerate(self.kept)
            if self._iteration - each.iteration <= self.config.max_staleness
        ]
        candidates.sort(key=lambda item: (item[1].uses, -item[1].iteration))  # the least used, the newest among them
        if self.config.mode == "own_groups":
            replayed = self._own_groups(fresh, candidates)
            return [*fresh, *replayed] if replayed else fresh
        return self._with_successes(fresh, candidates)

    def _own_groups(self, fresh: Sequence[Trajectory], candidates: Sequence[tuple[int, Kept]]) -> list[Trajectory]:
        group = max((trajectory.spec.group for trajectory in fresh), default=-1)
        episode = max((trajectory.spec.episode for trajectory in fresh), default=-1)
        found = []
        for place, each in candidates[: self.config.per_iteration]:
            group += 1
            for trajectory in each.episodes:
                episode += 1
                found.append(moved(trajectory, episode, group, place))
        return found

    def _with_successes(self, fresh: list[Trajectory], candidates: Sequence[tuple[int, Kept]]) -> list[Trajectory]:
        """Return the fresh episodes, the last one of each failed group exchanged for a success on the same instance."""
        exchanged: dict[int, Trajectory] = {}
        used: set[int] = set()
        for group in groups_of(usable(fresh)).values():
            instances = {trajectory.instance for trajectory in group}
            if len(used) >= self.config.per_iteration or len(instances) > 1 or "" in instances:
                continue
            if any(trajectory.success == 1 for trajectory in group):
                continue
            for place, each in candidates:
                if each.episodes[0].instance in instances and place not in used:
                    used.add(place)
                    last = group[-1]
                    exchanged[id(last)] = moved(each.episodes[0], last.spec.episode, last.spec.group, place)
                    break
        return [exchanged.get(id(trajectory), trajectory) for trajectory in fresh] if exchanged else fresh

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does, and count what was replayed."""
        credit = super().credit(table)
        places = table.numbers("episode", "replayed")
        places = places[~places.isnan()]
        counts = {
            "replayed_episodes": float(len(places)),
            "replayed_groups": float(len(places.unique())),
            "replay_kept": float(len(self.kept)),
        }
        return replace(credit, metrics={**credit.metrics, **counts})

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Keep the successes of the batch."""
        super().update_state(trajectories, credit)
        for place in {int(each.columns["replayed"]) for each in trajectories if "replayed" in each.columns}:
            self.kept[place].uses += 1
        fresh = [each for each in usable(trajectories) if "replayed" not in each.columns]
        for group in groups_of(fresh).values():
            whole = [trajectory for trajectory in group if trajectory.spec.branch is None]
            successes = [trajectory for trajectory in whole if trajectory.success == 1]
            if self.config.mode == "failed_groups":
                self.kept += [Kept([trajectory], self._iteration) for trajectory in successes]
            elif 0 < len(successes) < len(whole):  # equal outcomes carry no signal
                self.kept.append(Kept(whole, self._iteration))
        oldest = self._iteration + 1 - self.config.max_staleness
        self.kept = [each for each in self.kept if each.iteration >= oldest][-self.config.capacity :]

    def state(self) -> dict[str, Any]:
        """Return what is kept, and the base's state."""
        kept = [
            {
                "episodes": [trajectory_to_json(trajectory) for trajectory in each.episodes],
                "iteration": each.iteration,
                "uses": each.uses,
            }
            for each in self.kept
        ]
        return {**super().state(), "kept": kept}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore it."""
        super().load_state(state)
        self.kept = [
            Kept([trajectory_from_json(episode) for episode in each["episodes"]], each["iteration"], each["uses"])
            for each in state["kept"]
        ]
