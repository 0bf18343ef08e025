"""Hangman: what is shown, what costs a life, the player, and nothing of the hidden word in the info."""

import json
import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.instances import split_of
from turngym.envs.textgames.hangman.env import Hangman
from turngym.envs.textgames.hangman.rules import best_guess, fits, revealed
from turngym.envs.textgames.words import words
from turngym.errors import ConfigError

letters = st.sampled_from(string.ascii_lowercase)


def hiding(env: Hangman, word: str) -> Hangman:
    """Hide a given word, through the snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"]["hidden"] = content["instance"] = word
    content["observation"] = f"{' '.join('_' * len(word))}\nwrong: none\nlives: {env.lives}"
    env.restore(json.dumps(content).encode())
    return env


@given(st.sampled_from(words(6)), st.sets(letters))
def test_exactly_the_guessed_letters_are_shown(word: str, guessed: set[str]) -> None:
    shown = revealed(word, "".join(guessed))
    assert len(shown) == len(word)
    for letter, seen in zip(word, shown, strict=True):
        assert seen == (letter if letter in guessed else "_")


@given(st.sampled_from(words(5)), st.sets(letters, max_size=12), st.sampled_from(words(5)))
def test_a_word_fits_if_every_letter_would_have_been_answered_alike(hidden: str, guessed: set[str], word: str) -> None:
    """Oracle: the answer to a letter is the set of its places."""
    alike = all(
        [place for place in range(5) if word[place] == letter]
        == [place for place in range(5) if hidden[place] == letter]
        for letter in guessed
    )
    assert fits(word, revealed(hidden, "".join(guessed)), "".join(guessed)) == alike
    assert not fits(word, revealed(hidden, "".join(guessed)), "".join(guessed), [word])
    assert not fits(word + "s", revealed(hidden, "".join(guessed)), "".join(guessed))


@settings(max_examples=25)
@given(st.sampled_from(words(4)), st.text("etaoinshr", max_size=4))
def test_the_best_letter_is_in_the_most_words(hidden: str, guessed: str) -> None:
    """Oracle: count the words of the list that fit and have the letter."""
    guessed = "".join(sorted(set(guessed)))
    shown = revealed(hidden, guessed)
    possible = [word for word in words(4) if fits(word, shown, guessed)]
    guess = best_guess(shown, guessed)
    if len(possible) == 1:
        assert guess == hidden
        return
    counts = Counter(letter for word in possible for letter in set(word) - set(guessed))
    assert counts[guess] == max(counts.values()) and guess not in guessed


def test_the_best_letter_of_equals_tells_most_apart() -> None:
    """Of ray, way and say all have a and y; r, w and s come in one word each."""
    possible = [word for word in words(3) if fits(word, "_ay", "aybdgjlmp")]
    assert len(possible) > 2
    guess = best_guess("_ay", "aybdgjlmp")
    assert sum(guess in word for word in possible) == 1


def test_marks_that_no_word_can_give_are_refused() -> None:
    with pytest.raises(ConfigError, match="no word fits 'qq___'"):
        best_guess("qq___", "q")


def test_answers_lives_and_rewards() -> None:
    env = hiding(Hangman(step_reward=-0.5, solve_reward=3, lives=4), "letter")
    steps = [env.step(action) for action in ("e", " T\n", "q", "better", "r", "Letter")]
    assert [step[0] for step in steps] == [
        "_ e _ _ e _\nwrong: none\nlives: 4",
        "_ e t t e _\nwrong: none\nlives: 4",
        "_ e t t e _\nwrong: q\nlives: 3",
        "_ e t t e _\nwrong: better q\nlives: 2",
        "_ e t t e r\nwrong: better q\nlives: 2",
        "l e t t e r\nwrong: better q\nlives: 2",
    ]
    assert [step[1] for step in steps] == [-0.5, -0.5, -0.5, -0.5, -0.5, 2.5]
    assert [step[2] for step in steps] == [False] * 5 + [True]
    assert [round(step[4]["progress"], 3) for step in steps] == [0.333, 0.667, 0.667, 0.667, 0.833, 1.0]
    assert steps[-1][4]["success"] == 1


def test_the_last_letter_wins_too() -> None:
    env = hiding(Hangman(), "letter")
    for letter in "etr":
        assert not env.step(letter)[2]
    _, reward, terminated, _, info = env.step("l")
    assert terminated and reward == 1 and info["success"] == 1


def test_the_last_life_ends_the_episode() -> None:
    env = hiding(Hangman(lives=2), "letter")
    assert not env.step("q")[2]
    observation, reward, terminated, truncated, info = env.step("bottle")
    assert observation == "_ _ _ _ _ _\nwrong: bottle q\nlives: 0"
    assert (reward, terminated, truncated, info["success"]) == (0, True, False, 0)


def test_text_that_is_no_guess_is_answered() -> None:
    for action in ["", " ", "lette", "letters", "l e", "1", "é", "_", "ß", "lettér", "12", "a" * 5000]:
        env = hiding(Hangman(), "letter")
        observation, _, terminated, _, info = env.step(action)
        note = "Unknown action: answer with one letter, or with a word of 6 letters."
        assert observation == f"{note}\n_ _ _ _ _ _\nwrong: none\nlives: 8"
        assert not terminated and not info["action_is_valid"] and note not in info["anchor"]


@pytest.mark.parametrize("guess", ["e", "q", "bottle"])
def test_guessing_again_costs_no_life(guess: str) -> None:
    env = hiding(Hangman(), "letter")
    before = env.step(guess)
    observation, _, _, _, info = env.step(guess)
    assert observation == f"You have guessed {guess} already.\n{before[0]}"
    assert info == {**before[4], "action_is_valid": False}


def test_legal_actions_are_the_letters_not_guessed() -> None:
    env = hiding(Hangman(), "letter")
    legal = set(string.ascii_lowercase)
    for guess in ("e", "q", "bottle", "e", "x"):
        info = env.step(guess)[4]
        legal.discard(guess)
        assert info["legal_actions"] == tuple(sorted(legal))


def test_anchor_does_not_depend_on_the_order_of_guesses() -> None:
    one, other = hiding(Hangman(), "letter"), hiding(Hangman(), "letter")
    for guess in ("e", "q", "bottle", "t"):
        one.step(guess)
    for guess in ("bottle", "t", "q", "e"):
        other.step(guess)
    assert one._info() == other._info()


@settings(max_examples=60)
@given(st.lists(letters | st.sampled_from(words(6)) | st.text(), max_size=8), st.integers(0, 50))
def test_another_hidden_word_shows_nowhere(actions: list[str], seed: int) -> None:
    env = Hangman()
    env.reset(seed=seed)
    for action in actions:
        if env.step(action)[2]:
            return
    before, hidden, expert = env._info(), env._hidden, env.expert_action()
    others = [word for word in words(len(hidden)) if fits(word, env._shown, env._guessed, env._wrong)]
    assert env.resample_hidden() == (len(others) > 1) == (env._hidden != hidden)
    assert env._hidden in others and env.instance == env._hidden
    assert env._info() == before and env.expert_action() == expert


def test_a_resampled_word_can_be_any_that_fits() -> None:
    env = hiding(Hangman(), "light")
    for letter in "ight":
        env.step(letter)
    env.step("fight")
    seen = set()
    for _ in range(80):
        env.resample_hidden()
        seen.add(env._hidden)
    assert seen == {word for word in words(5) if word.endswith("ight")} - {"fight", "tight"}  # tight would show two t


def test_nothing_is_hidden_once_the_word_is_found() -> None:
    env = hiding(Hangman(), "letter")
    env.step("letter")
    assert not env.resample_hidden()


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"shortest": 8, "longest": 10, "lives": 10}, 200),
        ({}, 196),
        ({"shortest": 4, "longest": 6, "lives": 6}, 165),
    ],
)
def test_expert_solves_most_of_200_tasks_of_the_test_split(options: dict[str, Any], least: int) -> None:
    env = Hangman(**options, split="test")
    solved = 0
    for seed in range(200):
        env.reset(seed=seed)
        assert split_of(env.instance) == "test"
        terminated = False
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated and info["action_is_valid"]
        solved += info["success"]
    assert solved >= least


def test_every_task_can_be_solved_in_one_turn() -> None:
    env = Hangman()
    for seed in range(200):
        env.reset(seed=seed)
        assert env.step(env.instance)[4]["success"] == 1


def test_all_lengths_are_drawn_and_no_others() -> None:
    env = Hangman(4, 6)
    lengths = Counter(env.reset(seed=seed)[0].count("_") for seed in range(200))
    assert set(lengths) == {4, 5, 6}


def test_only_words_of_three_letters_are_too_few_for_splits() -> None:
    assert Hangman(3, 3).finite_instances == len(words(3))
    assert Hangman(3, 4).finite_instances is None


def test_instructions_name_lengths_and_lives() -> None:
    assert "of 5 to 8 letters" in Hangman().instructions and "you have 8" in Hangman().instructions
    assert "of 7 letters" in Hangman(7, 7).instructions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shortest": 2}, r"shortest of .* must be a whole number in \[3, 10\], got 2"),
        ({"longest": 4}, r"longest of .* must be a whole number in \[5, 10\], got 4"),
        ({"lives": 0}, r"lives of .* \[1, 26\], got 0"),
        ({"solve_reward": float("inf")}, r"solve_reward of .* got inf"),
        ({"lifes": 3}, r"Did you mean 'lives'\?"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hangman(**options)
