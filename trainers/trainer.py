"""The training loop: rollouts, credit, updates, metrics, checkpoints."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

from turngym.agents.models import LanguageModel
from turngym.agents.trajectory import Branch, Trajectory
from turngym.trainers.algorithm import Rollout
from turngym.trainers.checkpoint import all_checkpoints, load_checkpoint, save_checkpoint
from turngym.trainers.config import TrainConfig
from turngym.trainers.learner import Learner
from turngym.trainers.metric_log import MetricLog
from turngym.trainers.run_folder import RunFolder
from turngym.trainers.samples import advantages_by_turn
from turngym.trainers.task import Task

_SAMPLES = 4


class Played(NamedTuple):
    """What was played for an iteration, whether it is trained on or not."""

    sampled: list[Trajectory]
    greedy: list[Trajectory]
    branched: list[Trajectory]


class Trainer:
    """Runs iterations and keeps the run folder up to date.

    Args:
        config: Settings of the run.
        model: The policy.
        learner: Owns the weights and the optimiser.
        task: Where trajectories come from.
        folder: The run folder.
        evaluate: Returns metrics of the current policy; called every ``config.evaluation.every`` iterations.
    """

    def __init__(
        self,
        config: TrainConfig,
        model: LanguageModel,
        learner: Learner,
        task: Task,
        folder: RunFolder,
        evaluate: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self.config = config
        self.model = model
        self.learner = learner
        self.task = task
        self.folder = folder
        self.evaluate = evaluate
        self.iteration = 0
        self.turns_total = 0
        self.seconds_total = 0.0
        self.instances = folder.instances()
        self.stop_requested = False

    def resume(self) -> None:
        """Go back to the newest checkpoint; from the beginning if there is none."""
        found = all_checkpoints(self.folder.checkpoints)
        if found:
            self.iteration, extra = load_checkpoint(found[-1], self.learner)
            self.turns_total, self.seconds_total = int(extra["turns_total"]), float(extra["seconds_total"])
            self.task.resume(self.folder, self.model, self.iteration)
        self.folder.keep_metrics(self.iteration)

    def save(self) -> None:
        """Write a checkpoint."""
        self.folder.write_instances(self.instances)
        totals = {"turns_total": self.turns_total, "seconds_total": self.seconds_total}
        save_checkpoint(self.folder.checkpoints, self.learner, self.iteration, totals)
        self.task.save(self.folder)

    def run(self, on_iteration: Callable[[Mapping[str, Any]], None] = lambda record: None) -> None:
        """Run the remaining iterations; an interrupt stops cleanly after the current one, with a checkpoint."""
        with MetricLog(self.folder) as log, self._stop_on_interrupt():
            while not (self.stop_requested or self._has_reached_limit()):
                record = self._one_iteration()
                log.write(record)
                on_iteration(record)
                if self.iteration % self.config.checkpoint_every == 0:
                    self.save()
            self.save()

    def _has_reached_limit(self) -> bool:
        out_of_time = 0 < self.config.max_seconds <= self.seconds_total
        out_of_turns = 0 < self.config.max_environment_turns <= self.turns_total
        return out_of_time or out_of_turns or self.iteration >= self.config.iterations

    @contextmanager
    def _stop_on_interrupt(self) -> Iterator[None]:
        """Turn the first interrupt into a request to stop; a second one interrupts for good."""

        def request(number: int, frame: FrameType | None) -> None:
            self.stop_requested = True
            signal.signal(signal.SIGINT, previous)

        try:
            previous = signal.signal(signal.SIGINT, request)
        except ValueError:  # not in the main thread: interrupts are not ours
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def _one_iteration(self) -> dict[str, Any]:
        algorithm = self.learner.algorithm
        algorithm.begin_iteration(self.iteration, self.config.iterations)
        start = time.perf_counter()
        played = Played([], [], [])
        trajectories = algorithm.collect(self._rollout(played))
        gathered = time.perf_counter()
        metrics = self.learner.update(trajectories, self.iteration)
        done = time.perf_counter()
        algorithm.observe(metrics)
        everything = [*played.sampled, *played.greedy, *played.branched]
        self.instances.update(trajectory.instance for trajectory in everything if trajectory.instance)
        turns = sum(len(trajectory.turns) for trajectory in everything)
        self.turns_total += turns
        self.seconds_total += done - start
        record: dict[str, Any] = {"iteration": self.iteration, "turns_total": self.turns_total}
        record.update(rollout_metrics(played.sampled))
        record.update(branch_metrics(played.branched))
        record.update(metrics)
        record.update(_timing(start, gathered, done, turns, self.seconds_total))
        self.iteration += 1
        every = self.config.evaluation.every
        if every and (self.iteration % every == 0 or self._has_reached_limit()):
            record.update(self.evaluate())
            beside = advantages_by_turn(trajectories, self.learner.advantages.tolist())[:_SAMPLES]
            name = f"iteration-{self.iteration:06d}"
            self.folder.write_samples(name, trajectories[:_SAMPLES], self.model.text_of, beside)
        return record

    def _rollout(self, played: Played) -> Rollout:
        """Return a function that gathers the episodes of this iteration, and notes all that it plays.

        Every call plays fresh instances; with ``greedy=True`` it is those of the call before, and with ``branches`` it
        goes on from turns of episodes that were played.
        """
        attempt = 0

        def gather(greedy: bool = False, branches: Sequence[Branch] | None = None) -> list[Trajectory]:
            nonlocal attempt
            if branches is not None:
                found = self.task.branch(self.model, self.iteration, branches, len(played.branched))
                played.branched.extend(found)
                return found
            attempt += not greedy
            found = self.task.gather(self.model, self.iteration, max(attempt - 1, 0), greedy)
            (played.greedy if greedy else played.sampled).extend(found)
            return found

        return gather


def branch_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return how many episodes branched off, how many turns they took, and how many broke; nothing without any."""
    if not trajectories:
        return {}
    return {
        "rollout/branches": float(len(trajectories)),
        "rollout/branch_turns": float(sum(len(trajectory.turns) for trajectory in trajectories)),
        "rollout/branch_faults": float(sum(bool(trajectory.fault) for trajectory in trajectories)),
    }


def _timing(start: float, gathered: float, done: float, turns: int, seconds_total: float) -> dict[str, float]:
    return {
        "time/rollout_seconds": gathered - start,
        "time/update_seconds": done - gathered,
        "time/turns_per_second": turns / max(done - start, 1e-9),
        "time/seconds_total": seconds_total,
    }


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return what the trajectories of an iteration were like; faulted ones are counted and left out of the means."""
    whole = [trajectory for trajectory in trajectories if not trajectory.fault]
    turns = [turn for trajectory in whole for turn in trajectory.turns]
    count = max(len(whole), 1)
    rewards = [trajectory.reward_sum for trajectory in whole if trajectory.turns]  # a seat may never have been asked
    return {
        "rollout/episodes": float(len(whole)),
        "rollout/faults": float(len(trajectories) - len(whole)),
        "rollout/success": sum(trajectory.success == 1 for trajectory in whole) / count,
        "rollout/truncated": sum(trajectory.truncated for trajectory in whole) / count,
        "rollout/reward_sum": math.fsum(rewards) / max(len(rewards), 1),
        "rollout/turns": len(turns) / count,
        "rollout/invalid_actions": sum(not turn.action_is_valid for turn in turns) / max(len(turns), 1),
        "rollout/tokens": float(sum(len(turn.completion_ids) for turn in turns)),
    }
