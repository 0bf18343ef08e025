"""Checks the folder of an arena: every match as matchmaking chooses it, numbers that follow, games played again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turngym.agents.recordings.remade import CANNOT_BE_MADE
from turngym.benchmarks.arena.folder import CONFIG, COSTS, GAMES, RESULTS, as_stored, read_arena
from turngym.benchmarks.arena.plan import Arena, rounds
from turngym.benchmarks.arena.results import arena_results, costs, game_results
from turngym.benchmarks.arena.schedule import Scheduler, Stored
from turngym.benchmarks.tournaments.submission import PlayedTournament, read_tournament
from turngym.benchmarks.verification.findings import Finding
from turngym.benchmarks.verification.tournaments import (
    error_findings,
    match_findings,
    number_findings,
    replay_games,
    result_findings,
    ruleset_finding,
)
from turngym.envs.multiagent.registration import game_refusal
from turngym.storage.bounded import read_json

_SHOWN, _MOST = 60, 20
_SHARED = ("game", "players", "player_order", "seed", "options", "pairing", "sides", "retries", "ruleset_hash")


@dataclass
class Checked:
    """Findings of the check of an arena.

    Args:
        findings: All that is wrong.
        games: The records of all games.
        sound: Number of games that can be played again.
        replayed: Number of games that were.
    """

    findings: list[Finding] = field(default_factory=list)
    games: list[Mapping[str, Any]] = field(default_factory=list)
    sound: int = 0
    replayed: int = 0


def check_arena(path: Path, share: float, seed: int) -> Checked:
    """Check the folder of an arena.

    Args:
        path: The folder.
        share: Share of the games of each game to play again.
        seed: Seed of their draw.
    """
    found = Checked()
    arena, problems = read_arena(path)
    found.findings += [Finding("schema", each.place, each.message) for each in problems]
    if arena is None:
        return found
    refused = {name: game_refusal(game.game, game.options) for name, game in arena.games.items()}
    found.findings += [Finding("plan", f"{CONFIG}, games, {name}", why) for name, why in refused.items() if why]
    if found.findings:
        return found
    played = _read_games(arena, path, found)
    if found.findings:
        return found
    try:
        found.findings += [*_plan_findings(arena, played), *_schedule_findings(arena, played)]
        found.findings += _number_findings(arena, path, played)
    except (*CANNOT_BE_MADE, KeyError, AttributeError, ZeroDivisionError, IndexError, ArithmeticError) as error:
        found.findings.append(Finding("plan", CONFIG, f"the matches cannot be chosen again: {error!r}"[:300]))
    if share and not found.findings:
        for name, tournament in played.items():
            sound, replayed, wrong = replay_games(tournament, arena.plan_of(name), share, seed)
            found.sound, found.replayed = found.sound + sound, found.replayed + replayed
            found.findings += wrong
    return found


def _read_games(arena: Arena, path: Path, found: Checked) -> dict[str, PlayedTournament]:
    """Return the folders of the games that were played."""
    played = {}
    for name in arena.games:
        folder = path / GAMES / name
        if not (folder / RESULTS).exists():
            continue
        tournament, problems = read_tournament(folder)
        found.findings += [Finding("schema", f"{GAMES}/{name}/{each.place}", each.message) for each in problems]
        if tournament is not None:
            played[name] = tournament
            found.games += tournament.games
    return played


def _plan_findings(arena: Arena, played: Mapping[str, PlayedTournament]) -> Iterator[Finding]:
    for name, tournament in played.items():
        expected = as_stored(arena.plan_of(name).content())
        for key in _SHARED:
            if tournament.plan.get(key) != expected[key]:
                message = f"{key} is {str(tournament.plan.get(key))[:_SHOWN]}, expected {str(expected[key])[:_SHOWN]}"
                yield Finding("plan", f"{GAMES}/{name}/{CONFIG}", message)
        yield from ruleset_finding(tournament, arena.plan_of(name))


def _schedule_findings(arena: Arena, played: Mapping[str, PlayedTournament]) -> Iterator[Finding]:
    """Yield matches that are missing, twice, foreign, or not as they are chosen from the results before."""
    records: dict[int, tuple[str, Mapping[str, Any]]] = {}
    for name, tournament in played.items():
        yield from error_findings(tournament.games, f"{GAMES}/{name}")
        for game in tournament.games:
            if game["block_id"] in records:
                yield Finding("duplicate-game", f"{GAMES}/{name}", f"match {game['block_id']} is there twice")
            records[game["block_id"]] = name, game
    missing = [number for number in range(arena.matches) if number not in records]
    for number in missing[:_MOST]:
        yield Finding("missing-game", GAMES, f"match {number} is missing")
    foreign = [number for number in records if not 0 <= number < arena.matches]
    for number in foreign[:_MOST]:
        yield Finding("foreign-game", GAMES, f"there is no match {number}: the arena has {arena.matches}")
    if not missing and not foreign:
        yield from _choice_findings(arena, played, records)


def _choice_findings(arena: Arena, played: Mapping[str, PlayedTournament], records: Stored) -> Iterator[Finding]:
    with closing(Scheduler(arena)) as scheduler:
        yield from _choices_of(scheduler, arena, played, records)


def _choices_of(
    scheduler: Scheduler, arena: Arena, played: Mapping[str, PlayedTournament], records: Stored
) -> Iterator[Finding]:
    for stage, after in zip(arena.stages, [*arena.stages[1:], None], strict=True):
        stop = arena.matches if after is None else max([after.start, *(number + 1 for number in after.held)])
        mine = range(stop) if after is None else {*range(after.start), *after.held}
        for numbers in rounds(arena, stage, stop):
            for name, match in scheduler.round(stage, numbers, records):
                there, game = records[match.block]
                if match.block in mine and there != name:
                    yield Finding("foreign-game", f"{GAMES}/{there}", f"match {match.block} is one of {name}")
                elif match.block in mine:
                    yield from match_findings(game, match, played[name].plan)


def _number_findings(arena: Arena, path: Path, played: Mapping[str, PlayedTournament]) -> Iterator[Finding]:
    for name, tournament in played.items():
        for each in result_findings(tournament):
            yield Finding(each.name, f"{GAMES}/{name}/{each.place}", each.message)
    order = {name: sorted(each.games, key=lambda game: game["block_id"]) for name, each in played.items()}
    expected = {
        RESULTS: arena_results(arena, order, game_results(arena, order)),
        COSTS: costs(arena, order),
    }
    for file, numbers in expected.items():
        try:
            told = read_json(path / file)
        except (OSError, ValueError, RecursionError) as error:
            yield Finding("schema", file, f"the file is not JSON that can be read: {error}")
        else:
            yield from number_findings(told, as_stored(numbers), file)
