"""Sandboxes started in advance, so that a session starts immediately."""

from __future__ import annotations

from turngym.envs.tools.sandbox.host import SandboxError
from turngym.envs.tools.sandbox.protocol import Sandbox, SandboxSession
from turngym.envs.vector.engine_pool import EnginePool, EnginesBusy
from turngym.errors import ConfigError

_MAX_SIZE = 1024


class _Started:
    """An unused session, as an engine of a pool."""

    def __init__(self, session: SandboxSession) -> None:
        self.session = session
        self.close = session.close

    def is_alive(self) -> bool:
        return True

    def memory_mib(self) -> float:
        return 0.0


class Pool(Sandbox):
    """Keeps a number of started sessions of another sandbox ready; each is used by one and never again.

    Args:
        sandbox: Factory.
        size: Number kept ready, at least 1.

    Raises:
        ConfigError: The size is out of its range.
    """

    def __init__(self, sandbox: Sandbox, size: int = 4) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _MAX_SIZE:
            raise ConfigError(f"a pool keeps 1 to {_MAX_SIZE} sandboxes ready, got {size!r}.")
        super().__init__(sandbox.limits)
        self.stops = sandbox.stops
        self._sandbox = sandbox
        self._engines = EnginePool(
            lambda: _Started(sandbox.session()), spares=size, starts_ahead=True, max_engines=2 * _MAX_SIZE
        )

    def session(self) -> SandboxSession:
        """Return a session that has been started, or start one where none is ready.

        Raises:
            SandboxError: It does not start, or the pool is closed.
        """
        try:
            return self._engines.take().session
        except EnginesBusy:
            raise SandboxError("the pool of sandboxes is closed.") from None

    @property
    def num_ready(self) -> int:
        """Number of sessions that are ready."""
        return self._engines.num_idle

    def wait_until_full(self, seconds: float = 60.0) -> bool:
        """Wait until ``size`` sessions are ready; return whether they are."""
        return self._engines.wait_until_warm(seconds)

    def close(self) -> None:
        """End the unused sessions; those in use continue."""
        self._engines.close()
        self._sandbox.close()
