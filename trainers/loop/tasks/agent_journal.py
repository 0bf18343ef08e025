"""Journal of agent programs' finished episodes since the last checkpoint, which a resumed run does not repeat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from turngym.agents.trajectory import Trajectory
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.trainers.records.journal import Journal


class EpisodeKey(NamedTuple):
    """Key of an episode of a run.

    Args:
        iteration: Iteration of the episode.
        temperature: Sampling temperature; greedy episodes have the same numbers as sampled ones.
        episode: Its number.
    """

    iteration: int
    temperature: float
    episode: int


class PlayedEpisode(NamedTuple):
    """A finished episode.

    Args:
        trajectory: Its turns.
        counts: Token accounting of its calls.
        has_failed: True if its program failed before the episode ended.
    """

    trajectory: Trajectory
    counts: Mapping[str, Any]
    has_failed: bool = False


class EpisodeJournal:
    """Writes episodes to disk as soon as they have finished.

    Args:
        folder: Folder of the journal.
        iteration: First iteration of the run, or of the resumed run.

    Raises:
        CheckpointError: A line other than the last one is damaged.
    """

    def __init__(self, folder: Path, iteration: int) -> None:
        self._journal = Journal(folder)
        records = [record for record in self._journal.read(iteration) if record.get("group", -1) >= iteration]
        self._found = {EpisodeKey(*record["key"]): record for record in records}
        self._journal.keep(records)
        self._journal.open(iteration)

    def find(self, key: EpisodeKey) -> PlayedEpisode | None:
        """Return an episode that finished before the run was interrupted."""
        record = self._found.get(key)
        if record is None:
            return None
        return PlayedEpisode(trajectory_from_json(record["episode"]), record["counts"], record["failed"])

    def add(self, key: EpisodeKey, played: PlayedEpisode) -> None:
        """Write an episode."""
        content = trajectory_to_json(played.trajectory)
        record = {"group": key.iteration, "key": list(key), "episode": content, "counts": dict(played.counts)}
        self._journal.append([{**record, "failed": played.has_failed}])

    def checkpoint(self, iteration: int, oldest: int) -> None:
        """Start the segment of a checkpoint, and delete segments that no kept checkpoint needs."""
        self._journal.forget(range(iteration))
        self._journal.start_segment(iteration, {"is": "checkpoint", "iteration": iteration}, oldest)

    def close(self) -> None:
        """Flush and close the file."""
        self._journal.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()
