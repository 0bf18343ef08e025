"""Addresses that this process and its descendants listen on."""

import os
import socket
import struct
from pathlib import Path

from turngym.system.processes import descendants

_LISTENS = "0A"


def addresses() -> list[str]:
    """Return the address of each socket of TCP that listens; Linux only."""
    sockets: set[str] = set()
    for process in descendants(os.getpid()):
        for file in Path(f"/proc/{process}/fd").glob("*"):
            try:
                sockets.add(os.readlink(file))
            except OSError:  # closed meanwhile
                continue
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and f"socket:[{fields[9]}]" in sockets:
                raw = bytes.fromhex(fields[1].partition(":")[0])
                words = [struct.pack("<I", word) for (word,) in struct.iter_unpack(">I", raw)]
                found.append(socket.inet_ntop(family, b"".join(words)).removeprefix("::ffff:"))
    return found
