"""Building TextWorld's games: once for each request, in a separate process, kept in the user's cache.

A request names the generator, its parameters and a seed; its hash is the name of the folder that holds the game. The
process has a fixed order of hashes and its own generators, so that a request means the same game everywhere, and a
limit on its time, since some requests of TextWorld's own generators never come to an end.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from turngym.envs.textworlds.story import Damaged, read_story
from turngym.errors import ConfigError, missing_extra
from turngym.storage.files import cache_folder
from turngym.text import printable

_FORMAT = 1
_MAKER = "turngym.envs.textworlds.textworld.maker"
LIMIT_SECONDS = 180
"""Processor time after which a build is given up."""
STORY, FACTS, ABOUT = "game.z8", "game.json", "about.json"


def require_textworld() -> None:
    """Raise unless the package is installed."""
    if importlib.util.find_spec("textworld") is None or importlib.util.find_spec("jericho") is None:
        raise missing_extra("TextWorld", "textworld", "textworld")


@lru_cache(maxsize=1)
def _version() -> str:
    return version("textworld")


def folder_of(request: Mapping[str, Any]) -> Path:
    """Return where the game of a request is kept."""
    text = json.dumps([_FORMAT, _version(), request], sort_keys=True)
    return cache_folder("textworld") / hashlib.sha256(text.encode()).hexdigest()[:24]


def built(request: Mapping[str, Any]) -> Path:
    """Return the folder of a game, building it if it is not there, or is damaged.

    Args:
        request: ``game``, ``params``, ``seed`` and ``foods``.

    Raises:
        ConfigError: TextWorld cannot make this game, or not in time; or the cache cannot be written.
    """
    folder = folder_of(request)
    if _is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    except OSError as error:
        raise ConfigError(
            f"TextWorld's games are built in {folder.parent}, which cannot be written ({error}): "
            "set XDG_CACHE_HOME to a folder that can."
        ) from error
    try:
        _make(request, part)
        shutil.rmtree(folder, ignore_errors=True)  # what is damaged
        try:
            part.rename(folder)
        except OSError:
            if not _is_whole(folder):  # else another process was faster
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _is_whole(folder: Path) -> bool:
    try:
        read_story(folder / STORY)
        return {"walkthrough", "max_score"} <= json.loads((folder / ABOUT).read_bytes()).keys() and bool(
            json.loads((folder / FACTS).read_bytes())
        )
    except (OSError, ValueError, AttributeError, Damaged):
        return False


def _make(request: Mapping[str, Any], part: Path) -> None:
    """Run the maker; it ends with this process, whose end closes its input, and when its time is up."""
    command = [sys.executable, "-m", _MAKER, str(part), str(LIMIT_SECONDS), json.dumps(request)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )
    assert process.stdin is not None and process.stderr is not None
    try:
        said = printable(process.stderr.read().decode(errors="replace").strip(), keep="\n")
        status = process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdin.close()
        process.stderr.close()
        process.wait()
    if status == 0:
        return
    what = f"the game {request['game']!r} with {request['params']} and seed {request['seed']}"
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        raise ConfigError(
            f"TextWorld has not finished {what} in {LIMIT_SECONDS} seconds of processor time: choose an easier one."
        )
    raise ConfigError(f"TextWorld cannot make {what}: {said.splitlines()[-1] if said else f'exit status {status}'}")
