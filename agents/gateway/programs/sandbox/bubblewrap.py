"""Starting agent programs in Bubblewrap."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from turngym.agents.agent_program import ProgramConfig
from turngym.agents.gateway.programs.launching import Launch, Launcher, Place
from turngym.agents.gateway.programs.sandbox.mounts import hidden, mounted, system_arguments
from turngym.envs.tools.sandbox.launcher import (
    NOBODY,
    emptied,
    isolation,
    launch,
    private_folders,
    require_bubblewrap,
)
from turngym.envs.tools.sandbox.protocol import Limits
from turngym.envs.tools.sandbox.seccomp import memory_file
from turngym.envs.tools.sandbox.system import SYSTEM_PYTHON
from turngym.system.scratch import scratch_root

FOLDER, SOCKET = "/tmp/work", "/run/gateway.sock"
_OPEN_FILES = 1024
_SHARED_BYTES = 64 * 2**20
_ACCOUNTS = b"user:x:65534:65534:user:/tmp/work:/bin/sh\n"
_HOSTS = b"127.0.0.1 localhost\n"
_LOOKUP = b"hosts: files\npasswd: files\ngroup: files\n"
_STAGE = 'n=$1; shift; while [ "$n" -gt 0 ]; do mount --bind "$1" "$2" || exit 96; shift 2; n=$((n-1)); done; exec "$@"'
"""Makes files of root's visible to the user of the sandbox: each is mounted in a folder that everyone may enter."""


@cache
def _source() -> str:
    return (Path(__file__).parent / "inside.py").read_text("utf8")


class SandboxLauncher(Launcher):
    """Starts each program in its own sandbox.

    Args:
        config: Command, limits and mounts.

    Raises:
        MissingExtra: Bubblewrap or the system's Python is missing, or the machine is of an unknown kind.
        ConfigError: The program or a mount is missing.
    """

    def __init__(self, config: ProgramConfig) -> None:
        require_bubblewrap("--agent.sandbox bubblewrap", _limits(config))
        self.config = config
        self.mounts = mounted(config.template(), config.mounts)
        self.hidden = hidden(self.mounts)
        self._folder = tempfile.TemporaryDirectory(prefix="gateway-", dir=scratch_root(), ignore_cleanup_errors=True)
        self.root = Path(self._folder.name)
        self.root.chmod(0o711)
        self.socket = self.root / "gateway.sock"

    def place(self, files: Mapping[str, str], url: str) -> Place:
        """Return a new sandbox."""
        return SandboxPlace(self, files, urlsplit(url).port or 0)

    def close(self) -> None:
        """Remove the folder with the socket."""
        self._folder.cleanup()


class SandboxPlace(Place):
    """One sandbox.

    Args:
        launcher: Common parts of all sandboxes.
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
            staging: list[str] = []
            if os.geteuid() == 0:
                staging, sources = self._staged(sources, undo)
            orders = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the start)
            undo.callback(orders.close)
            orders.write(json.dumps(self._orders(config, words, variables)).encode())
            orders.seek(0)
            texts = {"/etc/passwd": _ACCOUNTS, "/etc/hosts": _HOSTS, "/etc/nsswitch.conf": _LOOKUP}
            data = {name: memory_file(content) for name, content in texts.items()}
            arguments = [*self._arguments(sources, data), SYSTEM_PYTHON, "-I", "-S", "-c", _source()]
            inner = launch(arguments, _limits(config), staging)
            undo.callback(inner.cleanup)
            cleanup = undo.pop_all().close
        plain = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        return Launch(inner.command, plain, cleanup, orders, (*inner.files, *data.values()))

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

    def _staged(self, sources: Mapping[str, str], undo: ExitStack) -> tuple[list[str], dict[str, str]]:
        """Return the start of a command that mounts sources where every user can read them, and these places."""
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
        private = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", _STAGE, "sh", str(len(staged))]
        return [*private, *words], staged

    def _arguments(self, sources: Mapping[str, str], data: Mapping[str, int]) -> list[str]:
        config, launcher = self._launcher.config, self._launcher
        return [
            *(*isolation(NOBODY, "sandbox"), "--die-with-parent", *system_arguments()),
            *(word for name, file in data.items() for word in ("--perms", "0444", "--ro-bind-data", str(file), name)),
            *private_folders(config.disk_mib * 2**20, _SHARED_BYTES),
            *(word for target, source in sources.items() for word in ("--ro-bind", source, target)),
            *emptied(launcher.hidden),
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"),
        ]


def _limits(config: ProgramConfig) -> Limits:
    return Limits(memory_mib=config.memory_mib, scratch_mib=config.disk_mib, processes=config.processes)


def _remove_empty(stage: Path) -> None:
    """Remove a folder of empty files and folders; whatever else it may hold stays."""
    with contextlib.suppress(OSError):
        for point in stage.iterdir():
            point.rmdir() if point.is_dir() else point.unlink()
        stage.rmdir()
