"""Players by seat: names of external policies, and built-in players."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player, make_player
from turngym.errors import ConfigError

SeatPolicy: TypeAlias = Callable[[int, int, str], "str | Player"]
"""From table, seat and role to the name of a policy or to a player; called once per seat and game."""

PlayerMaker: TypeAlias = "str | Callable[[Game], Player]"
"""A name for :func:`turngym.envs.multiagent.players.make_player`, or a factory of players."""


class Seating:
    """Finds the player of each seat, and reuses named players between games.

    Args:
        seat_policy: See :data:`SeatPolicy`; a text stands for one policy at all seats.
        scripted: Policies with built-in players: name of the policy -> player. Other names are external.

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
        self._playing: dict[int, dict[int, tuple[int, Player]]] = {}
        """Table -> identity of each player in its present game -> seat and player."""
        self._table_of: dict[int, int] = {}
        """Identity of each player in a game -> table."""

    def at(self, game: Game, table: int, roles: tuple[str, ...]) -> tuple[list[str], list[Player | None]]:
        """Return the policy of each seat, and its player where it is built in.

        Raises:
            ConfigError: ``seat_policy`` gave neither a name nor a player, or one player for two seats.
        """
        policies: list[str] = []
        players: list[Player | None] = []
        self.release(table)
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
            self._engage(players[-1], table, seat)
        return policies, players

    def _engage(self, player: Player | None, table: int, seat: int) -> None:
        """Record that a player is in a game: it remembers one game only, and so cannot play two."""
        if player is None:
            return
        key = id(player)
        if key in self._table_of:
            other = self._table_of[key]
            place = f"seat {self._playing[other][key][0]} of table {other} and at seat {seat} of table {table}"
            raise ConfigError(
                f"one {type(player).__name__} cannot play at {place} at once: give every seat a player of its own, or "
                "name a policy and pass it in scripted."
            )
        self._table_of[key] = table
        self._playing.setdefault(table, {})[key] = seat, player

    def release(self, table: int) -> None:
        """Note that a table's game is over."""
        for key in self._playing.pop(table, ()):
            del self._table_of[key]

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
        self.release(table)
        for seat, policy in enumerate(policies):
            player = self._player(game, table, seat, policy)
            if player is None and not isinstance(self._ask, str):
                found = self._ask(table, seat, roles[seat])
                player = found if isinstance(found, Player) and found.name == policy else None
            self._engage(player, table, seat)
            players.append(player)
        return players
