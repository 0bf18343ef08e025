"""Writing of checkpoints in the training loop: on all ranks, on a full disk, and after an error."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from safetensors import SafetensorError

from turngym.trainers.core.finite import check_weights
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.ranks.failures import is_known_to_all
from turngym.trainers.engine.ranks.sharding import is_sharded
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints, keep_newest, save_checkpoint, write_divided
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.diagnosis import DISK, kind_of


@dataclass(frozen=True)
class Progress:
    """Progress of a run.

    Args:
        iteration: Number of completed iterations.
        instances: Hashes of the played instances.
        extra: Totals, and the metrics of the last iteration.
    """

    iteration: int
    instances: set[str]
    extra: Mapping[str, Any]


class CheckpointWriter:
    """Writes checkpoints into a run folder.

    Args:
        learner: Weights and optimiser.
        task: Task, which writes additional files.
        folder: The run folder.
    """

    def __init__(self, learner: Learner, task: TaskSource, folder: RunFolder) -> None:
        self.learner = learner
        self.ranks = learner.ranks
        self.task = task
        self.folder = folder
        self._took_reserve = False

    def write(self, progress: Progress) -> None:
        """Write a checkpoint on all ranks; on a full disk, the older of two is deleted first.

        Because this may not suffice, the reserved space is also freed, and reserved again afterwards if possible.

        Raises:
            DivergenceError: The weights are not finite.
        """
        check_weights(self.learner.trained_modules)
        self._write_divided(progress.iteration)
        self.ranks.on_first(lambda: self._write_with_room(progress))

    def write_last(self, progress: Progress, error: Exception) -> None:
        """Write a checkpoint after an error, by rank 0 alone, or by all ranks if weights are sharded.

        With sharded weights, nothing is written unless all ranks know of the error.

        Raises:
            DivergenceError: The weights are not finite.
        """
        if is_sharded(self.learner.network):
            if is_known_to_all(error):
                self.write(progress)
        elif self.ranks.is_first:
            check_weights(self.learner.trained_modules)
            self._write_with_room(progress)

    def _write_divided(self, iteration: int) -> None:
        """Write the sharded tensors on every rank; all ranks raise the same error."""
        folder = self.folder.checkpoints
        try:
            write_divided(folder, self.learner, iteration)
        except OSError as error:
            if kind_of(error) != DISK or self.ranks.from_first(len(all_checkpoints(folder))) < 2:
                raise
            self.ranks.on_first(self._make_room)
            write_divided(folder, self.learner, iteration)

    def _make_room(self) -> None:
        keep_newest(self.folder.checkpoints, 1)
        self.folder.release()
        self._took_reserve = True

    def _write_with_room(self, progress: Progress) -> None:
        try:
            self._write(progress)
        except (OSError, SafetensorError) as error:
            if kind_of(error) != DISK or len(all_checkpoints(self.folder.checkpoints)) < 2:
                raise
            self._make_room()
            self._write(progress)
        if self._took_reserve:
            self._took_reserve = False
            with suppress(OSError):  # not needed for the diagnosis
                self.folder.reserve()

    def _write(self, progress: Progress) -> None:
        self.folder.write_instances(progress.instances)
        save_checkpoint(self.folder.checkpoints, self.learner, progress.iteration, progress.extra)
        self.task.save(self.folder)
