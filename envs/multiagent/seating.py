"""Who plays at which seat: names of policies that answer from outside, and players of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player, make_player
from turngym.errors import ConfigError

SeatPolicy: TypeAlias = Callable[[int, int, str], "str | Player"]
"""From table, seat and role to the name of a policy or to a player; called once per seat and game."""

PlayerMaker: TypeAlias = "str | Callable[[Game], Player]"
"""A name for :func:`turngym.envs.multiagent.players.make_player`, or what makes a player of a game."""


class Seating:
    """Finds the player of each seat, and keeps players that are known by name from game to game.

    Args:
        seat_policy: See :data:`SeatPolicy`; a text stands for one policy at all seats.
        scripted: Policies that are players of our own: name of the policy -> player. Other names answer from outside.

    Raises:
        ConfigError: The seating is neither a text nor callable.
    """

    def __init__(self, seat_policy: str | SeatPolicy, scripted: Mapping[str, PlayerMaker] | None = None) -> None:
        if not isinstance(seat_policy, str) and not callable(seat_policy):
            raise ConfigError(
                f"seat_policy must be the name of a policy or a function (table, seat, role) -> name or Player, "
                f"got {seat_policy!r}."
            )
        self._ask = seat_policy
        self._scripted = dict(scripted or {})
        self._kept: dict[tuple[int, int, str], Player] = {}

    def at(self, game: Game, table: int, roles: tuple[str, ...]) -> tuple[list[str], list[Player | None]]:
        """Return the policy of each seat, and its player where it is one of our own."""
        policies: list[str] = []
        players: list[Player | None] = []
        for seat, role in enumerate(roles):
            found = self._ask if isinstance(self._ask, str) else self._ask(table, seat, role)
            if isinstance(found, Player):
                policies.append(found.name)
                players.append(found)
            elif isinstance(found, str):
                policies.append(found)
                players.append(self._player(game, table, seat, found))
            else:
                raise ConfigError(
                    f"seat_policy must return the name of a policy or a Player, got {found!r} for seat {seat} "
                    f"of table {table}."
                )
        return policies, players

    def _player(self, game: Game, table: int, seat: int, policy: str) -> Player | None:
        maker = self._scripted.get(policy)
        if maker is None:
            return None
        key = table, seat, policy
        if key not in self._kept:
            self._kept[key] = make_player(maker, game) if isinstance(maker, str) else maker(game)
        return self._kept[key]

    def named(self, game: Game, table: int, policies: list[str], roles: tuple[str, ...]) -> list[Player | None]:
        """Return players for policies that a snapshot names.

        Raises:
            ConfigError: A seat had a player that neither ``scripted`` nor ``seat_policy`` gives it now.
        """
        players: list[Player | None] = []
        for seat, policy in enumerate(policies):
            player = self._player(game, table, seat, policy)
            if player is None and not isinstance(self._ask, str):
                found = self._ask(table, seat, roles[seat])
                player = found if isinstance(found, Player) and found.name == policy else None
            players.append(player)
        return players
