"""Rollouts over several ranks: each plays whole groups, and all ranks receive all episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from turngym.agents.trajectory import Branch, Trajectory
from turngym.trainers.core.trajectory_packing import packed, unpacked
from turngym.trainers.engine.ranks import Ranks, shared_out


class HasGroup(Protocol):
    """Specification of an episode or game."""

    @property
    def group(self) -> int:
        """Group, whose episodes are compared with each other."""
        ...


SpecT = TypeVar("SpecT", bound=HasGroup)


def own_specs(specs: Sequence[SpecT], ranks: Ranks) -> list[SpecT]:
    """Return the specifications of a rank's groups; groups are not split."""
    sizes = Counter(spec.group for spec in specs)
    groups = list(sizes)
    mine = {groups[index] for index in shared_out([sizes[group] for group in groups], ranks.size)[ranks.rank]}
    return [spec for spec in specs if spec.group in mine]


def played_by_all(
    ranks: Ranks,
    specs: Sequence[SpecT],
    play: Callable[[Sequence[SpecT]], list[Trajectory]],
    branches: Sequence[tuple[int, Branch]] = (),
) -> list[Trajectory]:
    """Return the trajectories of all specifications, on every rank, ordered by number.

    Args:
        ranks: The ranks, each of which plays its share.
        specs: Episodes to play, the same on every rank.
        play: Plays the rank's episodes.
        branches: Episode number -> branching point in another episode.
    """
    if ranks.size == 1:
        return play(specs)

    def play_own() -> list[dict[str, Any]]:
        return [packed(trajectory) for trajectory in play(own_specs(specs, ranks))]

    begins = dict(branches)
    received = [content for share in ranks.exchange(play_own) for content in share]
    found = [unpacked(content, begins.get(content["spec"]["episode"])) for content in received]
    return sorted(found, key=lambda trajectory: trajectory.spec.episode)


def slots_of(groups: int, group_size: int, ranks: Ranks) -> int:
    """Return the maximum number of episodes per rank if groups are distributed evenly.

    >>> from turngym.trainers.engine.ranks import SINGLE
    >>> slots_of(3, 4, SINGLE)
    12
    """
    return -(-groups // ranks.size) * group_size
