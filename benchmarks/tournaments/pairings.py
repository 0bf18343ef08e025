"""Schedules of tournaments, made of blocks: pairings and seats.

All games of a block share a seed, and with it the roles of the seats, so that they can be compared in pairs:

- ``sides`` (two teams): each player as the whole of one team against each player as the whole of the other, itself
  included; every pair meets both ways;
- ``pairs``: each two players alternate along the seats, and move on by one seat from game to game until they are back;
- ``mixed``: players drawn for every seat, each as often as the others can be, who move on likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Literal

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.table import Table
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.seeding import stream, stream_seed

_Pairing = Literal["sides", "pairs", "mixed"]
PAIRINGS: tuple[_Pairing, ...] = ("sides", "pairs", "mixed")
_ROLE_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Match:
    """One game of a schedule.

    Args:
        block: Number of the block.
        seed: The game's seed, which is that of the block.
        players: Name of the player at each seat.
    """

    block: int
    seed: int
    players: tuple[str, ...]

    @property
    def key(self) -> str:
        r"""Key unique to a game of the schedule; a comma within a name is escaped.

        >>> Match(3, 17, ("random", "minimax")).key
        '3:random,minimax'
        """
        names = [name.replace("\\", "\\\\").replace(",", "\\,") for name in self.players]
        return f"{self.block}:{','.join(names)}"


def game_seed(seed: int, block: int) -> int:
    """Return the seed of the games of a block."""
    return stream_seed("tournament game", seed, block) % _ROLE_SEEDS


def teams_of(game: Game, seed: int) -> tuple[str, ...]:
    """Return the team of every seat in the game of a seed, by setting it up."""
    begin_game(Table(game), seed)
    return tuple(game.team(seat) for seat in game.everyone)


def fitting_pairing(game: Game, are_sides_alike: bool) -> _Pairing:
    """Return the pairing that a game is played with unless another is asked for.

    Two teams make a matrix of sides, in which a player also meets itself: only so can the advantage of a side be told
    from the skill of two players. Where all sides are alike, or there are more of them, pairs of players meet; in a
    cooperative game each player also plays with itself.
    """
    is_divided = len(set(teams_of(game, 0))) == 2
    return "sides" if is_divided and not are_sides_alike else "pairs"


def schedule(game: Game, players: Sequence[str], pairing: str, blocks: int, seed: int) -> Iterator[Match]:
    """Yield the games of a tournament, block by block.

    More blocks add games at the end and change none before.

    Args:
        game: The rules, to find out who is on which side.
        players: Names of the players.
        pairing: One of :data:`PAIRINGS`.
        blocks: Number.
        seed: Seed of the tournament.

    Raises:
        ConfigError: There are too few players, or sides, for that pairing.
        UnknownName: There is no such pairing.
    """
    if pairing not in PAIRINGS:
        raise UnknownName(f"no pairing named {pairing!r}. {nearest(pairing, PAIRINGS)}")
    if len(players) < 2:
        raise ConfigError(f"a tournament needs two players at least, got {len(players)}.")
    for block in range(blocks):
        shared = game_seed(seed, block)
        if pairing == "sides":
            seatings: Iterable[tuple[str, ...]] = _by_sides(players, teams_of(game, shared), game.name)
        elif pairing == "pairs":
            alone = [(name,) * game.num_seats for name in players] if game.is_cooperative else []
            seatings = chain(alone, _by_pairs(players, game.num_seats))
        else:
            seatings = _rotations(_drawn(players, game.num_seats, seed, block))
        for seating in seatings:
            yield Match(block, shared, seating)


def _by_sides(players: Sequence[str], teams: Sequence[str], name: str) -> Iterator[tuple[str, ...]]:
    names = sorted(set(teams))
    if len(names) != 2:
        raise ConfigError(f"the pairing 'sides' needs two teams, {name} has {len(names)}: pass 'pairs' or 'mixed'.")
    for first in players:
        for second in players:
            yield tuple(first if team == names[0] else second for team in teams)


def _by_pairs(players: Sequence[str], seats: int) -> Iterator[tuple[str, ...]]:
    if seats < 2:
        raise ConfigError("players can meet only in a game of two seats or more, this one has 1.")
    for pair in combinations(players, 2):
        lineups = [tuple(pair[(seat + start) % 2] for seat in range(seats)) for start in (0, 1)]
        seatings = [*_rotations(lineups[0]), *_rotations(lineups[1])]
        yield from dict.fromkeys(seatings)


def _rotations(lineup: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each different arrangement that moving on by one seat leads to."""
    every = [(*lineup[start:], *lineup[:start]) for start in range(len(lineup))]
    yield from dict.fromkeys(every)


def _drawn(players: Sequence[str], seats: int, seed: int, block: int) -> tuple[str, ...]:
    """Return a player for every seat: all players in a random order, as often as it takes."""
    generator = stream("tournament lineup", seed, block)
    lineup: list[str] = []
    while len(lineup) < seats:
        lineup += [players[i] for i in generator.permutation(len(players))]
    return tuple(lineup[:seats])
