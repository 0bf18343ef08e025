"""Interrupts as requests to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signals(request: Callable[[], None]) -> Iterator[None]:
    """Turn the first SIGINT (Ctrl-C) or SIGTERM into a call; a second one takes effect immediately.

    Args:
        request: Called at the first signal, in the main thread.

    >>> import os
    >>> with stop_signals(lambda: print("will stop")):
    ...     os.kill(os.getpid(), signal.SIGTERM)
    will stop
    """

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        request()

    def restore() -> None:
        for number, before in previous.items():
            signal.signal(number, before)

    try:
        previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in previous:
            signal.signal(number, handle)
    except ValueError:  # signal handlers need the main thread
        yield
        return
    try:
        yield
    finally:
        restore()
