"""The control: supervised learning for the duration of training, from the same warm start on the same data.

Run as ``python -m turngym.trainers.loop.control RUN_FOLDER PARENT_PID`` next to the training. The parent publishes the
seconds of training so far, and the control pauses when it is ahead. It ends with the training, with its parent, or when
it has memorised the demonstrations.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from turngym.agents.models.loading import load_model
from turngym.storage.files import write_json
from turngym.trainers.engine.ranks.launch import LAUNCHER_VARIABLES
from turngym.trainers.loop.setup import build_supervised
from turngym.trainers.loop.sft import SupervisedLearner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.records.run_folder import RunFolder

_BUDGET = "allowance.json"
_LEARNT_BY_HEART = 1e-4
"""Mean loss per token below which the demonstrations are memorised. Further steps are harmful: AdamW's steps grow
relative to the vanishing gradients until one destroys the model."""


class ControlArm:
    """The parent's handle of the control process.

    Args:
        folder: The run folder, with the warm start in it.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        (folder.path / "control" / _BUDGET).unlink(missing_ok=True)
        command = [sys.executable, "-m", "turngym.trainers.loop.control", str(folder.path), str(os.getpid())]
        variables = {name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES}
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, env=variables)

    def allow(self, seconds: float, is_final: bool = False) -> None:
        """Allow that many seconds of learning in total."""
        write_json(self.folder.path / "control" / _BUDGET, {"seconds": seconds, "is_final": is_final})

    def finish(self, seconds: float) -> bool:
        """Wait until the allowed seconds are used; return True if it wrote a model."""
        self.allow(seconds, is_final=True)
        return self._process.wait() == 0

    def stop(self) -> None:
        """Stop it immediately, without a model."""
        self._process.kill()
        self._process.wait()


def is_done(folder: RunFolder) -> bool:
    """Return True if the control of a run has written its model."""
    return (folder.path / "control" / "summary.json").exists()


class _Allowance:
    """Compares the time used for learning with the parent's allowance."""

    def __init__(self, folder: RunFolder, parent: int) -> None:
        self.file = folder.path / "control" / _BUDGET
        self.parent = parent
        self.used = 0.0
        self._since = time.perf_counter()

    def is_used_up(self) -> bool:
        """Wait while ahead of the training; return True once training or parent has ended."""
        self.used += time.perf_counter() - self._since
        while True:
            seconds, is_final = self._allowed()
            over = self.is_orphan() or (is_final and self.used >= seconds)
            if over or self.used < seconds:
                self._since = time.perf_counter()
                return over
            time.sleep(0.05)

    def _allowed(self) -> tuple[float, bool]:
        if not self.file.exists():
            return 0.0, False
        content = json.loads(self.file.read_text("utf8"))
        return float(content["seconds"]), bool(content["is_final"])

    def is_orphan(self) -> bool:
        """Return True if the parent has ended."""
        return os.getppid() != self.parent


def learn(learner: SupervisedLearner, is_used_up: Callable[[], bool]) -> list[float]:
    """Learn until the time is used or the demonstrations are memorised; return the loss of each epoch."""
    losses: list[float] = []
    while not (is_used_up() or (losses and losses[-1] < _LEARNT_BY_HEART)):
        losses.append(learner.run_epoch(is_used_up))
    return losses


def main(path: Path, parent: int) -> int:
    """Run the control; return 1 if the parent ended first."""
    folder = RunFolder.open(path)
    config = folder.config()
    if config.threads:
        torch.set_num_threads(config.threads)
    model = load_model(str(folder.path / "warmup"), device=config.device)
    task = make_task(config)
    data = task.demonstrations(model, config.warmup.demonstrations)
    task.close()
    learner = build_supervised(config, model, data)
    learner.epoch = config.warmup.epochs  # a batch order that differs from the warm-up's
    allowance = _Allowance(folder, parent)
    losses = learn(learner, allowance.is_used_up)
    if allowance.is_orphan():
        return 1
    model.save(folder.path / "control" / "model")
    config.model_settings("control").write(folder.path / "control" / "model")
    summary = {"epochs": len(losses), "seconds": allowance.used, "losses": losses}
    write_json(folder.path / "control" / "summary.json", summary)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
