"""Mastermind: answers, rewards, what counts as a code, and nothing of the hidden code in the info."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.instances import split_of
from turngym.envs.textgames.mastermind.env import Mastermind
from turngym.envs.textgames.mastermind.rules import Kind, all_codes, fits

CLASSIC = all_codes(Kind(4, 6, repeats=True))


def hiding(env: Mastermind, code: str) -> Mastermind:
    """Hide a given code, through the snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"]["hidden"] = code
    env.restore(json.dumps(content).encode())
    return env


def test_answers_and_rewards() -> None:
    env = hiding(Mastermind(step_reward=-0.5, solve_reward=3), "1213")
    steps = [env.step(action) for action in ("1122", " 3 1 2 1\n", "1,2,1,3")]
    assert [step[0] for step in steps] == [
        "1 1 2 2: 1 black, 2 white",
        "3 1 2 1: 0 black, 4 white",
        "1 2 1 3: 4 black, 0 white",
    ]
    assert [step[1] for step in steps] == [-0.5, -0.5, 2.5]
    assert [step[2] for step in steps] == [False, False, True]
    assert [step[4]["progress"] for step in steps] == [0.5, 0.5, 1.0]
    assert steps[-1][4]["success"] == 1


def test_board_shows_all_guesses_in_order() -> None:
    env = hiding(Mastermind(view="board", render_mode="ansi"), "1213")
    assert env.render() == "no guess yet"
    env.step("5566")
    observation = env.step("1122")[0]
    assert observation == env.render() == "5 5 6 6: 0 black, 0 white\n1 1 2 2: 1 black, 2 white"


TEXT_THAT_IS_NO_CODE_IS_ANSWERED: list[str] = [
    "",
    "121",
    "12134",
    "1217",
    "1210",
    "1 2 1 x",
    "-1213",
    "١٢١٣",
    "1.213",
    "one two one three",
    "1" * 5000,
]


def test_text_that_is_no_code_is_answered() -> None:
    for action in TEXT_THAT_IS_NO_CODE_IS_ANSWERED:
        env = hiding(Mastermind(), "1213")
        observation, _, terminated, _, info = env.step(action)
        assert observation == "Unknown action: answer with 4 digits from 1 to 6."
        assert not terminated and not info["action_is_valid"] and info["anchor"] == "no guess yet"


def test_a_digit_twice_is_no_code_where_none_repeats() -> None:
    env = hiding(Mastermind(repeats=False), "1234")
    assert env.step("1123")[0] == "Unknown action: answer with 4 digits from 1 to 6, none twice."
    assert env.step("4321")[0] == "4 3 2 1: 0 black, 4 white"


def test_a_guess_made_again_is_legal_and_teaches_nothing() -> None:
    env = hiding(Mastermind(), "1213")
    before = env.step("1122")[4]
    assert env.step("1 1 2 2")[4] == before and env.turn == 2


def test_anchor_does_not_depend_on_the_order_of_guesses() -> None:
    one, other = hiding(Mastermind(), "1213"), hiding(Mastermind(), "1213")
    for code in ("5566", "1122"):
        one.step(code)
    for code in ("1122", "5566", "1122"):
        other.step(code)
    assert one._info() == other._info()
    assert one._info()["anchor"] == "1 1 2 2: 1 black, 2 white\n5 5 6 6: 0 black, 0 white"


def test_legal_actions_are_all_codes_where_there_are_few() -> None:
    env = Mastermind(2, 4)
    legal = env.reset(seed=0)[1]["legal_actions"]
    assert legal == tuple(f"{code[0]} {code[1]}" for code in all_codes(Kind(2, 4, repeats=True)))
    assert Mastermind().reset(seed=0)[1]["legal_actions"] == ()
    for action in legal:
        env.reset(seed=1)
        assert env.step(action)[4]["action_is_valid"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(CLASSIC) | st.text(), max_size=4), st.integers(0, 50))
def test_another_hidden_code_shows_nowhere(actions: list[str], seed: int) -> None:
    env = Mastermind()
    env.reset(seed=seed)
    for action in actions:
        if env.step(action)[2]:
            return
    before, hidden, expert, image = env._info(), env._hidden, env.expert_action(), env.render_image()
    changed = env.resample_hidden()
    assert changed == (env._hidden != hidden) == (sum(fits(code, env._rows) for code in CLASSIC) > 1)
    assert env._info() == before and env.expert_action() == expert and np.array_equal(env.render_image(), image)
    assert fits(env._hidden, env._rows) and env.instance.startswith(env._hidden)


def test_a_resampled_code_can_be_any_that_fits() -> None:
    env = hiding(Mastermind(2, 4), "12")
    env.step("13")
    seen = set()
    for _ in range(60):
        env.resample_hidden()
        seen.add(env._hidden)
    assert seen == {"11", "12", "14", "23", "33", "43"} == {code for code in env._codes if fits(code, env._rows)}


def test_nothing_is_hidden_once_the_code_is_found() -> None:
    env = hiding(Mastermind(), "1213")
    env.step("1213")
    assert not env.resample_hidden() and env._hidden == "1213"


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({"length": 3, "colours": 4, "max_turns": 8}, 200),
        ({}, 200),
        ({"repeats": False}, 100),
        ({"length": 5, "colours": 8, "max_turns": 12}, 25),
    ],
)
def test_expert_solves_every_task(options: dict[str, Any], tasks: int) -> None:
    env = Mastermind(**options, split="test")
    for seed in range(tasks):
        env.reset(seed=seed)
        terminated = False
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated and info["action_is_valid"], env.instance
        assert info["success"] == 1


def test_splits_share_no_code_and_few_codes_have_no_splits() -> None:
    seen: dict[str, str] = {}
    for split in ("train", "dev", "test"):
        env = Mastermind(split=split)
        assert env.finite_instances is None
        for seed in range(150):
            env.reset(seed=seed)
            assert split_of(env.instance) == split == seen.setdefault(env.instance, split)
    assert Mastermind(4, 6, repeats=False).finite_instances == 360


def test_every_code_is_drawn() -> None:
    env = Mastermind(2, 3)
    codes = set()
    for seed in range(80):
        env.reset(seed=seed)
        codes.add(env._hidden)
    assert codes == set(all_codes(Kind(2, 3, repeats=True))) and env.finite_instances == 9


def test_picture_shows_digits_and_pegs_of_the_last_guesses() -> None:
    env = hiding(Mastermind(image=True, max_turns=20), "1213")
    first = env.step("1122")[0]
    assert first["image"].shape == (12 * 20, 6 * 20, 3) and first in env.observation_space
    assert first["text"] == "1 1 2 2: 1 black, 2 white"
    tiles = first["image"].reshape(12, 20, 6, 20, 3).transpose(0, 2, 1, 3, 4)
    assert np.array_equal(tiles[0, 0], tiles[0, 1]) and np.array_equal(tiles[0, 2], tiles[0, 3])
    assert len({tile.tobytes() for tile in tiles[0]}) == 4, "two digits, the black and the white pegs"
    assert len({tile.tobytes() for tile in tiles[1:].reshape(-1, 20, 20, 3)}) == 1
    for _ in range(12):
        last = env.step("3456")[0]
    tiles = last["image"].reshape(12, 20, 120, 3)
    assert all(np.array_equal(row, tiles[0]) for row in tiles), "the first guess has left the picture"


def test_instructions_give_a_legal_example() -> None:
    env = Mastermind(3, 5, repeats=False, max_turns=7)
    assert "3 digits from 1 to 5" in env.instructions and "7 guesses" in env.instructions
    assert "No digit occurs twice" in env.instructions and "more than once" in Mastermind().instructions
    env.reset(seed=0)
    assert env.step(env.instructions.split("example: ")[1])[4]["action_is_valid"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 1}, r"length of .* must be a whole number in \[2, 5\], got 1"),
        ({"colours": 10}, r"colours of .* \[2, 9\], got 10"),
        ({"colours": 3, "repeats": False}, r"colours of .* is 3, but a code has 4 different digits: pass colours=4 or"),
        ({"repeats": "no"}, r"repeats of .* must be True or False, got 'no'"),
        ({"view": "boards"}, r"Did you mean 'board'\?"),
        ({"step_reward": float("inf")}, r"step_reward of .* got inf"),
        ({"max_turns": 0}, r"max_turns of .* got 0"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mastermind(**options)
