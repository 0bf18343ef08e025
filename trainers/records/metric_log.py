"""Writing the metrics of a run: JSON lines always, and copies to trackers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from turngym.errors import error_text
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.records.trackers import Detail, Tracker, TrackerName, start_tracker
from turngym.trainers.settings.config import TrainConfig


class MetricLog:
    """Writes metrics to ``metrics.jsonl`` and to trackers: TensorBoard if installed, and those of ``config.track``.

    Metrics that cannot be written to ``metrics.jsonl`` are an error. A tracker that fails, at its start or later, as
    without a network, gives one warning, is counted in ``failed`` and disabled.

    Args:
        folder: The run folder.
        config: Settings of the run.
        on_warning: Called if a tracker fails.
    """

    def __init__(self, folder: RunFolder, config: TrainConfig, on_warning: Callable[[str], None]) -> None:
        self.folder = folder
        self.failed = 0
        self._on_warning = on_warning
        self._trackers: dict[TrackerName, Tracker] = {}
        if not folder.is_written:
            return
        default: tuple[TrackerName, ...] = ("tensorboard",) if find_spec("tensorboard") else ()
        for name in dict.fromkeys((*default, *config.track)):
            self._guarded(name, "start", lambda name=name: self._start(name, config))  # type: ignore[misc]

    def _start(self, name: TrackerName, config: TrainConfig) -> None:
        self._trackers[name] = start_tracker(name, self.folder, config)

    def write(self, record: Mapping[str, Any], detail: Detail) -> None:
        """Write one iteration."""
        self.folder.append_metrics(record)
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, "log", lambda tracker=tracker: tracker.log(record, detail))  # type: ignore[misc]

    def _guarded(self, name: TrackerName, verb: str, call: Callable[[], None]) -> None:
        """Call a tracker, which may print: standard output is for results."""
        try:
            with redirect_stdout(sys.stderr):
                call()
        except (Exception, SystemExit) as error:  # of a third party: the run has its metrics without it
            self._trackers.pop(name, None)
            self.failed += 1
            self._on_warning(
                f"{name} failed to {verb} ({error_text(error)}); the run continues without it, and metrics.jsonl has "
                "all metrics"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, "close", lambda tracker=tracker: tracker.close(error is not None))  # type: ignore[misc]
