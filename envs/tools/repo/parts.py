"""Parts of generated packages: files of text with names to draw, alternatives, features and test cases.

A part's file has sections that start with ``== TITLE``: ``about`` (a line), ``vendored`` (for a third-party module),
``needs`` (parts that it imports), ``draws`` (``NAME: CHOICE | CHOICE``), ``source``, ``feature NAME: SUBJECT`` (text of
the request), ``api NAME`` (a line about a change of a vendored module) and ``cases`` (paragraphs of Python, whose last
line is the value that is compared).

``$NAME`` stands for what was drawn, of any part. In sources and cases, the lines from ``#+ NAME`` to ``#.`` exist only
with that feature, those from ``#-`` to ``#.`` only without it. In cases, ``<1..9>`` is a whole number and ``<a|b>`` a
choice, drawn for each case.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from turngym.envs.tools.terminal.task import Draw

_FOLDER = Path(__file__).parent / "data"
_NAME = re.compile(r"\$(\w+)")
_DRAWN = re.compile(r"<(-?\d+)\.\.(-?\d+)>|<([^<>|\n]*(?:\|[^<>|\n]*)+)>")
Values = Mapping[str, str]


class Feature(NamedTuple):
    """A feature that a part can have.

    Args:
        subject: Subject of the commit that adds it.
        request: The request, as text of an issue.
    """

    subject: str
    request: str


class Part(NamedTuple):
    """A module of a generated package.

    Args:
        name: Name of the part, and the key of its module's name among the draws.
        about: Subject, for a README.
        is_vendored: Whether it is a third-party module that the package holds a copy of.
        needs: Parts that it imports.
        draws: Name -> choices.
        source: Source, with names and alternatives.
        cases: Test cases, likewise.
        features: Name -> feature.
        changes: Name -> sentence about a change of the interface.
    """

    name: str
    about: str
    is_vendored: bool
    needs: tuple[str, ...]
    draws: Mapping[str, tuple[str, ...]]
    source: str
    cases: tuple[str, ...]
    features: Mapping[str, Feature]
    changes: Mapping[str, str]


@cache
def parts() -> Mapping[str, Part]:
    """Return name -> part.

    >>> parts()["ledger"].needs
    ('money', 'table')
    """
    return {path.stem: _read(path.stem, path.read_text("utf8")) for path in sorted(_FOLDER.glob("*.txt"))}


def _read(name: str, text: str) -> Part:
    sections = dict[str, str]()
    for block in f"\n{text}".split("\n== ")[1:]:
        title, _, content = block.partition("\n")
        sections[title] = content
    draws = [line.partition(": ") for line in sections["draws"].splitlines() if line]
    entries = {title.partition(" ")[2]: content.strip() for title, content in sections.items() if " " in title}
    features = {key.partition(": ")[0]: Feature(key.partition(": ")[2], entries[key]) for key in entries if ": " in key}
    return Part(
        name,
        sections["about"].strip(),
        "vendored" in sections,
        tuple(sections.get("needs", "").split()),
        {key: tuple(each.strip() for each in choices.split(" | ")) for key, _, choices in draws},
        sections["source"].rstrip("\n") + "\n",
        tuple(case.strip() for case in sections.get("cases", "").split("\n\n") if case.strip()),
        features,
        {key: value for key, value in entries.items() if ": " not in key},
    )


def named(text: str, values: Values) -> str:
    """Return a text with the names that were drawn.

    >>> named("$money.$show", {"money": "amounts", "show": "shown"})
    'amounts.shown'
    """
    return _NAME.sub(lambda found: values[found[1]], text)


def rendered(part: Part, values: Values, features: Collection[str]) -> str:
    """Return the source of a module with some features."""
    lines, is_shown, is_on = list[str](), True, True
    for line in part.source.splitlines():
        mark, _, name = line.strip().partition(" ")
        if mark == "#+":
            is_shown = is_on = name in features
        elif mark == "#-":
            is_shown = not is_on
        elif mark == "#.":
            is_shown = True
        elif is_shown:
            lines.append(line)
    return named("\n".join(lines) + "\n", values)


def drawn_case(case: str, values: Values, draw: Draw) -> str:
    """Return a case with names, numbers and choices."""

    def one(found: re.Match[str]) -> str:
        if found[3] is None:
            return str(draw.number(int(found[1]), int(found[2])))
        return draw.pick(str(found[3]).split("|"))

    return _DRAWN.sub(one, named(case, values))


def drawn_values(draw: Draw, names: Collection[str]) -> dict[str, str]:
    """Return name -> choice, of some parts."""
    return {key: draw.pick(choices) for name in names for key, choices in parts()[name].draws.items()}


def chosen(names: Collection[str]) -> list[str]:
    """Return parts and all that they need, each after those that it needs."""
    found: list[str] = []

    def add(name: str) -> None:
        for need in parts()[name].needs:
            add(need)
        if name not in found:
            found.append(name)

    for name in names:
        add(name)
    return found
