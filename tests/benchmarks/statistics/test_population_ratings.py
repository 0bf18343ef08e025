"""Nash averaging and alpha-rank: published examples, invariances, and equal results by other computations."""

import math

import numpy as np
import pytest

from turngym.benchmarks.statistics.alpha_rank import alpha_rank, stationary
from turngym.benchmarks.statistics.nash_averaging import nash_average
from turngym.benchmarks.tournaments.field import field_ratings
from turngym.errors import ConfigError
from turngym.seeding import stream

CIRCLE = np.array([[0.5, 0.9, 0.1, 0.8], [0.1, 0.5, 0.9, 0.8], [0.9, 0.1, 0.5, 0.8], [0.2, 0.2, 0.2, 0.5]])
ORDER = np.array([[0.5, 0.7, 0.9], [0.3, 0.5, 0.7], [0.1, 0.3, 0.5]])


def test_a_circle_and_its_victim() -> None:
    found = nash_average(CIRCLE - 0.5)
    assert found.weights == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-6)
    assert found.skills == pytest.approx([0, 0, 0, -0.3], abs=1e-6)
    assert alpha_rank(CIRCLE, 0.1) == pytest.approx([0.3276, 0.3276, 0.3276, 0.0173], abs=1e-4)
    for alpha in (1, 100, None):
        assert alpha_rank(CIRCLE, alpha) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-6)


def test_an_order_has_a_best_player() -> None:
    assert nash_average(ORDER - 0.5).weights == pytest.approx([1, 0, 0], abs=1e-6)
    assert alpha_rank(ORDER, 1.0) == pytest.approx([1, 0, 0], abs=1e-6)


def test_copies_share_a_weight_and_change_no_skill() -> None:
    places = [0, 1, 2, 3, 0, 3]
    found = nash_average(CIRCLE[np.ix_(places, places)] - 0.5)
    assert found.weights == pytest.approx([1 / 6, 1 / 3, 1 / 3, 0, 1 / 6, 0], abs=1e-6)
    assert found.skills == pytest.approx([0, 0, 0, -0.3, 0, -0.3], abs=1e-6)


def test_equal_players_and_a_player_alone() -> None:
    assert nash_average(np.zeros((3, 3))).weights == pytest.approx([1 / 3] * 3)
    assert alpha_rank(np.full((3, 3), 0.5)) == pytest.approx([1 / 3] * 3)
    assert nash_average(np.zeros((1, 1))).weights.tolist() == alpha_rank(np.full((1, 1), 0.5)).tolist() == [1.0]


def test_largest_entropy_of_many_equilibria() -> None:
    """Equilibria leave out the last player and have p0 >= 2 p1; by hand, the largest entropy is at p0 = 2 p1."""
    margins = np.array([[0, 0, 0, 0.2], [0, 0, 0, -0.4], [0, 0, 0, 0], [-0.2, 0.4, 0, 0]])
    root = 4 ** (1 / 3)
    assert nash_average(margins).weights * (3 + root) == pytest.approx([2, 1, root, 0], abs=1e-5)


@pytest.mark.parametrize("count", [2, 5, 12, 30])
def test_random_games_have_an_equilibrium_and_shares_of_the_chain(count: int) -> None:
    generator = stream("population", count)
    points = generator.integers(0, 11, (count, count)) / 10
    points = (points + 1 - points.T) / 2
    found = nash_average(points - points.T)
    assert found.skills.max() < 2e-6 and found.weights.sum() == pytest.approx(1) and found.weights.min() >= 0
    chances = generator.random((count, count))
    np.fill_diagonal(chances, 0)
    chances /= 2 * count
    chain = chances + np.diag(1 - chances.sum(1))
    assert stationary(chances) == pytest.approx(np.linalg.matrix_power(chain, 100_000)[0])
    order = generator.permutation(count)
    assert alpha_rank(points[np.ix_(order, order)]) == pytest.approx(alpha_rank(points)[order])


@pytest.mark.parametrize("given", [np.zeros((2, 3)), np.array([[0, math.nan], [0, 0]]), np.zeros((0, 0)), np.zeros(3)])
def test_what_is_no_matrix_of_players_is_refused(given: np.ndarray) -> None:
    for rate in (nash_average, alpha_rank):
        with pytest.raises(ConfigError, match="finite square matrix"):
            rate(given)
    with pytest.raises(ConfigError, match=r"less \[j, i\]"):
        nash_average(np.ones((2, 2)))
    with pytest.raises(ConfigError, match="population of 2"):
        alpha_rank(ORDER, population=1)


def test_sides_weigh_the_same_and_players_that_never_met_are_not_rated() -> None:
    cells = []
    for one, other, *values in (("x", "y", 1.0, 0.6), ("y", "z", 0.9, 0.5), ("x", "z", 1.0, 1.0)):
        for side, opponent_side, value in zip("ab", "ba", values, strict=True):
            sides, back = {"side": side, "opponent_side": opponent_side}, {"side": opponent_side, "opponent_side": side}
            cells.append({"player": one, "opponent": other, **sides, "points": {"value": value}})
            cells.append({"player": other, "opponent": one, **back, "points": {"value": 1 - value}})
    found = field_ratings({"win_matrix": cells})
    assert [each.player for each in found] == ["x", "y", "z"]
    assert [each.skill for each in found] == pytest.approx([0, -0.3, -0.5], abs=1e-6) and found[0].weight == 1
    unmet = [each for each in cells if {each["player"], each["opponent"]} != {"x", "z"}]
    assert field_ratings({"win_matrix": unmet}) == []
