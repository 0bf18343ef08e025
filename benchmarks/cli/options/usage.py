"""Errors of the command line in one to three lines: what was given, what is expected, where to look."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import TypeVar

from turngym.errors import ConfigError

ParsedT = TypeVar("ParsedT")
_WIDTH = "100000"
_BORDER = re.compile(r"[╭╰+][─-]|.*[─-]{10}")
_KINDS = {
    "INT": "a whole number",
    "FLOAT": "a number",
    "STR": "a text",
    "PATH": "a path",
    "{True,False}": "True or False",
}


def read_words(parse: Callable[[], ParsedT], argv: Sequence[str]) -> ParsedT:
    """Return what a parser makes of the command line, with its errors in a sentence.

    Args:
        parse: Calls the parser.
        argv: What it reads.

    Raises:
        ConfigError: The command line is wrong.
        SystemExit: Help was printed.
    """
    if "-h" in argv or "--help" in argv:
        return parse()
    heard = io.StringIO()
    try:
        with redirect_stderr(heard), _wide():
            return parse()
    except SystemExit as end:
        if end.code in (0, None):
            raise
    raise ConfigError(sentence(heard.getvalue(), argv))


@contextmanager
def _wide() -> Iterator[None]:
    """Keep the parser from breaking its lines, which are put together again."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def sentence(printed: str, argv: Sequence[str]) -> str:
    r"""Return what the parser has printed in a box as one or two sentences.

    >>> sentence("│ Error parsing --seed: invalid literal for int() │\n│ --seed INT │", ["--seed", "x"])
    "--seed takes a whole number, got 'x'."
    """
    rows = printed.splitlines()
    start = next((number for number, row in enumerate(rows) if _BORDER.match(row)), -1)  # the title ends there
    inside = [row.strip().strip("│|").strip() for row in rows[start + 1 :] if not _BORDER.match(row)]
    lines = [row for row in inside if row]
    text = " ".join(lines)
    command = re.search(r"turngym [\w-]+(?= --help)", text)
    more = f" `{command[0]} --help` shows all options." if command else ""
    if found := re.match(r"Error parsing (\S+): ", text):
        option = found[1]
        form = re.search(rf"(?m)^(?:\S+, )*{re.escape(option)} (\S.*)$", "\n".join(lines))
        return f"{option} takes {_kind(form[1] if form else '')}, got {_given(option, argv)}.{more}"
    if found := re.match(r"[Mm]issing from turngym [\w-]+: ", text):
        names = re.findall(r"(?m)^(?:-\w(?: [A-Z]+)?, )?(--[\w.-]+|[A-Z_]+)(?=$|, | \[?[A-Z{\[])", "\n".join(lines[1:]))
        named = ", ".join(dict.fromkeys(names)) or text.partition(": ")[2].split(" For full")[0]
        return f"missing: {named}.{more}"
    if found := re.match(r"Unrecognized options: (.*?)(?= Perhaps you meant:| For full helptext|$)", text):
        near = re.search(r"Perhaps you meant: (--[\w.-]+)", text)
        hint = f" Did you mean {near[1]}?" if near else ""
        return f"unrecognized options: {found[1].rstrip('.')}.{hint}{more}"
    first = re.split(r" (?:Argument helptext|For full helptext|Perhaps you meant)", text)[0].rstrip(".")
    return f"{first}.{more}"


def _kind(form: str) -> str:
    form = form.removeprefix("{None}|").split("  ")[0].strip()
    return _KINDS.get(form, form or "another value")


def _given(option: str, argv: Sequence[str]) -> str:
    """Return what was passed to an option the last time, as it was written."""
    found = None
    for position, word in enumerate(argv):
        name, sign, value = word.partition("=")
        if name.replace("_", "-") == option.replace("_", "-"):
            found = value if sign else next(iter(argv[position + 1 : position + 2]), None)
    return "something else" if found is None else repr(found if len(found) <= 80 else f"{found[:77]}...")
