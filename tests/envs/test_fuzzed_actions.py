"""Every registered environment answers actions made by a grammar and random Unicode."""

import contextlib

import pytest
from fuzzed_actions import ActionGrammar, Fuzzed
from fuzzing import fuzz_count
from kinds import kinds

from turngym.envs.household.rules import canonical
from turngym.envs.registration import specs
from turngym.errors import MissingExtra
from turngym.seeding import stream

NATIVE, PRESET = fuzz_count(80), fuzz_count(15)
"""Actions for one environment of each class, and for each that differs from it in options alone."""
FEW = 6
"""Actions for environments that need a package or a program of their own."""


def actions_for(env_id: str) -> int:
    spec = specs()[env_id]
    if spec.extra or spec.entry_point.startswith("turngym.envs.tools."):
        return FEW
    return NATIVE if env_id in kinds() else PRESET


@pytest.mark.parametrize("env_id", sorted(specs()))
def test_any_action_is_answered(env_id: str) -> None:
    try:
        fuzzed = Fuzzed(env_id, seed=3)
    except MissingExtra as error:
        pytest.skip(str(error))
    with contextlib.closing(fuzzed):
        fuzzed.play(actions_for(env_id))
    assert not fuzzed.raised


def test_the_grammar_is_made_of_what_the_environment_says_and_repeats_by_its_seed() -> None:
    def texts() -> list[str]:
        grammar = ActionGrammar(stream("grammar", 1), "Answer with <move>up</move> or search[words].")
        grammar.learn("You see a lamp.", ("<move>up</move>",))
        return [grammar.sample() for _ in range(1_000)]

    first = texts()
    assert first == texts() and len(set(first)) > 600
    for piece in ("<move>", "</move>", "[words]", "\ud800", "\x00", "9" * 400):
        assert any(piece in text for text in first), ascii(piece)
    assert max(map(len, first)) <= 2_000 * 25


def test_an_environment_that_raises_is_told_of_and_played_on() -> None:
    fuzzed = Fuzzed("turngym/GuessTheNumber-v0", seed=0)
    calls = 0

    def broken(action: str) -> object:
        nonlocal calls
        calls += 1
        raise IndexError(f"at {len(action)}")

    fuzzed._env.unwrapped.step = broken
    fuzzed.play(50)
    assert calls == 1 and len(fuzzed.raised) == 1 and "IndexError" in fuzzed.raised[0][1]


def test_long_commands_are_not_kept_by_the_cache_of_commands() -> None:
    fuzzed = Fuzzed("turngym/HouseholdEasy-v0", seed=0)
    before = canonical.cache_info().misses
    with contextlib.closing(fuzzed):
        fuzzed._begin()
        fuzzed._step("go to " + "x" * 90_000)
    assert canonical.cache_info().misses == before
