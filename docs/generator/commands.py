"""Write the reference of the command line: ``python docs/generator/commands.py [--check]``."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from stale import stale

from turngym.__main__ import COMMANDS
from turngym.__main__ import main as turngym
from turngym.benchmarks.cli.options.help import boxes, captured
from turngym.storage.files import write_atomic

PAGE = Path(__file__).resolve().parents[1] / "reference" / "commands.md"
_WIDTH = 110


def help_texts() -> list[str]:
    """Return what ``turngym COMMAND --help-all`` prints for each command."""
    os.environ.update(NO_COLOR="1", TERM="dumb")
    return [captured(functools.partial(turngym, [command, "--help-all"]), _WIDTH) for command in COMMANDS]


def section(command: str, text: str) -> str:
    """Return the section of a command."""
    usage, _, rest = text.partition("\n\n")
    about = rest.partition("╭")[0].strip()
    parts = [f"## {command}", f"```text\n{' '.join(usage.split()).removeprefix('usage: ')}\n```", _escaped(about)]
    for box in boxes(text):
        entries = [entry for entry in box.entries if not entry.name.startswith("-h,")]
        if entries:
            parts += [f"**{box.title}**" + (f": {_escaped(box.about)}" if box.about else "")]
            rows = [f"| {_escaped(f'`{entry.name}`')} | {_escaped(entry.words)} |" for entry in entries]
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
    intro = (
        "# Commands\n\nOptions of each command, as `turngym COMMAND --help-all` lists them. "
        "`turngym --debug COMMAND` prints tracebacks."
    )
    return "\n\n".join([intro, *(section(*pair) for pair in zip(COMMANDS, texts, strict=True))]) + "\n"


def main(words: list[str]) -> int:
    """Write the page; with ``--check`` compare instead."""
    if "--check" in words:
        return stale({PAGE: page()}, "docs/generator/commands.py")
    write_atomic(PAGE, page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
