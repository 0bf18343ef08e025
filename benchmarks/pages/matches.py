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
    Table,
    axis_around,
    estimate_cell,
    figure,
    interval_text,
    rank_cell,
)
from turngym.benchmarks.statistics.estimates import read_estimate
from turngym.benchmarks.tournaments.tables import side_name, team_name
from turngym.trainers.core.wording import UNKNOWN, counted

_WIN, _ELO = Axis(0, 1), 400.0
Numbers = Mapping[str, Any]


def _estimate(content: Numbers | None) -> Estimate | None:
    return None if content is None else read_estimate(content)


def _elo(found: Numbers, player: str, side: str | None = None) -> Estimate | None:
    ratings = found["ratings"] or {"players": {}, "by_side": {}}
    numbers = ratings["players"].get(player) if side is None else ratings["by_side"].get(player, {}).get(side)
    return _estimate(numbers["elo"]) if numbers else None


def elo_axis(estimates: Iterable[Estimate | None], anchor: float) -> Axis:
    """Return an axis on which bars start at the anchor."""
    around = axis_around([each for each in estimates if each is not None], anchor - _ELO / 2, anchor + _ELO / 2)
    return Axis(around.low, around.high, anchor)


def by_rating(found: Numbers) -> list[str]:
    """Return the players, the strongest first."""
    ratings = {name: _elo(found, name) for name in found["players"]}
    return sorted(ratings, key=lambda name: (-(ratings[name].value if ratings[name] else 0.0), name))  # type: ignore[union-attr]


def players_table(found: Numbers) -> Table:
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
    axis = elo_axis(ratings, _anchor_elo(found))
    has_score = any("score" in player["all"] for player in found["players"].values())
    lines = []
    for name, rating, rank in zip(names, ratings, ranks, strict=True):
        own, usage = found["players"][name]["all"], found["players"][name]["usage"]
        win = _estimate(own.get("win"))
        cells = [
            Cell(UNKNOWN) if rank is None else rank_cell(*rank),
            Cell(name, name.lower(), "who"),
            elo_cell(rating, axis, name == anchor),
            estimate_cell(win, _WIN, 100),
            _plain(_estimate(own.get("draw")), 1, 100),
            *([_plain(_estimate(own.get("score")), 3)] if has_score else []),
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
        Column("draw %", title="Share of games in which no side won, or every side did"),
        *([Column("score")] if has_score else []),
        Column("games", title="With others"),
        Column("forfeit %", "ascending", title="Share of the questions at which the seat forfeited"),
        Column("faults", "ascending"),
    ]
    fixed = f" Elo of {anchor} is fixed at {figure(_anchor_elo(found), 0)}." if anchor else ""
    return Table(f"{counted(len(lines), 'player')}.{fixed}", columns, lines, sorted_by=0)


def _anchor_elo(found: Numbers) -> float:
    return float((found["ratings"] or {}).get("anchor_elo", 0.0))


def elo_cell(rating: Estimate | None, axis: Axis, is_anchor: bool) -> Cell:
    """Return a rating; that of the anchor is not an estimate."""
    if rating is None or not is_anchor:
        return estimate_cell(rating, axis, digits=0)
    return Cell(figure(rating.value, 0), rating.value, interval="fixed")


def _plain(estimate: Estimate | None, digits: int, scale: float = 1) -> Cell:
    return Cell(UNKNOWN) if estimate is None else Cell(figure(scale * estimate.value, digits), estimate.value)


def win_matrix(found: Numbers, sides: Sequence[str]) -> dict[str, Any] | None:
    """Return the points of each player against each other, with the number of games; None without ratings."""
    if not found["win_matrix"]:
        return None
    names = by_rating(found)
    cells = _cells(found, sides)
    where = "rows against columns"
    if len(sides) == 2:
        where = f"rows as {side_name(sides[0])} against columns as {side_name(sides[1])}"
    return {
        "caption": f"Points in percent, {where}; a win is a point, a draw half of one.",
        "names": names,
        "rows": [(row, [_matrix_cell(cells.get((row, column))) for column in names]) for row in names],
    }


def _cells(found: Numbers, sides: Sequence[str]) -> dict[tuple[str, str], list[Numbers]]:
    """Return pairing -> cells of the results; with two sides only those whose row is on the first."""
    cells: dict[tuple[str, str], list[Numbers]] = {}
    for cell in found["win_matrix"]:
        if len(sides) != 2 or cell["side"] == sides[0]:
            cells.setdefault((cell["player"], cell["opponent"]), []).append(cell)
    return cells


def _matrix_cell(cells: Sequence[Numbers] | None) -> dict[str, str] | None:
    if not cells:
        return None
    estimates = [read_estimate(cell["points"]) for cell in cells]
    count = sum(each.count for each in estimates)
    value = sum(each.value * each.count for each in estimates) / count
    results = "–".join(str(sum(cell[key] for cell in cells)) for key in ("wins", "draws", "losses"))
    return {
        "points": f"{100 * value:.0f}",
        "interval": interval_text(estimates[0], 100, 0) if len(estimates) == 1 else "",
        "games": counted(count, "game"),
        "tint": f"--tint:{round(abs(value - 0.5) * 60)}%;--hue:var(--{'good' if value >= 0.5 else 'bad'})",
        "hint": f"won, drawn, lost: {results}",
    }


def field_table(ratings: Sequence[Numbers]) -> Table | None:
    """Return Nash averaging and alpha-rank, of fields of a ``FieldRating``; None unless 3 to 60 players all met."""
    if not ratings:
        return None
    lines = [
        Line(
            f"field {each['player']}",
            [
                Cell(each["player"], each["player"].lower(), "who"),
                Cell(figure(each["skill"], 3), each["skill"]),
                Cell(figure(100 * each["weight"]), each["weight"]),
                Cell(figure(100 * each["share"]), each["share"]),
            ],
        )
        for each in ratings
    ]
    columns = [
        Column("player", "ascending", is_number=False),
        Column("Nash skill", title="Mean points above one half against the equilibrium of the players"),
        Column("Nash %", title="Weight in that equilibrium, the one of largest entropy"),
        Column("alpha-rank %", title="Share of time in an evolving population of 50"),
    ]
    return Table("From the points alone, without intervals.", columns, lines, sorted_by=1)


def part_table(found: Numbers, key: str, name: str) -> Table | None:
    """Return the numbers of players by side or by role; None where the game has no such parts.

    Args:
        found: The results.
        key: ``"by_side"`` or ``"by_role"``.
        name: Name of one part.
    """
    parts = sorted({part for player in found["players"].values() for part in player[key]})
    return _part_table(found, key, name, parts) if parts else None


def _part_table(found: Numbers, key: str, name: str, parts: Sequence[str]) -> Table:
    names = by_rating(found)
    is_side = key == "by_side"
    anchor = (found["ratings"] or {}).get("anchor")
    held = [(part, player) for part in parts for player in names if part in found["players"][player][key]]
    ratings = {pair: _elo(found, pair[1], pair[0]) if is_side else None for pair in held}
    axis = elo_axis(ratings.values(), _anchor_elo(found))
    lines = []
    for part, player in held:
        own = found["players"][player][key][part]
        win, called = _estimate(own.get("win")), side_name(part) if is_side else part
        rating = [elo_cell(ratings[part, player], axis, player == anchor)] if is_side else []
        cells = [
            Cell(called, f"{parts.index(part):04} {names.index(player):06}", "ranks"),
            Cell(player, player.lower(), "who"),
            *rating,
            estimate_cell(win, _WIN, 100),
            _plain(_estimate(own.get("draw")), 1, 100),
            _plain(_estimate(own.get("score")), 3),
            Cell(f"{win.count:,}", win.count) if win else Cell(UNKNOWN),
        ]
        lines.append(Line(f"{name} {part} {player}", cells))
    columns = [
        Column(name, "ascending", is_number=False),
        Column("player", "ascending", is_number=False),
        *([Column("Elo", is_number=False)] if is_side else []),
        Column("win %", is_number=False),
        Column("draw %", title="Share of games in which no side won, or every side did"),
        Column("score"),
        Column("games"),
    ]
    return Table(f"Players by {name}.", columns, lines, sorted_by=0)


def partners_table(found: Numbers) -> Table:
    """Return the scores of the players of a cooperative game, by who played together."""
    lines, scores = [], [read_estimate(each["score"]) for each in found["partners"]]
    axis = axis_around(scores, 0, 1)
    for each, score in zip(found["partners"], scores, strict=True):
        name = team_name(each["players"])
        cells = [
            Cell(name, name.lower(), "who"),
            estimate_cell(score, axis, digits=3),
            estimate_cell(read_estimate(each["win"]), _WIN, 100),
            Cell(f"{score.count:,}", score.count),
        ]
        lines.append(Line(f"players {name}", cells, name))
    columns = [
        Column("players", "ascending", is_number=False),
        Column("score", is_number=False, title="Mean score of the seats of a game"),
        Column("success %", is_number=False),
        Column("games"),
    ]
    return Table("Scores by who played together; alone is with itself.", columns, lines, sorted_by=1)


def differences_table(differences: Sequence[Numbers]) -> Table:
    """Return the difference of each two players in their share of won seats."""
    lines = []
    for number, each in enumerate(differences):
        estimate = read_estimate(each["win"])
        names = each["first"], each["second"]
        cells = [
            Cell(names[0], names[0].lower(), "ranks"),
            Cell(names[1], names[1].lower(), "who"),
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
    return Table(caption, columns, lines)
