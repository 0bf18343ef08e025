"""Number Line: every pair is drawn, the way is never too long, and a step off the line changes nothing."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.number_line import NumberLine, legal_steps, nth_pair


def start(env: NumberLine, position: int, target: int) -> NumberLine:
    """Reset until a task is drawn that goes from one number to another."""
    for seed in range(10_000):
        if env.reset(seed=seed)[0] == f"You are at {position}. The target is {target}.":
            return env
    raise AssertionError("the task is never drawn")


@pytest.mark.parametrize("highest", [1, 2, 7])
def test_pairs_are_all_pairs_of_different_numbers(highest: int) -> None:
    numbers = range(highest + 1)
    pairs = [nth_pair(index, highest) for index in range(highest * (highest + 1))]
    assert pairs == [(one, other) for one in numbers for other in numbers if one != other]


def test_legal_steps_stay_on_the_line() -> None:
    for highest in (1, 2, 5):
        for position in range(highest + 1):
            steps = {"+": position + 1, "-": position - 1}
            assert set(legal_steps(position, highest)) == {
                step for step, after in steps.items() if 0 <= after <= highest
            }


def test_every_pair_is_drawn_about_equally_often() -> None:
    env = NumberLine(highest=3)
    counts = Counter(env.reset(seed=seed)[0] for seed in range(1200))
    assert len(counts) == env.finite_instances == 12
    assert min(counts.values()) > 60, counts  # 100 expected, 9.6 standard deviation


@pytest.mark.parametrize("highest", [1, 5, 50])
def test_expert_takes_the_shortest_way(highest: int) -> None:
    env = NumberLine(highest=highest, max_turns=highest)
    for seed in range(200):
        env.reset(seed=seed)
        distance = abs(env._position - env._target)
        terminated = False
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated
        assert info["success"] == 1 and env.turn == distance


def test_rewards_of_steps_towards_away_and_at_the_target() -> None:
    env = start(NumberLine(step_reward=-0.125, away_reward=-1.0, solve_reward=2.0), 1, 3)
    steps = [env.step(action) for action in ("-", "-", "+", "+", "?", "+")]
    assert [step[1] for step in steps] == [-1.125, -1.125, -0.125, -0.125, -0.125, 1.875]
    assert [step[4]["progress"] for step in steps] == [0.0, 0.0, 0.0, 0.5, 0.5, 1.0]
    assert [step[2] for step in steps] == [False] * 5 + [True]
    assert steps[-1][4]["score"] == 1.0


def test_a_step_off_the_line_is_valid_and_changes_nothing() -> None:
    env = start(NumberLine(), 5, 2)
    observation, _, _, _, info = env.step("+")
    assert observation == "You are at 5. The target is 2."
    assert info["action_is_valid"] and info["legal_actions"] == ("-",)


def test_text_that_is_no_step_is_answered() -> None:
    for action in ["", "++", "+2", "1", "plus", "− ", "+ -", "+\x00"]:
        env = start(NumberLine(), 2, 4)
        observation, _, _, _, info = env.step(action)
        assert observation == "Unknown action: answer with + or -. You are at 2. The target is 4."
        assert not info["action_is_valid"] and info["anchor"] == "You are at 2. The target is 4."


@pytest.mark.parametrize("action", ["+", " +1\n", "+1", "\t+"])
def test_signs_may_have_a_one_and_spaces(action: str) -> None:
    env = start(NumberLine(), 2, 4)
    assert env.step(action)[4]["action_is_valid"] and env._position == 3


@settings(max_examples=40)
@given(st.lists(st.sampled_from("+-"), max_size=25), st.integers(0, 100))
def test_the_position_is_the_clipped_sum_of_the_steps(actions: list[str], seed: int) -> None:
    env = NumberLine(highest=4, max_turns=25)
    env.reset(seed=seed)
    position = env._position
    for action in actions:
        position = int(np.clip(position + (1 if action == "+" else -1), 0, 4))
        _, _, terminated, _, info = env.step(action)
        assert env._position == position and terminated == (position == env._target)
        if terminated:
            return
        assert 0 <= info["progress"] < 1


def test_progress_grows_with_every_step_of_the_expert() -> None:
    env = start(NumberLine(), 0, 5)
    shares = [0.0, *(env.step("+")[4]["progress"] for _ in range(5))]
    assert shares[-1] == 1.0 and all(later > earlier for earlier, later in pairwise(shares))


def test_the_picture_shows_both_places() -> None:
    env = start(NumberLine(render_mode="ansi"), 1, 4)
    assert env.render() == ".P..G.\nYou are at 1. The target is 4."


def test_asking_for_an_expert_action_at_the_target_is_refused() -> None:
    env = start(NumberLine(), 1, 2)
    env.step("+")
    with pytest.raises(ValueError, match="no expert action after the episode has ended"):
        env.expert_action()


def test_instructions_name_the_line_and_the_limit() -> None:
    text = NumberLine(highest=7, max_turns=9).instructions
    assert "from 0 to 7" in text and "9 turns" in text


def test_a_snapshot_with_a_place_off_the_line_is_refused() -> None:
    env = start(NumberLine(), 1, 4)
    damaged = env.snapshot().replace(b'"position": 1', b'"position": 9')
    with pytest.raises(ValueError, match="damaged snapshot"):
        env.restore(damaged)
    assert env.step("+")[0] == "You are at 2. The target is 4."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"highest": 0}, r"highest of .* \[1, 1000\], got 0"),
        ({"highest": 2.0}, r"whole number in \[1, 1000\], got 2\.0"),
        ({"highest": 12}, r"is 10, but the way from 0 to 12 takes 12 turns: pass max_turns=12 or a smaller highest"),
        ({"away_reward": float("nan")}, r"away_reward of .* got nan"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NumberLine(**options)
