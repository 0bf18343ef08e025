"""Sharing out work by cost."""

from __future__ import annotations

import random

import pytest

from turngym.trainers.engine.ranks.sharing_out import sequence_cost, shared_out


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_piece_goes_to_one_rank_and_loads_are_near(size: int) -> None:
    draw = random.Random(size)
    costs = [sequence_cost(draw.randrange(1, 20_000)) for _ in range(100)]
    shares = shared_out(costs, size)
    assert sorted(piece for share in shares for piece in share) == list(range(100))
    loads = [sum(costs[piece] for piece in share) for share in shares]
    assert max(loads) <= sum(costs) / size + max(costs)
    assert all(share == sorted(share) for share in shares)


def test_fewer_pieces_than_ranks() -> None:
    assert sorted(map(len, shared_out([1.0, 1.0], 4))) == [0, 0, 1, 1]
    assert shared_out([], 2) == [[], []]


def test_one_rank_keeps_the_order() -> None:
    assert shared_out([1.0, 9.0, 3.0], 1) == [[0, 1, 2]]
