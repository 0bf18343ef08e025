"""Wordle: marks against the rule of counting, the table against single marks, and what the player promises."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.wordle.rules import (
    Row,
    best_guess,
    closeness,
    code,
    fits,
    keyboard,
    letters,
    mark_codes,
    marks,
)
from turngym.envs.textgames.words import words
from turngym.errors import ConfigError

short_words = st.text("abc", min_size=5, max_size=5)


def counted(guess: str, hidden: str) -> str:
    """Mark by counting: of each letter as many are coloured as both words have, greens first, then from the left."""
    spare = Counter(guess) & Counter(hidden)
    found = ["X"] * len(guess)
    for place, (here, there) in enumerate(zip(guess, hidden, strict=True)):
        if here == there:
            found[place] = "G"
            spare[here] -= 1
    for place, here in enumerate(guess):
        if found[place] == "X" and spare[here] > 0:
            found[place] = "Y"
            spare[here] -= 1
    return "".join(found)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_marks_follow_the_rule_of_counting_for_all_words_of_three_letters(length: int) -> None:
    every = ["".join(some) for some in product("abc", repeat=length)]
    for guess in every:
        for hidden in every:
            assert marks(guess, hidden) == counted(guess, hidden)


def test_marks_follow_the_rule_of_counting_for_words_of_the_list() -> None:
    for length in (3, 5, 8):
        known = words(length)
        for guess, hidden in zip(known, known[7:] + known[:7], strict=True):
            assert marks(guess, hidden) == counted(guess, hidden)
            assert marks(guess, guess) == "G" * length


@pytest.mark.parametrize(
    ("guess", "hidden", "expected"),
    [
        ("speed", "abide", "XXYXY"),  # one e of two: the left one is yellow
        ("speed", "erase", "YXYYX"),  # both e are there
        ("speed", "steal", "GXGXX"),  # the green e uses up the only one
        ("allee", "apple", "GYXXG"),  # the last e is green, so the one before is grey
        ("geese", "eerie", "XGYXG"),
    ],
)
def test_marks_of_repeated_letters(guess: str, hidden: str, expected: str) -> None:
    assert marks(guess, hidden) == expected


def test_marking_letters_one_by_one_would_be_noticed() -> None:
    """Negative oracle: yellow for every letter that occurs anywhere is the usual mistake."""
    naive = "".join("G" if a == b else "Y" if a in "abide" else "X" for a, b in zip("speed", "abide", strict=True))
    assert naive != marks("speed", "abide")


@given(st.lists(short_words, min_size=1, max_size=4), short_words, short_words)
def test_a_word_fits_exactly_if_it_agrees_with_places_and_counts(guesses: list[str], hidden: str, word: str) -> None:
    """Oracle: read the marks as statements about places and about the number of each letter."""
    rows = [(guess, marks(guess, hidden)) for guess in guesses]
    assert fits(hidden, rows)
    agrees = True
    for guess, answer in rows:
        for place, (letter, mark) in enumerate(zip(guess, answer, strict=True)):
            agrees &= (word[place] == letter) == (mark == "G")
        for letter in set(guess):
            own = [mark for here, mark in zip(guess, answer, strict=True) if here == letter]
            least = len(own) - own.count("X")
            agrees &= word.count(letter) == least if "X" in own else word.count(letter) >= least
    assert fits(word, rows) == agrees


@given(st.lists(short_words, max_size=4), short_words)
def test_the_keyboard_tells_the_letters_apart(guesses: list[str], hidden: str) -> None:
    present, absent, untried = keyboard([(guess, marks(guess, hidden)) for guess in guesses])
    tried = set("".join(guesses))
    assert set(present) == tried & set(hidden) and set(absent) == tried - set(hidden)
    assert "".join(sorted(present + absent + untried)) == "abcdefghijklmnopqrstuvwxyz"


def test_closeness_orders_answers() -> None:
    shares = [closeness(answer) for answer in ("XXXX", "YXXX", "GXXX", "GYXX", "YYYY", "GGGX", "GGGG")]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1


@pytest.mark.parametrize(("length", "take"), [(3, 302), (5, 60), (8, 40)])
def test_the_table_holds_the_marks_of_every_pair(length: int, take: int) -> None:
    some = words(length)[:: max(1, len(words(length)) // take)]
    table = mark_codes(letters(some), letters(some))
    assert table.dtype == np.uint16
    for row, guess in zip(table.tolist(), some, strict=True):
        assert row == [code(counted(guess, hidden)) for hidden in some]


def test_the_table_is_right_where_letters_repeat() -> None:
    every = ["".join(some) for some in product("abc", repeat=4)]
    table = mark_codes(letters(every), letters(every)).tolist()
    assert table == [[code(counted(guess, hidden)) for hidden in every] for guess in every]


def words_left(guess: str, candidates: list[str]) -> int:
    """Return the sum over the candidates of how many words would be left."""
    return sum(count * count for count in Counter(marks(guess, word) for word in candidates).values())


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 2), st.booleans())
def test_the_best_guess_leaves_the_fewest_words(seed: int, turns: int, only_fitting: bool) -> None:
    """Oracle: sort the candidates by their marks for every allowed guess."""
    known = words(3)
    hidden = known[seed % len(known)]
    rows: tuple[Row, ...] = tuple(
        (guess, marks(guess, hidden)) for guess in (known[seed // 7 % 302], known[seed // 11 % 302])[:turns]
    )
    candidates = [word for word in known if fits(word, rows)]
    guess = best_guess(3, rows, only_fitting)
    if len(candidates) <= 2:
        assert guess == candidates[0]
        return
    pool = candidates if only_fitting else known
    expected = min(pool, key=lambda word: (words_left(word, candidates), word not in candidates, word))
    assert guess == expected


def test_the_first_guess_is_the_best_of_all_words() -> None:
    """Many candidates take another way than few."""
    known = list(words(3))
    assert best_guess(3, ()) == min(known, key=lambda word: (words_left(word, known), word))


@pytest.mark.parametrize("only_fitting", [False, True])
def test_the_player_finds_every_word_within_six_guesses(only_fitting: bool) -> None:
    turns: Counter[int] = Counter()
    for hidden in words(5):
        rows: list[Row] = []
        while not rows or rows[-1][0] != hidden:
            guess = best_guess(5, tuple(sorted(rows)), only_fitting)
            assert not only_fitting or fits(guess, rows)
            rows.append((guess, marks(guess, hidden)))
        turns[len(rows)] += 1
    assert max(turns) <= 6 and sum(turns.values()) == len(words(5))


def test_marks_that_no_word_can_give_are_refused() -> None:
    with pytest.raises(ConfigError, match="no word of 5 letters fits"):
        best_guess(5, (("crane", "GGGGG"), ("light", "GGGGG")))
