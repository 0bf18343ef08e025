"""The program inside the sandbox: it starts the display and programs, and carries out mouse and keyboard commands.

Each line of input is a JSON command with one answer. When the input ends, everything here ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from Xlib.error import ConnectionClosedError, DisplayConnectionError, XError

from turngym.envs.desktop.rest import others, wait_for_rest
from turngym.envs.desktop.screen import Screen, Unresponsive

DISPLAY = ":0"
SOCKET = Path("/tmp/.X11-unix/X0")
_SCREEN = Path("/screen")
FRAME = _SCREEN / "Xvfb_screen0"
KEPT = {Path("/tmp"): (".X11-unix", ".X0-lock"), _SCREEN: (FRAME.name,)}
"""Other folders that programs can write to -> what stays there between episodes."""
_LONGEST_TABLE = 100_000


class Fault(Exception):
    """The display, window manager or a program failed."""


class Desktop:
    """Display, window manager and the programs of an episode.

    Args:
        settings: Limits and the size of the display.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._limit = float(settings["limit_seconds"])
        self._memory = int(settings["memory_mib"]) * 1024 * 1024
        self._width, self._height = settings["width"], settings["height"]
        self._programs: list[subprocess.Popen[bytes]] = []
        size = f"{self._width}x{self._height}x24"
        server = (
            "Xvfb",
            DISPLAY,
            "-screen",
            "0",
            size,
            "-nolisten",
            "tcp",
            "-noreset",
            "-s",
            "0",
            "-fbdir",
            "/screen",
            "-dpi",
            "96",
        )
        self._server = self._spawn(server)
        self._until(SOCKET.exists, "the display does not start")
        self._screen = self._connect()
        self._frame = FRAME.open("rb")
        self._manager = self._spawn(("openbox", "--sm-disable", "--config-file", "/etc/openbox.xml"))
        self._until(self._screen.has_manager, "the window manager does not start")

    def _spawn(self, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        null = subprocess.DEVNULL
        own = {**os.environ, "HOME": "/tmp", "XDG_CACHE_HOME": "/tmp"}  # leave nothing in the user's folder
        return subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True, cwd="/", env=own)

    def _connect(self) -> Screen:
        found: list[Screen] = []

        def connected() -> bool:
            with contextlib.suppress(DisplayConnectionError, ConnectionClosedError):
                found.append(Screen(DISPLAY))
            return bool(found)

        self._until(connected, "the display takes no connection")
        return found[0]

    def _until(self, condition: Any, what: str) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + self._limit
        while not condition():
            self._require_alive()
            if time.monotonic() > deadline:
                raise Fault(f"{what} within {self._limit:g} s")
            time.sleep(0.005)

    def _require_alive(self) -> None:
        if self._server.poll() is not None:
            raise Fault("the display has ended")
        manager = getattr(self, "_manager", None)
        if manager is not None and manager.poll() is not None:
            raise Fault("the window manager has ended")
        for program in self._programs:
            if program.poll() not in (None, 0):
                raise Fault(f"{Path(str(program.args[0])).name} has ended with status {program.returncode}")  # type: ignore[index]

    def _checksum(self) -> int:
        self._frame.seek(0)
        return zlib.crc32(self._frame.read())

    def _settle(self) -> None:
        """Wait until every window has processed its events and all programs are idle."""
        self._screen.sync()
        try:
            self._screen.require_answers(self._limit)
        except Unresponsive as error:
            raise Fault(str(error)) from error
        if not wait_for_rest(self._checksum, self._limit):
            self._require_alive()
            raise Fault(f"the programs do not come to rest within {self._limit:g} s")
        self._require_alive()

    # Commands.

    def stop(self) -> None:
        """End the programs of the last episode."""
        programs, self._programs = self._programs, []
        for program in programs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        self._end_others()
        self._clear()
        self._require_alive()
        self._until(lambda: not self._screen.clients(), "the windows of programs that have ended do not go")
        self._screen.move((self._width - 1, self._height - 1))

    def _end_others(self) -> None:
        """End the processes that programs have left behind, in any group or session."""
        ours = {self._server.pid, self._manager.pid}

        def are_gone() -> bool:
            left = [process for process in others() if process not in ours]
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):  # orphans are this process's children: it is the first
                    os.waitpid(process, os.WNOHANG)
            return not left

        self._until(are_gone, "programs of the last episode do not end")

    def _clear(self) -> None:
        """Remove what programs have left outside the user's folder."""
        for folder in KEPT:
            for path in folder.iterdir():
                if path.name in KEPT[folder]:
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()

    def start(self, commands: list[list[str]]) -> None:
        """Start programs one after another, each after the window of the previous one has appeared."""
        for number, command in enumerate(commands, 1):
            program = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/home/user",
                preexec_fn=self._confine,
            )
            self._programs.append(program)
            self._until(lambda count=number: len(self._screen.clients()) >= count, f"{command[0]} shows no window")
            self._settle()

    def _confine(self) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (self._memory, self._memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024 * 1024,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def act(self, action: Mapping[str, Any]) -> None:
        """Carry out one mouse or keyboard action and wait until everything is idle."""
        kind, screen = action["kind"], self._screen
        if kind in ("click", "right_click", "double_click"):
            button = "right" if kind == "right_click" else "left"
            screen.click(action["at"], button=button, times=2 if kind == "double_click" else 1)
        elif kind == "move":
            screen.move(action["at"])
        elif kind == "drag":
            screen.drag(action["at"], action["to"])
        elif kind == "scroll":
            screen.click(action["at"], button=action["text"], times=action["times"])
        elif kind == "key":
            self._strange_keys(chr(action["keys"][-1] & 0xFFFFFF) if action["keys"][-1] > 0x01000000 else "")
            screen.press(action["keys"])
        elif kind == "type":
            for part in screen.parts(action["text"]):
                self._strange_keys(part)
                screen.type(part)
        self._settle()

    def _strange_keys(self, part: str) -> None:
        if self._screen.prepare(part):
            self._settle()  # all clients must know the new keys before one is pressed

    def look(self) -> dict[str, Any]:
        """Return the state of the screen."""
        self._frame.seek(0)
        digest = hashlib.blake2b(self._frame.read(), digest_size=8).hexdigest()
        return {"windows": self._screen.windows(), "digest": digest}

    def tables(self, name: str) -> dict[str, Any]:
        """Return the sheets of a workbook as CSV with computed formulas; an empty list where that fails."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            with contextlib.suppress(subprocess.SubprocessError, OSError):
                subprocess.run(
                    ["ssconvert", "-S", "-T", "Gnumeric_stf:stf_csv", "--", name, f"{folder}/%n"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/home/user",
                    timeout=self._limit,
                    preexec_fn=self._confine,
                )
            files = [Path(folder, str(number)) for number in range(len(os.listdir(folder)))]
            return {"tables": [each.read_text("utf8", "replace")[:_LONGEST_TABLE] for each in files if each.exists()]}


def answer(desktop: Desktop, command: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out one command."""
    if command["do"] == "stop":
        desktop.stop()
        return {}
    if command["do"] == "tables":
        return desktop.tables(command["name"])
    if command["do"] == "start":
        desktop.start(command["programs"])
    else:
        desktop.act(command["action"])
    return desktop.look()


def _end_with(descriptor: int) -> None:
    """End this process, and the sandbox with it, when the other end of a pipe is closed."""
    watch = select.poll()
    watch.register(descriptor, select.POLLHUP | select.POLLERR)
    watch.poll()
    os._exit(0)


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(0,), daemon=True).start()
    desktop = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if desktop is None:
                desktop = Desktop(command)
                found: dict[str, Any] = {"pid": os.getpid()}
            else:
                found = answer(desktop, command)
        except (Fault, XError, ConnectionClosedError, OSError) as error:
            found = {"fault": f"{error}" if isinstance(error, Fault) else f"the display broke: {error!r}"}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
