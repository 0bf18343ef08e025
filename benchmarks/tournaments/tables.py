"""The tables that ``turngym tournament`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from turngym.agents.intervals import FEWEST_BLOCKS
from turngym.benchmarks.statistics.estimates import read_estimate
from turngym.benchmarks.tournaments.field import field_ratings
from turngym.benchmarks.tournaments.results import PRIOR, retried_remark


def tables_of(found: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
    """Yield the tables of players, by side, of who won against whom, and against the field, with their titles."""
    blocks = f"{found['n_blocks']} block{'' if found['n_blocks'] == 1 else 's'}"
    title = f"{found['env']}: {found['n_games']} games in {blocks}, {found['pairing']}"
    if found["partners"]:
        yield title, _partner_table(found)
        return
    has_score = any("score" in player["all"] for player in found["players"].values())
    scores = ["score"] if has_score else []  # sides with names have one each, below
    table = empty_table("player", "Elo", "95 %", "win %", "draw %", *scores, "forfeit %", "faults")
    for name in _by_rating(found):
        numbers, elo = found["players"][name], _elo(found, name)
        own, usage = numbers["all"], numbers["usage"]
        shown = [number(elo), _range(found, name, elo), number(own.get("win"), 100, 1)]
        shown.append(number(own.get("draw"), 100, 1))
        shown += [number(own.get(key), 1, 3) for key in scores]
        table.add_row(escape(name), *shown, f"{100 * usage['forfeits_per_call']:.1f}", str(usage["faults"]))
    yield title, table
    sides = sorted({side for player in found["players"].values() for side in player["by_side"]})
    if sides:
        yield "by side", _side_table(found, sides)
    if found["win_matrix"]:
        where = f"{side_name(sides[0])} against {side_name(sides[1])}" if len(sides) == 2 else "against one another"
        yield f"points %, {where}", _matrix(found, sides)
    if ratings := field_ratings(found):
        yield "against the field", field_table([each._asdict() for each in ratings])


def _partner_table(found: Mapping[str, Any]) -> Table:
    table = empty_table("player", "score", "95 %", "success %", "95 %", "games")
    for each in found["partners"]:
        score, win = each["score"], each["win"]
        shown = [number(score, 1, 3), interval(score, 3), number(win, 100, 1), interval(win, 1, 100)]
        table.add_row(escape(team_name(each["players"])), *shown, str(score["n_games"]))
    return table


def field_table(ratings: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of Nash averaging and alpha-rank, of fields of a ``FieldRating``."""
    table = empty_table("player", "Nash skill", "Nash %", "alpha-rank %")
    for each in ratings:
        shares = f"{100 * each['weight']:z.1f}", f"{100 * each['share']:z.1f}"
        table.add_row(escape(each["player"]), f"{each['skill']:z.3f}", *shares)
    return table


def team_name(players: Sequence[str]) -> str:
    """Return the players of a cooperative game as a line of a table calls them.

    >>> team_name(["certain"]), team_name(["certain", "likely", "random"])
    ('certain alone', 'certain with likely, random')
    """
    first, *others = players
    return f"{first} with {', '.join(others)}" if others else f"{first} alone"


def _side_table(found: Mapping[str, Any], sides: Sequence[str]) -> Table:
    table = empty_table("side", "player", "Elo", "95 %", "win %", "95 %", "draw %", "score")
    for side in sides:
        for name in _by_rating(found, side):
            numbers, elo = found["players"][name]["by_side"].get(side, {}), _elo(found, name, side)
            win = numbers.get("win")
            shown = [number(elo), _range(found, name, elo), number(win, 100, 1), interval(win, 1, 100)]
            shown += [number(numbers.get("draw"), 100, 1), number(numbers.get("score"), 1, 3)]
            table.add_row(escape(side_name(side)), escape(name), *shown)
    return table


def _matrix(found: Mapping[str, Any], sides: Sequence[str]) -> Table:
    """Return what each row got against each column, in percent of the points.

    With two sides the rows are on the first and the columns on the second; otherwise all sides are taken together.
    """
    sums: dict[tuple[str, str], tuple[float, int]] = {}
    for cell in found["win_matrix"]:
        if len(sides) == 2 and cell["side"] != sides[0]:
            continue
        points, games = sums.get((cell["player"], cell["opponent"]), (0.0, 0))
        count = cell["points"]["n_games"]
        sums[cell["player"], cell["opponent"]] = points + cell["points"]["value"] * count, games + count
    names = _by_rating(found)
    table = empty_table("", *names)
    for row in names:
        cells = [sums.get((row, column)) for column in names]
        table.add_row(escape(row), *["" if cell is None else f"{100 * cell[0] / cell[1]:z.1f}" for cell in cells])
    return table


def remarks(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader of the tables must know besides."""
    ratings = found["ratings"]
    if found["partners"]:
        yield "all seats win or lose together, so players are compared by their partners and have no ratings"
        yield from _too_few_blocks(found)
        yield from _faults(found)
        return
    if ratings is None:
        yield "no ratings: no two sides with different players met"
        return
    advantages = list(ratings["side_advantage"].items())
    between = f"where {ratings['anchor']} plays both sides" if ratings["anchor"] else "among equals"
    for side, numbers in advantages[: 1 if len(advantages) == 2 else None]:  # the second of two is the first, turned
        elo = numbers["elo"]
        yield f"advantage of {side_name(side)} {between}: {number(elo)} Elo ({interval(elo)})"
    if ratings["prior"] != PRIOR:
        yield f"every entrant is taken to have drawn {ratings['prior']:g} games, where {PRIOR:g} is usual: --prior"
    yield from _too_few_blocks(found)
    if len(ratings["groups"]) > 1:
        yield "some never met, directly or through others, and cannot be compared: " + "; ".join(
            ", ".join(" as ".join(filter(None, entrant)) for entrant in group) for group in ratings["groups"]
        )
    for player, sides in ratings["by_side"].items():
        for side, numbers in sides.items():
            if numbers["extreme"]:
                where = f" as {side_name(side)}" if side else ""
                yield f"{player}{where} {numbers['extreme']}: its rating is limited only by the prior"
    yield from _faults(found)


def _too_few_blocks(found: Mapping[str, Any]) -> Iterator[str]:
    if found["n_blocks"] < FEWEST_BLOCKS:
        blocks = f"{found['n_blocks']} block{' is' if found['n_blocks'] == 1 else 's are'}"
        yield f"{blocks} too few for intervals, which resample whole blocks: play --blocks {FEWEST_BLOCKS} or more"


def _faults(found: Mapping[str, Any]) -> Iterator[str]:
    if found["agent_errors"] or found["env_errors"]:
        yield (
            f"games with a fault of a player: {found['agent_errors']}, of the rules: {found['env_errors']}, those of "
            "players against themselves included; they are counted, see status and fault in episodes.jsonl"
        )
        yield f"the first: {found['first_fault']}"
    if remark := retried_remark(found):
        yield remark


def _by_rating(found: Mapping[str, Any], side: str | None = None) -> list[str]:
    def weakness(name: str) -> float:
        elo = _elo(found, name, side)
        return -elo["value"] if elo else 0.0

    return sorted(found["players"], key=lambda name: (weakness(name), name))


def _elo(found: Mapping[str, Any], name: str, side: str | None = None) -> Mapping[str, Any] | None:
    """Return a player's Elo, on a side or in all; None if there is none."""
    ratings = found["ratings"] or {"players": {}, "by_side": {}}
    numbers = ratings["players"].get(name) if side is None else ratings["by_side"].get(name, {}).get(side)
    return numbers["elo"] if numbers else None


def _range(found: Mapping[str, Any], name: str, elo: Mapping[str, Any] | None) -> str:
    """Return the interval of a player's Elo; that of the anchor is chosen."""
    return "fixed" if elo and name == found["ratings"]["anchor"] else interval(elo)


def side_name(side: str) -> str:
    """Return a side as people call it; if there are no teams it is the number of a seat."""
    return f"seat {side}" if side.isdigit() else side


def empty_table(*heads: str) -> Table:
    """Return a table with a column for each head, numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(escape(head), justify="left" if head in ("", "player", "side", "game") else "right")
    return table


def number(estimate: Mapping[str, Any] | None, scale: float = 1, digits: int = 0) -> str:
    """Return the value of an estimate of a results file; empty if there is none."""
    return "" if estimate is None else f"{scale * estimate['value']:z.{digits}f}"


def interval(estimate: Mapping[str, Any] | None, digits: int = 0, scale: float = 1) -> str:
    """Return the ends of the interval of an estimate of a results file; empty if there is none."""
    if estimate is None:
        return ""
    ends = f"{scale * estimate['ci_low']:z.{digits}f} to {scale * estimate['ci_high']:z.{digits}f}"
    return read_estimate(estimate).no_interval or ends
