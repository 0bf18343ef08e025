"""One desktop, from the outside: it is started, controlled, observed, and killed when it does not answer."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turngym.envs.desktop.sandbox import command
from turngym.envs.tools.sandbox.system import with_way_out
from turngym.errors import TurngymError
from turngym.system.scratch import scratch_root
from turngym.text import printable

_PATIENCE_SECONDS = 5.0
"""Waiting time after the inner limit before everything is terminated."""
_PASSWD = "user:x:1000:1000:user:/home/user:/bin/false\n"
_LONGEST_ANSWER = 1_000_000
_LONGEST_FAULT = 500
_KINDS = ("window", "dialog", "menu")


class DesktopFault(TurngymError, RuntimeError):
    """A display or a program died, hung or did not start."""


@dataclass(frozen=True, slots=True)
class Window:
    """A visible window, dialog or menu.

    Args:
        title: Its title.
        kind: ``"window"``, ``"dialog"`` or ``"menu"``.
        x: Left edge in pixels.
        y: Upper edge.
        width: Its width.
        height: Its height.
        has_focus: Whether it has the keyboard focus.
    """

    title: str
    kind: str
    x: int
    y: int
    width: int
    height: int
    has_focus: bool


class DesktopSession:
    """A display with its window manager in a sandbox, reused between episodes, and the programs of the current one.

    Args:
        width: Width of the display.
        height: Height of the display.
        limit_seconds: Time limit of any operation: a start, or an action with its effects.
        memory_mib: Address space of one program.

    Raises:
        DesktopFault: It does not start.
    """

    def __init__(self, width: int, height: int, limit_seconds: float = 30.0, memory_mib: int = 2048) -> None:
        self._limit = limit_seconds
        self._owner = os.getpid()
        self._buffer = bytearray()
        self._size = width, height
        self._frame = -1
        """The file of the image; mapping it would kill this process if a program truncated it."""
        self._pixels_at = 0
        self.digest = ""
        """Digest of the image on the screen."""
        self.scratch = Path(tempfile.mkdtemp(prefix="desktop-", dir=scratch_root()))
        self.home = self.scratch / "home"
        for name in ("home", "screen"):
            (self.scratch / name).mkdir()
        (self.scratch / "passwd").write_text(_PASSWD)
        self._errors = (self.scratch / "errors").open("w+b")
        self._process = subprocess.Popen(
            command(self.scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,
            cwd="/",
            env={},
        )
        settings = {"width": width, "height": height, "limit_seconds": limit_seconds, "memory_mib": memory_mib}
        try:
            self._ask(settings)
            self._frame = os.open(self.scratch / "screen" / "Xvfb_screen0", os.O_RDONLY | os.O_NOFOLLOW)
            head = os.pread(self._frame, 80, 0)
            header, colours = (int.from_bytes(head[at : at + 4], "big") for at in (0, 76))
            self._pixels_at = header + 12 * colours
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the sandbox."""
        return self._process.pid

    @property
    def is_open(self) -> bool:
        """True if it can still be used."""
        return self._process.poll() is None

    def stop_programs(self) -> None:
        """End the programs, so that the files can be replaced."""
        self._ask({"do": "stop"})

    def start_programs(self, programs: Sequence[Sequence[str]]) -> tuple[Window, ...]:
        """Start programs, one after another, and return the windows."""
        return self._windows(self._ask({"do": "start", "programs": [list(each) for each in programs]}))

    def act(self, action: Mapping[str, Any]) -> tuple[Window, ...]:
        """Carry out a mouse or keyboard action, and return the windows once everything is idle."""
        return self._windows(self._ask({"do": "act", "action": dict(action)}))

    def tables(self, name: str) -> tuple[str, ...]:
        """Return the sheets of a workbook as CSV, with formulas computed by the spreadsheet program itself."""
        found = self._ask({"do": "tables", "name": name}).get("tables")
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self._senseless()
        return tuple(found)

    def picture(self) -> NDArray[np.uint8]:
        """Return a copy of the screen, uint8 [height, width, 3].

        Raises:
            DesktopFault: It is gone.
        """
        width, height = self._size
        wanted = 4 * width * height
        data = os.pread(self._frame, wanted, self._pixels_at) if self._frame >= 0 else b""
        if len(data) < wanted:
            self.close()
            raise DesktopFault("the picture of the display is gone")
        return np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(height, width, 4)[..., 2::-1])

    def close(self) -> None:
        """End everything and remove the files."""
        if self._owner != os.getpid():
            return  # a forked copy of this process: the desktop belongs to the original
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()  # the program inside ends with its input, and the sandbox with it
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for file in (self._process.stdout, self._errors):
            if file is not None:
                file.close()
        frame, self._frame = self._frame, -1
        if frame >= 0:
            os.close(frame)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _windows(self, told: Mapping[str, Any]) -> tuple[Window, ...]:
        try:
            windows = tuple(Window(**each) for each in told["windows"])
            self.digest = str(told["digest"])
        except (KeyError, TypeError) as error:
            raise self._senseless() from error
        places = all(type(number) is int for each in windows for number in (each.x, each.y, each.width, each.height))
        if not places or not all(isinstance(each.title, str) and each.kind in _KINDS for each in windows):
            raise self._senseless()
        return windows

    def _senseless(self) -> DesktopFault:
        """End everything, and return the fault for a malformed answer."""
        self.close()
        return DesktopFault("the desktop answers nonsense")

    def _ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            found = json.loads(self._line(time.monotonic() + 3 * self._limit + _PATIENCE_SECONDS))
        except (OSError, EOFError, ValueError, RecursionError) as error:
            said = self._last_words()
            self.close()
            raise DesktopFault(f"the desktop has ended: {with_way_out(said) or error}") from error
        except TimeoutError as error:
            self.close()
            raise DesktopFault(str(error)) from error
        if not isinstance(found, dict):
            raise self._senseless()
        if "fault" in found:
            self.close()
            raise DesktopFault(str(found["fault"])[:_LONGEST_FAULT])
        return found

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError("the desktop does not answer")
                data = os.read(self._process.stdout.fileno(), 65536)
                if not data or len(self._buffer) > _LONGEST_ANSWER:
                    raise EOFError("no answer")
                self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line

    def _last_words(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0)
            return printable(self._errors.read(2000).decode("utf8", "replace").strip(), keep="\n")
        return ""
