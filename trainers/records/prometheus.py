"""Metrics of a run as a text file for Prometheus, which its node exporter or any file server gives to it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turngym.storage.files import write_atomic

FOLDER = "TURNGYM_PROMETHEUS_FOLDER"
"""Variable with the folder of the node exporter's text files; without it the file is in the run folder."""
_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
_NO_FILE = re.compile(r"[^\w.-]")


def exposition(record: Mapping[str, Any], run: str) -> str:
    """Return metrics in Prometheus' text format, one gauge each, with the name of the run as a label.

    Args:
        record: Metrics by name.
        run: Name of the run.

    >>> print(exposition({"rollout/success": 0.5, "train/grad_norm": math.inf}, "first"), end="")
    # TYPE turngym_rollout_success gauge
    turngym_rollout_success{run="first"} 0.5
    # TYPE turngym_train_grad_norm gauge
    turngym_train_grad_norm{run="first"} +Inf
    """
    label = run.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    named = {"turngym_" + _NO_NAME.sub("_", name): float(value) for name, value in record.items()}
    return "".join(f'# TYPE {name} gauge\n{name}{{run="{label}"}} {_number(value)}\n' for name, value in named.items())


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("+Inf" if value > 0 else "-Inf")


class PrometheusFile:
    """A file that always holds the metrics of the newest iteration.

    Args:
        run_folder: The run folder; its name is the name of the run.
    """

    def __init__(self, run_folder: Path) -> None:
        self.run = run_folder.resolve().name
        folder = os.environ.get(FOLDER, "")
        self.path = Path(folder) / f"{_NO_FILE.sub('_', self.run)}.prom" if folder else run_folder / "metrics.prom"

    def log(self, record: Mapping[str, Any], detail: object) -> None:
        """Replace the file, in one step, so that no half of it is read."""
        write_atomic(self.path, exposition(record, self.run))

    def close(self, failed: bool) -> None:
        """Leave the file as it is: Prometheus shows when it was written last."""
