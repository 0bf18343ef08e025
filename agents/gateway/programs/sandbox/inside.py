"""Process 1 of a sandbox: it writes the program's files, forwards its gateway, runs it, and ends with its status.

It is sent as text to the interpreter inside and imports nothing but the standard library. It reads its orders, one
object of JSON, on standard input. It is not dumpable, and as process 1 no signal of the program ends or stops it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import socket
import sys
from typing import Any, NoReturn

_SET_DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)
_CHUNK = 65536
_MOST_CONNECTIONS = 256
_MOST_BUFFERED = 4 * _CHUNK


def write_files(folder: str, files: dict[str, str]) -> None:
    """Write the files of the program's folder."""
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf8") as file:
            file.write(content)


def _run_program(orders: dict[str, Any]) -> NoReturn:
    """Become the program, with limits."""
    mib = 1024 * 1024
    limits = {
        resource.RLIMIT_AS: orders["memory_mib"] * mib,
        resource.RLIMIT_FSIZE: orders["disk_mib"] * mib,
        resource.RLIMIT_NPROC: orders["processes"],
        resource.RLIMIT_NOFILE: orders["open_files"],
        resource.RLIMIT_CORE: 0,
    }
    try:
        os.setsid()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.chdir(orders["folder"])
        for kind, value in limits.items():
            resource.setrlimit(kind, (value, value))
        os.execvpe(orders["words"][0], orders["words"], orders["variables"])
    except OSError as error:
        print(f"{orders['words'][0]} cannot be started: {error}", file=sys.stderr, flush=True)
    os._exit(127)


class Stream:
    """One direction of a connection: what has been read of one end and not yet written to the other.

    Args:
        source: End that is read.
        target: End that is written to.
        is_request: Whether the source is the program, which loses an answer if its end is closed before it ends.
    """

    def __init__(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        self.source, self.target, self.is_request = source, target, is_request
        self.buffer = bytearray()
        self.has_ended = False
        self.is_over = False

    def read(self) -> None:
        """Take what has come; where nobody reads it any more, it is dropped."""
        try:
            data = self.source.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.has_ended = not data
        if not self.is_over:
            self.buffer += data

    def write(self) -> None:
        """Pass on what the other end takes; one that takes no more may still have an answer to pass back."""
        try:
            if self.buffer:
                del self.buffer[: self.target.send(self.buffer)]
        except BlockingIOError:
            return
        except OSError:
            self.buffer.clear()
            self.is_over = True
        if self.has_ended and not self.buffer and not self.is_over:
            self.is_over = True
            with contextlib.suppress(OSError):
                self.target.shutdown(socket.SHUT_WR)


class Forwarder:
    """Passes connections to a port of the loopback device on to a Unix socket; one thread, bounded buffers.

    Args:
        port: The port.
        path: The socket.
    """

    def __init__(self, port: int, path: str) -> None:
        self._path = path
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._listener.setblocking(False)
        self._pairs: dict[socket.socket, tuple[Stream, Stream]] = {}
        """End -> the stream from it and the stream to it."""
        self._watched: dict[socket.socket, int] = {}

    def step(self, wake: int) -> None:
        """Wait for something to do, and do it.

        Args:
            wake: A file that ends the waiting.
        """
        self._watch(self._listener, selectors.EVENT_READ if len(self._pairs) < 2 * _MOST_CONNECTIONS else 0)
        for end, (away, here) in self._pairs.items():
            wants_read = not away.has_ended and len(away.buffer) < _MOST_BUFFERED
            self._watch(end, selectors.EVENT_READ * wants_read | selectors.EVENT_WRITE * bool(here.buffer))
        if wake not in self._selector.get_map():
            self._selector.register(wake, selectors.EVENT_READ)
        for key, events in self._selector.select():
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj in self._pairs:
                self._serve(key.fileobj, events)
            elif key.fileobj == wake:
                os.read(wake, 1024)

    def _watch(self, end: socket.socket, events: int) -> None:
        before = self._watched.get(end, 0)
        if events == before:
            return
        if not before:
            self._selector.register(end, events)
        elif not events:
            self._selector.unregister(end)
        else:
            self._selector.modify(end, events)
        self._watched[end] = events

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            near, _ = self._listener.accept()
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self._path)
            except OSError:
                near.close()
                far.close()
                return
            for end in (near, far):
                end.setblocking(False)
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            away, back = Stream(near, far, True), Stream(far, near, False)
            self._pairs[near], self._pairs[far] = (away, back), (back, away)

    def _serve(self, end: Any, events: int) -> None:
        away, here = self._pairs[end]
        if events & selectors.EVENT_READ:
            away.read()
        away.write()
        here.write()
        if all(each.is_over and (each.has_ended or not each.is_request) for each in (away, here)):
            for each in (away.source, away.target):
                self._watch(each, 0)
                self._watched.pop(each, None)
                self._pairs.pop(each, None)
                each.close()


def reaped(program: int) -> int | None:
    """Bury what has ended; returns the exit status of the program if that is among it."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid == program:
                code = os.waitstatus_to_exitcode(status)
                found = code if code >= 0 else 128 - code
    return found


def main() -> None:
    """Serve one program."""
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")
    orders: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.makedirs(orders["folder"], exist_ok=True)
    write_files(orders["folder"], orders["files"])
    forwarder = Forwarder(orders["port"], orders["socket"])
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    program = os.fork()
    if program == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _run_program(orders)
    while (status := reaped(program)) is None:
        forwarder.step(woken)
    os._exit(status)


if __name__ == "__main__":
    main()
