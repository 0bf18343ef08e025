"""Ratings: known values, an independent method, and intervals that hold what they promise."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from turngym.agents.intervals import Estimate
from turngym.benchmarks.statistics.bradley_terry import Comparison, Entrant, strengths
from turngym.benchmarks.statistics.ratings import ELO_PER_LOG, in_elo, rate
from turngym.errors import ConfigError, UnknownName
from turngym.seeding import stream

A, B, C = ("a", ""), ("b", ""), ("c", "")


def duel(first: Entrant, second: Entrant, points: float, block: int = 0) -> Comparison:
    return Comparison((first,), (second,), points, block)


def duels(first: Entrant, second: Entrant, won: int, lost: int, drawn: int = 0) -> list[Comparison]:
    """Return results of a pair, every game a block of its own."""
    points = [1.0] * won + [0.0] * lost + [0.5] * drawn
    return [duel(first, second, point, block) for block, point in enumerate(points)]


def test_three_wins_to_one_are_ln_3_and_191_elo_without_prior() -> None:
    found = strengths(duels(A, B, 3, 1), prior=0)
    assert found[A] - found[B] == pytest.approx(math.log(3), abs=1e-12)
    assert found[A] + found[B] == pytest.approx(0, abs=1e-12)
    elo = in_elo(Estimate(found[A] - found[B], 0.1, 0.0, 2.0, 4, 4, "x"), shift=1000)
    assert elo.value == pytest.approx(1000 + 400 * math.log10(3)) and round(elo.value - 1000, 1) == 190.8
    assert (elo.low, elo.high) == pytest.approx((1000, 1000 + 2 * ELO_PER_LOG)) and elo.stderr == 0.1 * ELO_PER_LOG


def test_the_prior_is_drawn_games_with_an_imaginary_player() -> None:
    # the imaginary player, put among the others by hand, gives the same differences
    imaginary = ("imaginary", "")
    results = duels(A, B, 3, 1) + duels(B, C, 5, 0)
    added = [Comparison((entrant,), (imaginary,), 0.5, weight=2.5) for entrant in (A, B, C)]
    explicit = strengths(results + added, prior=0)
    found = strengths(results, prior=2.5)
    for entrant in (A, B, C):
        assert found[entrant] == pytest.approx(explicit[entrant] - explicit[imaginary], abs=1e-9)


def test_a_draw_is_half_a_win_and_half_a_loss() -> None:
    drawn = strengths(duels(A, B, 3, 1, drawn=4), prior=0)
    assert drawn[A] - drawn[B] == pytest.approx(math.log(5 / 3), abs=1e-12)
    assert strengths(duels(A, B, 0, 0, drawn=9)) == {A: 0, B: 0}


def by_majorisation(results: list[Comparison], rounds: int = 5000) -> dict[Entrant, float]:
    """Return strengths by the slow method: Zermelo's fixed point, w_i / sum_j n_ij / (p_i + p_j)."""
    names = sorted({entrant for result in results for entrant in (*result.first, *result.second)})
    power = dict.fromkeys(names, 1.0)
    for _ in range(rounds):
        won, load = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for result in results:
            (a,), (b,) = result.first, result.second
            won[a] += result.points
            won[b] += 1 - result.points
            load[a] += 1 / (power[a] + power[b])
            load[b] += 1 / (power[a] + power[b])
        power = {name: won[name] / load[name] for name in names}
        scale = math.exp(np.mean([math.log(value) for value in power.values()]))
        power = {name: value / scale for name, value in power.items()}
    return {name: math.log(value) for name, value in power.items()}


def test_another_method_finds_the_same_maximum() -> None:
    results = duels(A, B, 7, 2, 1) + duels(B, C, 4, 4) + duels(C, A, 1, 5) + duels(("d", ""), C, 3, 9, 2)
    slow, found = by_majorisation(results, 400), strengths(results, prior=0)
    assert found == {entrant: pytest.approx(value, abs=1e-8) for entrant, value in slow.items()}


def test_teams_are_as_strong_as_the_mean_of_their_members() -> None:
    # one member of two on top of the other side's strength: half of the difference counts
    team = [Comparison((A, B), (B, B), point) for point in [1.0] * 3 + [0.0]]
    found = strengths([*team, duel(A, B, 0.5)] * 1000, prior=1e-6)
    # the maximum: 3 - 4 s(d / 2) and 0.5 - s(d) weighed by what each moves, (1/2)(3 - 4 s(d/2)) + (1/2 - s(d)) = 0
    grid = np.linspace(0, 3, 300_001)
    slope = (3 - 4 / (1 + np.exp(-grid / 2))) / 2 + 0.5 - 1 / (1 + np.exp(-grid))
    assert found[A] - found[B] == pytest.approx(grid[np.abs(slope).argmin()], abs=1e-4)


def season(seed: int, truth: dict[Entrant, float], blocks: int) -> Iterator[Comparison]:
    """Yield a round robin: in every block each pair plays once."""
    generator = stream("season", seed)
    names = sorted(truth)
    for block in range(blocks):
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                chance = 1 / (1 + math.exp(truth[second] - truth[first]))
                yield duel(first, second, float(generator.random() < chance), block)


def test_no_order_of_the_games_changes_a_bit() -> None:
    results = list(season(0, {A: 0.5, B: 0.0, C: -1.0}, 30))
    expected = rate(results, anchor="b", resamples=50)
    for seed in range(5):
        shuffled = [results[i] for i in stream("shuffle", seed).permutation(len(results))]
        turned = [Comparison(r.second, r.first, 1 - r.points, r.block) if i % 2 else r for i, r in enumerate(shuffled)]
        assert rate(shuffled, anchor="b", resamples=50) == expected == rate(turned, anchor="b", resamples=50)
        assert strengths(shuffled) == strengths(results)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    truth = {A: 0.8, B: 0.0, C: -0.6}
    covered = []
    for seed in range(150):
        found = rate(season(seed, truth, 80), anchor="b", prior=0.5, resamples=200, seed=seed)
        covered += [found.players[p].low <= truth[p, ""] <= found.players[p].high for p in ("a", "c")]
    # 300 intervals: 0.95 with a standard error of 0.013 (more, since the two share games)
    assert 0.90 <= np.mean(covered) <= 0.99


def test_intervals_that_ignore_blocks_would_be_too_narrow() -> None:
    # every game of a block ends alike: 20 independent facts and not 200
    results = [duel(A, B, float(block % 4 != 0), block) for block in range(20) for _ in range(10)]
    apart = [duel(A, B, result.points, i) for i, result in enumerate(results)]
    honest, narrow = rate(results, anchor="b").players["a"], rate(apart, anchor="b").players["a"]
    assert honest.value == pytest.approx(narrow.value) and (honest.blocks, honest.count) == (20, 200)
    assert honest.stderr == pytest.approx(math.sqrt(10) * narrow.stderr, rel=0.35)


def test_who_wins_everything_stays_finite_and_is_marked() -> None:
    results = duels(A, B, 50, 0) + duels(B, C, 3, 3)
    found = rate(results, anchor="c")
    assert 3 < found.players["a"].value < 10 and math.isfinite(found.players["a"].high)
    assert found.extremes == {A: "all won"}
    assert rate(duels(A, B, 1, 0)).extremes == {A: "all won", B: "all lost"}
    bigger = strengths([Comparison((A,), (B,), 1.0, weight=100_000)], prior=0.1)
    assert 10 < bigger[A] - bigger[B] < 40


def test_players_that_never_met_are_told_apart() -> None:
    d, e = ("d", ""), ("e", "")
    results = duels(A, B, 3, 1) + duels(d, e, 1, 3)
    found = rate(results)
    assert found.groups == ((A, B), (d, e))
    assert rate(results + duels(A, d, 1, 1)).groups == ((A, B, d, e),)
    with pytest.raises(ConfigError, match="a and d are not linked by points in both directions"):
        strengths(results, prior=0)


def test_without_prior_an_infinite_strength_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a and b are not linked.*small prior, such as 0\.1"):
        strengths(duels(A, B, 3, 0), prior=0)
    circle = [duel(A, B, 1.0), duel(B, C, 1.0), duel(C, A, 1.0)]
    assert strengths(circle, prior=0) == {A: pytest.approx(0), B: pytest.approx(0), C: pytest.approx(0)}
    with pytest.raises(ConfigError, match="teams of several entrants need a prior"):
        strengths([Comparison((A, B), (C,), 1.0)], prior=0)


SIDES = {"village": -1.5, "werewolf": 1.5}


def side_matrix(skill: dict[Entrant, float], games: int, seed: int = 0) -> list[Comparison]:
    generator = stream("sides", seed)
    players = sorted({player for player, _ in skill})
    results = []
    for block in range(games):
        for i in players:
            for j in players:
                village, wolf = (i, "village"), (j, "werewolf")
                odds = SIDES["village"] + skill[village] - SIDES["werewolf"] - skill[wolf]
                won = float(generator.random() < 1 / (1 + math.exp(-odds)))
                results.append(duel(village, wolf, won, block))
    return results


def test_each_side_has_its_own_strength_and_the_sides_advantage_is_apart() -> None:
    skill = {
        ("random", "village"): 0.0,
        ("random", "werewolf"): 0.0,
        ("talker", "village"): 2.0,
        ("talker", "werewolf"): -0.5,
    }
    found = rate(side_matrix(skill, 2000), anchor="random", resamples=100)
    for entrant, value in skill.items():
        assert found.entrants[entrant].value == pytest.approx(value, abs=0.25)
        assert found.entrants[entrant].low - 0.1 <= value <= found.entrants[entrant].high + 0.1
    assert found.entrants["random", "village"].stderr == 0, "an anchor has no error"
    assert found.players["talker"].value == pytest.approx(0.75, abs=0.2)
    assert found.players["talker"].value == pytest.approx(
        (found.entrants["talker", "village"].value + found.entrants["talker", "werewolf"].value) / 2
    )
    assert found.side_advantage["werewolf"].value == pytest.approx(3, abs=0.25)
    assert found.side_advantage["village"].value == pytest.approx(-found.side_advantage["werewolf"].value)


def test_without_an_anchor_the_mean_of_every_side_is_zero() -> None:
    found = rate(season(1, {A: 1.0, B: 0.0, C: 2.0}, 20), resamples=20)
    assert sum(found.players[name].value for name in "abc") == pytest.approx(0, abs=1e-9)
    assert found.side_advantage == {} and found.anchor == ""


def test_an_anchor_that_did_not_play_a_side_leaves_that_side_at_its_mean() -> None:
    results = [duel(("a", "x"), ("b", "y"), point) for point in (1.0, 1.0, 0.0)]
    found = rate([*results, duel(("b", "x"), ("b", "y"), 1.0)], anchor="a", resamples=5)
    assert found.entrants["a", "x"].value == 0 and found.entrants["b", "y"].value == 0


def test_one_block_alone_gives_an_interval_without_width() -> None:
    found = rate([duel(A, B, 1.0), duel(A, B, 0.0)], anchor="b", resamples=10)
    assert found.players["a"].low == found.players["a"].value == found.players["a"].high
    assert found.players["a"].blocks == 1


def test_wrong_settings_are_explained() -> None:
    with pytest.raises(UnknownName, match=r"no player named 'randm' to anchor the ratings at\. Did you mean 'random'"):
        rate([duel(("random", ""), A, 1.0)], anchor="randm")
    with pytest.raises(ConfigError, match="at least one game, got none"):
        rate([])
    for prior in (0, 1e-20, float("inf")):
        with pytest.raises(ConfigError, match=f"intervals need a finite prior of at least 1e-06, got {prior}"):
            rate([duel(A, B, 1.0)], prior=prior)
    assert rate([duel(A, B, 1.0)] * 50, prior=1e-6).players["a"].value > 0
    with pytest.raises(ConfigError, match="prior must be at least 0 and finite, got -1"):
        strengths([duel(A, B, 1.0)], prior=-1)
    with pytest.raises(ConfigError, match=r"points in \[0, 1\] and a finite weight above 0, got 1\.5 and 1"):
        duel(A, B, 1.5)
    with pytest.raises(ConfigError, match="at least one entrant on either side"):
        Comparison((), (A,), 1.0)
