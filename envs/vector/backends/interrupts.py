"""Holds back an interrupt from the keyboard while answers are read, so that none is lost half-read."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class HeldInterrupts:
    """Records Ctrl-C, and delivers it only where :meth:`check` is called.

    In any other thread than the main one, and where Ctrl-C is not handled in Python, it does nothing.
    """

    def __init__(self) -> None:
        self._handler: Any = None
        self._frame: FrameType | None = None
        self._is_caught = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._handler = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_caught, self._frame = True, frame

    def check(self) -> None:
        """Pass a recorded interrupt to the previous handler, which usually raises."""
        if self._is_caught:
            self._is_caught = False
            self._handler(signal.SIGINT, self._frame)

    def __exit__(self, *exception: object) -> None:
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        if exception[0] is None:
            self.check()
