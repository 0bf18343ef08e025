"""Kills of an arena at random moments: its results are those of one in one piece, to the byte.

    python benchmarks/studies/games/arena_kills.py [--kills 20]

An arena of three games is played by ``turngym arena`` in one piece, with a player that joins and one that retires. The
same commands are then killed (SIGKILL) after a random number of matches and a random time, and repeated. The file
``results.json`` must be the same, and the records too but for times. Writes ``benchmarks/results/arena_kills.json``;
ends with 1 if anything differs.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import track

from turngym.benchmarks.studies.harness import arguments, write_result

MATCHES = 200
GAMES = ("turngym/KuhnPoker-v0", "turngym/LeducPoker-v0", "turngym/TicTacToe-v0")
FIRST = ("--games", *GAMES, "--players", "random", "first_legal", "equilibrium", "minimax", "--matches", f"{MATCHES}")
SECOND = ("--players", "first2=first_legal", "--retire", "first_legal", "--matches", f"{2 * MATCHES}")
_POLL_SECONDS, _LONGEST_SECONDS = 0.01, 600.0


def start(folder: Path, words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command on an arena."""
    command = [sys.executable, "-m", "turngym", "arena", str(folder), *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(folder: Path, words: Sequence[str]) -> None:
    """Run a command to its end."""
    if code := start(folder, words).wait():
        raise SystemExit(f"turngym arena {' '.join(words)} ended with {code}")


def count(folder: Path) -> int:
    """Return the number of stored matches, an unfinished line included."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("games/*/episodes.jsonl"))


def kill(folder: Path, words: Sequence[str], matches: int, seconds: float) -> int | None:
    """Run a command and kill it; return the number of stored matches then, None if it was done before.

    Args:
        folder: The arena.
        words: The command.
        matches: Number of new matches to wait for.
        seconds: Time to wait then.
    """
    before, process = count(folder), start(folder, words)
    end = time.monotonic() + _LONGEST_SECONDS
    while count(folder) < before + matches and process.poll() is None and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
    time.sleep(seconds)
    is_done = process.poll() is not None
    process.kill()
    process.wait()
    return None if is_done else count(folder)


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of all matches in order, without times."""
    lines = [line for path in sorted(folder.glob("games/*/episodes.jsonl")) for line in path.read_text().splitlines()]
    found = [json.loads(line) for line in lines]
    for record in found:
        del record["started"]
        for seat in record["seats"].values():
            del seat["latency"]
    return sorted(found, key=lambda record: int(record["block_id"]))


def main() -> int:
    """Play, kill, compare, and write what came out."""
    parser = arguments(__doc__, "arena_kills.json")
    parser.add_argument("--kills", type=int, default=20, help="kills, half of them in either command")
    given = parser.parse_args()
    draw, at = random.Random(0), list[int]()
    with tempfile.TemporaryDirectory() as place:
        whole, killed = Path(place, "whole"), Path(place, "killed")
        finish(whole, FIRST)
        finish(whole, SECOND)
        for number in track(range(given.kills), "kills"):
            words = FIRST if number < given.kills // 2 else SECOND
            if number == given.kills // 2:
                finish(killed, FIRST)
            most = 2 * MATCHES // max(given.kills, 1)
            found = kill(killed, words, draw.randrange(most), draw.random() / 2)
            at += [] if found is None else [found]
        finish(killed, SECOND)
        told = {
            "kills": len(at),
            "matches_at_kills": at,
            "matches": count(killed),
            "results_are_the_same_file": (whole / "results.json").read_bytes()
            == (killed / "results.json").read_bytes(),
            "records_are_the_same": records(whole) == records(killed),
        }
    print(json.dumps(told, indent=1))
    write_result(given.out, told)
    return 0 if told["results_are_the_same_file"] and told["records_are_the_same"] else 1


if __name__ == "__main__":
    sys.exit(main())
