"""A task of the terminal: plain data that a family of tasks draws."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from turngym.envs.tools.harbor.files import Entry

T = TypeVar("T")
ROOT = "app"
"""Folder of the box that holds the tasks."""
# fmt: off
_WORDS = (
    "amber", "basil", "cedar", "delta", "ember", "fjord", "gravel", "harbor", "indigo", "juniper", "kelp",
    "lantern", "maple", "nickel", "orchid", "pepper", "quartz", "river", "saffron", "timber", "umber", "velvet",
    "willow", "yarrow", "zephyr", "anchor", "birch", "copper", "drift", "elm", "flint", "granite", "heron", "iris",
)
# fmt: on


class Wanted(NamedTuple):
    """State that a path must have in the end.

    Args:
        data: Content of a regular file, whatever newlines follow it; None if the path must be gone.
        mode: Permissions, None if they do not count.
        is_folder: Whether it is a folder instead.
    """

    data: bytes | None = None
    mode: int | None = None
    is_folder: bool = False


class Probe(NamedTuple):
    """A command in a fresh box that runs what the agent made on inputs that it has not seen.

    Args:
        keep: Paths of the agent's files that are taken along, with what is below them.
        files: The other files, which replace those of the agent.
        command: The command, in the folder of the task.
        output: What it must print.
    """

    keep: tuple[str, ...]
    files: Mapping[str, Entry]
    command: str
    output: str


class Task(NamedTuple):
    """A task in a separate folder; paths are below that folder.

    Args:
        goal: What is to be done, for the agent.
        files: The files at the start.
        wanted: Path -> its state in the end; all others must stay as they were.
        solution: Commands that solve it, run in the folder.
        scratch: Paths that may change, with what is below them.
        probes: What else is tested.
    """

    goal: str
    files: Mapping[str, Entry]
    wanted: Mapping[str, Wanted]
    solution: tuple[str, ...]
    scratch: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = ()


class Draw:
    """Draws the parts of a task.

    Args:
        generator: Source of its choices.
        level: Difficulty from 1 to 3.
    """

    def __init__(self, generator: np.random.Generator, level: int) -> None:
        self.generator, self.level = generator, level

    def number(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return int(self.generator.integers(low, high + 1))

    def pick(self, items: Sequence[T]) -> T:
        """Return one of some items."""
        return items[self.number(0, len(items) - 1)]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """Return so many different items in random order."""
        return [items[int(place)] for place in self.generator.permutation(len(items))[:count]]

    def words(self, count: int) -> list[str]:
        """Return so many different words."""
        return self.some(_WORDS, count)

    def text(self, count: int = 6) -> str:
        """Return a line of words and numbers."""
        return " ".join(f"{self.pick(_WORDS)}{self.number(1, 9999)}" for _ in range(count)) + "\n"

    def scale(self, low: int, high: int) -> int:
        """Return a count between these at level 1, that doubles with each level."""
        return self.number(low, high) << (self.level - 1)


Family = Callable[[Draw], Task]


def file(text: str | bytes, mode: int = 0o644) -> Entry:
    """Return a file."""
    return Entry("file", mode, text.encode() if isinstance(text, str) else text)


def folders(files: Mapping[str, Entry], *more: str) -> dict[str, Entry]:
    """Return files with all folders that hold them, before them.

    >>> list(folders({"a/b.txt": file("x")}, "c"))
    ['a', 'a/b.txt', 'c']
    """
    found: dict[str, Entry] = {}
    for path, entry in [*files.items(), *((name, Entry("folder", 0o755)) for name in more)]:
        parts = path.split("/")
        for count in range(1, len(parts)):
            found.setdefault("/".join(parts[:count]), files.get("/".join(parts[:count])) or Entry("folder", 0o755))
        found.setdefault(path, entry)
    return found


def text(lines: Sequence[str]) -> Wanted:
    """Return the wanted file with these lines."""
    return Wanted("".join(f"{line}\n" for line in lines).encode())


def deflated(data: bytes) -> bytes:
    """Return data as stored blocks of deflate, which are equal under every version of zlib."""
    parts = [data[place : place + 65535] for place in range(0, len(data), 65535)] or [b""]
    heads = [
        struct.pack("<BHH", number == len(parts) - 1, len(part), len(part) ^ 0xFFFF)
        for number, part in enumerate(parts)
    ]
    return b"".join(head + part for head, part in zip(heads, parts, strict=True))


def gzipped(data: bytes) -> bytes:
    r"""Return data in the format of gzip, without compression.

    >>> import gzip
    >>> gzip.decompress(gzipped(b"hello"))
    b'hello'
    """
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    return head + deflated(data) + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
