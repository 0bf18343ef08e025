"""SIGTERM handling of a launched rank: delayed so that it can report why it stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 20.0
"""Seconds from a launcher's SIGTERM to the end of a rank; torchrun kills after 30."""


@contextmanager
def time_to_report(seconds: float = GRACE) -> Iterator[None]:
    """Let SIGTERM end this process some seconds later.

    A launcher that misses one rank sends the signal to all others at once. They notice the loss themselves, at about
    the same time, and have a diagnosis to write and an error to show. Where the block fails the delay therefore remains
    in force afterwards, until the process has ended.

    Args:
        seconds: The delay.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        timer = threading.Timer(seconds, os._exit, (128 + number,))
        timer.daemon = True
        timer.start()

    try:
        before = signal.signal(signal.SIGTERM, handle)
    except ValueError:  # signal handlers need the main thread
        yield
        return
    yield
    signal.signal(signal.SIGTERM, before)
