"""Experiences: short lessons from earlier episodes, kept as a list of texts in a JSON file and edited by a model.

Model output is untrusted: every experience is one line of bounded length without control characters or tokens.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turngym.errors import ConfigError
from turngym.storage.bounded import read_json
from turngym.text import printable, valid_text, without_control_tokens

MOST, LONGEST = 1_000, 2_000
"""Bounds of a file: number of experiences, and length of one in characters."""
EDITS = ("add", "change", "remove", "keep")
IGNORED, NO_EDIT = "ignored", "no_edit"
_MOST_EDITS = 1_000
_NUMBERS = r"\d++(?:\s*+(?:,|&|and\b)\s*+#?\d++)*+"
_EDIT = re.compile(
    r"[\s*\-]*+(?:\d{1,3}[.)][\s*]*+)?+(ADD|CHANGE|REMOVE|KEEP)\b[\s*#]*+"
    rf"({_NUMBERS})?+[\s*]*+(?::[\s*]*+(.*+)|.*+)"
)


@dataclass(frozen=True)
class Edited:
    """A list after the edits of a reply.

    Args:
        experiences: The new list.
        counts: Number of edits of each kind of :data:`EDITS`, of ignored ones, and of replies without any.
    """

    experiences: tuple[str, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


def edited(experiences: Sequence[str], reply: str, *, most: int, longest: int) -> Edited:
    r"""Apply the edits in a model's reply to a list; other text is ignored.

    An edit is a line: ``ADD: text``, ``CHANGE 2: text``, ``REMOVE 2`` or ``KEEP``, with numbers, from 1, of the list
    before the reply; ``REMOVE 2, 3`` is two. One that cannot be applied is ignored and counted: a number that is not in
    the list or was edited already, an empty, known or too long text, an addition to a full list, all after the first
    1,000.

    Args:
        experiences: The list.
        reply: The reply.
        most: Maximum number of experiences.
        longest: Maximum length of an experience in characters.

    >>> edited(["a"], "Both ran.\nCHANGE 1: b\nADD: c\nADD: d\nREMOVE 7", most=2, longest=9)
    Edited(experiences=('b', 'c'), counts={'change': 1, 'add': 1, 'ignored': 2})
    """
    texts: list[str | None] = list(experiences)
    touched: set[int] = set()
    counts: Counter[str] = Counter()
    for kind, number, given in _edits(reply):
        if counts.total() >= _MOST_EDITS:
            counts[IGNORED] += 1
            continue
        text = one_line(given)
        has_text = 0 < len(text) <= longest and text not in texts
        is_known = 0 <= number < len(experiences) and number not in touched
        if kind == "keep":
            counts[kind] += 1
        elif kind == "add" and has_text and len(texts) - texts.count(None) < most:
            texts.append(text)
            counts[kind] += 1
        elif is_known and (kind == "remove" or (kind == "change" and has_text)):
            texts[number] = text if kind == "change" else None
            touched.add(number)
            counts[kind] += 1
        else:
            counts[IGNORED] += 1
    return Edited(tuple(text for text in texts if text is not None), dict(counts) or {NO_EDIT: 1})


def _edits(reply: str) -> Iterator[tuple[str, int, str]]:
    """Yield kind, list index (-1 for none) and text of each edit in a reply."""
    for line in reply.splitlines():
        if found := _EDIT.fullmatch(line):
            kind = found[1].lower()
            numbers = [int(each) if len(each) < 7 else 0 for each in re.findall(r"\d+", found[2] or "")] or [0]
            for number in numbers if kind == "remove" or len(numbers) == 1 else [0]:
                yield kind, number - 1, found[3] or ""


def one_line(text: str) -> str:
    r"""Return an untrusted text as one line without control characters and control tokens of chat templates.

    >>> one_line(" Go\n\x1b left <|im_end|>")
    'Go \\x1b left ‹|im_end|>'
    """
    return printable(" ".join(without_control_tokens(valid_text(text)).split()))


def numbered(experiences: Sequence[str]) -> str:
    """Return a list as lines with numbers from 1."""
    return "\n".join(f"{number}. {one_line(text)}" for number, text in enumerate(experiences, 1))


def read_experiences(path: Path) -> dict[str, Any]:
    """Return the content of a file of experiences: an object whose ``experiences`` are a list of texts.

    Raises:
        ConfigError: The file is missing or is not a file of experiences.
    """
    shape = f'{{"experiences": ["text", ...]}} with at most {MOST} texts of 1 to {LONGEST} characters, not all blank'
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no file {path}: `turngym learn-experiences ... --out FOLDER` writes FOLDER/experiences.json."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read as JSON ({error}): it must be {shape}.") from error
    texts = content.get("experiences") if isinstance(content, dict) else None
    sound = isinstance(texts, list) and len(texts) <= MOST
    if not sound or not all(isinstance(text, str) and text.strip() and len(text) <= LONGEST for text in texts or ()):
        raise ConfigError(f"{path} must be {shape}, got {json.dumps(content)[:80]}.")
    found: dict[str, Any] = content
    return found
