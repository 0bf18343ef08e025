"""Checks the folder of a tournament: every game of the schedule once, numbers that follow from them, games replayed."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from turngym.agents.recordings.remade import CANNOT_BE_MADE
from turngym.arithmetic import is_finite
from turngym.benchmarks.arena.plan import PAIRING as ARENA
from turngym.benchmarks.evaluation.rulesets import game_ruleset_hash
from turngym.benchmarks.tournaments.pairings import Match, schedule
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.results import ANCHOR_ELO, PRIOR, comparisons, results, usual_anchor
from turngym.benchmarks.tournaments.submission import PlayedTournament
from turngym.benchmarks.verification.findings import Finding, is_same
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.records import transcript_sha256
from turngym.envs.multiagent.registration import game_refusal
from turngym.envs.multiagent.table import Table
from turngym.envs.vector.slots.boundary import closing_quietly
from turngym.errors import EpisodeOver
from turngym.seeding import stream

_MOST_ERRORS, _MOST_MISSING = 0.01, 1_000
_SHOWN = 60


def plan_of(tournament: PlayedTournament) -> tuple[TournamentPlan | None, str]:
    """Return the plan, or None and why its game must not or cannot be made here."""
    told = tournament.plan
    if told["pairing"] == ARENA:
        return None, "its matches are those of an arena: verify the folder of that"
    if reason := game_refusal(told["game"], told["options"]):
        return None, reason
    names = ("game", "players", "blocks", "seed", "options", "pairing", "sides", "retries")
    try:
        plan = TournamentPlan(**{name: told[name] for name in names})
        with closing_quietly(plan.make_game()) as rules:
            Table(rules, retries=plan.retries)
            next(schedule(rules, list(plan.players), plan.pairing, 1, plan.seed))
    except (*CANNOT_BE_MADE, StopIteration) as error:
        return None, f"the tournament cannot be set up: {error}"
    return plan, ""


def schedule_findings(tournament: PlayedTournament, plan: TournamentPlan) -> Iterator[Finding]:
    """Yield games that are missing, twice, or foreign, and those with other seeds or players than were drawn."""
    most = len(tournament.games) + _MOST_MISSING  # however many there are: a long schedule is not even written out
    with closing_quietly(plan.make_game()) as rules:
        scheduled = schedule(rules, list(plan.players), plan.pairing, plan.blocks, plan.seed)
        asked = {match.key: match for match in islice(scheduled, most + 1)}
    if len(asked) > most:
        message = f"there are {len(tournament.games)} games, but {plan.blocks} blocks of them need more than {most}"
        yield Finding("missing-game", "episodes.jsonl", message)
        return
    there = Counter(game["match"] for game in tournament.games)
    for key in asked.keys() - there.keys():
        yield Finding("missing-game", "episodes.jsonl", f"the game {key!r} of block {asked[key].block} is missing")
    for key, count in there.items():
        if key in asked and count > 1:
            yield Finding("duplicate-game", "episodes.jsonl", f"the game {key!r} is there {count} times")
    for game in tournament.games:
        if game["match"] in asked:
            yield from match_findings(game, asked[game["match"]], tournament.plan)
        else:
            yield Finding("foreign-game", place_of(game), "the schedule has no such game")
    yield from error_findings(tournament.games, "episodes.jsonl")


def error_findings(games: Sequence[Mapping[str, Any]], place: str) -> Iterator[Finding]:
    """Yield a finding if too many games broke, which have no result that could be played again."""
    errors = sum(game["status"] == "env_error" for game in games)
    if errors > _MOST_ERRORS * len(games):
        yield Finding("env-errors", place, f"{errors} of {len(games)} games broke")


def match_findings(game: Mapping[str, Any], match: Match, plan: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what a game has otherwise than its match: seed, players, rules, and forfeits that contradict its actions.

    Args:
        game: The record.
        match: What was scheduled.
        plan: The content of ``config.json``.
    """
    place = place_of(game)
    seats = {f"player_{seat}": name for seat, name in enumerate(match.players)}
    if (game["seed"], game["block_id"]) != (match.seed, match.block):
        message = f"seed and block are {game['seed']} and {game['block_id']}, expected {match.seed} and {match.block}"
        yield Finding("game-seed", place, message)
    if game["seat_map"] != seats:
        yield Finding("seats", place, f"the seats are held by {game['seat_map']}, expected {seats}")
    if (game["env"], game["ruleset_hash"]) != (plan["game"], plan["ruleset_hash"]):
        message = f"it is of {game['env']} with the hash {game['ruleset_hash'][:16]}, expected {plan['game']}"
        yield Finding("ruleset", place, f"{message} with {plan['ruleset_hash'][:16]}")
    nulls = Counter(f"player_{seat}" for seat, action in game["actions"] if action is None)
    told = {name: seat.get("forfeits") for name, seat in game["seats"].items()}
    if told != {name: nulls[name] for name in told} or not nulls.keys() <= told.keys():
        yield Finding("forfeits", place, f"the actions have {dict(nulls)}, but the seats tell {told}")
    if (game["status"] == "env_error") and game["winners"]:
        yield Finding("winner", place, "it broke, but has winners")


def ruleset_finding(tournament: PlayedTournament, plan: TournamentPlan) -> Iterator[Finding]:
    """Yield a hash of the game's behaviour that is not the one found here."""
    with closing_quietly(plan.make_game()) as rules:
        found, told = game_ruleset_hash(plan.game, rules), tournament.plan["ruleset_hash"]
    if found != told:
        yield Finding("ruleset", "config.json", f"the hash is {told[:16]}, but {found[:16]} here")


def result_findings(tournament: PlayedTournament) -> Iterator[Finding]:
    """Yield every number of ``results.json``, ratings among them, that does not follow from the games within 1e-9."""
    ratings = tournament.results.get("ratings") or {}
    try:
        settings = {
            "anchor": str(ratings.get("anchor") or ""),
            "anchor_elo": float(ratings.get("anchor_elo", ANCHOR_ELO)),
            "prior": float(ratings.get("prior", PRIOR)),
        }
        expected = results(tournament.plan, tournament.games, **settings)  # type: ignore[arg-type]
    except (*CANNOT_BE_MADE, KeyError, AttributeError, ZeroDivisionError, OverflowError) as error:
        yield Finding("results", "results.json", f"the numbers cannot be recomputed: {error!r}"[:300])
        return
    yield from number_findings(tournament.results, expected, "results.json")


def chosen_scale(tournament: PlayedTournament) -> Iterator[tuple[str, str]]:
    """Yield the settings of the ratings that follow from no game and are not the usual ones, each with the reason."""
    ratings = tournament.results["ratings"]
    is_alike = tournament.plan["sides"] == "alike"
    compared = [one for game in tournament.games for one in comparisons(game, is_alike)]
    usual = {"anchor": usual_anchor(compared) or None, "anchor_elo": ANCHOR_ELO, "prior": PRIOR}
    for name, value in usual.items():
        if ratings and ratings[name] != value:
            yield name, f"its author chose {str(ratings[name])[:_SHOWN]} for the ratings, where {value} is usual"


def number_findings(told: Any, expected: Any, place: str) -> Iterator[Finding]:
    """Yield where two JSON values differ; numbers within rounding are equal."""
    if isinstance(expected, Mapping) and isinstance(told, Mapping):
        for key in sorted({*told, *expected}, key=str):
            where = f"{place}, {key}"
            if key not in told or key not in expected:
                word = "it is missing" if key in expected else "it cannot be computed from the games"
                yield Finding("results", where, word)
            else:
                yield from number_findings(told[key], expected[key], where)
    elif isinstance(expected, list | tuple) and isinstance(told, list) and len(told) == len(expected):
        for number, (one, other) in enumerate(zip(told, expected, strict=True)):
            yield from number_findings(one, other, f"{place}, {number}")
    elif not is_same(told, expected):
        message = f"it is {str(told)[:_SHOWN]}, expected {str(expected)[:_SHOWN]}"
        yield Finding("aggregate", place, message)


def replay_games(
    tournament: PlayedTournament, plan: TournamentPlan, share: float, seed: int, seconds: float = 60.0
) -> tuple[int, int, list[Finding]]:
    """Play games again, from their seeds and actions: all of them as far as time allows, in a drawn order.

    Args:
        tournament: Content read.
        plan: Its plan.
        share: Share of the games that did not break, in (0, 1], that is played however long it takes; at least one.
        seed: In which order games are drawn.
        seconds: Time for the others.

    Returns:
        How many could be played, how many were, and what came out otherwise.
    """
    sound = [game for game in tournament.games if game["status"] != "env_error"]
    least, end = max(1, math.ceil(share * len(sound) - 1e-9)), time.monotonic() + seconds
    findings: list[Finding] = []
    played = 0
    for index in stream("verify", seed, "tournament").permutation(len(sound)):
        if played >= least and time.monotonic() >= end:
            break
        findings += _replayed(sound[index], plan)
        played += 1
    return len(sound), played, findings


def _replayed(game: Mapping[str, Any], plan: TournamentPlan) -> Iterator[Finding]:
    with closing_quietly(
        Table(plan.make_game(), retries=0)
    ) as table:  # what is recorded are the actions that were taken
        yield from _replayed_at(table, game, plan)


def _replayed_at(table: Table, game: Mapping[str, Any], plan: TournamentPlan) -> Iterator[Finding]:
    place = place_of(game)
    begin_game(table, game["seed"])
    try:
        for seat, action in game["actions"]:
            if action is None:
                yield from _forfeit_findings(game, plan, table, seat)
                table.expire(seat)
            else:
                table.answer(seat, action)
    except EpisodeOver as error:
        yield Finding("replay-game", place, f"an action cannot be played: {error}")
        return
    if not table.is_over:
        yield Finding("replay-game", place, "the game does not end with its last action")
        return
    rules, names = table.game, table.game.seats
    found = {
        "roles": {name: rules.role(seat) for seat, name in enumerate(names)},
        "teams": {name: rules.team(seat) for seat, name in enumerate(names)},
        "returns": {name: float(table.returns[seat]) for seat, name in enumerate(names)},
        "scores": {name: float(rules.score(seat)) for seat, name in enumerate(names)},
        "winners": [names[seat] for seat in table.winners()],
        "metrics": {key: float(value) if is_finite(value) else None for key, value in rules.metrics().items()},
        "length": len(table.actions),
        "transcript_sha256": transcript_sha256(table),
    }
    for key, value in found.items():
        if list(number_findings(game[key], value, "")):
            message = f"{key}: {str(value)[:_SHOWN]}, but {str(game[key])[:_SHOWN]} was recorded"
            yield Finding("replay-game", place, message)


def _forfeit_findings(game: Mapping[str, Any], plan: TournamentPlan, table: Table, seat: int) -> Iterator[Finding]:
    """Yield a forfeit of a built-in player that had legal actions to choose from: it always plays one of them."""
    name = game["seat_map"].get(f"player_{seat}", "")
    if seat in table.pending and ":" not in plan.players.get(name, ":") and table.views[seat].legal_actions:
        message = f"{name} at seat {seat} forfeits, but the built-in player {plan.players[name]!r} plays legal actions"
        yield Finding("forfeits", place_of(game), message)


def place_of(game: Mapping[str, Any]) -> str:
    """Return how a game is called in a finding."""
    return f"episodes.jsonl, game {game['match'][:_SHOWN]}"
