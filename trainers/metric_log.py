"""Writing the metrics of a run: JSON lines always, TensorBoard where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from turngym.trainers.run_folder import RunFolder


class MetricLog:
    """Writes each iteration's metrics to ``metrics.jsonl`` and to TensorBoard.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._board = _tensorboard(folder)

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one iteration."""
        self.folder.append_metrics(record)
        if self._board is not None:
            for name, value in record.items():
                self._board.add_scalar(name, value, record["iteration"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._board is not None:
            self._board.close()


def _tensorboard(folder: RunFolder) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder.path / "tensorboard"))
