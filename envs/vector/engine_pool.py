"""A pool of engines: processes that are slow to start, shared by environments and reused.

A Java runtime, a planner, a sandbox, a browser: an environment leases a seat in such an engine. A pool starts engines
on demand or in advance, keeps some idle ones warm, leases no seats in engines that have ended or grown too large, and
ends all of them when it is closed. Engines must end by themselves when this process is killed; the pool cannot ensure
that.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from turngym.arithmetic import float_sum
from turngym.errors import ConfigError, TurngymError

_RETRY_SECONDS = 1.0


class EnginesBusy(TurngymError, RuntimeError):
    """All engines that a pool may have are in use, or the pool is closed."""


class Engine(Protocol):
    """Interface of an engine for a pool."""

    def is_alive(self) -> bool:
        """Return whether it can be used."""

    def memory_mib(self) -> float:
        """Return the memory that it uses."""

    def close(self) -> None:
        """End it; doing it twice is harmless."""


EngineT = TypeVar("EngineT", bound=Engine)


class _Host(Generic[EngineT]):
    """An engine of a pool, from before it starts."""

    def __init__(self) -> None:
        self.engine: EngineT | None = None
        self.started = threading.Event()
        self.taken = 0
        self.is_retired = False

    def is_usable(self) -> bool:
        """Return whether seats may be leased in it; a starting engine is assumed usable."""
        return not self.is_retired and (self.engine is None or self.engine.is_alive())


class Lease(Generic[EngineT]):
    """A seat in an engine, until it is released or forgotten.

    Args:
        pool: Pool that the seat belongs to.
        host: The engine, started.
    """

    def __init__(self, pool: EnginePool[EngineT], host: _Host[EngineT]) -> None:
        assert host.engine is not None
        self.engine: EngineT = host.engine
        """The engine."""
        self._pool, self._host = pool, host
        self._forgotten = weakref.finalize(self, pool._dropped.append, host)  # by the garbage collector: takes no lock
        self._forgotten.atexit = False

    def release(self) -> None:
        """Release the seat; calling it again has no effect."""
        if self._forgotten.detach() is not None:
            self._pool._give_back(self._host)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release it."""
        self.release()


class EnginePool(Generic[EngineT]):
    """Engines of one kind, for the environments of this process; safe to use from several threads.

    :attr:`counts` says how many were ``started``, ``leased``, found ``lost`` (they had ended) and ``retired`` (they
    had grown beyond the limit).

    Args:
        start: Starts an engine, and returns when it can be used.
        seats: Maximum number of leases per engine.
        spares: Number of unleased engines kept warm.
        starts_ahead: Whether so many are started in advance too, by a thread, so that a lease need not wait.
        max_engines: Maximum number of engines.
        memory_limit_mib: Memory above which an engine gets no new leases, and ends with its last one.

    Raises:
        ConfigError: A limit is out of its range.
    """

    def __init__(
        self,
        start: Callable[[], EngineT],
        *,
        seats: int = 1,
        spares: int = 1,
        starts_ahead: bool = False,
        max_engines: int = 64,
        memory_limit_mib: float | None = None,
    ) -> None:
        for name, value, least in (("seats", seats, 1), ("spares", spares, 0), ("max_engines", max_engines, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"{name} of a pool of engines must be an integer of at least {least}, got {value!r}.")
        self.seats, self.spares, self.max_engines = seats, spares, max_engines
        self.memory_limit_mib = memory_limit_mib
        self.counts: Counter[str] = Counter()
        self.process = os.getpid()
        """The process that it belongs to; a fork of that must make its own pool."""
        self._start = start
        self._hosts: list[_Host[EngineT]] = []
        self._dropped: deque[_Host[EngineT]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._filler: threading.Thread | None = None
        if starts_ahead:
            self._filler = threading.Thread(target=self._fill, name="turngym engines", daemon=True)
            self._filler.start()

    # Leases.

    def lease(self) -> Lease[EngineT]:
        """Return a seat, in an engine that has a free one or in a new one.

        Raises:
            EnginesBusy: There are too many engines already, or the pool is closed.
            Exception: Exceptions of starting an engine.
        """
        while True:
            host, is_new = self._take_seat()
            if is_new:
                self._bring_up(host)
            host.started.wait()
            if host.engine is not None and host.engine.is_alive():
                with self._changed:
                    self.counts["leased"] += 1
                return Lease(self, host)
            self._give_back(host)
            if is_new:
                raise EnginesBusy("an engine has ended as soon as it was started.")

    def take(self) -> EngineT:
        """Return an idle engine and remove it from the pool; the caller must end it.

        Raises:
            EnginesBusy: As :meth:`lease`.
            Exception: Exceptions of starting an engine.
        """
        lease = self.lease()
        lease._forgotten.detach()
        with self._changed:
            self._forget(lease._host)
        return lease.engine

    @property
    def engines(self) -> tuple[EngineT, ...]:
        """The engines that are running."""
        with self._changed:
            return tuple(host.engine for host in self._hosts if host.engine is not None)

    @property
    def num_idle(self) -> int:
        """Number of ready engines without a lease."""
        with self._changed:
            return sum(not host.taken and host.engine is not None for host in self._hosts)

    def wait_until_warm(self, seconds: float = 60.0) -> bool:
        """Wait until ``spares`` engines are idle; return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: self.num_idle >= self.spares, seconds)

    def memory_mib(self) -> float:
        """Return the memory of all engines."""
        return float_sum(engine.memory_mib() for engine in self.engines)

    def close(self) -> None:
        """End all engines, those in use too; there are no leases after that."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._filler is not None:
            self._filler.join()
        for engine in self.engines:
            engine.close()
        with self._changed:
            self._hosts.clear()

    # Hosts.

    def _take_seat(self) -> tuple[_Host[EngineT], bool]:
        """Take a seat; returns whether its engine has to be started first."""
        with self._changed:
            if self._is_closed:
                raise EnginesBusy("the pool of engines is closed.")
            self._look_after_hosts()
            # The fullest first, so that others can end; those that still start last.
            for host in sorted(self._hosts, key=lambda each: (each.engine is None, -each.taken)):
                if host.taken < self.seats and host.is_usable():
                    host.taken += 1
                    return host, False
            if len(self._hosts) >= self.max_engines:
                raise EnginesBusy(f"all {self.max_engines} engines are in use: close environments, or allow more.")
            host = self._add()
            host.taken = 1
            return host, True

    def _add(self) -> _Host[EngineT]:
        host: _Host[EngineT] = _Host()
        self._hosts.append(host)
        return host

    def _bring_up(self, host: _Host[EngineT]) -> None:
        """Start the engine of a host, which others may be waiting for; one that comes too late ends at once."""
        try:
            engine = self._start()
        except BaseException:
            with self._changed:
                self._give_up(host)
            raise
        with self._changed:
            self.counts["started"] += 1
            if is_late := self._is_closed:
                self._give_up(host)
            else:
                host.engine = engine
                host.started.set()
                self._changed.notify_all()
        if is_late:
            engine.close()
            raise EnginesBusy("the pool of engines was closed while an engine started.")

    def _give_up(self, host: _Host[EngineT]) -> None:
        """Notify the waiters for an engine that it will not start; the lock is held."""
        host.is_retired = True
        self._forget(host)
        host.started.set()

    def _give_back(self, host: _Host[EngineT]) -> None:
        limit = self.memory_limit_mib
        is_large = limit is not None and host.engine is not None and host.engine.memory_mib() > limit
        with self._changed:
            if is_large and not host.is_retired:
                host.is_retired = True
                self.counts["retired"] += 1
            host.taken -= 1
            self._look_after_hosts()

    def _look_after_hosts(self) -> None:
        """Close engines that have ended, are retired, or exceed the spares; the lock is held."""
        while self._dropped:
            self._dropped.popleft().taken -= 1
        idle = 0
        for host in list(self._hosts):
            if host.engine is None:
                continue
            if not host.engine.is_alive():
                self.counts["lost"] += 1
                self._end(host)
            elif not host.taken:
                idle += 1
                if host.is_retired or idle > self.spares:
                    self._end(host)

    def _end(self, host: _Host[EngineT]) -> None:
        self._forget(host)
        if host.engine is not None:
            host.engine.close()

    def _forget(self, host: _Host[EngineT]) -> None:
        with contextlib.suppress(ValueError):
            self._hosts.remove(host)
        self._changed.notify_all()

    # Engines in advance.

    def _lacks(self) -> bool:
        return sum(not host.taken for host in self._hosts) < self.spares and len(self._hosts) < self.max_engines

    def _fill(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._lacks())
                if self._is_closed:
                    return
                host = self._add()
            try:
                self._bring_up(host)
            except Exception:  # the next lease starts one, and gets the error
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed, _RETRY_SECONDS)
