"""One training run of the quickstart in a process of its own, with the processor seconds of its phases.

    PYTHONPATH=CHECKOUT python training_loop_side.py OUTPUT TRAIN_OPTIONS...

runs ``turngym train TRAIN_OPTIONS`` of that checkout. It is started by ``training_vs_trl.py``, also on versions whose
learner lies elsewhere.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def timed(kind: Any, method: str, spent: list[float]) -> None:
    """Let every call of a method append the processor seconds that it took."""
    original: Callable[..., Any] = getattr(kind, method)

    def call(*given: Any, **named: Any) -> Any:
        start = time.process_time()
        found = original(*given, **named)
        spent.append(time.process_time() - start)
        return found

    setattr(kind, method, call)


def main() -> int:
    """Train, and write the seconds of every iteration."""
    target, options = Path(sys.argv[1]), sys.argv[2:]
    rooms = find_spec("turngym.trainers.engine") is not None
    learner = import_module("turngym.trainers.engine.learner" if rooms else "turngym.trainers.learner").Learner
    trainer = import_module("turngym.trainers.loop.trainer" if rooms else "turngym.trainers.trainer").Trainer
    update: list[float] = []
    iteration: list[float] = []
    timed(learner, "update", update)
    timed(trainer, "_one_iteration", iteration)
    from turngym.__main__ import main as command

    status = command(["train", *options])
    target.write_text(json.dumps({"update": update, "iteration": iteration}) + "\n", "utf8")
    return int(status or 0)


if __name__ == "__main__":
    sys.exit(main())
