"""Looks after the servers of a pool: notices which are gone, starts our own again, takes back those that returned."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.rollout_servers.launcher import OwnServer
from turngym.agents.models.rollout_servers.members import STALE, Member, State
from turngym.agents.models.rollout_servers.pool import ServerPool
from turngym.errors import ModelError

WRONG_WEIGHTS = "weights"
"""Kind of the failure of a server that computes with other weights than it was given."""
_HEALTH_SECONDS = 30.0
_MOST_WRONG = 3


class Keeper:
    """Monitors the servers of a pool, each in a separate thread, until it is closed.

    Args:
        pool: The pool.
        own: Those of its servers that we start, in the order of its members; empty if others start them.
    """

    def __init__(self, pool: ServerPool, own: Sequence[OwnServer] = ()) -> None:
        self.pool = pool
        self._own: list[OwnServer | None] = [*own] or [None] * len(pool.members)
        self._closing = threading.Event()
        self._charges = [
            _Charge(pool, member, server, self._closing) for member, server in zip(pool.members, self._own, strict=True)
        ]
        self._threads = [
            threading.Thread(target=self._keep, args=(charge,), name="served-keeper", daemon=True)
            for charge in self._charges
        ]

    def open(self) -> None:
        """Wait until every server answers, or has no time left to, and look after them from now on.

        Raises:
            ModelError: None answers, or one refuses to be used.
        """
        with ThreadPoolExecutor(len(self._charges), thread_name_prefix="served-open") as threads:
            try:
                list(threads.map(lambda charge: charge.await_first_answer(), self._charges))
            except BaseException:
                self._closing.set()  # an interrupt must not wait for servers to start
                raise
        if not self.pool.has_any:
            raise ModelError(self.pool.why_none())
        for thread in self._threads:
            thread.start()

    def _keep(self, charge: _Charge) -> None:
        while not self._closing.wait(self.pool.config.poll):
            charge.look()
            if charge.member.state is State.GIVEN_UP:
                return

    def close(self) -> None:
        """Stop monitoring and shut down the servers started here."""
        self._closing.set()
        for server in filter(None, self._own):
            server.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()


class _Charge:
    """One server that is looked after."""

    def __init__(self, pool: ServerPool, member: Member, own: OwnServer | None, closing: threading.Event) -> None:
        self.pool = pool
        self.member = member
        self.own = own
        self.closing = closing
        self.restarts = 0
        self.wrong = 0
        self.silent_until = time.monotonic() + pool.config.start_timeout
        """When a server of ours that does not answer is ended and started again."""

    def await_first_answer(self) -> None:
        """Wait until the server answers; one of somebody else's must do so at once."""
        while not self.closing.is_set():
            try:
                self.member.server.check_health(_HEALTH_SECONDS)
                self.member.server.check_routes(self.pool.config.timeout)
            except CallFailed as failure:
                self.note(failure)
                if not failure.is_retried:
                    raise ModelError(
                        f"the server {self.member.server.url} cannot be used ({failure}): vLLM's needs "
                        "VLLM_SERVER_DEV_MODE=1, --enable-scale-out and the right key."
                    ) from failure
                if self.own is None or self.own.has_ended or time.monotonic() > self.silent_until:
                    return
                self.closing.wait(min(1.0, self.pool.config.poll))
            else:
                self.member.state = State.IN_USE
                return

    def note(self, failure: CallFailed) -> None:
        """Remember why the server cannot be used."""
        log = f" (its log {self.own.log} ends: {self.own.last_words()})" if self.own and self.own.has_ended else ""
        self.member.reason = f"{failure}{log}"

    def look(self) -> None:
        """Check a server in use; try to take back one that was left out."""
        if self.member.state is State.LOST:
            self._bring_back()
            return
        try:
            if self.own is not None and self.own.has_ended:
                raise CallFailed("ended", "its process has ended")
            self.member.server.check_health(_HEALTH_SECONDS)
        except CallFailed as failure:
            self.pool.lose(self.member, failure)
        self.silent_until = time.monotonic() + 2 * _HEALTH_SECONDS

    def _bring_back(self) -> None:
        if self.own is not None and (self.own.has_ended or time.monotonic() > self.silent_until):
            self._restart(self.own)
            return
        try:
            self.member.server.check_health(_HEALTH_SECONDS)
            self.silent_until = time.monotonic() + self.pool.config.sync_timeout
            self.pool.bring(self.member)
        except CallFailed as failure:
            self.note(failure)
            is_wrong = failure.kind in (WRONG_WEIGHTS, STALE) or not failure.is_retried
            self.wrong = self.wrong + 1 if is_wrong else 0
            if self.wrong >= _MOST_WRONG:
                self._give_up()
        else:
            self.wrong = 0
            with self.pool.changed:
                self.pool.counts.returns += 1

    def _restart(self, own: OwnServer) -> None:
        if self.restarts >= self.pool.config.restarts:
            self._give_up()
            return
        self.restarts += 1
        server = own.start()
        if self.closing.is_set():  # it was closed meanwhile
            own.stop()
        self.silent_until = time.monotonic() + self.pool.config.start_timeout
        with self.pool.changed:
            self.member.server, self.member.label = server, ""
            self.pool.counts.restarts += 1

    def _give_up(self) -> None:
        with self.pool.changed:
            self.member.state = State.GIVEN_UP
            self.pool.changed.notify_all()
