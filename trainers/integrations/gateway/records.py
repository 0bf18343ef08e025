"""The log of a gateway on disk: one file for each episode, one line of JSON for each answer."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from turngym.errors import ConfigError
from turngym.trainers.integrations.gateway.calls import SampledCall

if TYPE_CHECKING:
    from turngym.trainers.integrations.gateway.episode import GatewayEpisode


class Records:
    """Appends each answer to the file of its episode before the client gets it.

    Args:
        folder: Where: a new folder, or an empty one.

    Raises:
        ConfigError: The folder cannot be made, or holds something.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(folder.iterdir())
        except OSError as error:
            raise ConfigError(f"the log cannot be written to {folder} ({error}): pass a new folder.") from error
        if not is_empty:
            raise ConfigError(f"{folder} holds something: pass a new folder for the log.")
        self._lock = threading.Lock()

    def write(self, episode: GatewayEpisode, call: SampledCall) -> None:
        """Append an answer."""
        line = json.dumps({"episode": episode.id, **call.as_json()}, ensure_ascii=True)
        with self._lock, (self.folder / f"{episode.id}.jsonl").open("a", encoding="utf8") as file:
            file.write(line + "\n")
