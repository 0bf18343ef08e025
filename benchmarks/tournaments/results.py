"""The numbers of a tournament, computed from the records of its games alone.

Everything is an estimate with a 95 % interval that resamples blocks of games. A player's own numbers come from the
games in which it met others; the games in which a player met itself tell how much a side is favoured, in the ratings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from turngym.agents.intervals import Estimate, cluster_bootstrap, share, share_difference
from turngym.arithmetic import float_sum
from turngym.benchmarks.statistics.bradley_terry import Comparison, Entrant
from turngym.benchmarks.statistics.estimates import as_json
from turngym.benchmarks.statistics.ratings import Ratings, in_elo, rate

_FORMAT = 1
_RATES = ("parse_failures", "illegal", "forfeits", "faults")
_TOTALS = ("calls", "answers", *_RATES, "tokens_in", "tokens_out", "latency")
_LOWER_IS_BETTER = ("length",)
Record = Mapping[str, Any]

ANCHOR_ELO, PRIOR = 0.0, 1.0
"""Elo of the anchor, and drawn games that every entrant is taken to have played, unless chosen otherwise."""


def usual_anchor(compared: Iterable[Comparison]) -> str:
    """Return the player whose rating is fixed unless another one is chosen; empty for the mean of all."""
    return "random" if any(name == "random" for one in compared for name, _ in (*one.first, *one.second)) else ""


def results(
    plan: Mapping[str, Any],
    records: Sequence[Record],
    *,
    anchor: str = "",
    anchor_elo: float = ANCHOR_ELO,
    prior: float = PRIOR,
) -> dict[str, Any]:
    """Return the content of ``results.json``.

    Args:
        plan: The content of ``config.json``.
        records: The lines of ``episodes.jsonl``.
        anchor: Player whose strength is fixed; the mean of all is, if empty.
        anchor_elo: Its Elo.
        prior: Weight of the prior; see :func:`turngym.benchmarks.statistics.bradley_terry.strengths`.
    """
    is_alike, is_shared = plan["sides"] != "apart", plan["sides"] == "together"
    rated = [] if is_shared else records
    compared = [comparison for record in rated for comparison in comparisons(record, is_alike)]
    statuses = [record["status"] for record in records]
    return {
        "format": _FORMAT,
        "env": plan["game"],
        "ruleset_hash": plan["ruleset_hash"],
        "pairing": plan["pairing"],
        "sides": plan["sides"],
        "seed": plan["seed"],
        "n_games": len(records),
        "n_blocks": len({record["block_id"] for record in records}),
        "ratings": ratings_content(rate(compared, anchor=anchor, prior=prior), anchor_elo, prior) if compared else None,
        "win_matrix": win_matrix(compared),
        "partners": partner_scores(records) if is_shared else [],
        "players": {name: player_numbers(name, records, is_alike, is_shared) for name in plan["players"]},
        "differences": differences(list(plan["players"]), rated),
        "game": _means(records, [dict(record["metrics"], length=record["length"]) for record in records]),
        "agent_errors": statuses.count("agent_error"),
        "env_errors": statuses.count("env_error"),
        "first_fault": next((record["fault"] for record in records if record["fault"]), ""),
        **_retried(records),
    }


def _retried(records: Sequence[Record]) -> dict[str, Any]:
    """Return how many calls of players raised and succeeded when repeated, and the first message; empty if none."""
    found = [record for record in records if record.get("retried")]
    if not found:
        return {}
    return {"retried": sum(record["retried"] for record in found), "first_retried": found[0]["first_retried"]}


def retried_remark(found: Mapping[str, Any]) -> str:
    """Return the sentence on calls of players that raised once, of the results of a tournament; empty if none did.

    >>> retried_remark({"retried": 2, "first_retried": "mine at seat 0: ValueError: no"})
    'calls of players that raised and succeeded when repeated: 2; the first: mine at seat 0: ValueError: no'
    """
    if not found.get("retried"):
        return ""
    return (
        f"calls of players that raised and succeeded when repeated: {found['retried']}; the first: "
        f"{found['first_retried']}"
    )


def comparisons(record: Record, is_alike: bool = False) -> list[Comparison]:
    """Return what a game says about strengths: each two of its teams compared.

    A team that won beats one that did not; two that won, or two that did not, drew. Every team of a game counts as
    much as in a game of two teams, however many others there are.

    Args:
        record: The game.
        is_alike: Whether a player has one strength for all sides; teams of the same players then say nothing.
    """
    members: dict[str, list[Entrant]] = {}
    won: set[str] = set()
    for seat, team in record["teams"].items():
        members.setdefault(team, []).append((record["seat_map"][seat], "" if is_alike else team))
        if seat in record["winners"]:
            won.add(team)
    found = []
    for first, second in combinations(sorted(members), 2):
        teams = tuple(sorted(members[first])), tuple(sorted(members[second]))
        if teams[0] != teams[1]:
            points = 0.5 + ((first in won) - (second in won)) / 2
            weight = 1 / (len(members) - 1)
            found.append(Comparison(_reduced(teams[0]), _reduced(teams[1]), points, record["block_id"], weight))
    return found


def _reduced(team: tuple[Entrant, ...]) -> tuple[Entrant, ...]:
    """Return a team of one player as that player alone, so that teams of different sizes are one pairing."""
    return team[:1] if len(set(team)) == 1 else team


def ratings_content(found: Ratings, shift: float, prior: float) -> dict[str, Any]:
    """Return ratings as a results file has them.

    Args:
        found: The ratings.
        shift: Elo of the anchor, if there is one.
        prior: Weight of the prior.
    """

    def both(estimate: Estimate, elo_shift: float) -> dict[str, Any]:
        return {"log": as_json(estimate), "elo": as_json(in_elo(estimate, elo_shift))}

    shift = shift if found.anchor else 0.0
    by_side: dict[str, dict[str, Any]] = {}
    for (player, side), estimate in found.entrants.items():
        extreme = found.extremes.get((player, side))
        by_side.setdefault(player, {})[side] = {**both(estimate, shift), "extreme": extreme}
    return {
        "method": "Bradley-Terry, maximum likelihood with a prior",
        "prior": prior,
        "anchor": found.anchor or None,
        "anchor_elo": shift,
        "players": {name: both(estimate, shift) for name, estimate in found.players.items()},
        "by_side": by_side,
        "side_advantage": {side: both(estimate, 0.0) for side, estimate in found.side_advantage.items()},
        "groups": [[list(entrant) for entrant in group] for group in found.groups],
    }


def win_matrix(compared: Iterable[Comparison]) -> list[dict[str, Any]]:
    """Return a cell for each pairing of teams of one player each: what the first got against the second.

    Both directions are there, each with its own side first. Where all is won or lost, or every block holds one game
    without draws, the interval is Wilson's.
    """
    cells: dict[tuple[Entrant, Entrant], list[tuple[float, int | str]]] = {}
    for one in compared:
        if len(one.first) == len(one.second) == 1:
            first, second = one.first[0], one.second[0]
            cells.setdefault((first, second), []).append((one.points, one.block))
            cells.setdefault((second, first), []).append((1 - one.points, one.block))
    return [_cell(first, second, games) for (first, second), games in sorted(cells.items())]


def _cell(first: Entrant, second: Entrant, games: Sequence[tuple[float, int | str]]) -> dict[str, Any]:
    points = [point for point, _ in games]
    return {
        "player": first[0],
        "side": first[1],
        "opponent": second[0],
        "opponent_side": second[1],
        "wins": points.count(1.0),
        "draws": points.count(0.5),
        "losses": points.count(0.0),
        "points": as_json(share(points, [block for _, block in games])),
    }


def partner_scores(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the mean score and the share of successes of each set of players that played together, the best first.

    A set of one player is self-play. Players of a set may hold any number of seats.
    """
    parts: dict[tuple[str, ...], list[tuple[Record, list[str]]]] = {}
    for record in records:
        players = tuple(sorted(set(record["seat_map"].values())))
        parts.setdefault(players, []).append((record, list(record["seat_map"])))
    found = [{"players": list(players), **_seat_means(own)} for players, own in sorted(parts.items())]
    return sorted(found, key=lambda each: -each["score"]["value"])


def player_numbers(name: str, records: Sequence[Record], is_alike: bool, is_shared: bool = False) -> dict[str, Any]:
    """Return a player's numbers over its games with others: in all, by side, by role, and what it used.

    ``win`` is the share of its seats that won; ``draw`` that of games in which no side won, or every side did.
    ``score`` and ``return`` are those of its seats, the metrics are those of the games that it played. Scores of sides
    with names may have different units, such as a planner's welfare and a worker's utility, and are not averaged over
    sides.

    Args:
        name: The player.
        records: The games.
        is_alike: Whether a player has one strength for all sides.
        is_shared: Whether all seats win or lose together, so that no game is a draw.
    """
    met = [record for record in records if set(record["seat_map"].values()) != {name}]
    seats = [[seat for seat, player in record["seat_map"].items() if player == name] for record in met]
    own = [(record, held) for record, held in zip(met, seats, strict=True) if held]
    sides = {} if is_alike else _parted(own, "teams")
    roles = {role: held for role, held in _parted(own, "roles").items() if role}
    every = [(record, seat) for record, held in own for seat in held]
    totals = {key: sum(record["seats"][seat][key] for record, seat in every) for key in _TOTALS}
    calls = max(totals["calls"], 1)
    means = _seat_means(own, not is_shared)
    if not is_shared and any(side and not side.isdigit() for side in sides):
        means = {key: each for key, each in means.items() if key not in ("score", "return")}
    return {
        "all": means,
        "by_side": {side: _seat_means(held, not is_shared) for side, held in sorted(sides.items())},
        "by_role": {role: _seat_means(held, not is_shared) for role, held in sorted(roles.items())},
        "usage": {
            **{f"{key}_per_call": totals[key] / calls for key in (*_RATES, "tokens_in", "tokens_out", "latency")},
            **totals,
        },
    }


def _parted(own: Iterable[tuple[Record, list[str]]], key: str) -> dict[str, list[tuple[Record, list[str]]]]:
    """Return the games with the seats that a player held in them, parted by the team or role of the seats."""
    found: dict[str, list[tuple[Record, list[str]]]] = {}
    for record, held in own:
        parts: dict[str, list[str]] = {}
        for seat in held:
            parts.setdefault(record[key].get(seat, ""), []).append(seat)
        for part, members in parts.items():
            found.setdefault(part, []).append((record, members))
    return found


def _seat_means(own: Sequence[tuple[Record, list[str]]], has_draws: bool = False) -> dict[str, Any]:
    rows = []
    for record, held in own:
        row = {
            "win": sum(seat in record["winners"] for seat in held) / len(held),
            "score": sum(record["scores"][seat] for seat in held) / len(held),
            "return": sum(record["returns"][seat] for seat in held) / len(held),
        }
        if has_draws:
            row["draw"] = float(_is_draw(record))
        rows.append({**record["metrics"], "length": record["length"], **row})
    return _means([record for record, _ in own], rows)


def _is_draw(record: Record) -> bool:
    teams = record["teams"]
    return bool(teams) and len({teams[seat] for seat in record["winners"]}) in (0, len(set(teams.values())))


def _means(records: Sequence[Record], rows: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    found = {}
    for key in sorted({key for row in rows for key in row}):
        kept = [
            (float(value), record["block_id"])
            for record, row in zip(records, rows, strict=True)
            if (value := row.get(key)) is not None
        ]
        if kept:
            values, blocks = [value for value, _ in kept], [block for _, block in kept]
            estimate = share(values, blocks) if key in ("win", "draw") else cluster_bootstrap(values, blocks)
            found[key] = as_json(estimate, key not in _LOWER_IS_BETTER)
    return found


def differences(players: Sequence[str], records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return for each two players the mean difference of their share of won seats, paired by block."""
    shares: dict[str, dict[Any, list[float]]] = {name: {} for name in players}
    for record in records:
        held = list(record["seat_map"].values())
        if len(set(held)) == 1:
            continue
        for seat, name in record["seat_map"].items():
            if name in shares:
                shares[name].setdefault(record["block_id"], []).append(float(seat in record["winners"]))
    found = []
    for first, second in combinations(players, 2):
        both = [block for block in shares[first] if block in shares[second]]
        if both:
            means = [[float_sum(shares[p][b]) / len(shares[p][b]) for b in both] for p in (first, second)]
            estimate = share_difference(means[0], means[1])
            found.append({"first": first, "second": second, "win": as_json(estimate)})
    return found
