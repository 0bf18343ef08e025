"""Help of a command: all options as the parser lists them, or the most used ones in groups."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import NamedTuple, TypeAlias

from rich.markup import escape
from rich.padding import Padding

from turngym.terminal.console import Console

HELP, HELP_ALL = ("-h", "--help"), "--help-all"
Groups: TypeAlias = Mapping[str, Sequence[str]]
"""Title -> names of options, as ``--seed``."""
_INDENTED = 3
_EMPTY = re.compile(r" \(default: (None|'')?\)")
_WIDTH = 110


class Entry(NamedTuple):
    """One argument or option."""

    name: str
    words: str


class Box(NamedTuple):
    """A group of options."""

    title: str
    about: str
    entries: tuple[Entry, ...]


def asks_help(argv: Sequence[str]) -> bool:
    """Return whether a command line asks for help."""
    return any(word in (*HELP, HELP_ALL) for word in argv)


def show_help(parse: Callable[[Sequence[str]], object], argv: Sequence[str], groups: Groups) -> None:
    """Print the help that a command line asks for.

    Args:
        parse: Calls the parser with words; it prints the whole help for ``--help``.
        argv: The words.
        groups: The options that ``--help`` shows; all if there are none. ``--help-all`` shows all.

    Raises:
        SystemExit: Always: the parser ends the process after its help.
    """
    words = ["--help" if word == HELP_ALL else word for word in argv]
    if HELP_ALL in argv or not groups:
        parse(words)
        return
    _print_groups(captured(lambda: parse(words), _WIDTH), groups)
    raise SystemExit(0)


def _print_groups(text: str, groups: Groups) -> None:
    console = Console(highlight=False)
    usage, _, rest = text.partition("\n\n")
    console.print(f"{usage}\n\n{rest.partition('╭')[0].strip()}", markup=False, soft_wrap=True)
    entries = [entry for box in boxes(text) for entry in box.entries]
    known = {name: entry for entry in entries for name in re.findall(r"--[\w.-]+", entry.name)}
    positional = [entry for entry in entries if not entry.name.startswith("-")]
    for title, names in groups.items():
        console.print(f"\n[bold]{title}[/bold]")
        for entry in dict.fromkeys([*positional, *(known[name] for name in names)]):
            console.print(f"  [bold]{escape(entry.name)}[/bold]")
            console.print(Padding(escape(entry.words), (0, 0, 0, 6)))
        positional = []
    command = usage.removeprefix("usage: ").partition(" [")[0]
    console.print(f"\n`{command} {HELP_ALL}` shows all options.", markup=False)


def captured(call: Callable[[], object], columns: int) -> str:
    """Return what the parser prints to standard output, in boxes."""
    content = io.BytesIO()
    printed = io.TextIOWrapper(content, "utf-8", write_through=True)  # the parser draws boxes in UTF-8 only
    with redirect_stdout(printed), width(columns), suppress(SystemExit):
        call()
    return content.getvalue().decode()


@contextmanager
def width(columns: int) -> Iterator[None]:
    """Set the width of what the parser prints."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def boxes(text: str) -> Iterator[Box]:
    r"""Read the boxes of a help text.

    >>> text = "╭─ options ──╮\n│ --seed INT   │\n│      A number. │\n╰──────────╯"
    >>> next(boxes(text)).entries
    (Entry(name='--seed INT', words='A number.'),)
    """
    for box in text.split("╭─ ")[1:]:
        title, *content = box.partition("╰─")[0].splitlines()
        lines = [line[2:].rstrip("│").rstrip() for line in content]
        ruler = next((i for i, line in enumerate(lines) if line.startswith("───")), -1)
        about = " ".join(line.strip() for line in lines[: ruler + 1] if not line.startswith("───"))
        yield Box(title.rstrip("╮─ "), about, tuple(_entries(lines[ruler + 1 :])))


def _entries(lines: list[str]) -> Iterator[Entry]:
    name, words = "", list[str]()
    for line in lines:
        if line[:_INDENTED].strip():
            if name:
                yield _entry(name, words)
            name, _, rest = line.partition("  ")
            words = [rest.strip()] if rest.strip() else []
        else:
            words.append(line.strip())
    if name:
        yield _entry(name, words)


def _entry(name: str, words: Sequence[str]) -> Entry:
    """Return an entry without what the parser shows of an empty default."""
    return Entry(name.replace("{None}|", ""), _EMPTY.sub("", " ".join(words)))
