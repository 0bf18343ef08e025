"""The gallery of environments: a card each, with a picture, the game in a sentence and measured success."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from families import Family

from turngym.benchmarks.cli.terminal.listing import SHELVES

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
_COLUMNS, _LINES = 38, 11
_LEVELS = ("Easy", "Hard")


@cache
def random_play() -> Mapping[str, Mapping[str, Any]]:
    """Return success of random legal play with its number of episodes by id, of at least 20 episodes."""
    content = json.loads((RESULTS / "no_skill.json").read_text("utf8"))
    rows = {env_id: found["rows"][0] for env_id, found in content["environments"].items() if found.get("rows")}
    return {env_id: row for env_id, row in rows.items() if row["measure"] == "success" and row["episodes"] >= 20}


def text_picture(text: str) -> str:
    r"""Return text as a picture of a terminal, which reads well on light and dark pages.

    >>> "Guess &lt;a&gt; word" in text_picture("Guess <a> word")
    True
    """
    lines = [part for line in text.expandtabs(2).splitlines() for part in (textwrap.wrap(line, _COLUMNS) or [""])]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], "..."]
    rows = "\n".join(
        f'<text x="14" y="{26 + 16 * number}" xml:space="preserve">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 200" width="320" height="200">\n'
        '<rect width="320" height="200" rx="8" fill="#12151c"/>\n'
        '<g fill="#e6e6e6" font-family="ui-monospace,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="12">\n'
        f"{rows}\n</g>\n</svg>\n"
    )


def _levels(family: Family) -> str:
    """Return the difficulties that a family has ids for."""
    names = [each.partition("/")[2].rpartition("-v")[0].removesuffix("Seat") for each in family.playable()]
    found = [level for level in _LEVELS if any(name.endswith(level) for name in names)]
    return " · ".join(["easy"] * ("Easy" in found) + ["standard"] + ["hard"] * ("Hard" in found)) if found else ""


def card(family: Family, picture: str, facts: Iterable[str]) -> str:
    """Return the card of a family as an item of a list."""
    page = f"{family.slug}.md"
    summary = next(iter(family.ids.values())).summary
    kept = [each for each in (_levels(family), *facts) if each]
    parts = [f"[![{family.title}](pictures/{picture})]({page})", f"**[{family.title}]({page})**", summary]
    return "-   " + "\n\n    ".join([*parts, *(["<br>".join(kept)] if kept else [])])


def page(cards: Mapping[str, list[str]]) -> str:
    """Return the gallery.

    Args:
        cards: Shelf -> its cards.
    """
    intro = (
        "A card shows levels of difficulty, the turn limit, and the success of random legal play and of the built-in "
        "expert: over 200 episodes of the `test` split for the first id of a page, unless its page says otherwise. "
        "`turngym list` prints all ids, `turngym play ID` starts a game."
    )
    parts = ["# Environments", intro]
    for shelf, heading in SHELVES.items():
        items = "\n\n".join(cards[shelf])
        parts.append(f'## {heading}\n\n<div class="grid cards gallery" markdown>\n\n{items}\n\n</div>')
    return "\n\n".join(parts) + "\n"
