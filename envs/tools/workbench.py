"""The sandbox session of one episode: started on first use, ended with the episode, rebuilt from its log."""

from __future__ import annotations

from functools import lru_cache

from turngym.envs.tools.sandbox import Limits, Result, Sandbox, SandboxSession, make_sandbox

_PRELUDE = "import random\nrandom.seed(0)\ndel random"
"""Run before everything else, so that equal code gets equal random numbers."""


@lru_cache(maxsize=8)
def shared_sandbox(backend: str, limits: Limits) -> Sandbox:
    """Return the sandbox of this process with these limits; it holds nothing open by itself.

    Raises:
        MissingExtra: There is none here.
    """
    return make_sandbox(backend, limits)


class Workbench:
    """Runs code piece by piece. When the variables are lost, everything starts afresh, including files.

    Args:
        sandbox: Source of sessions.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._session: SandboxSession | None = None
        self.log: list[str] = []
        """Code run since variables were last lost, from which they can be restored."""

    def run(self, code: str) -> Result:
        """Run a piece of code.

        Raises:
            SandboxError: The sandbox does not start.
        """
        if self._session is None:
            self._session = self._sandbox.session()
            for earlier in (_PRELUDE, *self.log):
                self._session.run(earlier)
        found = self._session.run(code)
        if found.lost_state:
            self.restart()
        else:
            self.log.append(code)
        return found

    def restart(self, log: tuple[str, ...] = ()) -> None:
        """End the session; the next starts by replaying the log."""
        self.close()
        self.log = list(log)

    def close(self) -> None:
        """End the session; the log stays, so that the next call continues where this one ended."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
