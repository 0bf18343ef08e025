"""Reading the folder of a tournament, with everything in it that is malformed; nothing in it is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turngym.agents.recordings.shapes import NUMBER, Kinds, MalformedData, is_kind, shape, usage_problem
from turngym.agents.recordings.submission import STATUSES
from turngym.storage.bounded import read_json, read_lines

FILES = ("config.json", "results.json", "episodes.jsonl")
_MOST_PLAYERS, _MOST_RETRIES, _MOST_SEATS = 200, 1_000, 200
_PLAN: Kinds = {
    "game": str,
    "players": dict,
    "blocks": int,
    "seed": int,
    "options": dict,
    "pairing": str,
    "sides": str,
    "retries": int,
    "agents": dict,
    "ruleset_hash": str,
}
_GAME: Kinds = {
    "match": str,
    "env": str,
    "ruleset_hash": str,
    "seed": int,
    "block_id": int,
    "seat_map": dict,
    "roles": dict,
    "teams": dict,
    "returns": dict,
    "scores": dict,
    "winners": list,
    "length": int,
    "metrics": dict,
    "seats": dict,
    "actions": list,
    "transcript_sha256": str,
    "status": str,
    "fault": str,
}


@dataclass(frozen=True)
class PlayedTournament:
    """Contents of a tournament's folder.

    Args:
        path: The folder.
        plan: Requested environments.
        results: The numbers.
        games: One record a game.
    """

    path: Path
    plan: Mapping[str, Any]
    results: Mapping[str, Any]
    games: tuple[Mapping[str, Any], ...]


def is_tournament(path: Path) -> bool:
    """Return whether a folder is one of a tournament, sound or not."""
    try:
        config = read_json(path / "config.json")
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and "pairing" in config


def read_tournament(path: Path) -> tuple[PlayedTournament | None, list[MalformedData]]:
    """Return the folder's content, or None with all that is wrong with its shape."""
    found: dict[str, Any] = {}
    problems: list[MalformedData] = []
    for name in FILES:
        try:
            found[name] = read_lines(path / name) if name.endswith(".jsonl") else read_json(path / name)
        except FileNotFoundError:
            problems.append(MalformedData(name, "the file is missing"))
        except (OSError, ValueError, RecursionError) as error:
            problems.append(MalformedData(name, f"the file is not JSON that can be read: {error}"))
    problems = problems or list(_problems(found))
    if problems:
        return None, problems
    plan, results, games = (found[name] for name in FILES)
    order = plan.get("player_order", list(plan["players"]))
    plan = {**plan, "players": {name: plan["players"][name] for name in order}}
    return PlayedTournament(path, plan, results, tuple(games)), []


def _problems(found: Mapping[str, Any]) -> Iterator[MalformedData]:
    plan, results, games = (found[name] for name in FILES)
    bad = list(shape(plan, _PLAN, "config.json"))
    yield from bad
    if not bad and not all(isinstance(text, str) for text in plan["players"].values()):
        yield MalformedData("config.json, players", "every player must be a string")
    if not bad and not _is_order(plan.get("player_order", list(plan["players"])), plan["players"]):
        yield MalformedData("config.json, player_order", "it must name every player once")
    if not bad and (len(plan["players"]) > _MOST_PLAYERS or not 0 <= plan["retries"] <= _MOST_RETRIES):
        yield MalformedData("config.json", f"it may have {_MOST_PLAYERS} players and {_MOST_RETRIES} retries")
    if not isinstance(results, dict):
        yield MalformedData("results.json", f"expected a table of names and values, got {type(results).__name__}")
    for number, game in enumerate(games, 1):
        yield from game_problems(game, f"episodes.jsonl, line {number}")


def _is_empty(game: Mapping[str, Any]) -> bool:
    numbers = [*game["returns"].values(), *game["scores"].values()]
    return not (game["winners"] or game["metrics"] or any(numbers))


def _is_order(order: Any, players: Mapping[str, Any]) -> bool:
    is_texts = isinstance(order, list) and all(isinstance(name, str) for name in order)
    return is_texts and len(order) == len(players) and set(order) == players.keys()


def game_problems(game: Any, place: str) -> Iterator[MalformedData]:
    """Yield all that is wrong with the shape of a record of a game."""
    wrong = list(shape(game, _GAME, place))
    yield from wrong
    if wrong:
        return
    if game["status"] not in STATUSES:
        yield MalformedData(place, f"status must be one of {', '.join(STATUSES)}, got {game['status']!r}")
    count, first = game.get("retried", 0), game.get("first_retried", "")
    if not is_kind(count, int) or count < 0 or not isinstance(first, str) or bool(count) != bool(first):
        yield MalformedData(place, "retried must be a number of calls, with the message of the first as first_retried")
    seats = game["seat_map"].keys()
    if len(seats) > _MOST_SEATS or not all(isinstance(name, str) for name in game["seat_map"].values()):
        yield MalformedData(place, f"seat_map must give at most {_MOST_SEATS} seats a player each")
    for key in ("returns", "scores", "seats", "teams"):
        is_whole = game[key].keys() == seats or (game["status"] == "env_error" and not game[key])
        kinds = {"teams": str, "seats": dict}.get(key, NUMBER)
        if not is_whole or not all(is_kind(value, kinds) for value in game[key].values()):
            yield MalformedData(place, f"{key} must have a value for each of {', '.join(seats)}")
    for seat, told in game["seats"].items():
        if isinstance(told, dict) and (problem := usage_problem(told)):
            yield MalformedData(f"{place}, {seat}", problem)
    if game["status"] == "env_error" and not _is_empty(game):
        yield MalformedData(place, "it broke, so it has no winners and no metrics, and all returns and scores are 0")
    if not all(isinstance(name, str) and name in seats for name in game["winners"]):
        yield MalformedData(place, f"winners must be seats, got {game['winners']}")
    for action in game["actions"]:
        is_pair = isinstance(action, list) and len(action) == 2
        if not is_pair or type(action[0]) is not int or not isinstance(action[1], str | None):
            yield MalformedData(place, "actions must be pairs of a seat's number and a text, or null for a forfeit")
            break
