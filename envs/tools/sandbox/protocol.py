"""Definition of a sandbox: limits, results, sessions, and the backends by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Literal, Self

from turngym.errors import ConfigError, MissingExtra
from turngym.registry import Registry

Status = Literal["ok", "error", "timeout", "output", "died"]
"""Outcome of a call: success, exception, timeout, excessive output, or a killed process."""


@dataclass(frozen=True)
class Limits:
    """Limits of code.

    Args:
        wall_seconds: Time of one call.
        cpu_seconds: Processor time of all calls of a session.
        memory_mib: Memory of a process, and of all together where the backend can say so.
        processes: Processes and threads at once.
        output_kib: Standard output and error of one call together.
        file_mib: Size of one file.
        scratch_mib: Size of the scratch folder.
        open_files: Open files of a process.
    """

    wall_seconds: float = 10.0
    cpu_seconds: int = 60
    memory_mib: int = 512
    processes: int = 32
    output_kib: int = 64
    file_mib: int = 16
    scratch_mib: int = 32
    open_files: int = 64

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**6:
                raise ConfigError(f"the limit {name} of a sandbox must be between 0 and a million, got {value!r}.")


@dataclass(frozen=True)
class Result:
    """Result of a call.

    Args:
        status: End of the game.
        stdout: Output, truncated at the limit.
        stderr: The same for errors, the traceback included.
        value: The value of its last line, as ``repr`` shows it, where that is an expression; empty for None.
        seconds: Duration.
        lost_state: Whether the session's variables are gone, so that the next call starts again.
    """

    status: Status
    stdout: str = ""
    stderr: str = ""
    value: str = ""
    seconds: float = 0.0
    lost_state: bool = False


class SandboxSession(ABC):
    """Code whose variables and files are kept from call to call."""

    @abstractmethod
    def run(self, code: str, wall_seconds: float | None = None) -> Result:
        """Run Python code; always returns a result.

        Args:
            code: The code.
            wall_seconds: Time for this call; that of the limits unless given.

        Raises:
            SandboxError: The sandbox itself does not start.
        """

    @abstractmethod
    def close(self) -> None:
        """End everything that the session has started, and remove its files; may be called again."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


class Sandbox(ABC):
    """Makes sessions; safe to use from several threads.

    Args:
        limits: Limits of code.
    """

    stops: str = ""
    """Description of what this backend prevents and what it does not."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    @abstractmethod
    def session(self) -> SandboxSession:
        """Return a fresh session.

        Raises:
            SandboxError: The sandbox does not start.
        """

    def run(self, code: str, wall_seconds: float | None = None) -> Result:
        """Run code in a separate session."""
        with self.session() as session:
            return session.run(code, wall_seconds)

    def close(self) -> None:  # noqa: B027  (a backend without a pool has nothing to close)
        """End the sessions kept ready."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


SANDBOXES: Registry[type[Sandbox]] = Registry("sandbox", "turngym.envs.tools.sandbox", extra="sandbox")
_STRONGEST_FIRST = ("bubblewrap", "docker")


def make_sandbox(backend: str = "auto", limits: Limits | None = None, **options: Any) -> Sandbox:
    """Return a sandbox.

    Args:
        backend: ``"bubblewrap"``, ``"docker"``, or ``"auto"`` for the first of them that works here.
        limits: Limits of code.
        options: Options of the backend, such as ``runtime="runsc"`` for docker.

    Raises:
        UnknownName: There is no such backend.
        MissingExtra: The backend, or with ``"auto"`` every one, is missing here; there is no fallback to a weaker one.
    """
    if backend != "auto":
        return SANDBOXES[backend](limits, **options)
    problems = []
    for name in _STRONGEST_FIRST:
        try:
            return SANDBOXES[name](limits, **options)
        except MissingExtra as error:
            problems.append(f"{name}: {error}")
    raise MissingExtra(f"code of a model runs in a sandbox only, and there is none here. {' '.join(problems)}")
