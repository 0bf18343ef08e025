"""Logs of Inspect AI, version 2: JSON, or ``.eval``, a zip whose members may be packed with Zstandard."""

from __future__ import annotations

import importlib
import math
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from turngym.agents.recordings.imports import IMPORTS, Import, Log, LoggedEpisode
from turngym.agents.recordings.imports.messages import turns_of
from turngym.agents.usage import Usage
from turngym.errors import ConfigError, MissingExtra
from turngym.storage.bounded import LARGEST_FILE, LARGEST_LINES, parsed, read_json, require_file

_ZSTANDARD = 93
"""Method of compression in a zip."""
_MOST_MEMBERS = 50_000
_LOOKED_AT = 4_096
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Grades of Inspect AI: correct, partial, incorrect, no answer."""
_HEADER = 30
"""Bytes of a local header before its name."""


def _matches(path: Path) -> bool:
    if path.suffix == ".eval":
        return path.is_file()
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    return b'"eval"' in start and b'"version"' in start


def _read(path: Path) -> Log:
    header, samples = _of_zip(path) if path.suffix == ".eval" else _of_json(path)
    if header.get("version") != 2:
        raise ConfigError(f"{path} has version {str(header.get('version'))[:20]} of Inspect AI's logs; 2 is read.")
    about = header["eval"]
    return Log(str(about["model"]), str(about["task"]), [_episode(sample) for sample in samples], "score")


def _of_json(path: Path) -> tuple[Mapping[str, Any], list[Any]]:
    content = read_json(path)
    return content, content.get("samples") or []


def _of_zip(path: Path) -> tuple[Mapping[str, Any], list[Any]]:
    """Return header and samples; what the members hold together is bounded, whatever their headers say."""
    require_file(path, LARGEST_LINES)
    left = LARGEST_LINES
    header: Any = {}
    samples = []
    try:
        with zipfile.ZipFile(path) as file, path.open("rb") as raw:
            members = file.infolist()
            if len(members) > _MOST_MEMBERS:
                raise ConfigError(
                    f"{path} has {len(members):,} members, more than the {_MOST_MEMBERS:,} that are read."
                )
            for member in members:
                if member.filename != "header.json" and not member.filename.startswith("samples/"):
                    continue
                text = _content(file, raw, member, min(left, LARGEST_FILE))
                left -= len(text)
                content = parsed(text.decode("utf8"))
                if member.filename == "header.json":
                    header = content
                else:
                    samples.append(content)
    except zipfile.BadZipFile as error:
        raise ConfigError(f"{path} is not a zip that can be read: {error}.") from error
    return header, samples


def _content(file: zipfile.ZipFile, raw: IO[bytes], member: zipfile.ZipInfo, most: int) -> bytes:
    if member.compress_type == _ZSTANDARD and sys.version_info < (3, 14):
        found = _unpacked(raw, member, most)
    else:
        with file.open(member) as packed:
            found = packed.read(most + 1)
    if len(found) > most:
        raise ConfigError(f"{member.filename[:80]} of {file.filename} unpacks to more than {most:,} bytes: not read.")
    return found


def _unpacked(raw: IO[bytes], member: zipfile.ZipInfo, most: int) -> bytes:
    """Return a member packed with Zstandard, at most one byte more than allowed.

    Raises:
        MissingExtra: Neither Python nor a package unpacks it.
    """
    try:
        zstandard = importlib.import_module("zstandard")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "this log is packed with Zstandard, which Python reads from 3.14 on: pip install zstandard, or convert it "
            "with `inspect log convert --to json`."
        ) from error
    raw.seek(member.header_offset)
    head = raw.read(_HEADER)
    raw.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(raw.read(member.compress_size))
        return bytes(reader.read(most + 1))
    except zstandard.ZstdError as error:
        raise ValueError(f"{member.filename[:80]} cannot be unpacked: {error}") from error


def _episode(sample: Mapping[str, Any]) -> LoggedEpisode:
    scores = dict(_scores(sample.get("scores") or {}))
    score = scores.get("score", next(iter(scores.values()), 0.0))
    turns, rules, last = turns_of(sample.get("messages") or (), scores.get("return", score))
    broken = sample.get("error")
    used = list((sample.get("model_usage") or {}).values())
    read, written = (sum(int(each.get(f"{name}_tokens") or 0) for each in used) for name in ("input", "output"))
    fault = str(broken.get("message", "error"))[:500] if isinstance(broken, dict) else ""
    is_solved = scores.get("success", score) >= 1
    return LoggedEpisode(str(sample["id"])[:1000], turns, is_solved, score, rules, last, Usage(read, written), fault)


def _scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, each in scores.items():
        value = each.get("value")
        number = _LETTERS.get(value) if isinstance(value, str) else value
        if isinstance(number, int | float) and math.isfinite(number):
            yield name, float(number)


IMPORTS.register("inspect")(Import(_matches, _read))
