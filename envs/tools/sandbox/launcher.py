"""The launch of Bubblewrap, for the sandboxes of code, of agent programs and of desktops."""

from __future__ import annotations

import itertools
import os
import platform
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from turngym.envs.tools.sandbox.cgroups import can_make_groups, make_group, remove_stale
from turngym.envs.tools.sandbox.owners import user_number
from turngym.envs.tools.sandbox.protocol import Limits
from turngym.envs.tools.sandbox.seccomp import memory_file, program
from turngym.envs.tools.sandbox.system import SYSTEM_PYTHON
from turngym.errors import MissingExtra

NOBODY = 65534
_FIRST_USER = 1_800_000_000
_users = itertools.count()


class Launch(NamedTuple):
    """Factory of one sandbox.

    Args:
        command: Its command.
        cleanup: Called once, after its end.
        files: Open files that it inherits; closed here once it has started.
    """

    command: Sequence[str]
    cleanup: Callable[[], None]
    files: tuple[int, ...] = ()


def require_bubblewrap(feature: str, limits: Limits, remedy: str = "run as root") -> None:
    """Raise unless Bubblewrap can be used, and warn if its limits hold for each process alone.

    Args:
        feature: Component that needs it, for the message.
        limits: What one sandbox may use.
        remedy: What to do where control groups cannot be made.

    Raises:
        MissingExtra: Bubblewrap, the system's Python or the filter of kernel calls is missing.
    """
    if not program():
        raise MissingExtra(
            f"{feature} has no filter of kernel calls for {platform.machine()}: it runs on x86_64 and aarch64."
        )
    if shutil.which("bwrap") is None:
        raise MissingExtra(f"{feature} needs the program bwrap: apt-get install bubblewrap.")
    if not os.path.exists(SYSTEM_PYTHON):
        raise MissingExtra(f"{feature} needs {SYSTEM_PYTHON}: apt-get install python3.")
    remove_stale()
    if not can_make_groups():
        warnings.warn(
            "the sandbox bubblewrap can make no control groups here: each process has its memory limit alone, and all "
            f"of a session may take {limits.processes * limits.memory_mib:,} MiB together: {remedy}.",
            RuntimeWarning,
            stacklevel=4,
        )


def launch(arguments: Sequence[str], limits: Limits, wrapper: Sequence[str] = ()) -> Launch:
    """Return the launch of a sandbox with a filter of kernel calls.

    Where turngym runs as root, the sandbox gets its own user without a name, and control groups that limit all of its
    processes together.

    Args:
        arguments: Arguments of Bubblewrap, and the command inside.
        limits: What all processes may use together.
        wrapper: Start of a command that runs before the user is changed.
    """
    calls = memory_file(program())
    command = [str(shutil.which("bwrap")), "--seccomp", str(calls), *arguments]
    if os.geteuid() != 0:
        return Launch(command, _nothing, (calls,))
    user = str(_FIRST_USER + user_number(next(_users)))
    nobody = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--"]
    command = [*wrapper, *nobody, *command]
    group = make_group(limits)
    if group is None:
        return Launch(command, _nothing, (calls,))
    return Launch([*group.entry(), *command], group.remove, (calls,))


def isolation(user: int, hostname: str) -> list[str]:
    """Return the arguments that give a sandbox its own namespaces, without network, capabilities and variables."""
    return [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--as-pid-1", "--clearenv"),
        *("--cap-drop", "ALL", "--uid", str(user), "--gid", str(user), "--hostname", hostname),
    ]


def private_folders(scratch: int, shared: int) -> list[str]:
    """Return the arguments for /proc, /dev, and writable folders in memory.

    Args:
        scratch: Bytes of /tmp.
        shared: Bytes of /dev/shm.
    """
    return [
        *("--proc", "/proc", "--dev", "/dev", "--size", str(scratch), "--tmpfs", "/tmp"),
        *("--size", str(shared), "--tmpfs", "/dev/shm"),
    ]


def same_place(paths: Iterable[str]) -> list[str]:
    """Return the arguments that show folders of the host where they are, links as links; none for a missing one."""
    words: list[str] = []
    for path in paths:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    return words


def if_present(paths: Iterable[str]) -> list[str]:
    """Return the arguments that show files and folders of the host, if there are any."""
    return [word for path in paths for word in ("--ro-bind-try", path, path)]


def emptied(paths: Iterable[Path]) -> list[str]:
    """Return the arguments that show folders as empty."""
    return [word for path in paths for word in ("--tmpfs", str(path), "--remount-ro", str(path))]


def variables(environment: Mapping[str, str]) -> list[str]:
    """Return the arguments that set environment variables."""
    return [word for item in environment.items() for word in ("--setenv", *item)]


def _nothing() -> None:
    pass
