"""Ctrl-C: acknowledged at once, as a request to stop, and one word instead of a traceback from an import."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

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


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Let SIGTERM interrupt as Ctrl-C does, so that processes of one's own are ended.

    >>> import os
    >>> with termination_interrupts():
    ...     try:
    ...         os.kill(os.getpid(), signal.SIGTERM)
    ...     except KeyboardInterrupt:
    ...         print("interrupted")
    interrupted
    """
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # signal handlers need the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
