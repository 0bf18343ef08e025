"""Guess the Number: consistent answers, bisection within the limit, and nothing of the hidden number in the info."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.guess_the_number import GuessTheNumber


def hiding(env: GuessTheNumber, number: int) -> GuessTheNumber:
    """Hide a given number, through the snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"]["hidden"] = number
    env.restore(json.dumps(content).encode())
    return env


def test_narrowing_keeps_exactly_the_numbers_that_fit() -> None:
    for hidden in range(1, 8):
        for guess in range(1, 8):
            for second in range(1, 8):
                env = hiding(GuessTheNumber(1, 7), hidden)
                fits = set(range(1, 8))
                for said in (guess, second):
                    if env.step(str(said))[2]:
                        fits = {said}
                        break
                    fits = {n for n in fits if n != said and (n > said) == (hidden > said)}
                assert env.anchor() == f"from {min(fits)} to {max(fits)}"


@pytest.mark.parametrize(("low", "high"), [(1, 2), (0, 6), (5, 104), (1, 127), (1, 128)])
def test_bisection_finds_every_number_within_the_smallest_limit(low: int, high: int) -> None:
    limit = (high - low + 1).bit_length()
    env = GuessTheNumber(low, high, max_turns=limit)
    most = 0
    for number in range(low, high + 1):
        hiding(env, number)
        terminated = False
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated
        assert info["success"] == 1
        most = max(most, env.turn)
    assert most == limit, "a smaller limit would have been enough, so the message names the wrong minimum"


def test_expert_solves_200_random_tasks() -> None:
    env = GuessTheNumber()
    for seed in range(200):
        env.reset(seed=seed)
        terminated = False
        while not terminated:
            _, _, terminated, truncated, _ = env.step(env.expert_action())
            assert not truncated


def test_every_number_is_drawn() -> None:
    env = GuessTheNumber(3, 7)
    numbers = set()
    for seed in range(80):
        env.reset(seed=seed)
        numbers.add(env.instance)
    assert numbers == {f"{number} from 3 to 7" for number in range(3, 8)}
    assert env.finite_instances == 5


def test_answers_and_rewards() -> None:
    env = hiding(GuessTheNumber(1, 10, step_reward=-0.5, solve_reward=3), 4)
    steps = [
        env.step(action)
        for action in (
            "2",
            " 8\n",
            "004",
        )
    ]
    assert [step[0] for step in steps] == ["higher", "lower", "correct"]
    assert [step[1] for step in steps] == [-0.5, -0.5, 2.5]
    assert [step[2] for step in steps] == [False, False, True]
    assert [step[4]["anchor"] for step in steps] == ["from 3 to 10", "from 3 to 7", "from 4 to 4"]


def test_interval_can_be_shown() -> None:
    env = hiding(GuessTheNumber(1, 10, "interval"), 4)
    assert env.step("2")[0] == "from 3 to 10"
    assert env.step("?")[0] == "Unknown action: answer with a number from 1 to 10. from 3 to 10"


def test_wasted_guess_is_legal_and_teaches_nothing() -> None:
    env = hiding(GuessTheNumber(1, 10), 4)
    env.step("8")
    observation, _, _, _, info = env.step("9")
    assert observation == "lower" and info["action_is_valid"] and info["anchor"] == "from 1 to 7"


def test_text_that_is_no_number_of_the_range_is_answered() -> None:
    for action in ["", "four", "0", "11", "-4", "4.0", "4 5", "٤", "1" * 5000, "<4>"]:
        env = hiding(GuessTheNumber(1, 10), 4)
        observation, _, terminated, _, info = env.step(action)
        assert observation == "Unknown action: answer with a number from 1 to 10."
        assert not terminated and not info["action_is_valid"] and info["anchor"] == "from 1 to 10"


def test_legal_actions_are_listed_for_short_ranges_only() -> None:
    assert GuessTheNumber(1, 100).reset(seed=0)[1]["legal_actions"] == tuple(map(str, range(1, 101)))
    assert GuessTheNumber(0, 100).reset(seed=0)[1]["legal_actions"] == ()


def test_progress_grows_with_every_answer_and_ends_at_one() -> None:
    env = hiding(GuessTheNumber(1, 100), 77)
    shares = [env.progress()]
    terminated = False
    while not terminated:
        _, _, terminated, _, info = env.step(env.expert_action())
        shares.append(info["progress"])
    assert shares[0] == 0 and shares[-1] == 1
    assert all(later > earlier for earlier, later in pairwise(shares))


def test_certainty_alone_is_not_success() -> None:
    """With one number left the task is not done before it has been said."""
    env = hiding(GuessTheNumber(1, 3, max_turns=5), 3)
    info = env.step("2")[4]
    assert info["anchor"] == "from 3 to 3" and info["progress"] < 1


@settings(max_examples=50)
@given(st.lists(st.integers(1, 20) | st.text(), max_size=6), st.integers(0, 50))
def test_another_hidden_number_shows_nowhere(actions: list[int | str], seed: int) -> None:
    env = GuessTheNumber(1, 20)
    env.reset(seed=seed)
    for action in actions:
        if env.step(str(action))[2]:
            return
    before, hidden = env._info(), env._hidden
    changed = env.resample_hidden()
    assert changed == (env._hidden != hidden) == (before["anchor"].split()[1] != before["anchor"].split()[3])
    assert env._info() == before
    low, high = env._low, env._high
    assert low <= env._hidden <= high and env.instance.startswith(f"{env._hidden} ")


def test_a_resampled_number_can_be_any_that_fits() -> None:
    env = hiding(GuessTheNumber(1, 6), 3)
    env.step("1")
    seen = set()
    for _ in range(100):
        env.resample_hidden()
        seen.add(env._hidden)
    assert seen == {2, 3, 4, 5, 6}


def test_instructions_name_range_and_limit() -> None:
    text = GuessTheNumber(5, 20, max_turns=6).instructions
    assert "from 5 to 20 " in text.replace(".", " ") and "6 guesses" in text


OPTION_OUT_OF_RANGE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"low": -1}, r"low of .* must be a whole number in \[0, 999999\], got -1"),
    ({"low": 5, "high": 5}, r"high of .* \[6, 1000000\], got 5"),
    ({"high": 10**7}, r"got 10000000"),
    ({"high": 9.5}, r"got 9\.5"),
    ({"max_turns": 6}, r"is 6, but bisection needs 7 turns for the numbers 1 to 100: pass max_turns=7"),
    ({"view": "intervals"}, r"Did you mean 'interval'\?"),
    ({"step_reward": float("inf")}, r"step_reward of .* got inf"),
    ({"split": "eval"}, r"no split 'eval'"),
]


def test_option_out_of_range_is_refused() -> None:
    for options, message in OPTION_OUT_OF_RANGE_IS_REFUSED:
        with pytest.raises(ValueError, match=message):
            GuessTheNumber(**options)
