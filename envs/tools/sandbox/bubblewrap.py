"""Bubblewrap: namespaces of the kernel around one process, limits of the kernel on top. Starts in milliseconds."""

from __future__ import annotations

import os
from collections.abc import Sequence

from turngym.envs.tools.sandbox.host import ENVIRONMENT, SHARED_BYTES, ProcessSession, driver_arguments
from turngym.envs.tools.sandbox.launcher import (
    NOBODY,
    Launch,
    isolation,
    launch,
    private_folders,
    require_bubblewrap,
    same_place,
    variables,
)
from turngym.envs.tools.sandbox.protocol import SANDBOXES, Limits, Sandbox
from turngym.envs.tools.sandbox.system import SYSTEM_PYTHON, view


@SANDBOXES.register("bubblewrap")
class Bubblewrap(Sandbox):
    """Sessions in namespaces of their own: no network, no processes of others, nothing of the host but its Python.

    Where turngym runs as root, every sandbox belongs to its own user without a name, and memory and processes are
    limited for all of it together by control groups, where those can be made. Elsewhere the limits are those of each
    process, and that of processes counts inside of the sandbox.

    Args:
        limits: Limits of code.

    Raises:
        MissingExtra: Bubblewrap or the system's Python is missing.
    """

    stops = (
        "Stops: network, files of the host beyond the system's Python without packages, environment variables, signals "
        "to and sight of other processes, new privileges and namespaces, calls of the kernel that ordinary programs do "
        "not need, too much memory, processor time, processes, output and files. Does not stop: faults in the rest of "
        "the kernel; use docker with runsc against those. Where no control groups can be made, as for ordinary users, "
        "each process has its memory limit alone, and all of them together have none."
    )

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        require_bubblewrap("the sandbox bubblewrap", self.limits, "run as root, or use docker")
        self._view = view()

    def session(self) -> ProcessSession:
        """Return a fresh session."""
        return ProcessSession(self._launch, self.limits)

    def _launch(self) -> Launch:
        return launch([*self._arguments(), self._view.program, *driver_arguments(self.limits)], self.limits)

    def _arguments(self) -> Sequence[str]:
        links = filter(os.path.islink, ("/lib", "/lib64", "/bin"))
        alias = [] if self._view.program == SYSTEM_PYTHON else ["--symlink", self._view.program, SYSTEM_PYTHON]
        return [
            *isolation(NOBODY, "sandbox"),
            *("--die-with-parent", *same_place(links), *alias, *self._view.arguments()),
            *private_folders(int(self.limits.scratch_mib * 1024 * 1024), SHARED_BYTES),
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", *variables(ENVIRONMENT), "--"),
        ]
