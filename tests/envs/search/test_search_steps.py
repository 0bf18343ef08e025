"""Rewards of single searches against the worked numbers of StepSearch and OTC."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.search.step_rewards import (
    SearchProgress,
    group_tool_efficiency,
    similarity,
    tool_efficiency,
)


def test_the_worked_rounds_of_stepsearch() -> None:
    progress = SearchProgress(["g1", "g2"])
    gains = [progress.add_scores(best) for best in ([0.6, 0.0], [0.5, 0.4], [0.6, 0.4])]
    assert gains == pytest.approx([0.3, 0.2, 0.0])
    rounds = (("d1", "d2", "d3"), ("d2", "d4", "d5"), ("d2", "d2", "d6"))
    penalties = [progress._redundancy(passages) for passages in rounds]
    assert penalties == pytest.approx([0.0, 1 / 3, 2 / 3])
    steps = [gain - penalty for gain, penalty in zip(gains, penalties, strict=True)]
    assert steps == pytest.approx([0.3, -0.133333, -0.666667], abs=1e-6)
    assert [0.6 * step for step in steps] == pytest.approx([0.18, -0.08, -0.4], abs=1e-6)


def test_a_passage_twice_in_one_search_is_redundant() -> None:
    assert SearchProgress([]).add(["a", "a", "b"]) == (0.0, 1 / 3)


def test_the_gold_passage_itself_is_the_whole_gain_and_brings_nothing_again() -> None:
    progress = SearchProgress(["red wine from Spain", "blue cheese"])
    assert progress.add(["Red wine, from Spain!"])[0] == pytest.approx(0.5)
    assert progress.add(["red wine from Spain"]) == pytest.approx((0.0, 0.0))
    assert progress.add(["blue cheese"])[0] == pytest.approx(0.5)


def test_nothing_found_and_empty_passages_bring_nothing() -> None:
    progress = SearchProgress(["red wine"])
    assert progress.add([]) == (0.0, 0.0)
    assert progress.add(["", "  "])[0] == 0.0


def test_the_cosine_is_that_of_the_formula() -> None:
    # three texts, the query among them: idf(xx) = ln(4/4) + 1 = 1, idf(yy) = ln(4/2) + 1
    rare = math.log(2) + 1
    first = similarity(["xx", "xx yy"], "xx")
    assert first == pytest.approx([1.0, 1 / math.hypot(1, rare)])


@given(st.lists(st.lists(st.text("abc ", max_size=12), max_size=3), max_size=5), st.lists(st.text("abc ", max_size=9)))
def test_all_gains_together_are_at_most_1_and_never_negative(rounds: list[list[str]], gold: list[str]) -> None:
    progress = SearchProgress(gold)
    found = [progress.add(passages) for passages in rounds]
    assert all(gain >= 0 and 0 <= redundancy <= 1 for gain, redundancy in found)
    assert sum(gain for gain, _ in found) <= 1 + 1e-9


def test_the_worked_numbers_of_otc() -> None:
    assert [tool_efficiency(m, 4) for m in (0, 1, 2, 4)] == pytest.approx([1, 0.866025, 0.707107, 0.5], abs=1e-6)
    pairs = ((0, 0), (2, 0), (2, 2), (4, 2))
    assert [group_tool_efficiency(m, n, 4) for m, n in pairs] == pytest.approx([1, 0.707107, 1, 0.866025], abs=1e-6)


@given(st.integers(0, 50), st.integers(1, 50))
def test_fewer_calls_are_never_worth_less(calls: int, most: int) -> None:
    assert tool_efficiency(calls, most) > tool_efficiency(calls + 1, most) > 0
