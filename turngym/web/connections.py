"""Limits on the connections of a server: a number in all, and a number for each client."""

from __future__ import annotations

import os
import resource
import socket
import struct
import threading
from collections.abc import Callable

_RESERVED_FILES = 64
_MOST = 4096
_SPARE_FILES = 256
"""Files that a server opens in addition to its connections."""
UNKNOWN = "unknown"


class Connections:
    """The open connections of a server; safe to use from several threads.

    A connection is counted for its peer, such as an address, until :meth:`Connection.belongs_to` names its client. When
    the server is full, the connection of the largest client that has been idle longest is closed: a client with few
    connections keeps them, however many another one opens.

    Args:
        most: Connections in all; 0 for as many as this process may open files for, and 4,096 at most.
        most_each: Connections of a client that is known by name; those of a peer may take half of all.
    """

    def __init__(self, most: int = 0, most_each: int = 128) -> None:
        self.most = most or min(_MOST, free_files())
        self.most_each = min(most_each, self.most)
        self._lock = threading.RLock()
        self._groups: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def enter(self, peer: str, close: Callable[[], None], is_idle: Callable[[], bool]) -> Connection | None:
        """Count a new connection; None if the server is full of connections that are all in use.

        Args:
            peer: Source.
            close: Closes it.
            is_idle: Returns whether it waits for a request.
        """
        with self._lock:
            made = Connection(self, f"{UNKNOWN} {peer}", close, is_idle)
            if not self._has_room(made.group, max(self.most // 2, 1)):
                return None
            if self._count >= self.most and not any(map(self._close_idle, self._largest_first())):
                return None
            self._groups.setdefault(made.group, {})[made] = None
            self._count += 1
            return made

    def __len__(self) -> int:
        """Return the number of connections."""
        return self._count

    def of(self, group: str) -> int:
        """Return the number of connections of a client."""
        return len(self._groups.get(group, ()))

    def _has_room(self, group: str, most: int) -> bool:
        return self.of(group) < most or self._close_idle(group)

    def _largest_first(self) -> list[str]:
        return sorted(self._groups, key=self.of, reverse=True)

    def _close_idle(self, group: str) -> bool:
        """Close the connection of a client that has been idle longest; False if all are in use."""
        found = next((each for each in self._groups.get(group, ()) if each.is_idle()), None)
        if found is None:
            return False
        self._leave(found)
        found.close()
        return True

    def _move(self, connection: Connection, group: str) -> bool:
        with self._lock:
            if connection not in self._groups.get(connection.group, ()):
                return False
            if connection.group != group and not self._has_room(group, self.most_each):
                return False
            del self._groups[connection.group][connection]
            if not self._groups[connection.group]:
                del self._groups[connection.group]
            connection.group = group
            self._groups.setdefault(group, {})[connection] = None
            return True

    def _leave(self, connection: Connection) -> None:
        with self._lock:
            group = self._groups.get(connection.group, {})
            if connection in group:
                del group[connection]
                self._count -= 1
                if not group:
                    del self._groups[connection.group]


class Connection:
    """One connection, see :class:`Connections`."""

    __slots__ = ("_all", "close", "group", "is_idle")

    def __init__(
        self, connections: Connections, group: str, close: Callable[[], None], is_idle: Callable[[], bool]
    ) -> None:
        self._all, self.group, self.close, self.is_idle = connections, group, close, is_idle

    def belongs_to(self, client: str) -> bool:
        """Count the connection for a client that has shown who it is; False if the client has too many in use."""
        return self._all._move(self, client)

    def leave(self) -> None:
        """Count the connection no more; may be called twice."""
        self._all._leave(self)


def free_files() -> int:
    """Return how many files this process may open besides those that are open, less some for other purposes."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return _MOST
    try:
        opened = len(os.listdir("/proc/self/fd"))
    except OSError:
        opened = _RESERVED_FILES
    return max(limit - opened - max(_RESERVED_FILES, limit // 8), 8)


def allowed_connections(wanted: int) -> int:
    """Return how many connections the limit on open files allows, after raising it as far as the system lets us.

    Args:
        wanted: Connections that are wanted; the limit is raised no further than they need.

    >>> allowed_connections(4) >= 4
    True
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    reachable = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    except (ValueError, OSError):  # the system's own limit is lower
        reachable = soft
    return max(1, reachable - _SPARE_FILES)


def peer_of(connection: socket.socket) -> str:
    """Return where a connection comes from: an address, or the user at the other end of a Unix socket."""
    try:
        if connection.family == socket.AF_UNIX:
            size = struct.calcsize("3i")
            _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
            return f"user {user}"
        return str(connection.getpeername()[0])
    except OSError:
        return ""
