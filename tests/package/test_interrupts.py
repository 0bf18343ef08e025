"""Ctrl-C is acknowledged at once, even while the main thread is in a long call that no interrupt ends."""

import os
import signal
import subprocess
import sys
import threading

from turngym.terminal.interrupted import acknowledged

BUSY = """
import hashlib, sys
from turngym.terminal.interrupted import acknowledged
try:
    with acknowledged("interrupted: stopping"):
        print("begun", file=sys.stderr, flush=True)
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 10_000_000)  # compiled code, which handles no signal
        print("after the call", file=sys.stderr, flush=True)
except KeyboardInterrupt:
    print("stopped", file=sys.stderr, flush=True)
"""


def test_an_interrupt_is_acknowledged_before_the_call_in_progress_returns() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stderr.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        lines = [process.stderr.readline() for _ in range(2)]
        assert lines == ["\n", "interrupted: stopping\n"] and process.poll() is None, "it is busy still"
        process.kill()


def test_other_signals_and_other_threads_are_left_alone() -> None:
    noted: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: noted.append(number))
    try:
        with acknowledged("never shown"):
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert noted == [signal.SIGUSR1] and signal.set_wakeup_fd(-1) == -1
    assert not any(thread.name == "acknowledges interrupts" for thread in threading.enumerate())

    def elsewhere() -> None:
        with acknowledged("never shown"):
            noted.append(0)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert noted[-1] == 0
