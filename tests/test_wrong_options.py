"""Every option of every command with a wrong type, an unknown name, an empty and an unreadable file.

The options are read from the parsers' own classes, so that a new command or option is covered by itself.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest
import tyro

from turngym.__main__ import COMMANDS, main
from turngym.trainers.config import TrainConfig

_POSITIONAL: Any = get_args(tyro.conf.Positional[int])[1]
HANOI = "turngym/TowerOfHanoi-v0"
VALID = {
    "eval": [HANOI, "--agent", "random", "--episodes", "1", "--option", "discs=2"],
    "play": [HANOI, "--agent", "random", "--option", "discs=2"],
    "tournament": ["turngym/KuhnPoker-v0", "--blocks", "1"],
    "new-env": ["LockPicker"],
}
"""A command line that works, for commands that end quickly; others get names that nothing has."""


def _options(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yield name, type and whether it is positional, of every field of a class of settings, nested ones too."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        bare = get_args(hint)[0] if notes else hint
        if dataclasses.is_dataclass(bare):
            yield from _options(bare, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}".replace("_", "-"), bare, _POSITIONAL in notes


def _of(command: str) -> list[tuple[str, Any, bool]]:
    module = importlib.import_module(f"turngym.benchmarks.commands.{command.replace('-', '_')}")
    return list(_options(getattr(module, "Arguments", TrainConfig)))


def _kinds(hint: Any) -> set[Any]:
    return {hint} if get_origin(hint) in (None, Literal, tuple) else set(get_args(hint))


def _base(command: str) -> list[str]:
    if command in VALID:
        return VALID[command]
    module = importlib.import_module(f"turngym.benchmarks.commands.{command.replace('-', '_')}")
    fields = dataclasses.fields(getattr(module, "Arguments", TrainConfig))
    needed = {each.name.replace("_", "-") for each in fields if each.default is each.default_factory}
    words = ["zzz" for _, _, is_positional in _of(command) if is_positional]
    for name, _, is_positional in _of(command):
        words += [f"--{name}", "zzz"] if name in needed and not is_positional else []
    return words


def _told(words: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capfd.readouterr()
    status = main(words)
    return status, capfd.readouterr().err


TYPED = [
    (command, name)
    for command in COMMANDS
    for name, hint, is_positional in _of(command)
    if not is_positional
    and any(kind in (int, float) or get_origin(kind) is Literal for kind in _kinds(hint))
    and str not in _kinds(hint)
]
TEXTS = [
    (command, name, Path in _kinds(hint))
    for command in VALID
    for name, hint, is_positional in _of(command)
    if not is_positional and _kinds(hint) & {str, Path}
]


def test_the_options_are_found() -> None:
    assert len(TYPED) > 60 and len(TEXTS) > 15
    assert {command for command, _ in TYPED} >= {"train", "eval", "play", "tournament", "serve-env", "fit-reward"}


@pytest.mark.parametrize(("command", "name"), TYPED)
def test_a_wrong_type_is_told_in_a_sentence(command: str, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, err = _told([command, *_base(command), f"--{name}", "zzz"], capfd)
    assert status == 2 and "Traceback" not in err and 1 <= len(err.strip().splitlines()) <= 3, err
    assert f"--{name.split('.')[-1]}"[2:] in err and "zzz" in err, err


@pytest.mark.parametrize(("command", "name", "is_path"), TEXTS)
def test_unknown_names_and_useless_files_are_told_in_a_sentence(
    command: str,
    name: str,
    is_path: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    unreadable = [str(tmp_path / "empty" / "below"), "x" * 300, "/proc/self/mem"]
    for value in (
        ["empty", *unreadable] if is_path else ["zzz", "zzz:zzz", "zzz.py:Zzz", "hf:empty", "hf:folder", "hf:dangling"]
    ):
        status, err = _told([command, *_base(command), f"--{name}", value], capfd)
        assert status in (0, 2) and "Traceback" not in err, (value, err)
        assert status == 0 or 1 <= len(err.strip().splitlines()) <= 3, (value, err)
        assert status == 2 or value not in unreadable, f"{value} was taken"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_told_in_a_sentence(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, err = _told([command, *_base(command), "--zzz", "1"], capfd)
    assert status == 2 and "Traceback" not in err and 1 <= len(err.strip().splitlines()) <= 3, err
