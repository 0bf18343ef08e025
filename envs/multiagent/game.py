"""The rules of a multi-agent game: a state that changes only by complete sets of actions, without input or output.

A :class:`Game` decides which seats act, what is legal, what an answer means and which seats read which line. Who
answers, in which order answers arrive, and how many attempts are allowed is up to
:class:`turngym.envs.multiagent.table.Table`, the only caller of a game. So every view of a game (PettingZoo, Gymnasium,
vectors) shows the same transcript. A whole small game is in the documentation of :mod:`turngym.envs.multiagent`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from turngym.envs.core import LONGEST_ACTION
from turngym.envs.settings import Configured
from turngym.errors import ConfigError, nearest
from turngym.types import JSONValue

FORFEITED = "You gave no legal action: you forfeit the game."


class Line(NamedTuple):
    """One line of text and the seats that may read it.

    Args:
        to: Seat numbers in ascending order.
        text: Their observations.
    """

    to: tuple[int, ...]
    text: str


class InvalidAction(Exception):
    """An answer that is not a legal action: the seat is asked again, or forfeits the game.

    Args:
        reason: One short sentence for the player, without any hidden fact.
        kind: ``"unreadable"`` if no action was found in the text, ``"illegal"`` if one was found that is not allowed.
    """

    def __init__(self, reason: str, kind: Literal["unreadable", "illegal"] = "illegal") -> None:
        super().__init__(reason)
        self.reason, self.kind = reason, kind


class Game(Configured, ABC):
    """Rules without input or output. All randomness comes from the generator that ``begin`` is given.

    Actions are canonical texts, such as ``"kill player_4"``; ``read`` parses any text of a player into one. What a seat
    knows is exactly the lines that :meth:`tell` addressed to it: a view is never computed from the hidden state.

    Args:
        num_seats: Number of seats.

    Raises:
        ConfigError: An option is out of its range.
    """

    __slots__ = ("everyone", "forfeited", "news", "num_seats", "options", "seats", "settings")

    name: ClassVar[str]
    """Name of the game, in lower case."""
    is_simultaneous: ClassVar[bool] = False
    """True if every decision is asked of all seats at once, so that a parallel view shows the same game."""
    players: ClassVar[Mapping[str, str]] = {}
    """The game's own players: name -> ``"module:Class"``, imported when asked for; the first one is the reference."""
    longest_action: ClassVar[int] = LONGEST_ACTION
    """Characters of an answer that are read; a longer one is an unreadable answer."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest value of :meth:`score`."""
    finds_action: ClassVar[bool] = False
    """True if an action is found in a whole answer, reasoning included, which no other seat reads."""
    beaten_by: ClassVar[Mapping[str, str]] = {}
    """As :attr:`turngym.envs.core.TextEnv.beaten_by`, for a seat against random opponents."""
    is_cooperative: ClassVar[bool] = False
    """True if all seats win or lose together, so that players are compared by whom they play with."""
    finite_instances: int | None = None
    """Number of initial states, where that is too few for splits."""

    def __init__(self, num_seats: int) -> None:
        if not getattr(self, "name", ""):
            raise ConfigError(f'{type(self).__name__} needs a name: a class attribute such as name = "kuhn_poker".')
        if isinstance(num_seats, bool) or not isinstance(num_seats, int) or num_seats < 1:
            raise ConfigError(f"{self.name} needs a number of seats of at least 1, got {num_seats!r}.")
        self.num_seats = num_seats
        self.seats = tuple(f"player_{index}" for index in range(num_seats))
        """The names of the seats, which are also their names in PettingZoo."""
        self.everyone = tuple(range(num_seats))
        self.news: list[Line] = []
        """Lines that the table has not fetched yet."""
        self.forfeited: tuple[int, ...] = ()
        """The seats that have forfeited this game; kept by the table."""

    def tell(self, to: Sequence[int], text: str) -> None:
        """Send a line to seats: the only way in which a seat learns anything."""
        self.news.append(Line(tuple(to), text))

    def require_known(self, options: Mapping[str, Any], known: Collection[str] = ()) -> None:
        """Refuse options of :meth:`begin` that the game does not have.

        Raises:
            ConfigError: One is not known.
        """
        for key in options:
            if key not in known:
                hint = nearest(str(key), known) if known else "It takes none."
                raise ConfigError(f"a game of {self.name} has no option {key!r}. {hint}")

    # The rules, implemented by the subclass.

    @abstractmethod
    def instructions(self, seat: int) -> str:
        """Return the rules and the answer format, once for the system prompt; the same for every seat of one role."""

    @abstractmethod
    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Set up a new game, discarding the last one, and tell every seat its initial information.

        Args:
            generator: The game's own generator; keep it if later events are random too.
            options: Fixed facts instead of random ones, such as ``{"roles": [...]}``; an unknown key is a ConfigError.
        """

    @abstractmethod
    def asked(self) -> tuple[int, ...]:
        """Return the seats that decide now, in the order in which they are asked; empty when the game is over.

        Several seats decide simultaneously: no seat sees another's answer before :meth:`commit`.
        """

    @abstractmethod
    def prompt(self, seat: int) -> str:
        """Return the question to a seat that is asked, with what it may answer."""

    @abstractmethod
    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the canonical texts of the legal actions of a seat that is asked; empty where any text will do.

        Computed only from what the seat knows. Where free text is also allowed, the list holds the fixed actions.
        """

    @abstractmethod
    def read(self, seat: int, text: str) -> str:
        """Return the canonical action that a player's text means; a canonical action means itself.

        Raises:
            InvalidAction: There is none, or it is not legal. The text may be anything.
        """

    @abstractmethod
    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take the actions of all seats that are asked, and return the reward of every seat.

        Args:
            actions: Canonical action per seat, in the order of :meth:`asked`.

        Returns:
            [num_seats] rewards that this brought.
        """

    @abstractmethod
    def anchor(self, seat: int) -> str:
        """Return canonical text of what the seat can know now, without its own turn counter."""

    @abstractmethod
    def winners(self) -> tuple[int, ...]:
        """Return the seats that have won; empty in a draw and before the end."""

    @abstractmethod
    def state(self) -> JSONValue:
        """Return everything that :meth:`load` needs, as JSON can hold it; the generator is saved elsewhere."""

    @abstractmethod
    def load(self, state: JSONValue) -> None:
        """Restore what :meth:`state` returned; called after :meth:`begin`, whose generator remains the game's own."""

    # Optional methods.

    def role(self, seat: int) -> str:
        """Return the role of a seat, hidden from others where the rules say so; empty if there are none."""
        return ""

    def caller(self, seat: int) -> int | None:
        """Return the seat that calls a sub-agent, None for other seats.

        A sub-agent that breaks or forfeits ends its call and not the game: :meth:`forfeit` continues with the caller.
        """
        return None

    def team(self, seat: int) -> str:
        """Return the side of a seat, by which tournaments count; its role, or its number if there are none."""
        return self.role(seat) or str(seat)

    def phase(self) -> str:
        """Return the name of what is being decided, such as ``"vote"``; public."""
        return ""

    def progress(self, seat: int) -> float:
        """Return how much of the game is over, in [0, 1], from what the seat knows; nan if that is unknown."""
        return float("nan")

    def is_truncated(self, seat: int) -> bool:
        """Return whether a seat's game that is over was cut off by a limit that is no part of the rules.

        An example is the turn limit of an environment inside of a game. Critics bootstrap there, as elsewhere.
        """
        return False

    def score(self, seat: int) -> float:
        """Return the benchmark's number of a seat: 1 for a winner, 0 for others, if the game has no better one."""
        return float(seat in self.winners() and seat not in self.forfeited)

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """Take defeat of seats that gave no legal action, and return the reward of every seat.

        They are not asked again, earn nothing later and have not won, whatever the game says. What they get must not
        exceed the worst that a legal action could still bring, so a game whose rewards go below -1 overrides this. A
        game that is decided now is over: :meth:`asked` returns nobody. Otherwise it continues for the others.

        Args:
            seats: Those that forfeit, already in :attr:`forfeited`.
        """
        for seat in seats:
            self.tell((seat,), FORFEITED)
        return [-1.0 if seat in seats else 0.0 for seat in self.everyone]

    def default(self, seat: int) -> str:
        """Return the action of a seat that has forfeited, where the game continues for the others."""
        return next(iter(self.legal_actions(seat)), "")

    def metrics(self) -> dict[str, float]:
        """Return numbers about the game that has ended, such as efficiency and fairness."""
        return {}

    def close(self) -> None:
        """Release what the game holds, such as a browser; called by tables and views at the end, perhaps twice."""
        return

    def content(self) -> str:
        """Return what decides the split of a game that has begun, such as its words; empty for its seed."""
        return ""

    def is_speech(self, seat: int) -> bool:
        """Return whether a seat that is asked is to say something that other seats read."""
        return False

    def abstract_view(self, seat: int) -> str:
        """Return what an abstraction of the game keeps of what a seat knows; by default all of it, the anchor."""
        return self.anchor(seat)

    def abstract_actions(self, seat: int) -> Mapping[str, Sequence[str]]:
        """Return name -> legal actions that an abstraction of the game does not tell apart; by default it does."""
        return {action: (action,) for action in self.legal_actions(seat)}

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Resample what a seat cannot know so that it still fits everything the seat has read.

        Returns:
            Whether anything changed; False where nothing is hidden. Tests use this to find leaks.
        """
        return False
