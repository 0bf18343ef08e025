"""The numbers of an arena: ratings over all games, against the field, for each game, and what each player cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turngym.arithmetic import float_sum
from turngym.benchmarks.arena.plan import Arena
from turngym.benchmarks.statistics.bradley_terry import Comparison
from turngym.benchmarks.statistics.ratings import rate
from turngym.benchmarks.tournaments.field import FieldRating, points_of, rated_field
from turngym.benchmarks.tournaments.results import PRIOR, comparisons, ratings_content, results, usual_anchor

_FORMAT = 1
_COUNTS = ("calls", "forfeits", "faults", "tokens_in", "tokens_out")
Record = Mapping[str, Any]
Records = Mapping[str, Sequence[Record]]


def game_results(arena: Arena, records: Records) -> dict[str, dict[str, Any]]:
    """Return the results of each game that was played, as those of a tournament.

    Args:
        arena: The arena.
        records: Name of a game -> its records in the order of their numbers.
    """
    found = {}
    for name, mine in records.items():
        content = arena.plan_of(name).content()
        compared = [one for record in mine for one in comparisons(record, content["sides"] == "alike")]
        found[name] = results(content, mine, anchor=usual_anchor(compared))
    return found


def arena_results(arena: Arena, records: Records, games: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of ``results.json``, which holds no times: a repeated arena has the same.

    Args:
        arena: The arena.
        records: As for :func:`game_results`.
        games: What that returned.
    """
    compared = joint_comparisons(records)
    ratings = rate(compared, anchor=usual_anchor(compared), prior=PRIOR) if compared else None
    return {
        "format": _FORMAT,
        "seed": arena.seed,
        "n_matches": sum(map(len, records.values())),
        "ratings": ratings_content(ratings, 0.0, PRIOR) if ratings else None,
        "field": [each._asdict() for each in _field(arena, games)],
        "games": {name: _game(name, arena, found) for name, found in games.items()},
        "players": {name: _player(name, arena, records) for name in arena.players},
    }


def joint_comparisons(records: Records) -> list[Comparison]:
    """Return what all games say about one strength of each player, every game with the same total weight.

    The comparisons of a game are weighted with the inverse of their number, so that a game that is played more often
    does not count more; all weights together are the number of comparisons.
    """
    each = {name: [one for record in mine for one in comparisons(record, True)] for name, mine in records.items()}
    each = {name: compared for name, compared in each.items() if compared}
    total = float_sum(one.weight for compared in each.values() for one in compared)
    found = []
    for compared in each.values():
        factor = total / len(each) / float_sum(one.weight for one in compared)
        found += [replace(one, weight=one.weight * factor) for one in compared]
    return found


def _field(arena: Arena, games: Mapping[str, Mapping[str, Any]]) -> list[FieldRating]:
    """Return Nash averaging and alpha-rank of the points, whose mean over the games counts every game alike.

    They are of all players, if these have all met in some game, else of those that have played every game.
    """
    met = [{cell["player"] for cell in found["win_matrix"]} for found in games.values() if found["win_matrix"]]
    for among in (set.union, set.intersection):
        names = [name for name in arena.players if met and name in among(*met)]
        matrices = [points_of(found["win_matrix"], names) for found in games.values() if found["win_matrix"]]
        if names and (ratings := rated_field(names, _mean_points(np.array(matrices)))):
            return ratings
    return []


def _mean_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over the games in which two players met, nan for those who never did."""
    known = ~np.isnan(points)
    found = np.full(points.shape[1:], np.nan)
    np.divide(np.where(known, points, 0).sum(0), known.sum(0), out=found, where=known.any(0))
    return found


def _game(name: str, arena: Arena, found: Mapping[str, Any]) -> dict[str, Any]:
    ratings = found["ratings"] or {"players": {}, "anchor": None}
    return {
        "env": arena.games[name].game,
        "n_games": found["n_games"],
        "agent_errors": found["agent_errors"],
        "env_errors": found["env_errors"],
        "first_fault": found["first_fault"],
        **{key: found[key] for key in ("retried", "first_retried") if key in found},
        "anchor": ratings["anchor"],
        "elo": {player: numbers["elo"] for player, numbers in ratings["players"].items()},
    }


def _player(name: str, arena: Arena, records: Records) -> dict[str, Any]:
    return {
        "player": arena.players[name].player,
        "retired": name in arena.retired,
        "games": {game: len(mine) for game, held in records.items() if (mine := _held(name, held))},
        **{key: sum(seat[key] for held in records.values() for seat in _seats(name, held)) for key in _COUNTS},
    }


def costs(arena: Arena, records: Records) -> dict[str, dict[str, dict[str, Any]]]:
    """Return player -> game -> tokens, seconds and price (None if unknown), as sums over its matches."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name in arena.players:
        for game, held in records.items():
            seats = list(_seats(name, held))
            if seats:
                prices = [seat["cost"] for seat in seats if seat.get("cost") is not None]
                found.setdefault(name, {})[game] = {
                    "matches": len(_held(name, held)),
                    "tokens_in": sum(seat["tokens_in"] for seat in seats),
                    "tokens_out": sum(seat["tokens_out"] for seat in seats),
                    "seconds": float_sum(seat["latency"] for seat in seats),
                    "usd": float_sum(prices) if prices else None,
                }
    return found


def _held(name: str, records: Iterable[Record]) -> list[Record]:
    return [record for record in records if name in record["seat_map"].values()]


def _seats(name: str, records: Iterable[Record]) -> Iterable[Mapping[str, Any]]:
    for record in records:
        yield from (record["seats"][seat] for seat, player in record["seat_map"].items() if player == name)
