"""Bubblewrap: namespaces of the kernel around one process, limits of the kernel on top. Starts in milliseconds."""

from __future__ import annotations

import itertools
import os
import platform
import shutil
import warnings

from turngym.envs.tools.sandbox.cgroups import can_make_groups, make_group, remove_stale
from turngym.envs.tools.sandbox.host import ENVIRONMENT, SHARED_BYTES, Launch, ProcessSession, driver_arguments
from turngym.envs.tools.sandbox.owners import user_number
from turngym.envs.tools.sandbox.protocol import SANDBOXES, Limits, Sandbox
from turngym.envs.tools.sandbox.seccomp import program, program_file
from turngym.envs.tools.sandbox.system import SYSTEM_PYTHON, view
from turngym.errors import MissingExtra

_FIRST_USER = 1_800_000_000
_users = itertools.count()


@SANDBOXES.register("bubblewrap")
class Bubblewrap(Sandbox):
    """Sessions in namespaces of their own: no network, no processes of others, nothing of the host but its Python.

    Where turngym runs as root, every sandbox belongs to a user of its own without a name, and memory and processes are
    limited for all of it together by control groups, where those can be made. Elsewhere the limits are those of each
    process, and that of processes counts inside of the sandbox.

    Args:
        limits: What code may use.

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
        if not program():
            machine = platform.machine()
            raise MissingExtra(f"the sandbox bubblewrap has no filter of kernel calls for {machine}: use docker.")
        launcher = shutil.which("bwrap")
        if launcher is None:
            raise MissingExtra("the sandbox bubblewrap needs the program bwrap: apt-get install bubblewrap.")
        self._view = view()
        self._program = launcher
        remove_stale()
        if not can_make_groups():
            most = self.limits.processes * self.limits.memory_mib
            warnings.warn(
                "the sandbox bubblewrap can make no control groups here: each process has its memory limit alone, and "
                f"all of a session may take {most:,} MiB together: run as root, or use docker.",
                RuntimeWarning,
                stacklevel=3,
            )

    def session(self) -> ProcessSession:
        """Return a fresh session."""
        return ProcessSession(self._launch, self.limits)

    def _launch(self) -> Launch:
        files = (program_file(),)
        command = [self._program, "--seccomp", str(files[0]), *self._arguments()]
        command += [self._view.program, *driver_arguments(self.limits)]
        if os.geteuid() != 0:
            return Launch(command, _nothing, files)
        command = [*self._as_nobody(), *command]
        group = make_group(self.limits)
        if group is None:
            return Launch(command, _nothing, files)
        return Launch([*group.entry(), *command], group.remove, files)

    def _as_nobody(self) -> list[str]:
        """Return the beginning of a command that switches to an unprivileged user."""
        user = str(_FIRST_USER + user_number(next(_users)))
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--"]

    def _arguments(self) -> list[str]:
        links = [word for name in ("lib", "lib64", "bin") for word in _link(name)]
        scratch = str(int(self.limits.scratch_mib * 1024 * 1024))
        return [
            *(
                "--unshare-all",
                "--unshare-user",
                "--disable-userns",
                "--die-with-parent",
                "--as-pid-1",
                "--new-session",
                "--clearenv",
            ),
            *("--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox"),
            *(*links, *_alias(self._view.program), *self._view.arguments(), "--proc", "/proc", "--dev", "/dev"),
            *("--size", scratch, "--tmpfs", "/tmp", "--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm"),
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"),
            *(word for item in ENVIRONMENT.items() for word in ("--setenv", *item)),
            "--",
        ]


def _nothing() -> None:
    """Clean up nothing."""


def _alias(program: str) -> list[str]:
    """Return what makes the interpreter known under the name that programs call it by."""
    return [] if program == SYSTEM_PYTHON else ["--symlink", program, SYSTEM_PYTHON]


def _link(name: str) -> list[str]:
    """Return what makes /lib and the like links inside, where they are links outside."""
    path = f"/{name}"
    return ["--symlink", os.readlink(path).lstrip("/"), path] if os.path.islink(path) else []
