"""A table at which some seats have built-in players; the others wait for external answers.

The seed of a game fixes everything: ``begin`` derives the generator of the rules and that of every player from it. So
a seed names the same game in every view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import Answer, SeatView, Table, are_rewards
from turngym.errors import ConfigError, TurngymError
from turngym.loading import raised_text
from turngym.seeding import restart
from turngym.types import JSONValue


class PlayerError(TurngymError, RuntimeError):
    """A built-in player raised, or did not return text.

    Args:
        seat: Its seat.
        message: Outcome.
    """

    def __init__(self, seat: int, message: str) -> None:
        super().__init__(message)
        self.seat = seat


def whole_seed(seed: object) -> int:
    """Return a seed as a number.

    Raises:
        ConfigError: It is not a whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ConfigError(f"a seed is a whole number, got {seed!r}.")
    return int(seed)


def begin_game(table: Table, seed: int, options: Mapping[str, Any] | None = None) -> None:
    """Start the game that a seed names.

    Args:
        table: Where it is played.
        seed: Names the game together with the options of the rules.
        options: Fixed facts, as the game's ``begin`` takes them.
    """
    table.reset(restart(table.own_generator, "game", seed), options)


class HostedTable:
    """Plays the seats that have a player, so that a table only ever waits for answers from outside.

    Args:
        table: The table; it must not be used elsewhere.
    """

    def __init__(self, table: Table) -> None:
        count = table.game.num_seats
        self.table = table
        self.players: list[Player | None] = [None] * count
        """Player per seat; None where answers come from outside."""
        self.rewards = [0.0] * count
        """Rewards of each seat since its last answer, or since the start of the game."""
        self._generators = [np.random.default_rng(0) for _ in range(count)]

    def begin(self, seed: int, options: Mapping[str, Any] | None = None) -> None:
        """Start the game of a seed; :meth:`seat` comes next."""
        begin_game(self.table, seed, options)
        self.rewards = [0.0] * self.table.game.num_seats

    def seat(self, players: Sequence[Player | None], seed: int) -> None:
        """Assign players to a game that has started.

        Args:
            players: Player per seat; None where answers come from outside.
            seed: The seed of the game.

        Raises:
            PlayerError: One of them cannot start.
        """
        self.players = list(players)
        for seat, player in enumerate(players):
            if player is not None:
                self._sit(seat, player, restart(self._generators[seat], "player", seed, seat))

    def _sit(self, seat: int, player: Player, generator: np.random.Generator) -> None:
        try:
            player.begin(self.table.views[seat], generator)
        except Exception as error:  # user code: the table handles it
            raise PlayerError(seat, self._raised(seat, player, error)) from error

    def play_on(self) -> None:
        """Let the players answer until the game is over or waits for external answers.

        Raises:
            PlayerError: One of them raised, or gave no text.
        """
        table, players, views, no_rewards = self.table, self.players, self.table.views, self.table.no_rewards
        while True:
            has_moved = False
            for seat in table.pending:
                player = players[seat]
                if player is None:
                    continue
                has_moved = True
                try:
                    answer = table.answer(seat, self._text(seat, player, views[seat]))
                except PlayerError:
                    if table.game.caller(seat) is None:
                        raise
                    answer = table.expire(seat)
                self.rewards[seat] = 0.0
                earned = answer.rewards
                if earned is not no_rewards:
                    self.rewards = [total + more for total, more in zip(self.rewards, earned, strict=True)]
            if not has_moved:
                return

    def _text(self, seat: int, player: Player, view: SeatView) -> str:
        """Return the answer of a player."""
        try:
            text = player.act(view)
        except Exception as error:  # user code: the table handles it
            raise PlayerError(seat, self._raised(seat, player, error)) from error
        if not isinstance(text, str):
            kind = type(text).__name__
            raise PlayerError(seat, f"the player {player.name!r} answered with {kind} instead of a text.")
        return text

    def _raised(self, seat: int, player: Player, error: Exception) -> str:
        game = self.table.game
        return f"the player {player.name!r} at {game.seats[seat]} of {game.name} raised {raised_text(error)}."

    def answer(self, seat: int, text: str) -> Answer:
        """Take a text and add up every seat's rewards for it."""
        self._forget_rewards(seat)
        return self._count(self.table.answer(seat, text))

    def expire(self, seat: int) -> Answer:
        """Let a seat forfeit and add up every seat's rewards for it."""
        self._forget_rewards(seat)
        return self._count(self.table.expire(seat))

    def _forget_rewards(self, seat: int) -> None:
        """Reset the sums, except before the first answer, so that rewards add up to returns."""
        counts = self.table.counts[seat]
        if counts.answers or counts.forfeits:
            self.rewards[seat] = 0.0

    def _count(self, answer: Answer) -> Answer:
        if answer.rewards is not self.table.no_rewards:
            self.rewards = [total + more for total, more in zip(self.rewards, answer.rewards, strict=True)]
        return answer

    # Snapshots.

    def state(self) -> JSONValue:
        """Return the exact state of table and players as JSON can hold it."""
        seated = [
            None if player is None else [player.name, player.state(), generator.bit_generator.state]
            for player, generator in zip(self.players, self._generators, strict=True)
        ]
        return {"table": self.table.snapshot().decode(), "players": seated, "rewards": self.rewards}

    def load(self, state: JSONValue, players: Sequence[Player | None]) -> None:
        """Bring back what :meth:`state` returned.

        Args:
            state: The state.
            players: Player per seat, of the same kinds as those that were saved.

        Raises:
            ConfigError: The state belongs to another game or to other players; nothing has changed then.
            PlayerError: A player cannot restore its memory; the table is then restored, the players are not.
        """
        seated = state["players"]
        found = [None if player is None else player.name for player in players]
        saved = [None if entry is None else entry[0] for entry in seated]
        if found != saved:
            raise ConfigError(f"this snapshot was taken with the players {saved}, not with {found}.")
        if not are_rewards(state["rewards"], len(players)):
            raise ConfigError(f"this snapshot has the rewards {str(state['rewards'])[:80]}: take a new one.")
        self.table.restore(state["table"].encode())
        self.players, self.rewards = list(players), list(state["rewards"])
        for seat, (player, entry) in enumerate(zip(players, seated, strict=True)):
            if player is not None:
                self._sit(seat, player, self._generators[seat])
                self._remind(seat, player, entry[1])
                self._generators[seat].bit_generator.state = entry[2]

    def _remind(self, seat: int, player: Player, memory: JSONValue) -> None:
        try:
            player.load(memory)
        except Exception as error:  # user code: the table handles it
            raise PlayerError(seat, self._raised(seat, player, error)) from error
