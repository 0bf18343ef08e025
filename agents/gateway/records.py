"""The log of a gateway on disk: one file for each episode, one line of JSON for each answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turngym.agents.gateway.calls import SampledCall
from turngym.errors import ConfigError

if TYPE_CHECKING:
    from turngym.agents.gateway.episode import GatewayEpisode


class Records:
    """Appends each answer to the file of its episode before the client gets it, in a thread.

    Args:
        folder: New or empty folder.

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
        self._thread = ThreadPoolExecutor(1, "turngym-gateway-records")

    def write(self, episode: GatewayEpisode, calls: Sequence[SampledCall]) -> Future[None]:
        """Append the answers to a request, behind those of earlier calls of this method."""
        lines = [{"episode": episode.id, **call.as_json()} for call in calls]
        return self._thread.submit(self._append, self.folder / f"{episode.id}.jsonl", lines)

    def flush(self) -> None:
        """Wait until all answers so far are written."""
        self._thread.submit(int).result()

    def close(self) -> None:
        """Write what is waiting, and end the thread."""
        self._thread.shutdown()

    @staticmethod
    def _append(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
        with path.open("a", encoding="utf8") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=True) + "\n")
