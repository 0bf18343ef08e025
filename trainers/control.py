"""The control arm: supervised learning for as long as training takes, from the same warm start on the same data.

Run as ``python -m turngym.trainers.control RUN_FOLDER`` beside the training. It goes on until the file
``control/budget`` names the seconds it may use, then writes its model; it also ends when its parent does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import torch

from turngym.agents.models import load_model
from turngym.files import write_atomic, write_json
from turngym.trainers.run_folder import RunFolder
from turngym.trainers.setup import policy_agent, training_vector
from turngym.trainers.sft import SupervisedLearner, demonstrations


class ControlArm:
    """The control arm as its parent sees it: a process beside the training.

    Args:
        folder: The run folder, with the warm start in it.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        (folder.path / "control" / "budget").unlink(missing_ok=True)
        command = [sys.executable, "-m", "turngym.trainers.control", str(folder.path)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def finish(self, seconds: float) -> bool:
        """Let it use up the given seconds of learning, wait for it, and return whether it wrote a model."""
        write_atomic(self.folder.path / "control" / "budget", str(seconds))
        return self._process.wait() == 0

    def stop(self) -> None:
        """End it at once, without a model."""
        self._process.kill()
        self._process.wait()


def _budget(folder: RunFolder) -> float:
    file = folder.path / "control" / "budget"
    return float(file.read_text("utf8")) if file.exists() else float("inf")


def main(path: Path) -> int:
    """Learn until the budget is used up; returns 1 if the parent went away before."""
    parent = os.getppid()
    folder = RunFolder.open(path)
    config = folder.config()
    torch.set_num_threads(max(config.threads, 1))
    model = load_model(str(folder.path / "warmup"))
    vector = training_vector(config)
    data = demonstrations(vector, policy_agent(config, model), config.warmup.demonstrations, config.seed)
    vector.close()
    learner = SupervisedLearner(model.network, data, config.warmup, config.seed)
    learner.epoch = config.warmup.epochs  # other orders of the batches than the warm-up had
    start = time.perf_counter()

    def over() -> bool:
        return time.perf_counter() - start >= _budget(folder) or os.getppid() != parent

    losses = []
    while not over():
        losses.append(learner.run_epoch(over))
    if os.getppid() != parent:
        return 1
    model.save(folder.path / "control" / "model")
    summary = {"epochs": len(losses), "seconds": time.perf_counter() - start, "losses": losses}
    write_json(folder.path / "control" / "summary.json", summary)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
