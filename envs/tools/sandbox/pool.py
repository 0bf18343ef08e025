"""Sandboxes that are started before they are needed, so that a session begins in no time."""

from __future__ import annotations

import threading
from collections import deque

from turngym.envs.tools.sandbox.host import SandboxError
from turngym.envs.tools.sandbox.protocol import Sandbox, Session
from turngym.errors import ConfigError


class Pool(Sandbox):
    """Keeps a number of started sessions of another sandbox ready; each is used by one and never again.

    Args:
        sandbox: What starts them.
        size: How many are kept ready, at least 1.

    Raises:
        ConfigError: The size is out of its range.
    """

    def __init__(self, sandbox: Sandbox, size: int = 4) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 1024:
            raise ConfigError(f"a pool keeps 1 to 1024 sandboxes ready, got {size!r}.")
        super().__init__(sandbox.limits)
        self.stops = sandbox.stops
        self._sandbox, self._size = sandbox, size
        self._ready: deque[Session] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._filler = threading.Thread(target=self._fill, name="sandbox pool", daemon=True)
        self._filler.start()

    def session(self) -> Session:
        """Return a session that has been started, or start one where none is ready.

        Raises:
            SandboxError: It does not start, or the pool is closed.
        """
        with self._changed:
            if self._is_closed:
                raise SandboxError("the pool of sandboxes is closed.")
            found = self._ready.popleft() if self._ready else None
            self._changed.notify_all()
        return self._sandbox.session() if found is None else found

    @property
    def num_ready(self) -> int:
        """How many sessions are ready."""
        return len(self._ready)

    def wait_until_full(self, seconds: float = 60.0) -> bool:
        """Wait until as many are ready as shall be; returns whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._ready) >= self._size, seconds)

    def _fill(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or len(self._ready) < self._size)
                if self._is_closed:
                    return
            try:
                made = self._sandbox.session()
            except SandboxError:
                with self._changed:  # whoever wants a session starts one, and gets the error
                    if self._changed.wait_for(lambda: self._is_closed, 1.0):
                        return
                continue
            with self._changed:
                if not self._is_closed:
                    self._ready.append(made)
                    self._changed.notify_all()
                    continue
            made.close()

    def close(self) -> None:
        """End the sessions that nobody has used; those in use go on."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._filler.join()
        while self._ready:
            self._ready.popleft().close()
        self._sandbox.close()
