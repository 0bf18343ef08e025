"""Command lines that work, one of each command, and what their words are: read from the parsers' own classes."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import tyro

from turngym.benchmarks.cli.train import default_options

_POSITIONAL: Any = get_args(tyro.conf.Positional[int])[1]
HANOI = "turngym/TowerOfHanoi-v0"
EVALUATION = "evaluation"
"""The folder of an evaluation, which lies beside the command lines' own files."""
RUN = "finished"
"""The folder of a training run, which lies there too."""

LINES: Mapping[str, Mapping[str, str | tuple[str, ...]]] = {
    "list": {"kind": "verifiers"},
    "play": {"env": HANOI, "agent": "random", "option": "discs=2"},
    "check": {"env": HANOI, "option": "discs=2"},
    "new-env": {"name": "LockPicker"},
    "eval": {"target": HANOI, "agent": "random", "episodes": "1", "option": "discs=2"},
    "verify": {"folder": EVALUATION, "replay": "0"},
    "export": {"folder": EVALUATION, "format": "inspect", "out": "log.json"},
    "export-tasks": {"env": "turngym/CodeRepair-v0", "out": "tasks", "tasks": "1"},
    "rescore": {"folder": EVALUATION, "option": "max_turns=20"},
    "compare": {"first": EVALUATION, "second": EVALUATION},
    "view": {"path": EVALUATION, "out": "page.html"},
    "leaderboard": {"folder": EVALUATION, "out": "page.html", "verify": "no-verify"},
    "tournament": {"game": "turngym/KuhnPoker-v0", "blocks": "1"},
    "arena": {
        "folder": "arena",
        "games": "turngym/KuhnPoker-v0",
        "players": ("random", "first_legal"),
        "matches": "2",
    },
    "solve": {"game": "turngym/KuhnPoker-v0", "iterations": "9", "out": "policy.json"},
    "serve-env": {"env": HANOI, "port": "0"},
    "mcp": {"env": HANOI, "option": "discs=2"},
    "gateway": {"model": f"{RUN}/model", "port": "0"},
    "serve-search": {"size": "20", "engine": "fts5", "port": "0"},
    "serve-model": {"model": f"{RUN}/model", "port": "0"},
    "report": {"folder": EVALUATION, "out": "page.html"},
    "train": {"env": HANOI, "env-options": "discs=2", "model": f"{RUN}/model", "run-dir": "run"},
    "study": {"action": "list", "plan": "."},
    "launch": {"to": "slurm", "command": "list"},
    "export-model": {"run": RUN, "out": "exported"},
    "clean": {},
    "completion": {"shell": "bash"},
    "learn-experiences": {
        "env": "turngym/FrozenLake-v0",
        "option": "max_turns=2",
        "agent": f"hf:{RUN}/model",
        "out": "learned",
        "rounds": "1",
        "tasks": "1",
        "group-size": "2",
        "held-out": "1",
        "reflection-tokens": "4",
    },
    "label-progress": {"folders": EVALUATION, "out": "labels"},
    "fit-reward": {"folders": EVALUATION, "model": "spa", "out": "fitted", "option": "epochs=1"},
}
"""Command -> its arguments and options, of cheap values; switches have the form in which they are written, and options
of several values have a tuple."""


class Word(NamedTuple):
    """An argument or option of a command.

    Args:
        name: Its name, without dashes in front.
        hint: What it takes.
        is_positional: Whether it is written without its name.
    """

    name: str
    hint: Any
    is_positional: bool

    @property
    def kinds(self) -> set[Any]:
        """The types of which it takes one."""
        return {self.hint} if get_origin(self.hint) in (None, Literal, tuple) else set(get_args(self.hint))

    @property
    def is_path(self) -> bool:
        """Whether it names files or folders."""
        return bool(self.kinds & {Path, tuple[Path, ...]})

    @property
    def is_text(self) -> bool:
        """Whether it takes names, or pairs of names and values."""
        return bool(self.kinds & {str, tuple[str, ...]})


@functools.cache
def words_of(command: str) -> list[Word]:
    """Return the arguments and options of a command."""
    if command == "train":
        return list(_words(type(default_options())))
    module = importlib.import_module(f"turngym.benchmarks.cli.{command.replace('-', '_')}")
    return list(_words(module.Arguments))


def line(command: str, changed: Mapping[str, str | tuple[str, ...] | None] | None = None) -> list[str]:
    """Return the command line of a command, some of its words with other values, or without those that are None."""
    assert command in LINES, f"{command} has no line in tests/support/command_lines.py: add one that works."
    values = {**LINES[command], **(changed or {})}
    words = [command]
    for word in words_of(command):
        value = values.get(word.name)
        if value is not None and word.hint is bool:
            words.append(f"--{value}")
        elif isinstance(value, tuple):
            words += [f"--{word.name}", *value]
        elif value is not None:
            words += [value] if word.is_positional else [f"--{word.name}={value}"]
    return words


def _words(kind: Any, prefix: str = "") -> Iterator[Word]:
    """Yield every field of a class of settings, those of nested ones too."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        bare = get_args(hint)[0] if notes else hint
        if dataclasses.is_dataclass(bare):
            yield from _words(bare, f"{prefix}{field.name}.")
            continue
        given = next((name for note in notes if isinstance(name := getattr(note, "name", None), str)), field.name)
        yield Word(f"{prefix}{given}".replace("_", "-"), bare, _POSITIONAL in notes)
