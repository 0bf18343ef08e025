"""Format rewards, penalties for invalid actions, turn limits and token limits."""

from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
import toy_envs  # noqa: F401  (registers the toy environments)
from hypothesis import given
from hypothesis import strategies as st

from turngym.errors import ConfigError, UnknownName
from turngym.wrappers import Wrapping, wrap
from turngym.wrappers.limits.token_limit import COUNTERS, TokenLimit, longest_prefix


def counter(*wrappers: str | Wrapping, **options: Any) -> Any:
    env = wrap(gymnasium.make("toy/Counter-v0", **options), *wrappers)
    env.reset(seed=0)
    return env


# format_reward


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("tag", "so <action>up</action>", "up"),
        ("boxed", r"\boxed{up}", r"\boxed{up"),
        ("json", '{"action": "up"}', '{"act": "up"}'),
        ("plain", "up", "  "),
    ],
)
def test_a_completion_is_judged_before_it_is_parsed(format: str, good: str, bad: str) -> None:
    env = counter(f"parse_action:format={format}", f"format_reward:format={format},bonus=0.25,penalty=0.5")
    _, reward, *_, info = env.step(good)
    assert reward == 0.25 and info["action_is_valid"]
    _, reward, *_, info = env.step(bad)
    assert reward == -0.5 and not info["action_is_valid"]


def test_a_well_formed_completion_with_an_invalid_action_still_gets_the_bonus() -> None:
    env = counter("parse_action", "format_reward:bonus=0.25", "invalid_action:penalty=1")
    assert env.step("<action>fly</action>")[1] == 0.25 - 1


def test_inside_of_the_parser_it_would_punish_every_action() -> None:
    """The documented order is the one that works."""
    env = counter("format_reward:bonus=0.25,penalty=0.5", "parse_action")
    assert env.step("<action>up</action>")[1] == -0.5


def test_the_bonus_is_added_to_the_reward_of_the_environment() -> None:
    env = counter("format_reward:format=plain,bonus=0.25", goal=1)
    assert env.step("up")[1:4] == (1.25, True, False)


# invalid_action


def test_the_penalty_and_the_note_are_for_invalid_actions_alone() -> None:
    env = counter("invalid_action:penalty=0.25")
    text, reward, *_ = env.step("fly")
    assert reward == -0.25 and text.splitlines()[0] == "(That was no valid action.)"
    text, reward, *_ = env.step("up")
    assert reward == 0.0 and "valid" not in text
    assert (env.invalid_in_row, env.invalid_total) == (0, 1)


def test_the_note_can_list_the_legal_actions_or_be_left_out() -> None:
    assert "(Legal actions: up, down)" in counter("invalid_action:feedback=legal").step("fly")[0]
    assert counter("invalid_action:feedback=none").step("fly")[0] == counter().step("fly")[0]
    completions = counter("parse_action", "invalid_action:feedback=legal").step("fly")[0]
    assert "(Legal actions: <action>up</action>, <action>down</action>)" in completions


def test_too_many_invalid_actions_in_a_row_end_the_episode() -> None:
    env = counter("invalid_action:max_in_row=2,max_total=4", max_turns=50)
    for action in ("fly", "down", "fly"):
        text, *_, truncated, info = env.step(action)
        assert not truncated and info["success"] == -1
    assert "After 1 more in a row the episode ends." in text
    text, _, terminated, truncated, info = env.step("fly")
    assert (terminated, truncated, info["success"], info["legal_actions"]) == (False, True, 0, ())
    assert "ends" not in text


def test_too_many_invalid_actions_in_all_end_the_episode() -> None:
    env = counter("invalid_action:max_in_row=2,max_total=3", max_turns=50)
    flags = [env.step(action)[3] for action in ("fly", "down", "fly", "down", "fly")]
    assert flags == [False] * 4 + [True]
    env.reset(seed=0)
    assert env.invalid_total == 0


def test_an_invalid_action_that_the_rules_end_with_is_terminated() -> None:
    """The toy counts its bonus even for an action that it does not know."""
    env = counter("invalid_action:max_in_row=1", goal=1)
    env.unwrapped.bonus = 1
    _, reward, terminated, truncated, info = env.step("fly")
    assert (reward, terminated, truncated, info["success"]) == (0.9, True, False, 1)


# turn_limit


@pytest.mark.parametrize("limit", [1, 2, 3, 8, 9])
def test_the_lower_limit_counts(limit: int) -> None:
    env = counter(f"turn_limit:limit={limit}", goal=100)
    flags: list[bool] = []
    while not flags or not flags[-1]:
        flags.append(env.step("up")[3])
    assert len(flags) == min(limit, 8) == env.max_turns
    assert f"ends after {min(limit, 8)} turns" in env.instructions


def test_what_the_rules_end_with_the_last_turn_is_terminated() -> None:
    env = counter("turn_limit:limit=3", goal=3)
    for _ in range(2):
        env.step("up")
    assert env.step("up")[2:4] == (True, False) and env.unwrapped._success == 1


def test_of_two_limits_the_lower_one_counts_whatever_the_order() -> None:
    for wrappers in (("turn_limit:limit=2", "turn_limit:limit=5"), ("turn_limit:limit=5", "turn_limit:limit=2")):
        env = counter(*wrappers, goal=100)
        assert [env.step("up")[3] for _ in range(2)] == [False, True]


# token_limit


def test_a_turn_is_cut_where_its_budget_ends() -> None:
    env = counter("token_limit:per_turn=2,per_episode=null,count=characters")
    assert env.step("up and away")[4]["action_is_valid"]
    assert not env.step("down")[4]["action_is_valid"]  # only "do" is passed on
    assert (env.tokens_used, env.tokens_left) == (4, None)


def test_the_episode_ends_with_its_budget() -> None:
    env = counter("token_limit:per_turn=null,per_episode=5,count=words", goal=100)
    assert env.step("up")[3] is False and env.tokens_left == 4
    assert env.step("one two three")[3] is False and env.tokens_left == 1
    _, _, terminated, truncated, info = env.step("up again and again")
    assert (terminated, truncated, info["success"]) == (False, True, 0) and info["action_is_valid"] is False
    assert env.tokens_used == 5
    env.reset(seed=0)
    assert env.tokens_left == 5


def test_a_solution_with_the_last_token_is_terminated() -> None:
    env = counter("token_limit:per_episode=2,count=words", goal=2)
    env.step("up")
    assert env.step("up")[2:4] == (True, False)


def test_outside_of_the_parser_reasoning_counts_and_inside_it_does_not() -> None:
    text = "I think that up is right. <action>up</action>"
    for order, used in (
        (("parse_action", "token_limit:count=words"), 7),
        (("token_limit:count=words", "parse_action"), 1),
    ):
        env = counter(*order)
        env.step(text)
        assert env.get_wrapper_attr("tokens_used") == used


def test_any_function_can_count() -> None:
    env = counter(Wrapping("token_limit", {"count": lambda text: text.count("u"), "per_turn": 1}))
    env.step("uu up")
    assert env.tokens_used == 1 and env.wrappers[0]["options"]["count"].endswith("<lambda>")
    with pytest.raises(ConfigError, match=r"cannot count by 'word'.*Did you mean 'words'"):
        TokenLimit(gymnasium.make("toy/Counter-v0"), count="word")


@given(
    text=st.text(st.sampled_from("ab \n漢"), max_size=30), budget=st.integers(0, 12), name=st.sampled_from([*COUNTERS])
)
def test_the_prefix_is_the_longest_one_within_the_budget(text: str, budget: int, name: str) -> None:
    count = COUNTERS[name]
    fitting = [text[:end] for end in range(len(text) + 1) if count(text[:end]) <= budget]
    assert longest_prefix(text, budget, count) == fitting[-1]


def test_the_counters_count() -> None:
    counts = {name: count("four words, no more\n") for name, count in COUNTERS.items()}
    assert counts == {"words": 4, "characters": 20, "estimate": 5}
    assert COUNTERS["estimate"]("") == 0 and COUNTERS["estimate"]("a") == 1


@pytest.mark.parametrize(
    ("wrapper", "sentence"),
    [
        ("token_limit:per_turn=9,per_episode=20,count=words", "at most this many words: 9 per turn and 20 in all."),
        ("token_limit:per_turn=null,per_episode=20", "at most this many tokens: 20 in all."),
        ("turn_limit:limit=3", "The episode ends after 3 turns."),
        ("parse_action", "Answer format: write the action as <action>...</action>."),
    ],
)
def test_the_agent_is_told_the_limit(wrapper: str, sentence: str) -> None:
    assert counter(wrapper).instructions.endswith(sentence)


def test_no_budget_adds_no_sentence() -> None:
    env = counter("token_limit:per_turn=null,per_episode=null")
    assert env.instructions == env.unwrapped.instructions


@pytest.mark.parametrize(
    "make",
    [
        lambda: counter("format_reward:format=xml"),
        lambda: counter("format_reward:bonus=-1"),
        lambda: counter("token_limit:per_turn=0"),
        lambda: counter("token_limit:per_episode=1.5"),
    ],
)
def test_options_are_checked(make: Callable[[], object]) -> None:
    with pytest.raises((ConfigError, UnknownName)):
        make()
