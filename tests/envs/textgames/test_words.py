"""The word lists: clean, in order, the same for every game, and read without importing or downloading anything."""

import importlib.metadata
import importlib.util
import string
import sys
from pathlib import Path

import pytest

from turngym.envs.instances import split_of
from turngym.envs.textgames import words as module
from turngym.envs.textgames.hangman.env import Hangman
from turngym.envs.textgames.wordle.env import Wordle
from turngym.envs.textgames.words import LONGEST, SHORTEST, is_finite, words, words_of_split
from turngym.errors import MissingExtra

LENGTHS = range(SHORTEST, LONGEST + 1)
ASSETS = Path(next(iter(importlib.util.find_spec("wonderwords").submodule_search_locations))) / "assets"  # type: ignore


def read(name: str) -> list[str]:
    return (ASSETS / f"{name}list.txt").read_bytes().decode().splitlines()


@pytest.mark.parametrize("length", LENGTHS)
def test_words_are_plain_letters_of_one_length_in_alphabetical_order(length: int) -> None:
    found = words(length)
    assert all(len(word) == length and set(word) <= set(string.ascii_lowercase) for word in found)
    assert list(found) == sorted(set(found))


@pytest.mark.parametrize(
    ("length", "fewest"), [(3, 250), (4, 800), (5, 1000), (6, 1000), (7, 1000), (8, 1000), (10, 500)]
)
def test_there_are_enough_words(length: int, fewest: int) -> None:
    assert len(words(length)) >= fewest


def test_lengths_outside_of_the_range_have_no_words() -> None:
    assert words(SHORTEST - 1) == words(LONGEST + 1) == words(0) == ()


def test_every_word_stands_in_a_list_and_in_no_list_of_offences() -> None:
    """Oracle: the files, read another way."""
    lists = {line.strip() for name in ("noun", "adjective", "verb") for line in read(name)}
    offensive = {line.strip() for line in read("profanity")}
    ours = {word for length in LENGTHS for word in words(length)}
    assert ours <= lists and not ours & offensive
    left_out = {word for word in lists - ours - offensive if SHORTEST <= len(word) <= LONGEST}
    assert left_out and all(not (word.isascii() and word.isalpha() and word == word.lower()) for word in left_out)


def test_some_word_was_taken_out_because_it_offends() -> None:
    """Negative oracle: without the filter the test above would find something."""
    assert set(read("noun")) & set(read("profanity"))


def test_the_installed_lists_are_those_that_seeds_were_recorded_with() -> None:
    """With other lists the same seeds give other words: then scores and transcripts are others too."""
    if importlib.metadata.version("wonderwords") != "3.0.1":
        pytest.skip("another version of wonderwords is installed")
    assert [len(words(length)) for length in LENGTHS] == [302, 895, 1182, 1292, 1256, 1050, 861, 553]


@pytest.mark.parametrize("length", LENGTHS)
def test_splits_share_no_word_and_leave_none_out(length: int) -> None:
    parts = [words_of_split(length, split) for split in ("train", "dev", "test")]
    if is_finite(length):
        assert parts == [words(length)] * 3
        return
    assert sorted(word for part in parts for word in part) == list(words(length))
    assert [split_of(part[0]) for part in parts] == ["train", "dev", "test"]
    assert all(len(part) > 0.05 * len(words(length)) for part in parts)


def test_only_lengths_with_few_words_do_without_splits() -> None:
    assert [length for length in LENGTHS if is_finite(length)] == [3]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_word_belongs_to_the_same_split_in_every_game(split: str) -> None:
    for env in (Wordle(split=split), Hangman(split=split)):
        for seed in range(30):
            env.reset(seed=seed)
            assert split_of(env.instance) == split


def test_the_package_is_not_imported() -> None:
    words(5)
    assert "wonderwords" not in sys.modules


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wonderwords", None)
    with pytest.raises(MissingExtra, match=r"word games need the package wonderwords.*pip install wonderwords\."):
        module._by_length.__wrapped__()
