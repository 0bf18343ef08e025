"""Starting agent programs in Bubblewrap."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from turngym.envs.tools.sandbox.cgroups import can_make_groups, make_group, remove_stale
from turngym.envs.tools.sandbox.owners import user_number
from turngym.envs.tools.sandbox.protocol import Limits
from turngym.envs.tools.sandbox.seccomp import program, program_file
from turngym.envs.tools.sandbox.system import SYSTEM_PYTHON
from turngym.errors import MissingExtra
from turngym.system.scratch import scratch_root
from turngym.trainers.integrations.gateway.programs.launching import Launch, Launcher, Place
from turngym.trainers.integrations.gateway.programs.sandbox.mounts import hidden, mounted, system_arguments
from turngym.trainers.settings.agent_program import ProgramConfig

FOLDER, SOCKET = "/tmp/work", "/run/gateway.sock"
_FIRST_USER = 1_900_000_000
_OPEN_FILES = 1024
_SHARED_BYTES = 64 * 2**20
_ACCOUNTS = b"user:x:65534:65534:user:/tmp/work:/bin/sh\n"
_HOSTS = b"127.0.0.1 localhost\n"
_LOOKUP = b"hosts: files\npasswd: files\ngroup: files\n"
_users = itertools.count()
_STAGE = 'n=$1; shift; while [ "$n" -gt 0 ]; do mount --bind "$1" "$2" || exit 96; shift 2; n=$((n-1)); done; exec "$@"'
"""Makes files of root's visible to the user of the sandbox: each is mounted in a folder that everyone may enter."""


@cache
def _source() -> str:
    return (Path(__file__).parent / "inside.py").read_text("utf8")


class SandboxLauncher(Launcher):
    """Starts each program in a sandbox of its own.

    Args:
        config: Command, limits and mounts.

    Raises:
        MissingExtra: Bubblewrap or the system's Python is missing, or the machine is of an unknown kind.
        ConfigError: The program or a mount is missing.
    """

    def __init__(self, config: ProgramConfig) -> None:
        _require_available()
        self.config = config
        self.mounts = mounted(config.template(), config.mounts)
        self.hidden = hidden(self.mounts)
        self._folder = tempfile.TemporaryDirectory(prefix="gateway-", dir=scratch_root(), ignore_cleanup_errors=True)
        self.root = Path(self._folder.name)
        self.root.chmod(0o711)
        self.socket = self.root / "gateway.sock"
        remove_stale()

    def place(self, files: Mapping[str, str], url: str) -> Place:
        """Return a new sandbox."""
        return SandboxPlace(self, files, urlsplit(url).port or 0)

    def close(self) -> None:
        """Remove the folder with the socket."""
        self._folder.cleanup()


def _require_available() -> None:
    if shutil.which("bwrap") is None:
        raise MissingExtra("--agent.sandbox bubblewrap needs the program bwrap: apt-get install bubblewrap.")
    if not os.path.exists(SYSTEM_PYTHON):
        raise MissingExtra(f"--agent.sandbox bubblewrap needs {SYSTEM_PYTHON}: apt-get install python3.")
    if not program():
        raise MissingExtra(f"--agent.sandbox bubblewrap has no filter of kernel calls for {platform.machine()}.")
    if not can_make_groups():
        warnings.warn(
            "the sandbox bubblewrap can make no control groups here: each process of an agent program has its memory "
            "limit alone, and all of them together have none.",
            RuntimeWarning,
            stacklevel=3,
        )


class SandboxPlace(Place):
    """One sandbox.

    Args:
        launcher: What all sandboxes share.
        files: Files of the program's folder.
        port: Port of the gateway.
    """

    path = FOLDER

    def __init__(self, launcher: SandboxLauncher, files: Mapping[str, str], port: int) -> None:
        self._launcher, self._files, self._port = launcher, files, port

    def launch(self, words: Sequence[str], variables: Mapping[str, str]) -> Launch:
        """Return the program in Bubblewrap."""
        launcher, config = self._launcher, self._launcher.config
        with ExitStack() as undo:
            sources = {str(path): str(path) for path in launcher.mounts} | {SOCKET: str(launcher.socket)}
            prefix: list[str] = []
            if os.geteuid() == 0:
                prefix, sources = self._as_nobody(sources, undo)
            orders = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the start)
            undo.callback(orders.close)
            orders.write(json.dumps(self._orders(config, words, variables)).encode())
            orders.seek(0)
            texts = {"/etc/passwd": _ACCOUNTS, "/etc/hosts": _HOSTS, "/etc/nsswitch.conf": _LOOKUP}
            data = {name: _memory_file(content) for name, content in texts.items()}
            filter = program_file()
            words = [*prefix, str(shutil.which("bwrap")), "--seccomp", str(filter), *self._arguments(sources, data)]
            cleanup = undo.pop_all().close
        words += [SYSTEM_PYTHON, "-I", "-S", "-c", _source()]
        group = make_group(_group_limits(config)) if os.geteuid() == 0 else None
        if group is not None:
            words = [*group.entry(), *words]
        plain = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        return Launch(words, plain, _all(cleanup, group.remove if group else None), orders, (filter, *data.values()))

    def _orders(self, config: ProgramConfig, words: Sequence[str], variables: Mapping[str, str]) -> dict[str, object]:
        folder = os.path.dirname(os.path.abspath(shutil.which(words[0]) or words[0]))
        basic = {"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin", "HOME": FOLDER, "LANG": "C.UTF-8", "USER": "user"}
        template = config.template()
        first = [os.path.abspath(shutil.which(words[0]) or words[0])]
        rest = [
            os.path.abspath(word) if word == asked and os.path.isfile(word) else word
            for asked, word in zip(template[1:], words[1:], strict=True)
        ]
        return {
            "words": first + rest,
            "variables": {**basic, **variables},
            "files": dict(self._files),
            "folder": FOLDER,
            "socket": SOCKET,
            "port": self._port,
            "memory_mib": config.memory_mib,
            "disk_mib": config.disk_mib,
            "processes": config.processes,
            "open_files": _OPEN_FILES,
        }

    def _as_nobody(self, sources: Mapping[str, str], undo: ExitStack) -> tuple[list[str], dict[str, str]]:
        """Return the beginning of a command that runs as a user of its own, and where it finds its sources."""
        stage = Path(tempfile.mkdtemp(prefix="stage-", dir=self._launcher.root))
        undo.callback(_remove_empty, stage)
        stage.chmod(0o711)
        words, staged = [], {}
        for number, (target, source) in enumerate(sources.items()):
            point = stage / str(number)
            if os.path.isdir(source):
                point.mkdir()
            else:
                point.touch()
            words += [source, str(point)]
            staged[target] = str(point)
        user = str(_FIRST_USER + user_number(next(_users)))
        private = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", _STAGE, "sh", str(len(staged))]
        nobody = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--"]
        return [*private, *words, *nobody], staged

    def _arguments(self, sources: Mapping[str, str], data: Mapping[str, int]) -> list[str]:
        config, launcher = self._launcher.config, self._launcher
        size = str(config.disk_mib * 2**20)
        return [
            *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--as-pid-1"),
            *("--new-session", "--clearenv", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"),
            *("--hostname", "sandbox", *system_arguments()),
            *(word for name, file in data.items() for word in ("--perms", "0444", "--ro-bind-data", str(file), name)),
            *("--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/tmp"),
            *("--size", str(_SHARED_BYTES), "--tmpfs", "/dev/shm"),
            *(word for target, source in sources.items() for word in ("--ro-bind", source, target)),
            *(word for path in launcher.hidden for word in ("--tmpfs", str(path), "--remount-ro", str(path))),
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"),
        ]


def _group_limits(config: ProgramConfig) -> Limits:
    return Limits(memory_mib=config.memory_mib, scratch_mib=config.disk_mib, processes=config.processes)


def _remove_empty(stage: Path) -> None:
    """Remove a folder of empty files and folders; whatever else it may hold stays."""
    with contextlib.suppress(OSError):
        for point in stage.iterdir():
            point.rmdir() if point.is_dir() else point.unlink()
        stage.rmdir()


def _memory_file(content: bytes) -> int:
    file = os.memfd_create("turngym", 0)
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _all(*actions: Callable[[], None] | None) -> Callable[[], None]:
    """Return a function that does everything, the last first."""

    def act() -> None:
        for action in reversed(actions):
            if action is not None:
                action()

    return act
