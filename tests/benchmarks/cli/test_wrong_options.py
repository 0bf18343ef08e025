"""Every option of every command with a value of a wrong type, and options that there are not.

The options are read from the parsers' own classes, so that a new command or option is covered by itself.
"""

from __future__ import annotations

from typing import Literal, get_origin

import pytest
from command_lines import Word, line, words_of

from turngym.__main__ import COMMANDS, main

TYPED = [
    (command, word)
    for command in COMMANDS
    for word in words_of(command)
    if any(kind in (int, float) or get_origin(kind) is Literal for kind in word.kinds) and str not in word.kinds
]


def test_the_options_are_found() -> None:
    assert len(TYPED) > 60
    assert {command for command, _ in TYPED} >= {"train", "eval", "play", "tournament", "serve-env", "fit-reward"}


@pytest.mark.parametrize(("command", "word"), TYPED, ids=[f"{command} {word.name}" for command, word in TYPED])
def test_a_wrong_type_is_told_in_a_sentence(command: str, word: Word, capfd: pytest.CaptureFixture[str]) -> None:
    status, err = main(line(command, {word.name: "zzz"})), capfd.readouterr().err
    assert status == 2 and "Traceback" not in err and 1 <= len(err.strip().splitlines()) <= 3, err
    assert word.name.split(".")[-1] in err and "zzz" in err, err


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_told_in_a_sentence(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, err = main([*line(command), "--zzz", "1"]), capfd.readouterr().err
    assert status == 2 and "Traceback" not in err and 1 <= len(err.strip().splitlines()) <= 3, err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["eval", "turngym/FrozenLake-v0", "--agnet", "random"], "--agent"),
        (["train", "--lr", "1e-4"], "--update.learning-rate"),
        (["train", "--lr=1e-4"], "--update.learning-rate"),
        (["train", "--update.lerning-rate", "1e-4"], "--update.learning-rate"),
        (["train", "--max_tokens", "9"], "--rollout.max-new-tokens"),
        (["tournament", "turngym/KuhnPoker-v0", "--blocs", "2"], "--blocks"),
        (["eval", "turngym/FrozenLake-v0", "--agent", "random", "--output-dir", "x"], "--out"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-2],
)
def test_a_misspelt_or_foreign_option_gets_the_one_that_was_meant(
    words: list[str], meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert f"Did you mean {meant}?" in capfd.readouterr().err
