"""Git repositories written without git, so that their bytes are the same everywhere."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping

from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.terminal.task import deflated, file

_WHO = "Ada Ford <ada@site.example>"
_FIRST = 1_700_000_000
_ZERO = "0" * 40
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"


class Repository:
    r"""A repository with commits of plain files.

    >>> found = Repository()
    >>> found.tree_of({"a": b"hello\n"})
    '0976950c1fdbcb52435a433913017bf044b3a58f'
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.refs: dict[str, str] = {}
        self._log: list[str] = []

    def tree_of(self, files: Mapping[str, bytes]) -> str:
        """Return the id of the tree with these files, by path."""
        rows, below = dict[bytes, bytes](), dict[str, dict[str, bytes]]()
        for path, data in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = data
            else:
                rows[name.encode()] = b"100644 %s\0" % name.encode() + self._blob(data)
        for name, inner in below.items():  # git sorts a folder as if its name ended with a slash
            rows[f"{name}/".encode()] = b"40000 %s\0" % name.encode() + bytes.fromhex(self.tree_of(inner))
        return self._add("tree", b"".join(row for _, row in sorted(rows.items())))

    def commit(self, files: Mapping[str, bytes], subject: str, *parents: str) -> str:
        """Add a commit and return its id."""
        when = f"{_WHO} {_FIRST + 3600 * len(self._log)} +0000"
        lines = [f"tree {self.tree_of(files)}", *(f"parent {each}" for each in parents)]
        lines += [f"author {when}", f"committer {when}", "", f"{subject}\n"]
        name = self._add("commit", "\n".join(lines).encode())
        self._log.append(f"{parents[0] if parents else _ZERO} {name} {when}\tcommit: {subject}\n")
        return name

    def files(self, head: str, work: Mapping[str, bytes]) -> dict[str, Entry]:
        """Return the files of a working copy.

        Args:
            head: Name of the branch that is checked out.
            work: Its files.
        """
        found = {f".git/objects/{name[:2]}/{name[2:]}": file(data, 0o444) for name, data in self.objects.items()}
        found |= {f".git/refs/heads/{name}": file(f"{commit}\n") for name, commit in self.refs.items()}
        found |= {".git/HEAD": file(f"ref: refs/heads/{head}\n"), ".git/config": file(CONFIG)}
        found |= {".git/index": file(self._index(work)), ".git/logs/HEAD": file("".join(self._log))}
        return {**dict(sorted(found.items())), **{name: file(data) for name, data in sorted(work.items())}}

    def _blob(self, data: bytes) -> bytes:
        return bytes.fromhex(self._add("blob", data))

    def _add(self, kind: str, data: bytes) -> str:
        whole = b"%s %d\0" % (kind.encode(), len(data)) + data
        name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        self.objects[name] = b"\x78\x01" + deflated(whole) + struct.pack(">I", zlib.adler32(whole))
        return name

    def _index(self, work: Mapping[str, bytes]) -> bytes:
        """Return an index whose files look changed until git reads them."""
        rows = b""
        for name, data in sorted(work.items()):
            row = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, len(data)) + self._blob(data)
            row += struct.pack(">H", len(name)) + name.encode()
            rows += row + b"\0" * (8 - len(row) % 8)
        whole = struct.pack(">4sII", b"DIRC", 2, len(work)) + rows
        return whole + hashlib.sha1(whole, usedforsecurity=False).digest()
