"""One rank of ``ranks.py``; see there."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from training_vs_trl_task import register
from training_vs_trl_turngym_side import iteration, options_of, seen, update, watch

from turngym.__main__ import main as command_line
from turngym.agents.models.loading import LanguageModel
from turngym.storage.files import write_json
from turngym.trainers.engine.ranks.process_group import ProcessGroup
from turngym.trainers.loop.trainer import Trainer

wall: list[float] = []
communication: list[float] = []
waiting: list[float] = []
_sums = [0.0]
_ranks: list[ProcessGroup] = []


def watch_messages() -> None:
    """Measure the sums alone, between barriers, and everything else that is exchanged."""
    add_up, begin = ProcessGroup.sum, Trainer._one_iteration

    def summing(self: ProcessGroup, tensors: Any) -> None:
        _ranks[:] = [self]
        self.barrier()
        start = time.perf_counter()
        add_up(self, tensors)
        _sums[0] += time.perf_counter() - start

    def timed(self: Trainer) -> dict[str, Any]:
        start, sums, seconds = time.perf_counter(), _sums[0], self.ranks.seconds
        found = begin(self)
        wall.append(time.perf_counter() - start)
        communication.append(_sums[0] - sums)
        waiting.append(self.ranks.seconds - seconds - communication[-1])
        return found

    ProcessGroup.sum = summing  # type: ignore[method-assign]
    Trainer._one_iteration = timed  # type: ignore[method-assign]


def main(folder: Path) -> int:
    """Train, and write what this rank measured."""
    told = json.loads((folder / "told.json").read_text("utf8"))
    told["options"] = ["--precision", "fp32"]
    status = command_line(["train", *options_of(told, str(folder))])
    measured = {"iteration": wall, "processor": iteration, "update": update}
    measured |= {"communication": communication, "waiting": waiting}
    write_json(folder / f"rank-{os.environ['RANK']}.json", {**measured, "seen": seen})
    return status


if __name__ == "__main__":
    torch.set_num_threads(1)
    LanguageModel.stop_ids = property(lambda self: frozenset())  # type: ignore[assignment,method-assign]  # all answers have 8 tokens
    register()
    watch()
    watch_messages()
    sys.exit(main(Path(sys.argv[1])))
