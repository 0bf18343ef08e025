"""Ctrl-C: acknowledged at once, and one word instead of a traceback from the middle of an import."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

INTERRUPTED = 130
"""The exit status of an interrupted command."""
STOPPING = "interrupted: stopping as soon as the call in progress returns"


def be_quiet() -> None:
    """End this process with one word and its exit status on an interrupt that nothing catches."""
    show = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            show(kind, error, trace)
            return
        os.write(2, b"interrupted\n")
        os._exit(INTERRUPTED)

    sys.excepthook = hook


@contextmanager
def acknowledged(words: str) -> Iterator[None]:
    """Print words at once when Ctrl-C is pressed, whatever the main thread is busy with.

    Python handles a signal between two of its instructions: a long call into compiled code delays that, and training
    first finishes its iteration. The signal itself writes to a socket that a thread reads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def tell() -> None:
        while numbers := reader.recv(64):
            if signal.SIGINT in numbers:
                print(f"\n{words}", file=sys.stderr, flush=True)
                return

    thread = threading.Thread(target=tell, name="acknowledges interrupts", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()
        thread.join()
        reader.close()
