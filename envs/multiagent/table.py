"""One running game: open answers, what each seat has read, retries, forfeits, counts.

Every view of a game drives a :class:`Table` and nothing else, so all of them show the same transcript.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from turngym.arithmetic import as_float, is_finite
from turngym.envs.core import too_long
from turngym.envs.multiagent import snapshots
from turngym.envs.multiagent.answers import Answer, Counts, SeatRequest
from turngym.envs.multiagent.game import Game, InvalidAction, Line
from turngym.envs.multiagent.views import SeatView
from turngym.envs.ordering import from_drawn_place
from turngym.envs.snapshots import require_same_content
from turngym.errors import ConfigError, EpisodeOver, error_text

__all__ = ["Answer", "Counts", "SeatRequest", "SeatView", "Table"]


def are_rewards(rewards: object, num_seats: int) -> bool:
    """Return whether there is one finite number for each seat.

    >>> are_rewards([0.0, 1.5], 2), are_rewards([None], 1)
    (True, False)
    """
    if not isinstance(rewards, list) or len(rewards) != num_seats:
        return False
    return all(type(one) in (int, float) and is_finite(one) for one in rewards)


class Table:
    """Plays one game after another. The order in which simultaneous answers arrive does not matter.

    A seat that gives no legal action in ``retries + 1`` attempts, or none in time, forfeits the game: it has lost, gets
    no reward beyond what :meth:`Game.forfeit` pays, and is not asked again. The order of the legal actions that seats
    are shown is drawn for every game and turn, so that it carries nothing.

    Args:
        game: The rules; the table owns this object.
        retries: Retries after an invalid answer, before the seat forfeits.
        invalid_penalty: Penalty of a seat per invalid answer, at least 0.

    Raises:
        ConfigError: An option is out of its range.
    """

    def __init__(self, game: Game, *, retries: int = 1, invalid_penalty: float = 0.0) -> None:
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ConfigError(f"retries must be a whole number of at least 0, got {retries!r}.")
        if isinstance(invalid_penalty, bool) or not isinstance(invalid_penalty, int | float):
            raise ConfigError(f"invalid_penalty must be a number, got {invalid_penalty!r}.")
        if not (is_finite(invalid_penalty) and invalid_penalty >= 0):
            raise ConfigError(f"invalid_penalty must be at least 0 and finite, got {as_float(invalid_penalty)}.")
        self.game, self.retries, self.invalid_penalty = game, retries, invalid_penalty
        self.generator = self.own_generator = np.random.default_rng(0)
        """All randomness of the game; ``own_generator`` is for callers that start games by seeds."""
        self.views = tuple(SeatView(self, seat) for seat in game.everyone)
        self.no_rewards = (0.0,) * game.num_seats
        """The rewards of answers that earn nothing: always this object."""
        self._order_salt = 0
        self._clear()

    def _clear(self) -> None:
        self.log: list[Line] = []
        """Every line of the game with its readers; not for players."""
        self.actions: list[tuple[int, str | None]] = []
        """Every action taken, with its seat; None where the seat forfeited."""
        self.returns = [0.0] * self.game.num_seats
        """The sum of each seat's rewards."""
        self.counts = [Counts() for _ in self.game.seats]
        self.pending: tuple[int, ...] = ()
        """The seats that still have to answer, in the order in which the game asks them."""
        self._asked: tuple[int, ...] = ()
        self._taken: dict[int, str | None] = {}
        self.game.forfeited = ()
        self.is_over = False
        for view in self.views:
            view._clear()

    def reset(self, generator: np.random.Generator, options: Mapping[str, Any] | None = None) -> None:
        """Start a game.

        Args:
            generator: All randomness of the game; it must not be used elsewhere meanwhile.
            options: Argument of the game's ``begin``.
        """
        self.generator = generator
        self._clear()
        self._order_salt = zlib.crc32(repr(generator.bit_generator.state).encode())
        self.game.news.clear()
        self.game.begin(generator, options or {})
        self._go_on()

    def answer(self, seat: int, text: str) -> Answer:
        """Take the text that a seat wrote.

        Raises:
            EpisodeOver: The seat is not asked.
            TypeError: The answer is not text.
        """
        if seat not in self.pending:
            state = "the game is over" if self.is_over else f"the game waits for the seats {list(self.pending)}"
            raise EpisodeOver(f"seat {seat} of {self.game.name} is not asked: {state}.")
        if not isinstance(text, str):
            raise TypeError(f"an action of {self.game.name} is text, got {type(text).__name__}: pass a str.")
        text = str.__str__(text)  # a subclass may raise where rules read it
        view, counts = self.views[seat], self.counts[seat]
        counts.answers += 1
        view._read_up_to = len(self.log)
        if len(text) > self.game.longest_action:
            counts.unreadable += 1
            return self._refuse(seat, too_long(text, self.game.longest_action))
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
        """Ask again, or let the seat forfeit."""
        view = self.views[seat]
        rewards = self.no_rewards
        if self.invalid_penalty:
            rewards = (*rewards[:seat], -self.invalid_penalty, *rewards[seat + 1 :])
        if view._retry < self.retries:
            view._retry += 1
            view._why_again = reason
            self._pay(rewards)
            return Answer(None, False, reason, rewards)
        self.counts[seat].forfeits += 1
        return Answer(None, False, reason, self._take(seat, None, rewards))

    def expire(self, seat: int) -> Answer:
        """Let a seat that has not answered in time forfeit."""
        if seat not in self.pending:
            raise EpisodeOver(f"seat {seat} of {self.game.name} is not asked.")
        self.views[seat]._read_up_to = len(self.log)
        self.counts[seat].forfeits += 1
        return Answer(None, False, "No answer in time.", self._take(seat, None, self.no_rewards))

    def _take(self, seat: int, action: str | None, rewards: tuple[float, ...]) -> tuple[float, ...]:
        """Record an action, and advance the game when all are there. Returns all rewards, including those given."""
        view = self.views[seat]
        if view._retry:
            view._retry, view._why_again = 0, ""
        if rewards is not self.no_rewards:
            self._pay(rewards)  # before what the actions earn, whoever answers last: sums of floats depend on the order
        self._taken[seat] = action
        self.pending = tuple([other for other in self.pending if other != seat])
        while self._asked and not self.pending:
            earned = self._commit()
            if any(earned):
                self._pay(earned)
                rewards = tuple([float(one) + more for one, more in zip(earned, rewards, strict=True)])
            self._go_on()
        return rewards

    def _commit(self) -> Sequence[float]:
        """Give the game the actions of all seats that it asks, and return the reward of every seat."""
        game, asked, taken = self.game, self._asked, self._taken
        self._taken = {}
        self.actions.extend([(seat, taken[seat]) for seat in asked if seat not in game.forfeited])
        lost = [seat for seat in asked if taken.get(seat) is None and seat not in game.forfeited]
        paid: Sequence[float] = self.no_rewards
        if lost:
            game.forfeited = (*game.forfeited, *lost)
            paid = game.forfeit(lost)
            if not game.asked() or len(game.forfeited) == game.num_seats:
                return paid
        actions = {seat: action for seat in asked if (action := taken.get(seat)) is not None}
        if not game.forfeited:
            return game.commit(actions)
        earned = game.commit({seat: actions[seat] if seat in actions else game.default(seat) for seat in asked})
        return [
            float(one) + (0.0 if seat in game.forfeited else float(more))
            for seat, (one, more) in enumerate(zip(paid, earned, strict=True))
        ]

    def _pay(self, rewards: Sequence[float]) -> None:
        self.returns = [total + float(reward) for total, reward in zip(self.returns, rewards, strict=True)]

    def _go_on(self) -> None:
        """Deliver new lines and find out who is asked next."""
        news, forfeited = self.game.news, self.game.forfeited
        self.log.extend(news)
        news.clear()
        self._ask(() if len(forfeited) == self.game.num_seats else self.game.asked())
        self.is_over = not self._asked

    def _ask(self, asked: tuple[int, ...]) -> None:
        """Wait for the answers of seats; those that have forfeited are not waited for."""
        forfeited = self.game.forfeited
        self._asked = asked
        self.pending = tuple([seat for seat in asked if seat not in forfeited]) if forfeited else asked

    def winners(self) -> tuple[int, ...]:
        """Return the seats that have won: those of the game, without those that have forfeited."""
        forfeited = self.game.forfeited
        return tuple([seat for seat in self.game.winners() if seat not in forfeited])

    def is_truncated(self, seat: int) -> bool:
        """Return whether the game of a seat was cut off: it is over, though neither by the rules nor by a forfeit."""
        return self.is_over and seat not in self.game.forfeited and self.game.is_truncated(seat)

    def close(self) -> None:
        """Release what the game holds; the table is not to be used afterwards."""
        self.game.close()

    def instructions(self, seat: int) -> str:
        """Return the rules of the game and that of invalid answers, the same in every game."""
        again = {0: "", 1: " again once"}.get(self.retries, f" again up to {self.retries} times")
        rule = "If your answer is not a legal action, you "
        rule += f"are asked{again}; if you still give none, you forfeit" if again else "forfeit"
        return f"{self.game.instructions(seat)}\n{rule} the game and lose."

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the legal actions of a seat, beginning with one drawn for this game, seat and turn."""
        turn = self.counts[seat].answers - self.views[seat]._retry
        return from_drawn_place(tuple(self.game.legal_actions(seat)), self._order_salt, f"{seat} {turn}")

    def info(self, seat: int, *, action_is_valid: bool = True) -> dict[str, Any]:
        """Return the info table of one seat, keys and types as :class:`turngym.types.Info` has them."""
        game = self.game
        return {
            "anchor": game.anchor(seat),
            "legal_actions": self.views[seat].legal_actions,
            "action_is_valid": action_is_valid,
            "success": int(seat in self.winners()) if self.is_over else -1,
            "progress": float(game.progress(seat)),
            "score": float(game.score(seat)) if self.is_over else 0.0,
            "fault": "",
        }

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Resample what a seat cannot know, as :meth:`Game.swap_hidden` does, and continue from there.

        Seats that have already answered must remain asked, and their answers legal.

        Returns:
            Whether anything changed.
        """
        game, before = self.game, self.game.state()
        if not game.swap_hidden(seat, generator):
            return False
        asked = game.asked()
        if not self._taken and (seat in asked) == (seat in self._asked):
            self._ask(asked)
            return True
        if asked == self._asked and all(self._fits(*taken) for taken in self._taken.items()):
            return True
        game.load(before)
        return False

    def _fits(self, seat: int, action: str | None) -> bool:
        if action is None:
            return True
        try:
            return self.game.read(seat, action) == action
        except InvalidAction:
            return False

    # Snapshots.

    @property
    def _options(self) -> dict[str, Any]:
        return {"retries": self.retries, "invalid_penalty": self.invalid_penalty}

    def snapshot(self) -> bytes:
        """Return the exact state, generator included, as JSON."""
        return snapshots.to_bytes(self.game, self._options, self._content())

    def _content(self) -> dict[str, Any]:
        return {
            "generator": snapshots.generator_state(self.generator),
            "state": self.game.state(),
            "log": self.log,
            "actions": self.actions,
            "returns": self.returns,
            "counts": [asdict(counts) for counts in self.counts],
            "views": [[view._read_up_to, view._retry, view._why_again] for view in self.views],
            "pending": self.pending,
            "asked": self._asked,
            "taken": sorted(self._taken.items()),
            "is_over": self.is_over,
            "forfeited": self.game.forfeited,
            "order_salt": self._order_salt,
        }

    def restore(self, snapshot: bytes) -> None:
        """Bring back what :meth:`snapshot` saved, in this or another process.

        Raises:
            ConfigError: The bytes are not a snapshot, or one of another game or other options; nothing changes then.
        """
        content = snapshots.from_bytes(self.game, self._options, snapshot)
        before = self.snapshot() if self.log or self.pending else None
        generator, fresh = self.generator, self.generator.bit_generator.state
        try:
            self._adopt(content)
            require_same_content(json.loads(self.snapshot()), content)
            self._require_readable()
            self._try_to_go_on(content)
        except Exception as error:  # any error from a damaged state rejects it
            self.generator = generator
            if before is None:
                self._clear()
                generator.bit_generator.state = fresh
            else:
                self._adopt(json.loads(before))
            raise ConfigError(
                f"restore() of {self.game.name} got a damaged snapshot ({error_text(error)}): take a new one."
            ) from error

    def _try_to_go_on(self, content: Mapping[str, Any]) -> None:
        """Play one answer of every seat that is asked, then restore: a state without a successor is invalid."""
        for choice in (0, -1):
            for seat in self.pending:
                if seat in self.pending:
                    self.answer(seat, (self.views[seat].legal_actions or ("",))[choice])
                    self._require_readable()
            self._adopt(content)

    def _require_readable(self) -> None:
        """Raise unless everything that a seat may ask for can be told."""
        for seat, view in enumerate(self.views):
            self.info(seat)
            "".join([view.observation, *view.legal_actions])
        everyone, num_seats = set(self.game.everyone), self.game.num_seats
        if not everyone.issuperset([*self.pending, *self._asked, *self._taken, *(seat for seat, _ in self.actions)]):
            raise ValueError(f"the seats {self.pending}, {self._asked} and {list(self._taken)}")
        answered = {*self.pending, *self._taken, *self.game.forfeited}
        if not set(self.pending) <= set(self._asked) <= answered:
            raise ValueError(f"a game that asks {self._asked} waits for {self.pending} and has {list(self._taken)}")
        if len(self.counts) != num_seats or not are_rewards(self.returns, num_seats):
            raise ValueError(f"the returns {self.returns} and {len(self.counts)} counts")
        numbers = [number for counts in self.counts for number in asdict(counts).values()]
        numbers += [number for view in self.views for number in (view._read_up_to, view._retry)]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"the counts {self.counts}")
        asked = () if everyone == {*self.game.forfeited} else self.game.asked()
        if self._asked != asked:
            raise ValueError(f"the seats {self._asked} in a game that asks {asked}")
        if self.is_over != (not self.pending) or any(view._read_up_to > len(self.log) for view in self.views):
            raise ValueError(f"a game that is {'over' if self.is_over else 'running'} asks {self.pending}")
        if not all(text is None or isinstance(text, str) for _, text in [*self.actions, *self._taken.items()]):
            raise ValueError("an action that is no text")
        if type(self._order_salt) is not int or not 0 <= self._order_salt < 2**32:
            raise ValueError(f"the order {self._order_salt!r}")
        if not everyone.issuperset(self.game.forfeited):
            raise ValueError(f"the forfeits {self.game.forfeited}")

    def _adopt(self, content: Mapping[str, Any]) -> None:
        """Take over what a snapshot holds."""
        self.generator = snapshots.generator_of(content["generator"], self.generator)
        self._clear()
        self.game.news.clear()
        self.game.begin(self.generator, {})
        self.game.news.clear()
        snapshots.generator_of(content["generator"], self.generator)
        self.game.forfeited = tuple(content["forfeited"])
        self._order_salt = content["order_salt"]
        self.game.load(content["state"])
        self.log = [Line(tuple(to), text) for to, text in content["log"]]
        for view, (read_up_to, retry, why_again) in zip(self.views, content["views"], strict=True):
            view._read_up_to, view._retry, view._why_again = read_up_to, retry, why_again
        self.actions = [(seat, action) for seat, action in content["actions"]]
        self.returns = list(content["returns"])
        self.counts = [Counts(**counts) for counts in content["counts"]]
        self.pending, self._asked = tuple(content["pending"]), tuple(content["asked"])
        self._taken = dict(map(tuple, content["taken"]))
        self.is_over = bool(content["is_over"])
