"""One table of a vector: its games one after another, its open requests, records and faults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from turngym.envs.multiagent.hosted import HostedTable, PlayerError
from turngym.envs.multiagent.records import EpisodeRecord, Status, StepRecord, episode_record, faulted_record
from turngym.envs.multiagent.requests import RequestBook
from turngym.envs.multiagent.seating import Seating
from turngym.envs.multiagent.table import SeatRequest, Table
from turngym.errors import ConfigError
from turngym.loading import raised_text
from turngym.seeding import stream_seed
from turngym.types import Info, JSONValue


@dataclass(slots=True)
class _OpenStep:
    """An answer whose reward is not complete yet."""

    request: SeatRequest
    text: str
    action: str | None
    is_valid: bool
    reason: str


class TableSlot:
    """Plays the games of one table. An exception in the rules or a player ends only the game at this table.

    Args:
        index: Number of the table.
        table: The table.
        seating: Players by seat.
        book: Distributor of questions.
        ruleset: Hash of the rules.
    """

    def __init__(self, index: int, table: Table, seating: Seating, book: RequestBook, ruleset: str) -> None:
        self.index, self._seating, self._book, self._ruleset = index, seating, book, ruleset
        self.hosted = HostedTable(table)
        self.episode, self.is_playing = -1, False
        self.options: Mapping[str, Any] | None = None
        self.steps: list[StepRecord] = []
        """Finished answers that have not been fetched yet."""
        self.episodes: list[EpisodeRecord] = []
        """Finished games that have not been fetched yet."""
        self._first_seed = self.seed = 0
        self._forget()

    def _forget(self) -> None:
        count = self.hosted.table.game.num_seats
        self.roles: tuple[str, ...] = ("",) * count
        self.policies: list[str] = [""] * count
        self._turns = [0] * count
        self._asked: dict[int, SeatRequest] = {}
        self._open: dict[int, _OpenStep] = {}

    def reset(self, seed: int, options: Mapping[str, Any] | None) -> None:
        """Forget everything; the first game is that of ``seed``, the later ones follow from it."""
        self.withdraw()
        self._seating.release(self.index)
        self.steps.clear()
        self.episodes.clear()
        self.episode, self.is_playing = -1, False
        self._first_seed, self.options = seed, options

    def next_seed(self) -> int:
        """Return the seed of the next game."""
        following = self.episode + 1
        return self._first_seed if following == 0 else stream_seed("next game", self._first_seed, following)

    def withdraw(self) -> None:
        """Close the open questions."""
        self._book.withdraw(self._asked.values())
        self._asked.clear()

    def begin(self, seed: int) -> None:
        """Start the next game, and play it on.

        Raises:
            ConfigError: The options of the game or the seating are wrong.
        """
        self.withdraw()
        self._forget()
        self.episode += 1
        self.seed, self.is_playing = seed, True
        game = self.hosted.table.game
        try:
            self.hosted.begin(seed, self.options)
            self.roles = tuple(map(game.role, game.everyone))
        except ConfigError:
            self.is_playing = False
            raise
        except Exception as error:  # game code: anything may be raised
            self._fail("env_error", raised_text(error))
            return
        self.is_playing = False  # the seating is user code and may raise
        self.policies, players = self._seating.at(game, self.index, self.roles)
        self.is_playing = True
        try:
            self.hosted.seat(players, seed)
        except PlayerError as error:
            self._fail("agent_error", str(error), error.seat)
            return
        self.play_on()

    def play_on(self) -> None:
        """Let the built-in players answer, then ask the others or record the end of the game."""
        if not self.is_playing:
            return
        try:
            self.hosted.play_on()
            if self.hosted.table.is_over:
                self._finish()
            else:
                self._ask()
        except PlayerError as error:
            self._fail("agent_error", str(error), error.seat)
        except Exception as error:  # game code: anything may be raised
            self._fail("env_error", raised_text(error))

    def take(self, request: SeatRequest, text: str | None) -> tuple[bool, str]:
        """Take an external answer; None if it did not come in time. Call :meth:`play_on` next.

        Returns:
            Whether it was valid, and why not.
        """
        seat = request.seat
        del self._asked[seat]
        try:
            answer = self.hosted.expire(seat) if text is None else self.hosted.answer(seat, text)
        except Exception as error:  # game code: anything may be raised
            self._open[seat] = _OpenStep(request, text or "", None, False, "")
            self._fail("env_error", raised_text(error))
            return False, f"the rules raised {raised_text(error)}"
        self._turns[seat] += 1
        self._open[seat] = _OpenStep(request, text or "", answer.action, answer.is_valid, answer.reason)
        return answer.is_valid, answer.reason

    def _ask(self) -> None:
        """Issue a request for every seat that has to answer and has none."""
        for seat in sorted(self.hosted.table.pending):
            if seat in self._asked:
                continue
            if seat in self._open:
                self._close(seat)
            self._asked[seat] = self._book.issue(
                self.hosted,
                seat,
                table=self.index,
                episode=self.episode,
                policy=self.policies[seat],
                turn=self._turns[seat],
            )

    def _close(self, seat: int, *, is_over: bool = False, fault: str | None = None) -> None:
        """Record an answer whose reward is complete."""
        is_truncated = fault is not None or (is_over and self.hosted.table.is_truncated(seat))
        step = self._open.pop(seat)
        info: Mapping[str, Any] = (
            self.hosted.table.info(seat, action_is_valid=step.is_valid)
            if fault is None
            else Info(
                anchor="",
                legal_actions=(),
                action_is_valid=step.is_valid,
                success=0,
                progress=0.0,
                score=0.0,
                fault=fault,
            )
        )
        self.steps.append(
            StepRecord(
                request=step.request,
                text=step.text,
                action=step.action,
                is_valid=step.is_valid,
                reason=step.reason,
                reward=self.hosted.rewards[seat],
                terminated=is_over and not is_truncated,
                truncated=is_truncated,
                info=info,
            )
        )

    def _finish(self) -> None:
        record = episode_record(
            self.hosted.table, self.index, self.episode, self.seed, tuple(self.policies), self._ruleset
        )
        for seat in sorted(self._open):
            self._close(seat, is_over=True)
        self.episodes.append(record)
        self.is_playing = False
        self._seating.release(self.index)

    def _fail(self, status: Status, fault: str, seat: int = -1) -> None:
        """End a game that failed."""
        for open_seat in sorted(self._open):
            self._close(open_seat, fault=fault)
        self.episodes.append(
            replace(
                faulted_record(self.hosted.table, self._ruleset, status, fault),
                table=self.index,
                episode=self.episode,
                seed=self.seed,
                policies=tuple(self.policies),
                roles=self.roles,
                fault_seat=seat,
            )
        )
        self.withdraw()
        self.is_playing = False
        self._seating.release(self.index)

    # Snapshots.

    def state(self) -> JSONValue:
        """Return the game that is being played, as JSON can hold it."""
        return {
            "hosted": self.hosted.state(),
            "episode": self.episode,
            "seed": self.seed,
            "first_seed": self._first_seed,
            "options": self.options,
            "is_playing": self.is_playing,
            "roles": self.roles,
            "policies": self.policies,
            "turns": self._turns,
            "open": [asdict(self._open[seat]) for seat in sorted(self._open)],
        }

    def load(self, state: JSONValue) -> None:
        """Bring back what :meth:`state` returned; questions that were open get new ids.

        Raises:
            ConfigError: The state belongs to another game or seating; nothing has changed then.
            PlayerError: A player cannot restore its memory; there is then no game.
        """
        roles, policies, turns = tuple(state["roles"]), list(state["policies"]), list(state["turns"])
        numbers = state["episode"], state["seed"], state["first_seed"]
        options, is_playing, opened = state["options"], state["is_playing"], list(map(self._opened, state["open"]))
        players = self._seating.named(self.hosted.table.game, self.index, policies, roles)
        try:
            self.hosted.load(state["hosted"], players)
        except PlayerError:
            self.withdraw()
            self._forget()
            self.is_playing = False
            raise
        self.withdraw()
        self._forget()
        self.roles, self.policies, self._turns = roles, policies, turns
        self.episode, self.seed, self._first_seed = numbers
        self.options, self.is_playing = options, is_playing
        self._open = {step.request.seat: step for step in opened}
        self.play_on()

    def _opened(self, step: JSONValue) -> _OpenStep:
        """Return an answer of a snapshot, as one that was given at this table."""
        request = {**step["request"], "table": self.index}
        for name in ("new_lines", "legal_actions"):
            request[name] = tuple(request[name])
        return _OpenStep(**{**step, "request": SeatRequest(**request)})


def to_bytes(state: JSONValue) -> bytes:
    """Return a state as the bytes of a snapshot."""
    return json.dumps({"format": 1, **state}, sort_keys=True).encode()
