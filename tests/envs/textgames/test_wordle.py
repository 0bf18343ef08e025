"""Wordle: answers, rewards, the board, refused guesses, and nothing of the hidden word in the info."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.instances import split_of
from turngym.envs.textgames.wordle.env import Wordle
from turngym.envs.textgames.wordle.rules import fits
from turngym.envs.textgames.words import words, words_of_split

FIVE = words(5)


def hiding(env: Wordle, word: str) -> Wordle:
    """Hide a given word, through the snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"]["hidden"] = content["instance"] = word
    env.restore(json.dumps(content).encode())
    return env


def test_answers_and_rewards() -> None:
    env = hiding(Wordle(step_reward=-0.5, solve_reward=3), "speed")
    steps = [env.step(action) for action in ("crane", " Apple\n", "SPEED")]
    assert [step[0] for step in steps] == ["c r a n e\nX X X X Y", "a p p l e\nX G X X Y", "s p e e d\nG G G G G"]
    assert [step[1] for step in steps] == [-0.5, -0.5, 2.5]
    assert [step[2] for step in steps] == [False, False, True]
    assert [step[4]["progress"] for step in steps] == [0.1, 0.3, 1.0]
    assert steps[-1][4]["success"] == 1


def test_board_shows_all_guesses_and_the_letters_known() -> None:
    env = hiding(Wordle(view="board"), "speed")
    env.step("crane")
    lines = env.step("apple")[0].split("\n")
    assert lines[:4] == ["c r a n e", "X X X X Y", "a p p l e", "X G X X Y"]
    assert lines[4:] == [
        "in the word: e p",
        "not in the word: a c l n r",
        "not tried: b d f g h i j k m o q s t u v w x y z",
    ]


def test_board_of_a_fresh_game_names_no_letter_as_known() -> None:
    env = Wordle(render_mode="ansi")
    env.reset(seed=0)
    assert str(env.render()).startswith("in the word: none\nnot in the word: none\nnot tried: a b c")


def test_text_that_is_no_word_is_answered() -> None:
    for action in ["", "apples", "app", "a pple", "ápple", "1pple", "app\x00e", "<apple>", "x" * 5000]:
        env = hiding(Wordle(), "speed")
        observation, _, terminated, _, info = env.step(action)
        assert observation == "Unknown action: answer with one word of 5 letters."
        assert not terminated and not info["action_is_valid"] and info["anchor"] == "no guess yet"


def test_words_outside_of_the_list_are_refused_or_allowed_by_option() -> None:
    observation, _, _, _, info = hiding(Wordle(), "speed").step("zzzzz")
    assert observation == "Unknown word: zzzzz is not in the list of words." and not info["action_is_valid"]
    env = hiding(Wordle(guesses="any"), "speed")
    assert env.step("zzeez")[0] == "z z e e z\nX X G G X"
    assert env.step("zzee")[0] == "Unknown action: answer with one word of 5 letters a to z."
    assert env.expert_action() in FIVE


def test_strict_games_refuse_what_the_marks_rule_out() -> None:
    env = hiding(Wordle(strict=True), "speed")
    env.step("crane")
    observation, _, _, _, info = env.step("crate")
    assert observation == "Illegal guess: crate does not fit the marks so far." and not info["action_is_valid"]
    assert info["anchor"] == "crane XXXXY"
    assert env.step("steel")[4]["action_is_valid"]


def test_a_guess_that_is_ruled_out_is_legal_and_teaches_nothing() -> None:
    env = hiding(Wordle(), "speed")
    before = env.step("crane")[4]
    again = env.step("crane")[4]
    assert before == again and env.turn == 2


def test_anchor_does_not_depend_on_the_order_of_guesses() -> None:
    one, other = hiding(Wordle(), "speed"), hiding(Wordle(), "speed")
    for word in ("crane", "house"):
        one.step(word)
    for word in ("house", "crane", "house"):
        other.step(word)
    assert one._info() == other._info() and one._info()["anchor"] == "crane XXXXY\nhouse XXXYY"


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(FIVE) - 1) | st.text(), max_size=5), st.integers(0, 50), st.booleans())
def test_another_hidden_word_shows_nowhere(actions: list[int | str], seed: int, strict: bool) -> None:
    env = Wordle(strict=strict)
    env.reset(seed=seed)
    for action in actions:
        if env.step(action if isinstance(action, str) else FIVE[action])[2]:
            return
    before, hidden, expert, image = env._info(), env._hidden, env.expert_action(), env.render_image()
    changed = env.resample_hidden()
    assert changed == (env._hidden != hidden) == (sum(fits(word, env._rows) for word in FIVE) > 1)
    assert env._info() == before and env.expert_action() == expert and np.array_equal(env.render_image(), image)
    assert fits(env._hidden, env._rows) and env.instance == env._hidden


def test_a_resampled_word_can_be_any_that_fits() -> None:
    env = hiding(Wordle(), "light")
    env.step("fight")
    expected = {word for word in FIVE if word.endswith("ight")} - {"fight"}
    seen = set()
    for _ in range(80):
        env.resample_hidden()
        seen.add(env._hidden)
    assert seen == expected


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"length": 4}, {"length": 6}, {"length": 8}])
def test_expert_solves_200_tasks_of_the_test_split(options: dict[str, Any]) -> None:
    env = Wordle(**options, split="test")
    for seed in range(200):
        env.reset(seed=seed)
        assert split_of(env.instance) == "test"
        terminated = False
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated and info["action_is_valid"], env.instance
        assert info["success"] == 1


def test_every_word_of_the_split_is_drawn() -> None:
    env = Wordle(split="dev")
    env.reset(seed=0)
    drawn = {env.reset()[0] and env.instance for _ in range(1500)}
    assert drawn == set(words_of_split(5, "dev"))


def test_words_of_three_letters_are_too_few_for_splits() -> None:
    assert Wordle(3).finite_instances == len(words(3)) and Wordle().finite_instances is None


def test_picture_colours_letters_by_their_marks() -> None:
    env = hiding(Wordle(image=True, render_mode="rgb_array"), "speed")
    observation = env.step("apple")[0]
    picture = observation["image"]
    assert picture.shape == (120, 100, 3) and observation in env.observation_space
    shown = env.render()
    assert isinstance(shown, np.ndarray) and np.array_equal(picture, shown)
    corners = [tuple(picture[1, 20 * column + 1].tolist()) for column in range(5)]
    grey, green, yellow = corners[0], corners[1], corners[4]
    assert corners == [grey, green, grey, grey, yellow] and len({grey, green, yellow}) == 3
    assert len(np.unique(picture[20:].reshape(-1, 3), axis=0)) == 2, "rows without a guess are empty tiles"


def test_picture_of_a_long_game_shows_the_last_guesses() -> None:
    env = hiding(Wordle(max_turns=12), "speed")
    for word in ("crane", *["house"] * 10):
        env.step(word)
    other = hiding(Wordle(max_turns=12), "speed")
    for _ in range(10):
        other.step("house")
    assert env.render_image().shape == (200, 100, 3) and np.array_equal(env.render_image(), other.render_image())


def test_instructions_name_length_limit_and_rule() -> None:
    text = Wordle(6, max_turns=8).instructions
    assert "6 letters" in text and "8 guesses" in text and "must fit" not in text
    assert "must fit all marks" in Wordle(strict=True).instructions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 2}, r"length of .* must be a whole number in \[3, 8\], got 2"),
        ({"length": 9}, r"got 9"),
        ({"guesses": "lists"}, r"Did you mean 'list'\?"),
        ({"view": "rows"}, r"Did you mean 'row'\?"),
        ({"strict": 1}, r"strict of .* must be True or False, got 1"),
        ({"solve_reward": float("nan")}, r"solve_reward of .* got nan"),
        ({"split": "eval"}, r"no split 'eval'"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Wordle(**options)


def test_tasks_have_no_names() -> None:
    with pytest.raises(ValueError, match="has no named tasks"):
        Wordle().reset(options={"task": "crane"})
