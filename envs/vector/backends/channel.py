"""Messages between a vector and its workers: framed, so that stray bytes are detected and never unpickled."""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import zlib
from typing import Any

_HEADER = struct.Struct("<8sIQ")  # magic, checksum of the payload, length of the payload
_MAGIC = b"turngym\x00"
_LONGEST = 1 << 32
_CHUNK = 1 << 18


class Garbled(Exception):
    """The received bytes are not a message: something else has written into the pipe."""


def encode(message: Any) -> bytes:
    """Return a message as the bytes of one frame."""
    payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(_MAGIC, zlib.crc32(payload), len(payload)) + payload


def decode(frame: bytes) -> Any:
    """Return the message of one whole frame.

    >>> decode(encode("hello"))
    'hello'
    """
    (message,) = Decoder().feed(frame)
    return message


class Decoder:
    """Collects bytes and returns the messages that are complete.

    >>> decoder = Decoder()
    >>> frame = encode("hello")
    >>> decoder.feed(frame[:7]), decoder.feed(frame[7:])
    ([], ['hello'])
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Add bytes.

        Raises:
            Garbled: They are not what :func:`encode` wrote.
        """
        self._buffer += data
        messages = []
        while (payload := self._next()) is not None:
            messages.append(_decode(payload))
        return messages

    def _next(self) -> bytes | None:
        buffer = self._buffer
        if not buffer.startswith(_MAGIC[: len(buffer)]):
            raise Garbled(bytes(buffer[:40]))
        if len(buffer) < _HEADER.size:
            return None
        _, checksum, length = _HEADER.unpack_from(buffer)
        if length > _LONGEST:
            raise Garbled(f"a message of {length} bytes")
        end = _HEADER.size + length
        if len(buffer) < end:
            return None
        payload = bytes(buffer[_HEADER.size : end])
        if zlib.crc32(payload) != checksum:
            raise Garbled("wrong checksum")
        del buffer[:end]
        return payload


def _decode(payload: bytes) -> Any:
    try:
        return pickle.loads(payload)
    except Exception as error:  # untrusted content: anything may be raised
        raise Garbled(f"{type(error).__name__}: {error}") from error


class Channel:
    """One end of the pipe between a vector and a worker.

    Args:
        end: A connected stream socket.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._decoder = Decoder()
        self._received: list[Any] = []

    def fileno(self) -> int:
        """Return the file descriptor, for a selector."""
        return self._socket.fileno()

    def send(self, frame: bytes) -> None:
        """Send a frame; waits until the other end has taken it.

        Raises:
            OSError: The other end is gone.
        """
        self._socket.sendall(frame)

    def receive(self) -> Any:
        """Wait for the next message.

        Raises:
            EOFError: The other end is gone.
        """
        while not self._received:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise EOFError
            self._received = self._decoder.feed(data)
        return self._received.pop(0)

    def poll(self) -> list[Any]:
        """Return the messages that have arrived, without waiting.

        Raises:
            EOFError: The other end is gone.
            Garbled: Something else has written into the pipe.
        """
        messages: list[Any] = []
        while True:
            try:
                data = self._socket.recv(_CHUNK, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return messages
            except OSError as error:
                raise EOFError from error
            if not data:
                if messages:
                    return messages  # the next call finds the end again
                raise EOFError
            messages += self._decoder.feed(data)
            if len(data) < _CHUNK:
                return messages

    def finish(self) -> None:
        """Signal that nothing more will be sent."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
