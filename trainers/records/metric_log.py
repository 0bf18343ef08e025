"""Writing the metrics of a run: JSON lines always, TensorBoard where it is installed, a tracking service if asked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from turngym.errors import MissingExtra
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig


class Tracker(Protocol):
    """A metrics backend in addition to the run folder."""

    def log(self, record: Mapping[str, Any]) -> None:
        """Log the metrics of one iteration."""

    def close(self) -> None:
        """Flush and finish."""


class MetricLog:
    """Writes metrics to ``metrics.jsonl``, and to TensorBoard and a tracking service if there are any.

    A metric that could not be written to ``metrics.jsonl`` is an error. The others are copies: one that breaks, as on a
    full disk or without a network, gives one warning and is disabled from then on.

    Args:
        folder: The run folder.
        config: Settings of the run.
        on_warning: Called if a copy breaks.

    Raises:
        MissingExtra: The tracking service that was asked for is not installed.
    """

    def __init__(self, folder: RunFolder, config: TrainConfig, on_warning: Callable[[str], None]) -> None:
        self.folder = folder
        self._on_warning = on_warning
        self._trackers: dict[str, Tracker] = {}
        if not folder.is_written:
            return
        if config.track != "none":
            self._trackers[config.track] = service(config.track, folder, config)
        board = _tensorboard(folder)
        if board is not None:
            self._trackers["tensorboard"] = board

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one iteration."""
        self.folder.append_metrics(record)
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, lambda tracker=tracker: tracker.log(record))  # type: ignore[misc]

    def _guarded(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # any third-party error: the run has its metrics without it
            del self._trackers[name]
            self._on_warning(
                f"{name} takes no more metrics ({type(error).__name__}: {error}); metrics.jsonl has them all"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, tracker.close)


class _Board:
    """TensorBoard files in the run folder."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def log(self, record: Mapping[str, Any]) -> None:
        for name, value in record.items():
            self.writer.add_scalar(name, value, record["iteration"])

    def close(self) -> None:
        self.writer.close()


def _tensorboard(folder: RunFolder) -> Tracker | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return _Board(SummaryWriter(str(folder.path / "tensorboard")))


class _Service:
    """wandb or trackio, which have the same three calls; iterations are the steps."""

    def __init__(self, module: Any, folder: RunFolder, config: TrainConfig) -> None:
        options = {"dir": str(folder.path)} if module.__name__ == "wandb" else {}
        self.module = module
        module.init(project="turngym", name=folder.path.name, config=config.as_json(), resume="allow", **options)

    def log(self, record: Mapping[str, Any]) -> None:
        self.module.log(dict(record), step=int(record["iteration"]))

    def close(self) -> None:
        self.module.finish()


def service(name: str, folder: RunFolder, config: TrainConfig) -> Tracker:
    """Return a tracking service that is ready to log metrics.

    Args:
        name: ``wandb`` or ``trackio``; their own environment variables, such as WANDB_MODE=offline, apply.
        folder: The run folder; its name is the name of the run there.
        config: Settings of the run.

    Raises:
        MissingExtra: It is not installed.
    """
    return _Service(require_service(name), folder, config)


def require_service(name: str) -> Any:
    """Return the package of a tracking service.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"--track {name} needs the package {name}, which is not installed: pip install {name}, or leave it out; "
            "metrics.jsonl and TensorBoard have the metrics in any case."
        ) from error
