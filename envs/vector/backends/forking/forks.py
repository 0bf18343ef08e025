"""The fork server's process: it forks a worker for every request, and reports the exits of workers."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import struct

import numpy as np

NOTE = struct.Struct("<qq")
"""What has happened, :data:`STARTED`, :data:`FAILED` or an exit code; and a process id, or the number of an error."""
STARTED = 1 << 32
FAILED = STARTED + 1


def serve(control_file: int) -> tuple[int, int]:
    """Fork a worker for every pair of descriptors that arrives, and report the exits of workers.

    Returns:
        The descriptors, in each forked process; never in the fork server, which ends with its vector.
    """
    control = socket.socket(fileno=control_file)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake, select.POLLIN)
    children: set[int] = set()
    released: set[int] = set()
    gc.collect()
    gc.freeze()  # keep the garbage collector from touching, and so copying, shared pages
    while True:
        ready = {file for file, _ in poll.poll()}
        if wake in ready:
            os.read(wake, 4096)
            _tell_of_ends(control, children, released)
        if control.fileno() not in ready:
            continue
        data, files, _, _ = socket.recv_fds(control, NOTE.size, 2)
        if len(files) == 2:
            pid = _fork(control, children)
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for file in (control.detach(), wake, waker):
                    os.close(file)
                _be_new()
                return files[0], files[1]
            for file in files:
                os.close(file)
        elif data:
            released.add(NOTE.unpack(data)[1])
            _tell_of_ends(control, children, released)
        else:
            os._exit(0)


def _fork(control: socket.socket, children: set[int]) -> int:
    try:
        pid = os.fork()
    except OSError as error:
        control.send(NOTE.pack(FAILED, error.errno or 0))
        return -1
    if pid:
        children.add(pid)
        control.send(NOTE.pack(STARTED, pid))
    return pid


def _tell_of_ends(control: socket.socket, children: set[int], released: set[int]) -> None:
    """Send the exit codes of ended workers, which stay zombies until released so that their ids are not reused.

    Args:
        control: The way to the vector.
        children: Workers whose exit has not been reported; updated.
        released: Workers that the vector has released; updated.
    """
    for pid in list(released):
        if os.waitpid(pid, os.WNOHANG)[0]:
            released.discard(pid)
            children.discard(pid)
    for pid in children - released:
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is not None:
            children.discard(pid)
            code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
            with contextlib.suppress(OSError):
                control.send(NOTE.pack(code, pid))


def _be_new() -> None:
    """Undo sharing that a new interpreter would not have."""
    os.setsid()
    np.random.seed()  # reseed the global generator, which would be equal in all workers
