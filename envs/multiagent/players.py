"""Players without a model: they see a view of the game and answer with text."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.lookup import class_at
from turngym.envs.multiagent.table import SeatView
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.registry import Registry
from turngym.types import JSONValue

SILENCE = "I have nothing to say."
"""Utterances of the generic players where any text will do."""

PLAYERS: Registry[type[Player]] = Registry("player", "turngym.envs.multiagent")
"""Players that can play every game. Those of one game are listed in :attr:`Game.players`."""


class Player(ABC):
    """Answers for one seat. It may use only its view, its generator and its own memory of this game."""

    name: ClassVar[str] = ""
    """Name in records; that of the class unless given."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__dict__.get("name", cls.__name__)

    @classmethod
    def from_argument(cls, argument: str, game: Game) -> Player:
        """Return the player that ``name:argument`` stands for; by default no argument is allowed.

        Raises:
            ConfigError: The argument is wrong.
        """
        if argument:
            raise ConfigError(f"the player {cls.name!r} takes no argument, got {argument!r:.80}.")
        return cls()

    @abstractmethod
    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Get ready for a new game, and forget the last one.

        Args:
            view: View of the seat; the same object in every turn.
            generator: All randomness of the player. The caller saves its state.
        """

    @abstractmethod
    def act(self, view: SeatView) -> str:
        """Return the answer to the question that the view shows: any text."""

    def state(self) -> JSONValue:
        """Return the memory of this game as JSON can hold it, without the generator; None if there is none."""
        return None

    def load(self, state: JSONValue) -> None:
        """Bring back what :meth:`state` returned; called after :meth:`begin`."""
        return


@PLAYERS.register("random")
class RandomPlayer(Player):
    """Plays any legal action, all equally likely; says one fixed sentence where any text will do."""

    name = "random"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return any legal action."""
        legal = view.legal_actions
        return legal[int(self._random() * len(legal))] if legal else SILENCE


@PLAYERS.register("first_legal")
class FirstLegalPlayer(Player):
    """Plays the first legal action; says one fixed sentence where any text will do. Deterministic, for tests."""

    name = "first_legal"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return the first legal action."""
        legal = view.legal_actions
        return legal[0] if legal else SILENCE


def make_player(name: str, game: Game) -> Player:
    """Return a new player, one of the game's own or one that plays every game.

    Args:
        name: ``name`` or ``name:argument`` of ``game.players`` or :data:`PLAYERS`, or ``"module:Class"`` or
            ``"path/to/file.py:Class"`` for a custom player.
        game: The game to play.

    Raises:
        UnknownName: There is no such player.
        ConfigError: It is not a player, or one that cannot be made without options.
    """
    own: Mapping[str, str] = game.players
    prefix, colon, argument = name.partition(":")
    if prefix in own:
        return _load(own[prefix], argument, game)
    if colon and prefix not in PLAYERS:
        return _load(name, "", game)
    try:
        kind = PLAYERS[prefix]
    except UnknownName as error:
        known = {*own, *PLAYERS}
        raise UnknownName(f"no player of {game.name} named {name!r}. {nearest(name, known)}") from error
    return kind.from_argument(argument, game)


def _load(path: str, argument: str, game: Game) -> Player:
    """Import the class that ``"module:Class"`` names, and return a new player of it."""
    found = class_at(path, Player)  # type: ignore[type-abstract]  # the base of what is looked for
    try:
        return found.from_argument(argument, game)
    except TypeError:
        try:
            inspect.signature(found).bind()
        except TypeError as error:
            raise ConfigError(f"{path!r} has an option without a default ({error}): give it one.") from error
        raise
