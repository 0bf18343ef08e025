"""View of a game for a seat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turngym.envs.multiagent.game import Game
    from turngym.envs.multiagent.table import Table


class SeatView:
    """Read-only view of one seat: nothing here depends on lines addressed to others.

    Args:
        table: The table at which the seat is.
        seat: Its number.
    """

    __slots__ = ("_lines", "_name", "_read_up_to", "_retry", "_seat", "_seen", "_table", "_why_again")

    def __init__(self, table: Table, seat: int) -> None:
        self._table, self._seat, self._name = table, seat, table.game.seats[seat]
        self._lines: list[str] = []
        self._seen = 0
        """Length of the table's log already read for :attr:`lines`, lazily."""
        self._read_up_to = 0
        """Length of the table's log at the seat's last answer."""
        self._retry = 0
        self._why_again = ""

    def _clear(self) -> None:
        """Forget a game."""
        self._lines, self._seen = [], 0
        self._read_up_to, self._retry, self._why_again = 0, 0, ""

    def _told(self, start: int) -> list[str]:
        """Return the lines from a place in the table's log on that are addressed to this seat."""
        seat = self._seat
        return [text for to, text in self._table.log[start:] if seat in to]

    @property
    def seat(self) -> int:
        """Number of the seat."""
        return self._seat

    @property
    def name(self) -> str:
        """Name of the seat."""
        return self._name

    @property
    def retry(self) -> int:
        """Number of invalid answers of the seat to the current question."""
        return self._retry

    @property
    def why_again(self) -> str:
        """Error message of the last of them; empty if there is none."""
        return self._why_again

    @property
    def lines(self) -> list[str]:
        """Every line that the seat has been told in this game; a new list."""
        if self._seen < len(self._table.log):
            self._lines += self._told(self._seen)
            self._seen = len(self._table.log)
        return self._lines.copy()

    @property
    def new_lines(self) -> list[str]:
        """The lines since the seat's last answer."""
        return self._told(self._read_up_to)

    @property
    def is_asked(self) -> bool:
        """True if the seat has to answer now."""
        return self._seat in self._table.pending

    @property
    def role(self) -> str:
        """The seat's own role."""
        return self._table.game.role(self._seat)

    @property
    def phase(self) -> str:
        """Decision to take."""
        return self._table.game.phase()

    @property
    def instructions(self) -> str:
        """Rules and answer format."""
        return self._table.instructions(self._seat)

    @property
    def finds_action(self) -> bool:
        """True if an action is found in a whole answer by a notation that the rules give."""
        return self._table.game.finds_action

    @property
    def legal_actions(self) -> tuple[str, ...]:
        """The legal actions, if the seat is asked; their order carries nothing."""
        return self._table.legal_actions(self._seat) if self.is_asked else ()

    @property
    def anchor(self) -> str:
        """Canonical text of what the seat can know."""
        return self._table.game.anchor(self._seat)

    @property
    def progress(self) -> float:
        """Progress of the seat, in [0, 1]; nan if unknown."""
        return float(self._table.game.progress(self._seat))

    @property
    def observation(self) -> str:
        """The lines since the seat's last answer, the error in that answer, and the question."""
        parts = self.new_lines
        if self._why_again:
            parts = [*parts, self._why_again]
        if self.is_asked:
            parts = [*parts, self._table.game.prompt(self._seat)]
        return "\n".join(parts)


def game_of(view: SeatView) -> Game:
    """Return the game at the table of a view, with everything hidden: for players that are part of a game's rules.

    Such a player may be made with another game of the same rules than the one that it plays, as in tournaments.
    """
    return view._table.game
