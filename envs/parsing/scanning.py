"""Delimited parts of a text, found in linear time for any model output.

A regular expression with a lazy middle (``<tag>(.*?)</tag>``) looks from every opening to the end of the text again:
100 kB of openings that nothing closes took it most of a minute. These look once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

_BRACE = re.compile(r"[{}]")
_FENCE = "```"


class Element(NamedTuple):
    """A tag, what stands in it, and where.

    Args:
        name: Name of the tag.
        content: Text between the tag and the first one that closes it.
        start: Start of the opening tag.
    """

    name: str
    content: str
    start: int


def first_element(text: str, names: Iterable[str]) -> Element | None:
    """Return the first element in a text that is closed; None where none is.

    >>> first_element("<b>one <a>two</a>", ("a", "b"))
    Element(name='a', content='two', start=7)
    """
    found: Element | None = None
    for name in names:
        start = text.find(f"<{name}>")
        if start < 0 or (found is not None and start > found.start):
            continue
        inside = start + len(name) + 2
        end = text.find(f"</{name}>", inside)
        if end >= 0:  # where nothing closes the first one, nothing closes a later one
            found = Element(name, text[inside:end], start)
    return found


def elements(text: str, names: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield where the elements of a text start and end; marks inside of one belong to its content.

    >>> list(elements("<a>1 <b></a> <b>2</b>", ("a", "b")))
    [(0, 12), (13, 21)]
    """
    opens = re.compile("|".join(f"<({re.escape(name)})>" for name in names))
    unclosed, place = set[str](), 0
    while names and (opening := opens.search(text, place)) is not None:
        place, closing = opening.end(), f"</{opening[0][1:]}"
        stop = -1 if closing in unclosed else text.find(closing, place)
        if stop < 0:
            unclosed.add(closing)
        else:
            yield opening.start(), (place := stop + len(closing))


def inner_elements(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield where the elements of a text start and end; of elements inside of one another, the inner ones.

    >>> list(inner_elements("the <a> mark: <a>1</a>", "a"))
    [(14, 22)]
    """
    place, opening, closing = 0, f"<{name}>", f"</{name}>"
    while (stop := text.find(closing, place)) >= 0:
        start = text.rfind(opening, place, stop)
        place = stop + len(closing)
        if start >= 0:
            yield start, place


def last_element(text: str, name: str) -> str | None:
    """Return what the last element in a text holds; of elements inside of one another, the inner one.

    >>> last_element("<a>1</a> <a>2<a>3</a></a>", "a")
    '3'
    """
    opening, closing = f"<{name}>", f"</{name}>"
    start = text.rfind(opening, 0, max(text.rfind(closing), 0))
    if start < 0:
        return None
    inside = start + len(opening)
    return text[inside : text.index(closing, inside)]


def inside_braces(text: str, start: int) -> str | None:
    """Return what stands between the brace at ``start`` and the one that closes it; None without one.

    >>> inside_braces("f{a{b}c}d", 1)
    'a{b}c'
    """
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start + 1 : brace.start()]
    return None


def boxes(text: str) -> Iterator[tuple[int, int]]:
    r"""Yield where the boxes of a text start and end.

    >>> list(boxes(r"so \boxed{a{b}} or \boxed{c}"))
    [(3, 15), (19, 28)]
    """
    mark = "\\boxed{"
    start = text.find(mark)
    while start >= 0 and (found := inside_braces(text, start + len(mark) - 1)) is not None:
        end = start + len(mark) + len(found) + 1
        yield start, end
        start = text.find(mark, end)


def unfenced(text: str, languages: Iterable[str] = ()) -> str:
    r"""Return what a code fence around a whole text holds; the text itself without one.

    Args:
        text: Any text.
        languages: Text allowed after the opening fence.

    >>> unfenced("\n```python\nprint(1)\n```", ["python"])
    'print(1)\n'
    """
    whole = text.strip()
    head, line_end, rest = whole.removeprefix(_FENCE).partition("\n")
    is_fenced = whole.startswith(_FENCE) and bool(line_end) and rest.endswith(_FENCE)
    return rest.removesuffix(_FENCE) if is_fenced and head.rstrip(" \t") in ("", *languages) else text
