"""Mastermind: pegs against the rule of counting, the table against single pegs, and Knuth's bound for the player."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.mastermind.rules import (
    Kind,
    Row,
    all_codes,
    as_digits,
    best_guess,
    fits,
    peg_codes,
    pegs,
)
from turngym.errors import ConfigError

CLASSIC = Kind(4, 6, repeats=True)


def counted(guess: str, hidden: str) -> tuple[int, int]:
    """Count equal places, then what both codes have in common whatever the places."""
    black = sum(here == there for here, there in zip(guess, hidden, strict=True))
    return black, sum((Counter(guess) & Counter(hidden)).values()) - black


def turns_for(kind: Kind, hidden: str) -> int:
    rows: list[Row] = []
    while not rows or rows[-1][0] != hidden:
        guess = best_guess(kind, tuple(sorted(rows)))
        rows.append((guess, *pegs(guess, hidden)))
    return len(rows)


@pytest.mark.parametrize("kind", [Kind(2, 9, True), Kind(3, 4, True), Kind(4, 4, True), Kind(3, 6, False)])
def test_pegs_follow_the_rule_of_counting_for_all_pairs(kind: Kind) -> None:
    for guess in all_codes(kind):
        for hidden in all_codes(kind):
            assert pegs(guess, hidden) == counted(guess, hidden)


@given(st.text("12345678", min_size=5, max_size=5), st.text("12345678", min_size=5, max_size=5))
def test_pegs_follow_the_rule_of_counting_for_long_codes(guess: str, hidden: str) -> None:
    assert pegs(guess, hidden) == counted(guess, hidden) == pegs(hidden, guess)


def test_a_digit_of_the_code_is_counted_once() -> None:
    """Negative oracle: a white peg for every digit that occurs anywhere is the usual mistake."""
    assert pegs("1112", "2333") == (0, 1) and pegs("1111", "1222") == (1, 0)
    naive = sum(here in "1222" and here != there for here, there in zip("1111", "1222", strict=True))
    assert naive != pegs("1111", "1222")[1]


@pytest.mark.parametrize(
    ("kind", "count"), [(CLASSIC, 1296), (Kind(4, 6, False), 360), (Kind(5, 8, True), 32768), (Kind(2, 2, False), 2)]
)
def test_all_codes_are_there_once_and_in_order(kind: Kind, count: int) -> None:
    codes = all_codes(kind)
    assert len(codes) == count and list(codes) == sorted(set(codes))
    assert all(len(code) == kind.length and set(code) <= set("123456789"[: kind.colours]) for code in codes)
    assert kind.repeats == any(len(set(code)) < kind.length for code in codes)


@pytest.mark.parametrize("kind", [Kind(3, 5, True), Kind(4, 5, False), Kind(2, 9, True)])
def test_the_table_holds_the_pegs_of_every_pair(kind: Kind) -> None:
    codes = all_codes(kind)
    table = peg_codes(as_digits(codes), as_digits(codes), kind.colours).tolist()
    for row, guess in zip(table, codes, strict=True):
        found = [counted(guess, hidden) for hidden in codes]
        assert row == [black * (kind.length + 1) + white for black, white in found]


def test_different_pegs_have_different_numbers() -> None:
    pairs = {(black, white) for black in range(6) for white in range(6 - black)}
    assert len({black * 6 + white for black, white in pairs}) == len(pairs)
    assert peg_codes(as_digits(["12345"]), as_digits(["12345"]), 9).dtype == np.uint8


@given(st.lists(st.sampled_from(all_codes(CLASSIC)), max_size=4), st.sampled_from(all_codes(CLASSIC)))
def test_the_codes_that_fit_are_those_with_the_same_answers(guesses: list[str], hidden: str) -> None:
    rows = [(guess, *pegs(guess, hidden)) for guess in guesses]
    assert fits(hidden, rows)
    for code in all_codes(CLASSIC)[::37]:
        assert fits(code, rows) == all(counted(guess, code) == counted(guess, hidden) for guess in guesses)


def groups(guess: str, candidates: list[str]) -> list[int]:
    return list(Counter(pegs(guess, code) for code in candidates).values())


@settings(max_examples=15)
@given(st.sampled_from(all_codes(Kind(3, 5, True))), st.sampled_from(all_codes(Kind(3, 5, True))))
def test_the_next_guess_has_the_best_worst_answer(guess: str, hidden: str) -> None:
    """Oracle: sort the candidates by their pegs for every code there is."""
    kind = Kind(3, 5, True)
    rows: tuple[Row, ...] = ((guess, *pegs(guess, hidden)),)
    candidates = [code for code in all_codes(kind) if fits(code, rows)]
    found = best_guess(kind, rows)
    if len(candidates) <= 2:
        assert found == candidates[0]
        return

    def value(code: str) -> tuple[int, bool, int, str]:
        sizes = groups(code, candidates)
        return max(sizes), code not in candidates, sum(size * size for size in sizes), code

    assert found == min(all_codes(kind), key=value)


@pytest.mark.parametrize("kind", [Kind(3, 5, True), Kind(3, 5, False), Kind(2, 6, True)])
def test_for_the_first_guess_few_codes_stand_for_all(kind: Kind) -> None:
    """Exchanging digits or places changes no count, so the best of the few is the best of all."""
    codes = list(all_codes(kind))
    found = groups(best_guess(kind, ()), codes)
    assert max(found) == min(max(groups(code, codes)) for code in codes)


def test_every_classic_code_is_found_within_five_guesses() -> None:
    """Knuth 1977: five guesses are always enough, and his tables need 5801 guesses for all codes together."""
    turns = Counter(turns_for(CLASSIC, hidden) for hidden in all_codes(CLASSIC))
    assert max(turns) == 5 and sum(turns.values()) == 1296
    assert sum(count * number for count, number in turns.items()) <= 5801


@pytest.mark.parametrize(("kind", "most"), [(Kind(3, 4, True), 4), (Kind(2, 6, False), 4), (Kind(4, 6, False), 5)])
def test_every_small_code_is_found(kind: Kind, most: int) -> None:
    assert max(turns_for(kind, hidden) for hidden in all_codes(kind)) == most


@pytest.mark.parametrize(("kind", "most"), [(Kind(5, 8, True), 9), (Kind(5, 9, False), 9)])
def test_codes_out_of_many_are_found(kind: Kind, most: int) -> None:
    codes = all_codes(kind)
    for hidden in codes[:: len(codes) // 23]:
        assert turns_for(kind, hidden) <= most


def test_guesses_among_many_fit_all_answers() -> None:
    kind = Kind(5, 8, True)
    rows: list[Row] = []
    for _ in range(4):
        guess = best_guess(kind, tuple(rows))
        assert fits(guess, rows)
        rows.append((guess, *pegs(guess, "83172")))


def test_answers_that_no_code_can_give_are_refused() -> None:
    with pytest.raises(ConfigError, match="no code of 4 digits fits"):
        best_guess(CLASSIC, (("1111", 4, 0), ("2222", 4, 0)))


def test_digits_are_read_from_one() -> None:
    assert as_digits(["19", "21"]).tolist() == [[0, 8], [1, 0]]
    assert len(list(product("12", repeat=2))) == len(all_codes(Kind(2, 2, True)))
