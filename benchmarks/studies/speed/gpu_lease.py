"""The time, the device and the table of ``gpu.py``."""

from __future__ import annotations

import argparse
import gc
import json
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from turngym.benchmarks.studies.speed.gpu_models import SHAPES, Shape


class Lease:
    """What the pieces share.

    Args:
        options: The options of the script.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device: str = options.device
        self.on_gpu = self.device != "cpu"
        self.rows: list[dict[str, Any]] = []
        self.peak_operations = 0.0
        """Operations a second of a large product in bfloat16, once it is measured."""
        self._start = time.perf_counter()

    @property
    def left(self) -> float:
        """Seconds left."""
        return float(self.options.seconds) - (time.perf_counter() - self._start)

    @property
    def failed(self) -> int:
        """Number of failed checks."""
        return sum(row["ok"] is False for row in self.rows)

    @property
    def shape(self) -> Shape:
        """Shape of the measured model."""
        return SHAPES[self.options.shape]

    @property
    def checked_shape(self) -> Shape:
        """Shape of the models that are compared with the CPU."""
        return SHAPES["tiny" if self.options.shape == "tiny" else "small"]

    def add(self, piece: str, name: str, ok: bool | None = None, **figures: Any) -> None:
        """Add a row of the table, and print it.

        Args:
            piece: Name of the piece.
            name: Name of the row.
            ok: Whether a check held; None for a measurement.
            figures: Numbers of the row.
        """
        shortened = {key: float(f"{v:.4g}") if isinstance(v, float) else v for key, v in figures.items()}
        self.rows.append({"piece": piece, "name": name, "ok": ok, **shortened})
        print(json.dumps(self.rows[-1]), flush=True)

    def attempt(self, piece: str, name: str, work: Callable[[], None]) -> None:
        """Run a function, and record a failed row if it raises an exception."""
        try:
            work()
        except Exception as error:  # whatever a new device does must not cost the other rows
            traceback.print_exc(limit=-4)
            self.add(piece, name, False, error=f"{type(error).__name__}: {error}"[:300])

    def synchronize(self) -> None:
        """Wait until the device has finished its work."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def seconds_of(self, work: Callable[[], object]) -> float:
        """Return how long some work takes on the device."""
        self.synchronize()
        start = time.perf_counter()
        work()
        self.synchronize()
        return time.perf_counter() - start

    def forget_memory(self) -> None:
        """Free what nobody holds, and start to count the memory from here."""
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def memory(self) -> float | None:
        """Return the largest memory in GiB that was in use."""
        return torch.cuda.max_memory_allocated() / 2**30 if self.on_gpu else None

    def table(self) -> str:
        """Return all rows as a Markdown table."""
        lines = ["", "| piece | what | ok | figures |", "|---|---|---|---|"]
        for row in self.rows:
            figures = [f"{key} {v}" for key, v in row.items() if key not in ("piece", "name", "ok") and v is not None]
            mark = {None: "", True: "yes", False: "NO"}[row["ok"]]
            lines.append(f"| {row['piece']} | {row['name']} | {mark} | {', '.join(figures)} |")
        passed = sum(row["ok"] is True for row in self.rows)
        return "\n".join([*lines, "", f"{passed} checks passed, {self.failed} failed"])
