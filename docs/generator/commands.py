"""Write the reference of the command line: ``python docs/generator/commands.py [--check]``."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

from stale import stale

from turngym.__main__ import COMMANDS
from turngym.__main__ import main as turngym
from turngym.storage.files import write_atomic

PAGE = Path(__file__).resolve().parents[1] / "reference" / "commands.md"
_WIDTH = "110"
_INDENTED = 3
_TEXTS = "--texts"


class Entry(NamedTuple):
    """One argument or option."""

    name: str
    words: str


class Box(NamedTuple):
    """A group of options."""

    title: str
    about: str
    entries: tuple[Entry, ...]


def help_texts() -> list[str]:
    """Return what ``turngym COMMAND --help`` prints for each command, from one process that is as wide as the page."""
    environment = {**os.environ, "COLUMNS": _WIDTH, "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf8"}
    call = [sys.executable, __file__, _TEXTS]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env=environment, encoding="utf8")
    return list(json.loads(done.stdout))


def help_text(command: str) -> str:
    """Return what ``turngym COMMAND --help`` prints in this process."""
    content = io.BytesIO()
    printed = io.TextIOWrapper(content, "utf-8", write_through=True)
    with redirect_stdout(printed), suppress(SystemExit):
        turngym([command, "--help"])
    return content.getvalue().decode()


def boxes(text: str) -> Iterator[Box]:
    r"""Read the boxes of a help text.

    >>> text = "╭─ options ──╮\n│ --seed INT   │\n│      A number. │\n╰──────────╯"
    >>> next(boxes(text)).entries
    (Entry(name='--seed INT', words='A number.'),)
    """
    for found in re.finditer(r"╭─ (.*?) ─+╮\n(.*?)╰─+╯", text, re.DOTALL):
        lines = [line[2:].rstrip("│").rstrip() for line in found[2].splitlines()]
        ruler = next((i for i, line in enumerate(lines) if line.startswith("───")), -1)
        about = " ".join(line.strip() for line in lines[: ruler + 1] if not line.startswith("───"))
        yield Box(found[1], about, tuple(_entries(lines[ruler + 1 :])))


def _entries(lines: list[str]) -> Iterator[Entry]:
    name, words = "", list[str]()
    for line in lines:
        if line[:_INDENTED].strip():
            if name:
                yield Entry(name, " ".join(words))
            name, _, rest = line.partition("  ")
            words = [rest.strip()] if rest.strip() else []
        else:
            words.append(line.strip())
    if name:
        yield Entry(name, " ".join(words))


def section(command: str, text: str) -> str:
    """Return the section of a command."""
    usage, _, rest = text.partition("\n\n")
    about = rest.partition("╭")[0].strip()
    parts = [f"## {command}", f"```text\n{' '.join(usage.split()).removeprefix('usage: ')}\n```", _escaped(about)]
    for box in boxes(text):
        entries = [entry for entry in box.entries if not entry.name.startswith("-h,")]
        if entries:
            parts += [f"**{box.title}**" + (f": {_escaped(box.about)}" if box.about else "")]
            rows = [f"| `{entry.name.replace('|', chr(92) + '|')}` | {_escaped(entry.words)} |" for entry in entries]
            parts.append("\n".join(["| | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def _escaped(text: str) -> str:
    """Return text as Markdown shows it in a table: code between backticks is shown as it is."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        parts[number] = parts[number].replace("<", "&lt;").replace("[", "\\[")
    return "`".join(parts).replace("|", "\\|")


def page() -> str:
    """Return the page."""
    texts = help_texts()
    intro = "# Commands\n\nOutput of `turngym COMMAND --help`. `turngym --debug COMMAND` prints tracebacks."
    return "\n\n".join([intro, *(section(*pair) for pair in zip(COMMANDS, texts, strict=True))]) + "\n"


def main(words: list[str]) -> int:
    """Write the page; with ``--check`` compare instead."""
    if words == [_TEXTS]:
        print(json.dumps([help_text(command) for command in COMMANDS]))
        return 0
    if "--check" in words:
        return stale({PAGE: page()}, "docs/generator/commands.py")
    write_atomic(PAGE, page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
