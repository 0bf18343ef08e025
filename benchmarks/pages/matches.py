"""The tables of a tournament's page: ratings, who did how well against whom, sides, roles and differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turngym.agents.intervals import Estimate
from turngym.benchmarks.leaderboard.table import ends_of, rank_ranges
from turngym.benchmarks.pages.tables import (
    Axis,
    Cell,
    Column,
    Line,
    axis_around,
    estimate_cell,
    figure,
    interval_text,
    sortable_table,
)
from turngym.benchmarks.statistics.estimates import read_estimate
from turngym.benchmarks.tournaments.tables import side_name
from turngym.trainers.core.wording import UNKNOWN, counted
from turngym.web.html import Html, details, tag

_WIN, _ELO = Axis(0, 1), 400.0
Numbers = Mapping[str, Any]


def _estimate(content: Numbers | None) -> Estimate | None:
    return None if content is None else read_estimate(content)


def _elo(found: Numbers, player: str, side: str | None = None) -> Estimate | None:
    ratings = found["ratings"] or {"players": {}, "by_side": {}}
    numbers = ratings["players"].get(player) if side is None else ratings["by_side"].get(player, {}).get(side)
    return _estimate(numbers["elo"]) if numbers else None


def _elo_axis(estimates: Iterable[Estimate | None], anchor: float) -> Axis:
    """Return an axis on which bars begin at the anchor."""
    around = axis_around([each for each in estimates if each is not None], anchor - _ELO / 2, anchor + _ELO / 2)
    return Axis(around.low, around.high, anchor)


def by_rating(found: Numbers) -> list[str]:
    """Return the players, the strongest first."""
    ratings = {name: _elo(found, name) for name in found["players"]}
    return sorted(ratings, key=lambda name: (-(ratings[name].value if ratings[name] else 0.0), name))  # type: ignore[union-attr]


def players_table(found: Numbers) -> Html:
    """Return the table of all players with their ranks."""
    names = by_rating(found)
    ratings = [_elo(found, name) for name in names]
    anchor = (found["ratings"] or {}).get("anchor")
    ends = [
        (rating.low, rating.high) if name == anchor else ends_of(rating)
        for name, rating in zip(names, ratings, strict=True)
        if rating is not None
    ]
    places = iter(rank_ranges(ends))
    ranks = [next(places) if rating is not None else None for rating in ratings]
    axis = _elo_axis(ratings, _anchor_elo(found))
    lines = []
    for name, rating, rank in zip(names, ratings, ranks, strict=True):
        own, usage = found["players"][name]["all"], found["players"][name]["usage"]
        win = _estimate(own.get("win"))
        cells = [
            Cell(UNKNOWN) if rank is None else _rank_cell(*rank),
            Cell(tag("span", name, class_="who"), name.lower()),
            _elo_cell(rating, axis, name == anchor),
            estimate_cell(win, _WIN, 100),
            _plain(_estimate(own.get("score")), 3),
            Cell(f"{win.count:,}", win.count) if win else Cell(UNKNOWN),
            Cell(figure(100 * usage["forfeits_per_call"]), usage["forfeits_per_call"]),
            Cell(f"{usage['faults']:,}", usage["faults"]),
        ]
        lines.append(Line(f"player {name}", cells, name))
    columns = [
        Column("rank", "ascending", is_number=False),
        Column("player", "ascending", is_number=False),
        Column("Elo", is_number=False),
        Column("win %", is_number=False, title="Share of its seats that won, in games with others"),
        Column("score"),
        Column("games", title="With others"),
        Column("forfeit %", "ascending", title="Share of the questions at which the seat forfeited"),
        Column("faults", "ascending"),
    ]
    fixed = f" Elo of {anchor} is fixed at {figure(_anchor_elo(found), 0)}." if anchor else ""
    return sortable_table(f"{counted(len(lines), 'player')}.{fixed}", columns, lines, sorted_by=0)


def _anchor_elo(found: Numbers) -> float:
    return float((found["ratings"] or {}).get("anchor_elo", 0.0))


def _rank_cell(best: int, worst: int) -> Cell:
    return Cell(tag("span", str(best) if best == worst else f"{best}–{worst}", class_="ranks"), best + worst / 1e6)


def _elo_cell(rating: Estimate | None, axis: Axis, is_anchor: bool) -> Cell:
    """Return a rating; that of the anchor is no estimate."""
    if rating is None or not is_anchor:
        return estimate_cell(rating, axis, digits=0)
    fixed = tag("span", tag("b", figure(rating.value, 0)), tag("span", "fixed", class_="ci"), class_="estimate")
    return Cell(fixed, rating.value)


def _plain(estimate: Estimate | None, digits: int) -> Cell:
    return Cell(UNKNOWN) if estimate is None else Cell(figure(estimate.value, digits), estimate.value)


def matrix_section(found: Numbers, sides: Sequence[str]) -> Html:
    """Return what each player got against each other, with the number of games in every cell."""
    if not found["win_matrix"]:
        return Html()
    names = by_rating(found)
    cells = _cells(found, sides)
    where = "rows against columns"
    if len(sides) == 2:
        where = f"rows as {side_name(sides[0])} against columns as {side_name(sides[1])}"
    head = [tag("td"), *(tag("th", name, scope="col") for name in names)]
    rows = [
        tag("tr", tag("th", row, scope="row"), *(_matrix_cell(cells.get((row, column))) for column in names))
        for row in names
    ]
    caption = f"Points in percent, {where}; a win is a point, a draw half of one."
    whole = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="matrix")
    box = tag("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)
    return tag("section", tag("h2", "Against one another"), box)


def _cells(found: Numbers, sides: Sequence[str]) -> dict[tuple[str, str], list[Numbers]]:
    """Return pairing -> cells of the results; with two sides only those whose row is on the first."""
    cells: dict[tuple[str, str], list[Numbers]] = {}
    for cell in found["win_matrix"]:
        if len(sides) != 2 or cell["side"] == sides[0]:
            cells.setdefault((cell["player"], cell["opponent"]), []).append(cell)
    return cells


def _matrix_cell(cells: Sequence[Numbers] | None) -> Html:
    if not cells:
        return tag("td", tag("span", UNKNOWN, class_="quiet"))
    estimates = [read_estimate(cell["points"]) for cell in cells]
    count = sum(each.count for each in estimates)
    value = sum(each.value * each.count for each in estimates) / count
    results = "–".join(str(sum(cell[key] for cell in cells)) for key in ("wins", "draws", "losses"))
    interval = tag("span", interval_text(estimates[0], 100, 0), class_="ci") if len(estimates) == 1 else Html()
    tint = f"--tint:{round(abs(value - 0.5) * 60)}%;--hue:var(--{'good' if value >= 0.5 else 'bad'})"
    games = tag("span", counted(count, "game"), class_="ci")
    hint = f"won, drawn, lost: {results}"
    return tag("td", tag("b", f"{100 * value:.0f}"), interval, games, style=tint, title=hint)


def parts_section(found: Numbers) -> Html:
    """Return the numbers of players by side and by role, where the game has such."""
    tables = []
    for key, name in (("by_side", "side"), ("by_role", "role")):
        parts = sorted({part for player in found["players"].values() for part in player[key]})
        if parts:
            table = _part_table(found, key, name, parts)
            tables.append(table if key == "by_side" else details(f"Players by {name}", table))
    return tag("section", tag("h2", "Sides and roles"), *tables) if tables else Html()


def _part_table(found: Numbers, key: str, name: str, parts: Sequence[str]) -> Html:
    names = by_rating(found)
    is_side = key == "by_side"
    anchor = (found["ratings"] or {}).get("anchor")
    held = [(part, player) for part in parts for player in names if part in found["players"][player][key]]
    ratings = {pair: _elo(found, pair[1], pair[0]) if is_side else None for pair in held}
    axis = _elo_axis(ratings.values(), _anchor_elo(found))
    lines = []
    for part, player in held:
        own = found["players"][player][key][part]
        win, called = _estimate(own.get("win")), side_name(part) if is_side else part
        rating = [_elo_cell(ratings[part, player], axis, player == anchor)] if is_side else []
        cells = [
            Cell(tag("span", called, class_="ranks"), f"{parts.index(part):04} {names.index(player):06}"),
            Cell(tag("span", player, class_="who"), player.lower()),
            *rating,
            estimate_cell(win, _WIN, 100),
            _plain(_estimate(own.get("score")), 3),
            Cell(f"{win.count:,}", win.count) if win else Cell(UNKNOWN),
        ]
        lines.append(Line(f"{name} {part} {player}", cells))
    columns = [
        Column(name, "ascending", is_number=False),
        Column("player", "ascending", is_number=False),
        *([Column("Elo", is_number=False)] if is_side else []),
        Column("win %", is_number=False),
        Column("score"),
        Column("games"),
    ]
    return sortable_table(f"Players by {name}.", columns, lines, sorted_by=0)


def differences_section(differences: Sequence[Numbers]) -> Html:
    """Return how each two players differ in their share of won seats."""
    if not differences:
        return Html()
    lines = []
    for number, each in enumerate(differences):
        estimate = read_estimate(each["win"])
        names = each["first"], each["second"]
        cells = [
            Cell(tag("span", names[0], class_="ranks"), names[0].lower()),
            Cell(tag("span", names[1], class_="who"), names[1].lower()),
            estimate_cell(estimate, Axis(-1, 1), 100),
            Cell(f"{estimate.blocks:,}", estimate.blocks),
        ]
        lines.append(Line(f"difference {number}", cells))
    columns = [
        Column("first", "ascending", is_number=False),
        Column("second", "ascending", is_number=False),
        Column("points", is_number=False, title="Share of won seats, first minus second"),
        Column("blocks"),
    ]
    caption = "Difference in the share of won seats, first minus second, in points, paired by block."
    inner = sortable_table(caption, columns, lines)
    return tag("section", tag("h2", "Differences"), details(counted(len(lines), "pair"), inner))
