"""Finished episodes of agent programs since the last checkpoint, so that a resumed run repeats none."""

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
        iteration: Iteration that gathered it.
        temperature: Temperature of its model; greedy episodes repeat the numbers of sampled ones.
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
        has_failed: Whether its program failed before the episode was over.
    """

    trajectory: Trajectory
    counts: Mapping[str, Any]
    has_failed: bool = False


class EpisodeJournal:
    """Keeps episodes on disk as soon as they have finished.

    Args:
        folder: Path.
        iteration: Iteration that a run starts or continues with.

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
        """Keep an episode."""
        content = trajectory_to_json(played.trajectory)
        record = {"group": key.iteration, "key": list(key), "episode": content, "counts": dict(played.counts)}
        self._journal.append([{**record, "failed": played.has_failed}])

    def checkpoint(self, iteration: int, oldest: int) -> None:
        """Start the segment of a checkpoint; what only checkpoints before the oldest one need is deleted."""
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
