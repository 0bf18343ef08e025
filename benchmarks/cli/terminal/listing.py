"""The output of ``turngym list``: plain lines, within the width of the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich.markup import escape

from turngym.benchmarks.cli.options.parsing import make_text_env
from turngym.benchmarks.suites import Suite
from turngym.envs.transcript import opening_text
from turngym.errors import TurngymError
from turngym.plugins import OURS
from turngym.terminal.console import Console

SHELVES = {
    "textgames": "Text games",
    "tablegames": "Table games",
    "open_spiel": "OpenSpiel",
    "petting_zoo": "PettingZoo",
    "text_arena": "TextArena",
    "werewolf": "Werewolf",
    "avalon": "Avalon",
    "hanabi": "Hanabi",
    "socialgames": "Social dilemmas",
    "pathfinding": "Path finding",
    "beergame": "Beer game",
    "economies": "Economies",
    "wordgames": "Word games",
    "delegation": "Systems of agents",
    "tools": "Code and tools",
    "search": "Search",
    "webshop": "Web shop",
    "website": "Web sites",
    "service": "Service desks",
    "sql": "Databases",
    "apps": "Somebody's apps",
    "ask": "Asking",
    "rules": "Hidden rules",
    "inventory": "Inventory",
    "web": "Pages in a browser",
    "desktop": "Desktop",
    "household": "Households",
    "textworlds": "Text worlds",
    "adapters": "Adapters",
}
"""Package below ``turngym.envs`` -> heading of its environments, in order."""
Rows: TypeAlias = Sequence[Mapping[str, Any]]
_WIDEST, _NARROWEST = 110, 40
_SEED = 1
_TURNS = 2
_INDENT = "  "


@dataclass(frozen=True)
class Page:
    """What is shown about an environment or game.

    Args:
        name: What was asked for.
        env_id: Id for ``gymnasium.make``; of a game, that of one seat.
        summary: The game in a sentence; empty if unknown.
        needs: The extra that it needs, and whether it is installed; empty for none.
        preset: Options that the id stands for.
        others: Ids of the same family.
        options: Rows of option, allowed values, default and meaning.
        is_game: Whether it is a game between seats.
    """

    name: str
    env_id: str
    summary: str
    needs: str
    preset: Mapping[str, Any]
    others: Sequence[str]
    options: Rows
    is_game: bool = False


class _Printer:
    """Prints headings and lines."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self.width = max(_NARROWEST, min(self._console.width, _WIDEST))

    def heading(self, text: str) -> None:
        self._console.print(f"[bold]{escape(text)}[/bold]", soft_wrap=True)

    def lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._console.print(line.rstrip(), markup=False, soft_wrap=True)

    def text(self, text: str) -> None:
        """Print text, with an indentation; long lines are wrapped, the others stay as they are."""
        for line in text.expandtabs(4).splitlines():
            indent = _INDENT + line[: len(line) - len(line.lstrip())]
            self.lines(_wrapped(line.strip(), self.width, indent))


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False) or [""]


def columns(rows: Sequence[tuple[str, str, str]], width: int, is_cut: bool = False) -> Iterator[str]:
    """Yield names with their texts next to them, in lines of at most that width.

    Args:
        rows: Name, text, and a note that follows the text.
        width: Width.
        is_cut: Cut a text that does not fit on one line instead of wrapping it.

    >>> rows = [("a/Door-v0", "Find the door that opens.", ""), ("a/Lock-v0", "Pick it.", "[web]")]
    >>> for line in columns(rows, 32, is_cut=True):
    ...     print(line)
      a/Door-v0  Find the door...
      a/Lock-v0  Pick it. [web]
    """
    column = min(max((len(name) for name, _, _ in rows), default=0), width // 2)
    room = width - column - 2 * len(_INDENT)
    for name, text, note in rows:
        if is_cut:
            text = textwrap.shorten(text, room - len(note) - bool(note), placeholder="...")
        parts = textwrap.wrap(f"{text} {note}".strip(), room, break_on_hyphens=False) or [""]
        if len(name) > column:
            parts = ["", *parts]
        yield f"{_INDENT}{name:<{column}}{_INDENT}{parts[0]}"
        yield from (" " * (column + 2 * len(_INDENT)) + part for part in parts[1:])


def _note(row: Mapping[str, Any]) -> str:
    """Return what a component needs and where it comes from, unless it is turngym's and needs nothing."""
    needs = f"[{row['extra']}]" if row["installed"] else f"[{row['extra']}: missing]"
    parts = [needs] if row["extra"] else []
    parts += [f"[{', '.join(row['needs'])}]"] if row.get("needs") else []
    if row["origin"] not in (OURS, row.get("family")):
        parts.append(f"(from {row['origin']})")
    return " ".join(parts)


def _cells(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["name"], row["summary"], _note(row)) for row in rows]


def _families(rows: Rows) -> dict[str, Rows]:
    """Return the rows by family: those of turngym in their order, then plug-ins."""
    names = [*SHELVES.values(), *sorted({row["family"] for row in rows} - set(SHELVES.values()))]
    found = {name: [row for row in rows if row["family"] == name] for name in names}
    return {name: of_name for name, of_name in found.items() if of_name}


def print_kind(kind: str, rows: Rows) -> None:
    """Print one kind of components in full."""
    printer = _Printer()
    groups = _families(rows) if rows and "family" in rows[0] else {kind: rows}
    for heading, of_heading in groups.items():
        printer.heading(heading)
        printer.lines(columns(_cells(of_heading), printer.width) if of_heading else [f"{_INDENT}none"])
        printer.lines([""])
    _legend(printer, rows)


def print_all(found: Mapping[str, Rows]) -> None:
    """Print the environments by family, one line each, and the names of the other components.

    A game between seats has one line, in place of that of its seat.
    """
    printer = _Printer()
    seats = {row["summary"] for row in found["games"]}
    single = [row for row in found["environments"] if row["summary"].removeprefix("One seat of: ") not in seats]
    for heading, rows in _families([*single, *found["games"]]).items():
        is_seats = any(row in found["games"] for row in rows)
        printer.heading(f"{heading} (NAMESeat-v0 is one seat of NAME-v0)" if is_seats else heading)
        printer.lines(columns(_cells(rows), printer.width, is_cut=True))
        printer.lines([""])
    others = {kind: rows for kind, rows in found.items() if rows and kind not in ("environments", "games")}
    for kind, rows in others.items():
        printer.heading(f"{kind} ({len(rows)})")
        printer.text(", ".join(row["name"] for row in rows))
    printer.lines([""])
    _legend(printer, single)
    printer.text(
        "turngym list ID shows rules, options and an example of an environment; turngym list KIND, such as turngym "
        "list algorithms, shows a kind in full; --json prints either for programs."
    )


def _legend(printer: _Printer, rows: Rows) -> None:
    if any(row["extra"] for row in rows):
        printer.text('[EXTRA]: needs pip install "turngym[EXTRA]"; missing: not installed here.')


def print_page(page: Page) -> None:
    """Print rules, options and the start of an episode."""
    printer = _Printer()
    printer.heading(page.name)
    printer.text(page.summary)
    facts = {
        "needs": page.needs,
        "preset options": ", ".join(f"{name}={value!r}" for name, value in page.preset.items()),
        "one seat of it" if page.is_game else "id": page.env_id if page.env_id != page.name else "",
        "same family": ", ".join(page.others),
    }
    printer.lines(columns([(f"{name}:", text, "") for name, text in facts.items() if text], printer.width))
    rules, example = _played(page.env_id)
    _part(printer, "Rules", rules)
    printer.lines([""])
    printer.heading("Options (NAME=VALUE after --option; of turngym train, after --env-options)")
    printer.lines(columns([_option(row) for row in page.options], printer.width))
    if example:
        _part(printer, f"Example (seed {_SEED})", example)
    name = page.name if ":" in page.name else page.env_id  # other processes do not know the id of a file
    _part(printer, "Next", f"turngym play {name}\nturngym eval {name} --agent random --episodes 20")


def suite_fields(suite: Suite) -> dict[str, Any]:
    """Return what a suite consists of, as JSON."""
    return {
        "version": suite.version,
        "description": suite.description,
        "metric": suite.metric,
        "protocol": suite.protocol,
        "entries": [
            {"name": entry.label, "env": entry.env_id, "options": entry.env_kwargs, "episodes": entry.count}
            for entry in suite.entries
        ],
    }


def print_suite(suite: Suite) -> None:
    """Print the environments, metric and protocol of a suite."""
    printer = _Printer()
    printer.heading(f"{suite.name}, version {suite.version}")
    printer.text(suite.description)
    _part(printer, f"Metric: {suite.metric}, with equal weight for each of these", "")
    printer.lines(columns([(entry.label, f"{entry.count} episodes", "") for entry in suite.entries], printer.width))
    _part(printer, "Protocol", suite.protocol)
    _part(printer, "Next", f"turngym eval {suite.name} --agent random --out results/{suite.name}-random")


def print_component(kind: str, row: Mapping[str, Any], settings: Rows) -> None:
    """Print what is known of a component, with its settings."""
    printer = _Printer()
    printer.heading(f"{row['name']}, one of the {kind}")
    printer.text(row["summary"])
    facts = {"family": row.get("family", ""), "needs": ", ".join(row.get("needs", ())), "package": _note(row)}
    printer.lines(columns([(f"{name}:", text, "") for name, text in facts.items() if text], printer.width))
    if settings:
        is_method = kind == "algorithms"
        form = "--NAME VALUE" if is_method else f"--curriculum {row['name']}:NAME=VALUE,NAME=VALUE"
        _part(printer, f"Settings ({form} after turngym train)", "")
        printer.lines(columns([_option(each) for each in settings], printer.width))
        _part(printer, "Next", f"turngym train --{'algorithm' if is_method else 'curriculum'} {row['name']}")


def _part(printer: _Printer, heading: str, text: str) -> None:
    printer.lines([""])
    printer.heading(heading)
    printer.text(text)


def _option(row: Mapping[str, Any]) -> tuple[str, str, str]:
    name = row["name"] if row["default"] is None else f"{row['name']}={row['default']}"
    value = f"({row['value']})" if row["value"] else ""
    return name, row["meaning"] or "", value if row["default"] is not None else f"(required) {value}".rstrip()


def _played(env_id: str) -> tuple[str, str]:
    """Return the rules of an environment and the start of an episode; where it cannot be made, only the reason."""
    try:
        env = make_text_env(env_id, {})
        try:
            _, text = opening_text(env, _SEED, _TURNS)
            return env.instructions, text
        finally:
            env.close()
    except (TurngymError, ImportError, OSError, TypeError) as error:
        return f"Rules and example cannot be shown here: {' '.join(str(error).split())}", ""
