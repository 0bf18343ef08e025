"""Mutated submissions and tournaments, which must all be answered.

A true submission and a true tournament are changed in one to three places each, in their JSON or in their bytes, and
checked. An exception is a fault. What is accepted has changed where nothing is computed from, such as in a date.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from turngym.__main__ import main as turngym
from turngym.benchmarks.verification.verify import verify
from turngym.errors import TurngymError

JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 10**9, 10**18, 10**400, 0.5, -0.0, 1e-300, 1e99, 1e308),
    *(float("inf"), float("nan"), "", "x", "os:path", "../../etc/passwd", "http://127.0.0.1:1", "\x1b[2J\u202e\ud800"),
    *([], {}, [[]], {"": {}}, [None] * 50, {"a": [1, {"b": None}]}, "[" * 2000, "9" * 5000, "env_error", "tools"),
    *(
        'tools:tools=["bad.evil"]',
        "turngym/Sokoban-v0",
        "turngym/OpenEnv-v0",
        ["record:folder=/tmp/x"],
        {"sandbox": "no"},
    ),
)


def originals(folder: Path) -> list[Path]:
    """Play a submission and a tournament, and return their folders."""
    one, other = folder / "submission", folder / "tournament"
    words = ["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "4", "--baselines", "--out", str(one)]
    game = [
        "tournament",
        "turngym/KuhnPoker-v0",
        "--players",
        "random",
        "first_legal",
        "--blocks",
        "2",
        "--out",
        str(other),
    ]
    if turngym(words) or turngym(game):
        raise SystemExit("the originals cannot be played.")
    return [one, other]


def ways(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything inside of a JSON value."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from ways(each, (*path, key))


def _in_json(data: bytes, draw: random.Random) -> bytes:
    """Change a value, take one out, or put one in elsewhere."""
    rows = [json.loads(line) for line in data.splitlines()] if b"\n{" in data.strip()[1:] else json.loads(data)
    found = list(ways(rows))
    if not found:
        return data
    *way, last = draw.choice(found)
    table = rows
    for key in way:
        table = table[key]
    choice = draw.random()
    if choice < 0.15:
        del table[last]
    elif choice < 0.3 and isinstance(table, list):
        table.insert(draw.randrange(len(table) + 1), table[last])
    elif choice < 0.5 and isinstance(table[last], int | float) and not isinstance(table[last], bool):
        table[last] += draw.choice((1, -1, 0.5, 10**6))
    else:
        table[last] = draw.choice(JUNK)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows) if isinstance(rows, list) else dumped(rows)


def dumped(value: Any) -> bytes:
    """Return a value as the bytes of a file."""
    return json.dumps(value).encode()


def _in_bytes(data: bytes, draw: random.Random) -> bytes:
    """Cut the file, repeat a piece of it, or put other bytes there."""
    start, length = draw.randrange(len(data) + 1), draw.choice((1, 10, 1000))
    piece = draw.choice((b"", data[start : start + length] * 2, draw.randbytes(length), b"[" * length, b"\x00"))
    return data[:start] if draw.random() < 0.2 else data[:start] + piece + data[start + length :]


def mutate(folder: Path, draw: random.Random) -> str:
    """Change one to three places in the files of a folder; return the names of the files."""
    files = sorted(each for each in folder.iterdir() if each.suffix in (".json", ".jsonl"))
    changed = []
    for _ in range(draw.randint(1, 3)):
        file = draw.choice(files)
        how: Callable[[bytes, random.Random], bytes] = _in_json if draw.random() < 0.8 else _in_bytes
        try:
            file.write_bytes(how(file.read_bytes(), draw))
        except (ValueError, RecursionError, KeyError):  # an earlier change has left no JSON
            file.write_bytes(_in_bytes(file.read_bytes(), draw))
        changed.append(file.name)
    return " ".join(changed)


def fuzz(count: int, seed: int = 0) -> dict[str, Any]:
    """Check mutated folders and return what came of them.

    Args:
        count: How many.
        seed: Of the mutations.
    """
    labels: Counter[str] = Counter()
    exceptions: list[str] = []
    times: list[float] = []
    with tempfile.TemporaryDirectory() as temporary:
        folders = originals(Path(temporary))
        for number in range(count):
            draw = random.Random(seed * 10**9 + number)
            folder = Path(temporary, "mutated")
            shutil.copytree(draw.choice(folders), folder)
            changed, start = mutate(folder, draw), time.process_time()
            try:
                labels[verify(folder, seed=number).label] += 1
            except TurngymError:  # the folder is refused as none of its kind
                labels["refused"] += 1
            except Exception as error:  # what is looked for
                exceptions.append(f"{number} ({changed}): {type(error).__name__}: {error}"[:300])
            times.append(time.process_time() - start)
            shutil.rmtree(folder)
    times.sort()
    return {
        "checked": len(times),
        "labels": dict(sorted(labels.items())),
        "exceptions": exceptions,
        "processor_seconds": {"median": times[len(times) // 2], "slowest": times[-1]} if times else {},
    }
