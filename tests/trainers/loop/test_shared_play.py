"""Which rank plays which episodes."""

from __future__ import annotations

import pytest

from turngym.agents.episodes.groups import group_specs
from turngym.agents.trajectory import EpisodeSpec
from turngym.trainers.engine.ranks import SingleProcess
from turngym.trainers.loop.tasks.shared_play import own_specs, slots_of


def rank(number: int, size: int) -> SingleProcess:
    """One of several ranks, asked only for its place."""
    found = SingleProcess()
    found.rank, found.size = number, size
    return found


@pytest.mark.parametrize(("groups", "size"), [(4, 2), (3, 2), (1, 2), (7, 3)])
def test_no_group_is_split_and_none_is_lost(groups: int, size: int) -> None:
    specs = group_specs(groups, 4)
    shares = [own_specs(specs, rank(number, size)) for number in range(size)]
    assert sorted((spec for share in shares for spec in share), key=lambda spec: spec.episode) == specs
    of_ranks = [{spec.group for spec in share} for share in shares]
    assert sum(map(len, of_ranks)) == groups
    assert max(map(len, of_ranks)) - min(map(len, of_ranks)) <= 1
    assert max(map(len, shares)) == slots_of(groups, 4, rank(0, size))


def test_groups_of_different_sizes_are_balanced() -> None:
    specs = [EpisodeSpec(number, 0, group) for number, group in enumerate([0] * 6 + [1, 2, 2, 3, 3, 3])]
    shares = [own_specs(specs, rank(number, 2)) for number in range(2)]
    assert [len(share) for share in shares] == [6, 6]
