"""The rules of a game between seats: a state that changes only by complete sets of actions, without input or output.

A :class:`Game` knows who is asked, what is legal, what an answer means and who may read which line. It does not know
who answers, in which order answers arrive, or how often somebody may try: that is the business of
:class:`turngym.envs.multiagent.table.Table`, which is the only one that calls a game. So every view of a game
(PettingZoo, Gymnasium, vectors) shows the same transcript. A whole small game is in the documentation of
:mod:`turngym.envs.multiagent`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from turngym.envs.core import LONGEST_ACTION
from turngym.envs.settings import Configured
from turngym.errors import ConfigError
from turngym.types import JSONValue


class Line(NamedTuple):
    """One line of text and the seats that may read it.

    Args:
        to: Seat numbers in ascending order.
        text: What they read.
    """

    to: tuple[int, ...]
    text: str


class InvalidAction(Exception):
    """An answer that is no legal action: the seat is asked again, or its default action is taken.

    Args:
        reason: One short sentence for the player, without any hidden fact.
        kind: ``"unreadable"`` if no action was found in the text, ``"illegal"`` if one was found that is not allowed.
    """

    def __init__(self, reason: str, kind: Literal["unreadable", "illegal"] = "illegal") -> None:
        super().__init__(reason)
        self.reason, self.kind = reason, kind


class Game(Configured, ABC):
    """Rules without input or output. All randomness comes from the generator that ``begin`` is given.

    Actions are canonical texts, such as ``"kill player_4"``; ``read`` makes one of whatever a player wrote. What a seat
    knows is exactly the lines that :meth:`tell` addressed to it: a view is never computed from the hidden state.

    Args:
        num_seats: How many seats play.

    Raises:
        ConfigError: An option is out of its range.
    """

    __slots__ = ("everyone", "news", "num_seats", "seats", "settings")

    name: ClassVar[str]
    """Name of the game, in lower case."""
    is_simultaneous: ClassVar[bool] = False
    """Whether every decision is asked of all seats at once, so that a parallel view shows the same game."""
    players: ClassVar[Mapping[str, str]] = {}
    """The game's own players: name -> ``"module:Class"``, imported when asked for; the first one is the reference."""
    longest_action: ClassVar[int] = LONGEST_ACTION
    """Characters of an answer that are read; a longer one is an unreadable answer."""
    finite_instances: int | None = None
    """How many different beginnings there are, where that is too few for splits."""

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

    def tell(self, to: Sequence[int], text: str) -> None:
        """Address a line to seats. The one way in which anything becomes known to anybody."""
        self.news.append(Line(tuple(to), text))

    # The rules, given by the subclass.

    @abstractmethod
    def instructions(self, seat: int) -> str:
        """Return the rules and the answer format, once for the system prompt; the same for every seat of one role."""

    @abstractmethod
    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Set up a new game, forgetting the last one, and tell everybody what they know at first.

        Args:
            generator: The game's own generator; keep it, if later events are drawn too.
            options: Fixed facts instead of drawn ones, such as ``{"roles": [...]}``; an unknown key is a ConfigError.
        """

    @abstractmethod
    def asked(self) -> tuple[int, ...]:
        """Return the seats that decide now, in the order in which they are asked; empty when the game is over.

        Several seats decide simultaneously: nobody sees another's answer before :meth:`commit`.
        """

    @abstractmethod
    def prompt(self, seat: int) -> str:
        """Return the question to a seat that is asked, with what it may answer."""

    @abstractmethod
    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the canonical texts of the legal actions of a seat that is asked; empty where any text will do.

        Computed from what the seat knows alone. Where free text is allowed beside fixed actions, the fixed ones.
        """

    @abstractmethod
    def read(self, seat: int, text: str) -> str:
        """Return the canonical action that a player's text means; a canonical action means itself.

        Raises:
            InvalidAction: There is none, or it is not legal. Any text at all may come.
        """

    @abstractmethod
    def default(self, seat: int) -> str:
        """Return the action that is taken for a seat that gave no valid one."""

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
        """Return canonical text of what the seat can know now, without a turn counter of its own."""

    @abstractmethod
    def winners(self) -> tuple[int, ...]:
        """Return the seats that have won; empty in a draw and before the end."""

    @abstractmethod
    def state(self) -> JSONValue:
        """Return everything that :meth:`load` needs, as JSON can hold it; the generator is saved elsewhere."""

    @abstractmethod
    def load(self, state: JSONValue) -> None:
        """Bring back what :meth:`state` returned; comes after a :meth:`begin`, whose generator stays the game's own."""

    # Where a game has more to say.

    def role(self, seat: int) -> str:
        """Return the role of a seat, hidden from others where the rules say so; empty where there are none."""
        return ""

    def team(self, seat: int) -> str:
        """Return the side of a seat, by which tournaments count; its role, or its number where there are none."""
        return self.role(seat) or str(seat)

    def phase(self) -> str:
        """Return the name of what is being decided, such as ``"vote"``; public."""
        return ""

    def progress(self, seat: int) -> float:
        """Return how much of the game is over, in [0, 1], from what the seat knows; nan if that is unknown."""
        return float("nan")

    def score(self, seat: int) -> float:
        """Return the benchmark's number of a seat: 1 for a winner, 0 for others, if the game has no better one."""
        return float(seat in self.winners())

    def metrics(self) -> dict[str, float]:
        """Return numbers about the game that has ended, such as efficiency and fairness."""
        return {}

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Replace what a seat cannot know by something else that fits all it has read.

        Returns:
            Whether anything changed; False where nothing is hidden. Tests use this to find leaks.
        """
        return False
