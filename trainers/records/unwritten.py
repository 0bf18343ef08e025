"""The run folder as the other ranks of a run see it: they read it, and the first rank writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from turngym.agents.episodes.evaluate import EvaluationResult
from turngym.agents.trajectory import Trajectory
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.records.samples import Decode
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.memory import with_memory_settings


class UnwrittenFolder(RunFolder):
    """A run folder whose methods write nothing."""

    is_written = False

    def resumed_config(self, given: TrainConfig) -> TrainConfig:
        """Return the settings of the run with those given that only bound memory."""
        return with_memory_settings(self.config(), given)

    def remove_if_nothing_happened(self) -> None:
        """Leave it."""

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Leave it."""

    def keep_metrics(self, before_iteration: int) -> None:
        """Leave it."""

    def write_evaluation(self, name: str, result: EvaluationResult) -> None:
        """Leave it."""

    def reserve(self) -> None:
        """Leave it."""

    def release(self) -> None:
        """Leave it."""

    def write_diagnosis(self, diagnosis: Mapping[str, Any]) -> None:
        """Leave it."""

    def forget_diagnosis(self) -> None:
        """Leave it."""

    def write_samples(
        self,
        name: str,
        trajectories: Sequence[Trajectory],
        decode: Decode | None = None,
        advantages: Sequence[Sequence[Sequence[float]] | None] | None = None,
    ) -> None:
        """Leave it."""

    def write_instances(self, instances: Iterable[str]) -> None:
        """Leave it."""


@contextmanager
def folder_of_ranks(ranks: Ranks, path: Path, config: TrainConfig | None = None) -> Iterator[RunFolder]:
    """Lock a run folder for all ranks, as :meth:`RunFolder.locked` does for one process.

    Args:
        ranks: The ranks; only the first one writes.
        path: The folder.
        config: Settings of a new run; None opens the folder of an earlier one.

    Raises:
        FolderInUse: Another run writes it.
        RunFolderExists: The folder of a new run is not empty.
        CheckpointError: There is no earlier run.
    """
    with ExitStack() as stack:
        if ranks.is_first:
            yield ranks.agree(lambda: stack.enter_context(RunFolder.locked(path, config)))
        else:
            yield ranks.agree(lambda: UnwrittenFolder(path))
