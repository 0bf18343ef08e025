"""One game being played: who is still to answer, what each seat has read, retries, default actions, counts.

Every view of a game drives a :class:`Table` and nothing else, so all of them show the same transcript.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from turngym.envs.multiagent.game import Game, InvalidAction, Line
from turngym.errors import ConfigError, EpisodeOver
from turngym.types import JSONValue

_SNAPSHOT_FORMAT = 1


@dataclass(slots=True)
class Counts:
    """What one seat did in one game.

    Args:
        answers: Texts that it gave.
        unreadable: Those in which no action was found.
        illegal: Those whose action was not allowed.
        defaults: Actions that were taken for it, after too many tries or too long a wait.
    """

    answers: int = 0
    unreadable: int = 0
    illegal: int = 0
    defaults: int = 0


class Answer(NamedTuple):
    """What became of an answer.

    Args:
        action: The canonical action that will be taken, None if the seat is asked again.
        is_valid: Whether the text was a legal action; False where ``action`` is the default one.
        reason: Why it was not.
        rewards: Of every seat, what this answer brought; zeros until the answers are complete.
    """

    action: str | None
    is_valid: bool
    reason: str
    rewards: tuple[float, ...]


class SeatView:
    """What one seat may know: nothing here depends on a line that was addressed to others.

    Args:
        table: The table at which the seat is.
        seat: Its number.
    """

    __slots__ = ("_lines", "_read_up_to", "_seen", "_table", "name", "retry", "seat", "why_again")

    def __init__(self, table: Table, seat: int) -> None:
        self._table, self.seat, self.name = table, seat, table.game.seats[seat]
        self._lines: list[str] = []
        self._seen = 0
        """How much of the table's log has been looked through for :attr:`lines`; done when somebody asks."""
        self._read_up_to = 0
        """How long the table's log was at the seat's last answer."""
        self.retry = 0
        """How many of its answers to the present question were invalid."""
        self.why_again = ""
        """What was wrong with the last of them."""

    def clear(self) -> None:
        """Forget a game."""
        self._lines, self._seen = [], 0
        self._read_up_to, self.retry, self.why_again = 0, 0, ""

    def _told(self, start: int) -> list[str]:
        """Return the lines from a place in the table's log on that are addressed to this seat."""
        seat = self.seat
        return [text for to, text in self._table.log[start:] if seat in to]

    @property
    def lines(self) -> list[str]:
        """Every line that the seat has been told in this game."""
        if self._seen < len(self._table.log):
            self._lines += self._told(self._seen)
            self._seen = len(self._table.log)
        return self._lines

    @property
    def new_lines(self) -> list[str]:
        """The lines since the seat's last answer."""
        return self._told(self._read_up_to)

    @property
    def is_asked(self) -> bool:
        """Whether the seat is to answer now."""
        return self.seat in self._table.pending

    @property
    def role(self) -> str:
        """The seat's own role."""
        return self._table.game.role(self.seat)

    @property
    def phase(self) -> str:
        """What is being decided."""
        return self._table.game.phase()

    @property
    def instructions(self) -> str:
        """Rules and answer format."""
        return self._table.game.instructions(self.seat)

    @property
    def legal_actions(self) -> tuple[str, ...]:
        """The legal actions, if the seat is asked."""
        return self._table.game.legal_actions(self.seat) if self.is_asked else ()

    @property
    def anchor(self) -> str:
        """Canonical text of what the seat can know."""
        return self._table.game.anchor(self.seat)

    @property
    def observation(self) -> str:
        """The lines since the seat's last answer, what was wrong with that answer, and the question to it."""
        parts = self.new_lines
        if self.why_again:
            parts = [*parts, self.why_again]
        if self.is_asked:
            parts = [*parts, self._table.game.prompt(self.seat)]
        return "\n".join(parts)


class Table:
    """Plays one game after the other. The order in which simultaneous answers arrive changes nothing.

    Args:
        game: The rules; the table owns this object.
        retries: How often a seat is asked again after an invalid answer, before its default action is taken.
        invalid_penalty: What each invalid answer costs the seat that gave it, at least 0.

    Raises:
        ConfigError: An option is out of its range.
    """

    def __init__(self, game: Game, *, retries: int = 1, invalid_penalty: float = 0.0) -> None:
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ConfigError(f"retries must be a whole number of at least 0, got {retries!r}.")
        if not invalid_penalty >= 0:
            raise ConfigError(f"invalid_penalty must be at least 0, got {invalid_penalty!r}.")
        self.game, self.retries, self.invalid_penalty = game, retries, invalid_penalty
        self.generator = np.random.default_rng(0)
        self.views = tuple(SeatView(self, seat) for seat in game.everyone)
        self.no_rewards = (0.0,) * game.num_seats
        """What answers that bring nothing are rewarded with: always this object."""
        self._clear()

    def _clear(self) -> None:
        self.log: list[Line] = []
        """Every line of the game with its readers; not for players."""
        self.actions: list[tuple[int, str]] = []
        """Every action taken, with its seat."""
        self.returns = [0.0] * self.game.num_seats
        """The sum of each seat's rewards."""
        self.counts = [Counts() for _ in self.game.seats]
        self.pending: tuple[int, ...] = ()
        """The seats that are still to answer, in the order in which the game asks them."""
        self._asked: tuple[int, ...] = ()
        self._taken: dict[int, str] = {}
        self.is_over = False
        for view in self.views:
            view.clear()

    def reset(self, generator: np.random.Generator, options: Mapping[str, Any] | None = None) -> None:
        """Begin a game.

        Args:
            generator: All randomness of the game; nobody else may draw from it meanwhile.
            options: What the game's ``begin`` knows.
        """
        self.generator = generator
        self._clear()
        self.game.news.clear()
        self.game.begin(generator, options or {})
        self._go_on()

    def answer(self, seat: int, text: str) -> Answer:
        """Take the text that a seat wrote.

        Raises:
            EpisodeOver: The seat is not asked.
            TypeError: The answer is no text.
        """
        if seat not in self.pending:
            state = "the game is over" if self.is_over else f"the game waits for the seats {list(self.pending)}"
            raise EpisodeOver(f"seat {seat} of {self.game.name} is not asked: {state}.")
        if not isinstance(text, str):
            raise TypeError(f"an action of {self.game.name} is text, got {type(text).__name__}: pass a str.")
        view, counts = self.views[seat], self.counts[seat]
        counts.answers += 1
        view._read_up_to = len(self.log)
        try:
            action = self.game.read(seat, text)
        except InvalidAction as error:
            if error.kind == "unreadable":
                counts.unreadable += 1
            else:
                counts.illegal += 1
            return self._refuse(seat, error.reason)
        return Answer(action, True, "", self._take(seat, action, self.no_rewards))

    def _refuse(self, seat: int, reason: str) -> Answer:
        """Ask again, or take the default action."""
        view = self.views[seat]
        rewards = self.no_rewards
        if self.invalid_penalty:
            rewards = (*rewards[:seat], -self.invalid_penalty, *rewards[seat + 1 :])
        if view.retry < self.retries:
            view.retry += 1
            view.why_again = reason
            self._pay(rewards)
            return Answer(None, False, reason, rewards)
        self.counts[seat].defaults += 1
        action = self.game.default(seat)
        return Answer(action, False, reason, self._take(seat, action, rewards))

    def expire(self, seat: int) -> Answer:
        """Take the default action of a seat that has not answered in time."""
        if seat not in self.pending:
            raise EpisodeOver(f"seat {seat} of {self.game.name} is not asked.")
        self.views[seat]._read_up_to = len(self.log)
        self.counts[seat].defaults += 1
        action = self.game.default(seat)
        return Answer(action, False, "No answer in time.", self._take(seat, action, self.no_rewards))

    def _take(self, seat: int, action: str, rewards: tuple[float, ...]) -> tuple[float, ...]:
        """Note an action; when all are there, let the game go on. Returns the rewards, those given included."""
        view = self.views[seat]
        if view.retry:
            view.retry, view.why_again = 0, ""
        if rewards is not self.no_rewards:
            self._pay(rewards)  # before what the actions earn, whoever answers last: sums of floats depend on the order
        if len(self._asked) == 1:
            taken = {seat: action}
            self.actions.append((seat, action))
        else:
            self._taken[seat] = action
            self.pending = tuple([other for other in self.pending if other != seat])
            if self.pending:
                return rewards
            taken = {asked: self._taken[asked] for asked in self._asked}
            self._taken = {}
            self.actions.extend(taken.items())
        earned = self.game.commit(taken)
        if any(earned):
            self._pay(earned)
            rewards = tuple([float(one) + more for one, more in zip(earned, rewards, strict=True)])
        self._go_on()
        return rewards

    def _pay(self, rewards: Sequence[float]) -> None:
        self.returns = [total + float(reward) for total, reward in zip(self.returns, rewards, strict=True)]

    def _go_on(self) -> None:
        """Hand out the news and find out who is asked next."""
        news = self.game.news
        self.log.extend(news)
        news.clear()
        self._asked = self.pending = self.game.asked()
        self.is_over = not self.pending

    def info(self, seat: int, *, action_is_valid: bool = True) -> dict[str, Any]:
        """Return the info table of one seat, keys and types as :class:`turngym.types.Info` has them."""
        game = self.game
        return {
            "anchor": game.anchor(seat),
            "legal_actions": self.views[seat].legal_actions,
            "action_is_valid": action_is_valid,
            "success": int(seat in game.winners()) if self.is_over else -1,
            "progress": float(game.progress(seat)),
            "score": float(game.score(seat)) if self.is_over else 0.0,
            "fault": "",
        }

    # Snapshots.

    def snapshot(self) -> bytes:
        """Return the exact state, generator included, as JSON."""
        content = {
            "format": _SNAPSHOT_FORMAT,
            "game": self.game.name,
            "settings": self.game.settings,
            "table": {"retries": self.retries, "invalid_penalty": self.invalid_penalty},
            "generator": self.generator.bit_generator.state,
            "state": self.game.state(),
            "log": self.log,
            "actions": self.actions,
            "returns": self.returns,
            "counts": [asdict(counts) for counts in self.counts],
            "views": [[view._read_up_to, view.retry, view.why_again] for view in self.views],
            "pending": self.pending,
            "asked": self._asked,
            "taken": sorted(self._taken.items()),
            "is_over": self.is_over,
        }
        return json.dumps(content, sort_keys=True).encode()

    def restore(self, snapshot: bytes) -> None:
        """Bring back what :meth:`snapshot` saved, in this or another process.

        Raises:
            ConfigError: The bytes are no snapshot, or one of another game or other options.
        """
        content = self._read_snapshot(snapshot)
        before = self.snapshot() if self.log else None
        try:
            self._adopt(content)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            if before is not None:
                self._adopt(json.loads(before))
            raise ConfigError(
                f"restore() of {self.game.name} got a damaged snapshot ({error}): take a new one."
            ) from error

    def _read_snapshot(self, snapshot: bytes) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(snapshot)
            found = content["format"], content["game"], content["settings"], content["table"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ConfigError(f"restore() of {self.game.name} got bytes that are no snapshot of turngym.") from error
        settings: JSONValue = json.loads(json.dumps(self.game.settings))
        expected = _SNAPSHOT_FORMAT, self.game.name, settings, content["table"]
        if found != expected or content["table"] != {"retries": self.retries, "invalid_penalty": self.invalid_penalty}:
            raise ConfigError(
                f"this snapshot belongs to {found[1]} with {found[2]}, not to {expected[1]} with {settings}."
            )
        return content

    def _adopt(self, content: Mapping[str, Any]) -> None:
        """Take over what a snapshot holds."""
        self.generator.bit_generator.state = content["generator"]
        self._clear()
        self.game.news.clear()
        self.game.begin(self.generator, {})
        self.game.news.clear()
        self.generator.bit_generator.state = content["generator"]
        self.game.load(content["state"])
        self.log = [Line(tuple(to), text) for to, text in content["log"]]
        for view, (read_up_to, retry, why_again) in zip(self.views, content["views"], strict=True):
            view._read_up_to, view.retry, view.why_again = read_up_to, retry, why_again
        self.actions = [(seat, action) for seat, action in content["actions"]]
        self.returns = list(content["returns"])
        self.counts = [Counts(**counts) for counts in content["counts"]]
        self.pending, self._asked = tuple(content["pending"]), tuple(content["asked"])
        self._taken = dict(map(tuple, content["taken"]))
        self.is_over = bool(content["is_over"])


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """One question to one seat, as a batch for a model holds it.

    Args:
        request_id: Valid for one answer.
        table: Number of the table.
        episode: How many games the table has begun before this one.
        seat: Number of the seat.
        role: The seat's own role.
        policy: Name of the policy that is to answer.
        phase: What is being decided.
        turn: How many questions the seat has been asked before in this game.
        observation: What it reads now: new lines, what was wrong with its last answer, the question.
        new_lines: The new lines alone.
        legal_actions: The legal actions, empty where any text will do.
        retry: How many of its answers to this question were invalid.
        error: What was wrong with the last of them.
        instructions: Rules and answer format, for the system prompt.
        anchor: Canonical text of what the seat can know.
    """

    request_id: int
    table: int
    episode: int
    seat: int
    role: str
    policy: str
    phase: str
    turn: int
    observation: str
    new_lines: tuple[str, ...]
    legal_actions: tuple[str, ...]
    retry: int
    error: str
    instructions: str
    anchor: str
