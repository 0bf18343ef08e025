"""The history wrapper: what it shows, what it leaves out, and where it stands among the others."""

from typing import Any

import gymnasium
import pytest
import toy_envs  # noqa: F401  (registers the toy environments)
from hypothesis import given
from hypothesis import strategies as st

from turngym.wrappers import wrap
from turngym.wrappers.observations.history import history_text

PAIRS = st.lists(st.tuples(st.text(max_size=20), st.text(max_size=8)).map(list), max_size=6)


def guess(*wrappers: str) -> Any:
    return wrap(gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=100), *wrappers)


def test_the_last_pairs_are_shown_with_their_turns() -> None:
    env = guess("history:k=2")
    assert env.reset(seed=0)[0] == "from 1 to 100"
    env.unwrapped._hidden = 60
    assert env.step("50")[0] == "Turn 1:\nfrom 1 to 100\nYour action: 50\n\nNow:\nhigher"
    env.step("70")
    assert env.step("65")[0] == ("Turn 2:\nhigher\nYour action: 70\n\nTurn 3:\nlower\nYour action: 65\n\nNow:\nlower")
    assert env.step("60")[0].endswith("Now:\ncorrect")


def test_without_a_number_all_turns_are_shown_and_with_zero_none() -> None:
    everything, nothing, plain = guess("history:k=null"), guess("history:k=0"), guess()
    for env in (everything, nothing, plain):
        env.reset(seed=0)
    for turn in range(1, 9):
        shown = everything.step(str(turn))[0]
        assert [f"Turn {i}:" in shown for i in range(1, 10)] == [i <= turn for i in range(1, 10)]
        assert nothing.step(str(turn))[0] == plain.step(str(turn))[0]


def test_nothing_of_the_last_episode_is_shown() -> None:
    """The fault that other suites have: the second episode began with the text of the first."""
    env = guess("history:k=null")
    first = env.reset(seed=0)[0]
    env.step("1")
    assert env.reset(seed=0)[0] == first
    assert env.step("2")[0].count("Turn ") == 1


def test_outside_of_the_parser_it_shows_completions_and_inside_of_it_actions() -> None:
    outside, inside = guess("parse_action", "history"), guess("history", "parse_action")
    for env in (outside, inside):
        env.reset(seed=0)
    completion = "Halves. <action>50</action>"
    assert f"Your action: {completion}\n" in outside.step(completion)[0]
    assert "Your action: 50\n" in inside.step(completion)[0]


def test_the_anchor_stays_that_of_the_environment() -> None:
    env, plain = guess("history"), guess()
    env.reset(seed=4)
    plain.reset(seed=4)
    for action in ("50", "x", "20"):
        assert env.step(action)[-1] == plain.step(action)[-1]


@given(pairs=PAIRS, now=st.text(max_size=20), first=st.integers(1, 9), limit=st.one_of(st.none(), st.integers(1, 200)))
def test_the_newest_turns_that_fit_are_shown_whole(
    pairs: list[list[str]], now: str, first: int, limit: int | None
) -> None:
    """Brute force: among all ways to leave out the oldest turns, the longest text within the limit."""
    candidates = [history_text(pairs[i:], now, first + i) for i in range(len(pairs) + 1)]
    fitting = [text for text in candidates if limit is None or len(text) <= limit]
    shown = history_text(pairs, now, first, limit)
    assert shown == (fitting[0] if fitting else now)
    assert shown.endswith(now)


def test_a_limit_that_is_shorter_than_the_observation_never_cuts_it() -> None:
    env = guess("history:max_chars=3")
    env.reset(seed=0)
    assert env.step("101")[0].startswith("Unknown action")


@pytest.mark.parametrize("count", [5, 200])
def test_the_state_is_bounded_by_the_window(count: int) -> None:
    env = wrap(gymnasium.make("toy/Counter-v0", max_turns=500, goal=1000), "history", k=2)
    env.reset(seed=0)
    for _ in range(count):
        env.step("up")
    assert len(env.get_wrapper_attr("snapshot")()) < 1300
