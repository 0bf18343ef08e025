"""Iterations of ``turngym train`` in a process of its own, for ``training_vs_trl.py``; see there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from turngym.__main__ import main as command_line
from turngym.agents.models.loading import LanguageModel
from turngym.benchmarks.studies.speed.sides.trl_task import ENV_ID, SAMPLED, register
from turngym.benchmarks.studies.speed.sides.worker import serve
from turngym.trainers.engine.learner import Learner
from turngym.trainers.loop.trainer import Trainer

_QUIET = ("--no-control", "--max-seconds", "0", "--evaluation.episodes", "0", "--evaluation.every", "0")
seen: list[dict[str, int]] = []
update: list[float] = []
iteration: list[float] = []


def timed(kind: Any, method: str, spent: list[float]) -> None:
    """Let every call of a method append the processor seconds that it took."""
    original: Callable[..., Any] = getattr(kind, method)

    def call(*given: Any, **named: Any) -> Any:
        start = time.process_time()
        found = original(*given, **named)
        spent.append(time.process_time() - start)
        return found

    setattr(kind, method, call)


def options_of(told: dict[str, Any], folder: str) -> list[str]:
    """Return the options of ``turngym train`` for a cell."""
    return [
        *("--env", ENV_ID, "--env-options", f"turns={told['turns']}", f"words={told['words']}"),
        *("--model", told["model"], "--run-dir", f"{folder}/run", *_QUIET, "--device", "cpu", "--threads", "1"),
        *("--algorithm", "grpo", "--grpo.kl-coef", "0", "--grpo.entropy-coef", "0", "--update.learning-rate", "1e-6"),
        *("--update.minibatches", "1", "--update.epochs", "1"),
        *("--rollout.groups", str(told["groups"]), "--rollout.group-size", str(told["group_size"])),
        *("--rollout.format", "plain", "--rollout.max-new-tokens", str(SAMPLED)),
        *("--rollout.prompt.mode", "conversation", "--rollout.prompt.instructions"),
        *("--iterations", str(told["iterations"]), "--checkpoint-every", "1000", *told["options"]),
    ]


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Train, and return seconds and counts of every iteration."""
    for found in (seen, update, iteration):
        found.clear()
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        status = command_line(["train", *options_of(told, folder)])
        whole = time.process_time() - start
        if status:
            return {"error": f"turngym train ended with status {status}"}
        gap = [line for line in (Path(folder) / "run" / "metrics.jsonl").read_text("utf8").splitlines() if line]
    rollout = [total - part for total, part in zip(iteration, update, strict=True)]
    return {"iteration": iteration, "rollout": rollout, "update": update, "seen": seen, "whole": whole, "last": gap[-1]}


def watch() -> None:
    """Measure the trainer's iterations and count what they train on."""
    train_on = Learner.update

    def noting(self: Learner, trajectories: Any, *given: Any, **named: Any) -> Any:
        turns = [turn for each in trajectories for turn in each.turns]
        ends = [each.turns[-1] for each in trajectories]
        before = self.updates
        found = train_on(self, trajectories, *given, **named)
        seen.append(
            {
                "turns": len(turns),
                "sampled": sum(len(turn.completion_ids) for turn in turns),
                "tokens": sum(len(turn.prompt_ids) + len(turn.completion_ids) for turn in ends),
                "updates": self.updates - before,
            }
        )
        return found

    Learner.update = noting  # type: ignore[method-assign]
    timed(Learner, "update", update)
    timed(Trainer, "_one_iteration", iteration)


if __name__ == "__main__":
    torch.set_num_threads(1)
    LanguageModel.stop_ids = property(lambda self: frozenset())  # type: ignore[assignment,method-assign]  # all answers have 8 tokens
    register()
    watch()
    serve(run)
