"""The tables that ``turngym arena`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from turngym.benchmarks.tournaments.results import retried_remark
from turngym.benchmarks.tournaments.tables import empty_table, field_table, interval, number
from turngym.trainers.core.wording import counted


def by_rating(found: Mapping[str, Any]) -> list[str]:
    """Return the players of an arena's results, the strongest first; those without a rating come last."""
    ratings = (found["ratings"] or {"players": {}})["players"]

    def weakness(name: str) -> tuple[bool, float, str]:
        return name not in ratings, -ratings[name]["elo"]["value"] if name in ratings else 0.0, name

    return sorted(found["players"], key=weakness)


def tables_of(found: Mapping[str, Any], costs: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
    """Yield the tables of players, against the field and of costs, with their titles.

    Args:
        found: The content of ``results.json``.
        costs: That of ``costs.json``.
    """
    matches = ", ".join(f"{each['n_games']} of {name}" for name, each in found["games"].items())
    yield f"{counted(found['n_matches'], 'match', 'matches')}: {matches}", _players_table(found)
    if len(found["games"]) > 1:
        yield "Elo in each game", _games_table(found)
    if found["field"]:
        yield "against the field, over all games", field_table(found["field"])
    if any(each["tokens_in"] for games in costs.values() for each in games.values()):
        yield "cost of a match", _costs_table(found, costs)


def _players_table(found: Mapping[str, Any]) -> Table:
    table = empty_table("player", "Elo", "95 %", "matches", "forfeits", "faults")
    ratings = found["ratings"] or {"players": {}, "anchor": None}
    for name in by_rating(found):
        player = found["players"][name]
        elo = ratings["players"].get(name, {}).get("elo")
        shown = [number(elo), "fixed" if name == ratings["anchor"] else interval(elo)]
        counts = [sum(player["games"].values()), player["forfeits"], player["faults"]]
        table.add_row(escape(name) + (" (retired)" if player["retired"] else ""), *shown, *map(str, counts))
    return table


def _games_table(found: Mapping[str, Any]) -> Table:
    games = found["games"]
    table = empty_table("player", *games)
    for name in by_rating(found):
        table.add_row(escape(name), *(_with_interval(each, name) for each in games.values()))
    return table


def _with_interval(game: Mapping[str, Any], name: str) -> str:
    elo = game["elo"].get(name)
    if elo is None or name == game["anchor"]:
        return number(elo)
    return f"{number(elo)} ({interval(elo)})"


def _costs_table(found: Mapping[str, Any], costs: Mapping[str, Any]) -> Table:
    table = empty_table("player", "game", "matches", "tokens in", "tokens out", "seconds", "USD")
    for name in by_rating(found):
        for game, each in costs.get(name, {}).items():
            count = max(each["matches"], 1)
            shown = [f"{each[key] / count:,.0f}" for key in ("tokens_in", "tokens_out")]
            price = "" if each["usd"] is None else f"{each['usd'] / count:.4f}"
            table.add_row(
                escape(name), escape(game), str(each["matches"]), *shown, f"{each['seconds'] / count:.1f}", price
            )
    return table


def remarks(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader of the tables must know besides."""
    ratings = found["ratings"]
    if ratings is None:
        yield "no ratings: no two players met"
        return
    if len(ratings["groups"]) > 1:
        groups = "; ".join(", ".join(name for name, _ in group) for group in ratings["groups"])
        yield f"some never met, directly or through others, and cannot be compared: {groups}"
    for player, sides in ratings["by_side"].items():
        for numbers in sides.values():
            if numbers["extreme"]:
                yield f"{player} {numbers['extreme']}: its rating is limited only by the prior"
    for name, game in found["games"].items():
        if game["agent_errors"] or game["env_errors"]:
            counts = f"matches with a fault of a player: {game['agent_errors']}, of the rules: {game['env_errors']}"
            yield f"{name}: {counts}; the first: {game['first_fault']}"
        if remark := retried_remark(game):
            yield f"{name}: {remark}"
