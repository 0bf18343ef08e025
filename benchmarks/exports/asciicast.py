"""Recordings in asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/): a folder with one file an episode.

``asciinema play FILE`` and its player for web pages show them. The times are invented: an answer is typed, and what
follows stays for as long as it takes to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from turngym.benchmarks.exports import EXPORTS, transcripts, write_episodes
from turngym.benchmarks.exports.source import Source, shown
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
    return write_episodes(out, ((f"{name}.cast", _recording(*each)) for name, *each in transcripts(source.submission)))


def _recording(environment: Mapping[str, Any], row: Mapping[str, Any], transcript: Mapping[str, Any]) -> str:
    title = printable(f"{environment['label']}, task {row['task']}, attempt {row['attempt']}")
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": title}
    return "\n".join(map(json.dumps, (header, *_events(row, transcript)))) + "\n"


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
