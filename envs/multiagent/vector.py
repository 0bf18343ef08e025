"""Many tables at once: one batch of requests for the model, from every seat of every game.

    vector = TableVector("turngym/Werewolf-v0", 1000, seat_policy)
    vector.reset(seed=0)
    while vector.is_open:
        requests = vector.pending(policy="learner")
        vector.submit([(request.request_id, text) for request, text in ...])   # any subset, in any order
        for record in vector.drain(): ...

The game at a table is a function of the seed, the number of the table and the number of the episode: it depends neither
on the number of tables nor on the order or batches in which answers arrive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import PlayerError, whole_seed
from turngym.envs.multiagent.records import EpisodeRecord, StepRecord, ruleset_hash
from turngym.envs.multiagent.registration import make_game
from turngym.envs.multiagent.requests import Receipt, RequestBook
from turngym.envs.multiagent.seating import PlayerMaker, Seating, SeatPolicy
from turngym.envs.multiagent.table import SeatRequest, Table
from turngym.envs.multiagent.table_slot import TableSlot, to_bytes
from turngym.envs.vector.slots.boundary import close_quietly
from turngym.errors import ConfigError, EpisodeOver, error_text
from turngym.seeding import stream_seed


class TableVector:
    """Steps many tables of one game.

    Args:
        game: An id for :func:`turngym.envs.multiagent.make_game`, or a factory of the rules.
        num_tables: Number of tables, at least 1.
        seat_policy: From table, seat and role to the name of a policy or to a :class:`Player`, called at the start of
            every game; a text stands for one policy at all seats.
        scripted: Policies with built-in players, answered internally: name of the policy -> name of a player, or a
            factory. Policies with other names are asked through :meth:`pending`.
        retries: Retries after an invalid answer, before the seat forfeits.
        invalid_penalty: Penalty of a seat per invalid answer.
        auto_reset: Whether a table starts its next game in the next :meth:`pending`.

    Raises:
        ConfigError: An option is out of its range.

    >>> vector = TableVector("turngym/KuhnPoker-v0", 2, auto_reset=False)
    >>> vector.reset(seed=0)
    >>> while vector.is_open:
    ...     receipts = vector.submit([(one.request_id, one.legal_actions[0]) for one in vector.pending()])
    >>> [record.status for record in vector.drain_episodes()]
    ['ok', 'ok']
    """

    def __init__(
        self,
        game: str | Callable[[], Game],
        num_tables: int,
        seat_policy: str | SeatPolicy = "learner",
        *,
        scripted: Mapping[str, PlayerMaker] | None = None,
        retries: int = 1,
        invalid_penalty: float = 0.0,
        auto_reset: bool = True,
    ) -> None:
        if isinstance(num_tables, bool) or not isinstance(num_tables, int) or num_tables < 1:
            raise ConfigError(f"num_tables must be a whole number of at least 1, got {num_tables!r}.")
        self.auto_reset = auto_reset
        self._book = RequestBook()
        seating = Seating(seat_policy, scripted)
        self._slots: list[TableSlot] = []
        for index in range(num_tables):
            rules = make_game(game) if isinstance(game, str) else game()
            table = Table(rules, retries=retries, invalid_penalty=invalid_penalty)
            self._slots.append(TableSlot(index, table, seating, self._book, ruleset_hash(rules)))
        self.tables: tuple[Table, ...] = tuple(slot.hosted.table for slot in self._slots)
        """The tables, read-only; submit answers with :meth:`submit`."""
        self._to_begin: set[int] = set()
        self._touched: set[int] = set()
        self._counts = {"taken": 0, "invalid": 0, "expired": 0, "rejected": 0}
        self._ended = {"ok": 0, "agent_error": 0, "env_error": 0}
        self._episodes: list[EpisodeRecord] = []

    @property
    def num_tables(self) -> int:
        """Number of tables."""
        return len(self._slots)

    @property
    def is_open(self) -> bool:
        """True if a game is being played or will start in the next :meth:`pending`."""
        return bool(self._to_begin) or any(slot.is_playing for slot in self._slots)

    def reset(
        self, seed: int | Sequence[int] | None = None, options: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> None:
        """Drop every game and every record; each table starts its first game in the next :meth:`pending`.

        Args:
            seed: One number from which the seed of every table follows, or the seed of each table's first game. Tables
                with equal seeds start the same game. None uses entropy from the operating system.
            options: Argument of the game's ``begin``, for all tables or one mapping per table.

        Raises:
            ConfigError: A seed is not a whole number, or there are not as many seeds or options as tables.
        """
        if seed is None or not isinstance(seed, Sequence | np.ndarray):
            base = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else whole_seed(seed)
            seeds = [stream_seed("table", base, i) for i in range(self.num_tables)]
        else:
            seeds = list(map(whole_seed, seed))
        each = list(options) if isinstance(options, Sequence) else [options] * self.num_tables
        for name, given in (("seed", seeds), ("options", each)):
            if len(given) != self.num_tables:
                raise ConfigError(
                    f"{name} of reset() needs one entry per table: got {len(given)} for {self.num_tables}."
                )
        for slot, first, of_table in zip(self._slots, seeds, each, strict=True):
            slot.reset(first, of_table)
        self._episodes.clear()
        self._touched.clear()
        self._to_begin = set(range(self.num_tables))

    def close(self) -> None:
        """Release what the games hold, even if one of them raises; the vector is not to be used afterwards."""
        close_quietly(*self.tables)

    def abandon(self) -> None:
        """Drop all games and records without beginning new ones, as after an interrupt; call :meth:`begin` next."""
        for slot in self._slots:
            slot.reset(0, None)
        self._episodes.clear()
        self._touched.clear()
        self._to_begin.clear()

    def drop(self, table: int) -> None:
        """Drop the game at a table, without a record; call :meth:`begin` next."""
        self._slot(table).reset(0, None)

    def begin(self, table: int, seed: int, options: Mapping[str, Any] | None = None) -> None:
        """Start a given game at one table immediately; the current game there is dropped without a record.

        Args:
            table: Number of the table.
            seed: The seed of the game, as records name it.
            options: Argument of the game's ``begin``.

        Raises:
            ConfigError: The seed is not a whole number, or the options of the game or the seating are wrong.
        """
        slot, number = self._slot(table), whole_seed(seed)
        self._to_begin.discard(table)
        slot.options = options
        slot.begin(number)
        self._settle(slot)

    def pending(self, policy: str | None = None, limit: int | None = None) -> list[SeatRequest]:
        """Return the open questions in the order of tables and seats, after beginning the games that are due.

        Requests stay open until they are answered: calling this again returns the same ones.

        Args:
            policy: Only those for this policy.
            limit: Maximum number of requests.

        Raises:
            ConfigError: The options of the game or the seating are wrong; the remaining games start next time.
        """
        if limit is not None and limit < 0:
            raise ConfigError(f"limit of pending() must be at least 0, got {limit}.")
        for index in sorted(self._to_begin):
            slot = self._slots[index]
            self._to_begin.discard(index)
            slot.begin(slot.next_seed())
            self._settle(slot)
        return self._book.waiting(policy, limit)

    def submit(self, answers: Iterable[tuple[int, str]]) -> list[Receipt]:
        """Take answers, any subset of the open questions in any order.

        Args:
            answers: Pairs of request id and text. An id that is unknown, used or withdrawn has no effect.

        Raises:
            TypeError: An answer is not text, or an id is not a number; then none of them has been taken.
        """
        given = [(_number(request_id), text) for request_id, text in answers]
        for request_id, text in given:
            if not isinstance(text, str):
                raise TypeError(f"the answer to request {request_id!r} is {type(text).__name__}: pass a str.")
        receipts = [self._take(request_id, text) for request_id, text in given]
        self._go_on()
        return receipts

    def expire(self, request_ids: Iterable[int]) -> list[Receipt]:
        """Let seats that have not answered in time forfeit.

        Raises:
            TypeError: An id is not a number; then none of them has been taken.
        """
        receipts = [self._take(request_id, None) for request_id in list(map(_number, request_ids))]
        self._counts["expired"] += sum(receipt.is_taken for receipt in receipts)
        self._go_on()
        return receipts

    def _take(self, request_id: int, text: str | None) -> Receipt:
        request = self._book.redeem(request_id)
        if request is None:
            self._counts["rejected"] += 1
            return Receipt(request_id, False, False, self._book.refusal(request_id))
        self._touched.add(request.table)
        is_valid, reason = self._slots[request.table].take(request, text)
        self._counts["taken"] += 1
        self._counts["invalid"] += not is_valid
        return Receipt(request_id, True, is_valid, reason)

    def _go_on(self) -> None:
        """Advance the tables that got an answer, always in the same order."""
        touched, self._touched = sorted(self._touched), set()
        for index in touched:
            self._slots[index].play_on()
            self._settle(self._slots[index])

    def _settle(self, slot: TableSlot) -> None:
        """Fetch the record of a game that has ended."""
        if slot.episodes:
            self._episodes += slot.episodes
            for record in slot.episodes:
                self._ended[record.status] += 1
            slot.episodes.clear()
        if self.auto_reset and not slot.is_playing:
            self._to_begin.add(slot.index)

    def drain(self) -> list[StepRecord]:
        """Return and remove the answers whose reward is complete, in the order of tables."""
        found: list[StepRecord] = []
        for slot in self._slots:
            if slot.steps:
                found += slot.steps
                slot.steps = []
        return found

    def drain_episodes(self) -> list[EpisodeRecord]:
        """Return and remove the games that have ended, in the order of tables and episodes."""
        found, self._episodes = self._episodes, []
        found.sort(key=lambda record: (record.table, record.episode))
        return found

    def stats(self) -> dict[str, int]:
        """Return counts since this object was made.

        Returns:
            ``taken``, ``invalid``, ``expired`` and ``rejected`` answers from outside; games that ended as ``ok``,
            ``agent_error`` and ``env_error``.
        """
        return {**self._counts, **self._ended}

    def snapshot(self, table: int) -> bytes:
        """Return the exact state of the game at one table, players and generators included, as JSON."""
        slot = self._slot(table)
        if slot.episode < 0:
            raise EpisodeOver(f"snapshot() of table {table} before its first game: call pending() first.")
        return to_bytes(slot.state())

    def restore(self, table: int, snapshot: bytes) -> None:
        """Restore a saved game, at this or another table; its open requests get new ids.

        Raises:
            ConfigError: The bytes are not a snapshot, or one of another game or seating; nothing has changed then.
            PlayerError: A player cannot restore its memory; there is then no game at the table.
        """
        slot = self._slot(table)
        before = None if slot.episode < 0 else slot.state()
        try:
            state = json.loads(snapshot)
            slot.load(state)
        except (ConfigError, PlayerError):
            raise
        except Exception as error:  # untrusted bytes: anything may be raised
            if before is not None and slot.state() != before:
                slot.load(before)
            text = error_text(error)
            raise ConfigError(f"restore() of table {table} got bytes that are not a snapshot ({text}).") from error
        self._to_begin.discard(table)
        self._settle(slot)

    def _slot(self, table: int) -> TableSlot:
        if isinstance(table, bool) or not isinstance(table, int) or not 0 <= table < self.num_tables:
            raise ConfigError(f"there is no table {table!r}: the tables are 0 to {self.num_tables - 1}.")
        return self._slots[table]


def _number(request_id: object) -> int:
    if isinstance(request_id, bool) or not isinstance(request_id, int | np.integer):
        raise TypeError(f"a request id is a number, got {request_id!r}: pass that of a SeatRequest.")
    return int(request_id)
