"""Recordings in asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/): a folder with one file an episode.

``asciinema play FILE`` and its player for web pages show them. The times are invented: an answer is typed, and what
follows stays for as long as it takes to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from turngym.benchmarks.exports import EXPORTS, require_new_folder, transcripts
from turngym.benchmarks.exports.source import Source, shown
from turngym.storage.files import write_atomic
from turngym.text import printable

WIDTH, HEIGHT = 100, 30
"""Columns and rows of the recorded terminal."""
_TYPED, _READ, _LONGEST = 40.0, 250.0, 4.0
"""Characters a second that are typed and read, and seconds that either takes at most."""
_PIECE = 8
"""Characters of an answer that appear at once."""


@EXPORTS.register("asciicast")
def export_asciicast(source: Source, out: Path) -> list[Path]:
    """Write a recording of each episode that has a turn.

    Args:
        source: Folder of an evaluation.
        out: A folder, absent or empty.

    Raises:
        ConfigError: It is something else, or the evaluation has no transcripts.
    """
    require_new_folder(out)
    files = []
    for name, environment, row, transcript in transcripts(source.submission):
        title = printable(f"{environment['label']}, task {row['task']}, attempt {row['attempt']}")
        header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": title}
        files.append(out / f"{name}.cast")
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        write_atomic(files[-1], "\n".join(map(json.dumps, (header, *_events(row, transcript)))) + "\n")
    return files


def _events(row: Mapping[str, Any], transcript: Mapping[str, Any]) -> Iterator[tuple[float, str, str]]:
    """Yield seconds, kind and text of each output."""
    time = 0.0
    for turn in transcript["turns"]:
        seen = _lines(shown(turn["observation"]))
        yield round(time, 3), "o", f"{seen}\r\n\x1b[1;32m> "
        time += _pause(seen, _READ)
        answer = _lines(shown(turn["completion"] or turn["action"]))
        pieces = [answer[start : start + _PIECE] for start in range(0, len(answer), _PIECE)]
        for piece in pieces:
            time += _pause(answer, _TYPED) / len(pieces)
            yield round(time, 3), "o", piece
        yield round(time, 3), "o", "\x1b[0m\r\n"
    yield round(time, 3), "o", _lines(shown(transcript.get("final_observation") or ""))
    fault = f", fault: {printable(row['fault'])}" if row["fault"] else ""
    end = f"return {row['returns']:g}, success {row['success']}{fault}"
    yield round(time, 3), "o", f"\r\n\x1b[1m{end}\x1b[0m\r\n"


def _lines(text: str) -> str:
    """Return a text for a terminal, its control characters as escapes."""
    return printable(text, keep="\n").replace("\n", "\r\n")


def _pause(text: str, speed: float) -> float:
    return round(min(_LONGEST, len(text) / speed), 3)
