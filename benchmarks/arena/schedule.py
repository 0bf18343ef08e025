"""The matches of an arena, chosen round by round from the results before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngym.benchmarks.arena.matchmaking import Played, Pool, choose
from turngym.benchmarks.arena.plan import Arena, Stage, before
from turngym.benchmarks.statistics.bradley_terry import Comparison
from turngym.benchmarks.tournaments.pairings import Match, game_seed, teams_of
from turngym.benchmarks.tournaments.results import comparisons
from turngym.envs.multiagent.game import Game
from turngym.envs.vector.slots.boundary import close_quietly

Record = Mapping[str, Any]
Stored = Mapping[int, tuple[str, Record]]
"""Number of a match -> its game and record."""


class Scheduler:
    """Chooses the matches of an arena; holds a game of each kind until it is closed.

    Args:
        arena: The arena.
    """

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._rules: dict[str, Game] = {name: arena.plan_of(name).make_game() for name in arena.games}
        self._sides = {name: sorted(set(teams_of(game, 0))) for name, game in self._rules.items()}
        self._said: dict[int, list[Comparison]] = {}

    def close(self) -> None:
        """Close the games."""
        close_quietly(*self._rules.values())

    def round(self, stage: Stage, numbers: range, records: Stored) -> Iterator[tuple[str, Match]]:
        """Yield game and match of each number of a round that was not played in an earlier stage.

        Args:
            stage: Its stage.
            numbers: Numbers of its matches.
            records: Number -> game and record of the matches that are over; those of the round are not looked at.
        """
        known = before(stage, numbers.start, records)
        pools = {name: self._pool(name, stage, [records[n] for n in known]) for name in stage.games}
        for number in numbers:
            if number in stage.held:
                continue
            name, lineup = choose(pools, number)
            pools[name].take(lineup)
            seed = game_seed(self._arena.seed, number)
            yield name, Match(number, seed, seating(teams_of(self._rules[name], seed), lineup))

    def _pool(self, name: str, stage: Stage, played: Sequence[tuple[str, Record]]) -> Pool:
        game = self._arena.games[name]
        mine = [record for other, record in played if other == name]
        compared = [one for record in mine for one in self._compared(record, game.sides == "alike")]
        held = Counter(
            (player, record["teams"].get(seat, "")) for record in mine for player, seat in _one_of_each_team(record)
        )
        players = [player for player in game.players if player in stage.players]
        return Pool(players, self._sides[name], game.sides == "alike", Played(compared, held))

    def _compared(self, record: Record, is_alike: bool) -> list[Comparison]:
        number = record["block_id"]
        if number not in self._said:
            self._said[number] = [replace(one, block=0) for one in comparisons(record, is_alike)]
        return self._said[number]


def _one_of_each_team(record: Record) -> list[tuple[str, str]]:
    """Return player and seat of one member of each team."""
    seats = {team: seat for seat, team in record["teams"].items()}
    return [(record["seat_map"][seat], seat) for seat in seats.values()]


def seating(teams: Sequence[str], lineup: Sequence[str]) -> tuple[str, ...]:
    """Return the player at each seat.

    >>> seating(["wolves", "village", "village"], ["first", "second"])
    ('second', 'first', 'first')
    """
    sides = sorted(set(teams))
    return tuple(lineup[sides.index(team) % len(lineup)] for team in teams)
