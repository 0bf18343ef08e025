"""The training loop: rollouts, credit, updates, metrics, checkpoints."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

from safetensors import SafetensorError
from transformers import PreTrainedModel

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, Trajectory
from turngym.errors import DivergenceError, RunStopped, TurngymError
from turngym.terminal.interrupted import stop_signals
from turngym.trainers.core.algorithm import Rollout
from turngym.trainers.core.context import exclusion_metrics, kept, require_turns
from turngym.trainers.core.finite import screen_rewards
from turngym.trainers.engine.learner import Learner
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints, keep_newest, load_checkpoint
from turngym.trainers.loop.checkpoints.saving import CheckpointWriter, Progress
from turngym.trainers.loop.sampling.samplers import RolloutSampler
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.records.metric_log import MetricLog
from turngym.trainers.records.rollout_metrics import (
    branch_metrics,
    histograms,
    metrics_on,
    rollout_metrics,
    timing_metrics,
)
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.records.samples import advantages_by_turn, images_of, transcript_of
from turngym.trainers.records.trackers import Detail
from turngym.trainers.report.diagnosis import Diagnosis, diagnose, is_out_of_memory
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.guards import Watchdog
from turngym.trainers.settings.memory import memory_advice
from turngym.trainers.settings.mixture import labels_of

__all__ = ["Played", "Trainer", "rollout_metrics"]

_SAMPLES = 4


class Played(NamedTuple):
    """All episodes of an iteration, used for training or not."""

    sampled: list[Trajectory]
    compared: list[Trajectory]
    branched: list[Trajectory]
    noted: list[Trajectory]


class Trainer:
    """Runs iterations and keeps the run folder up to date.

    Args:
        config: Settings of the run.
        model: The policy.
        learner: Owns the weights and the optimiser.
        task: Source of trajectories.
        folder: The run folder.
        evaluate: Returns metrics of the current policy; called every ``config.evaluation.every`` iterations,
            on every rank.
    """

    def __init__(
        self,
        config: TrainConfig,
        model: LanguageModel,
        learner: Learner,
        task: TaskSource,
        folder: RunFolder,
        evaluate: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self.config = config
        self.model = model
        self.learner = learner
        self.ranks = learner.ranks
        self.task = task
        self.folder = folder
        self.evaluate = evaluate
        self.checkpoints = CheckpointWriter(learner, task, folder)
        self.iteration = 0
        self.turns_total = 0
        self.seconds_total = 0.0
        self.instances = folder.instances()
        self.environments = dict(zip(config.envs, labels_of(config.envs), strict=True))
        self.stop_requested = False
        guards = config.guards
        self.watchdog = Watchdog(guards if task.has_comparable_rewards else replace(guards, reward_drop=0.0))
        self.phase = "files"
        self.samplers: list[RolloutSampler] = []
        """Sampler other than the policy's network."""
        self._last_record: dict[str, Any] = {}
        self._detail = Detail()
        self._settled = learner.updates
        """Number of updates at the end of the last complete iteration; a larger count indicates an unfinished one."""

    def resume(self) -> None:
        """Restore the newest checkpoint; start with the first iteration if there is none."""
        found = self.ranks.from_first([path.name for path in all_checkpoints(self.folder.checkpoints)])
        if self.config.rollout.refresh_every > 1:
            self.learner.hold_back_sampler()
        if found:
            newest = self.folder.checkpoints / found[-1]
            self.iteration, extra = self.ranks.agree(lambda: load_checkpoint(newest, self.learner))
            self.learner.publish()
            self.turns_total, self.seconds_total = int(extra["turns_total"]), float(extra["seconds_total"])
            self._last_record = dict(extra.get("last_record", {}))
            self._settled = self.learner.updates
            self.ranks.agree(lambda: self.task.restore(extra.get("task", {}), self.iteration))
            self.ranks.agree(lambda: self.task.resume(self.folder, self.model, self.iteration))
        for record in self.ranks.on_first(self._kept_records):
            with suppress(DivergenceError):
                self.watchdog.look(record)
        self.folder.forget_diagnosis()

    def _kept_records(self) -> list[dict[str, Any]]:
        """Keep and return the metrics of completed iterations.

        Those of the last iteration may be missing in the file, for example after a full disk.
        """
        self.folder.keep_metrics(self.iteration)
        written = [record["iteration"] for record in self.folder.metrics()[-1:]]
        if self._last_record.get("iteration") == self.iteration - 1 and written != [self.iteration - 1]:
            self.folder.append_metrics(self._last_record)
        return self.folder.metrics()

    def save(self) -> None:
        """Write a checkpoint; on a full disk, the older of two is deleted first.

        Raises:
            DivergenceError: The weights are not finite.
        """
        self.checkpoints.write(self._progress())

    def _progress(self) -> Progress:
        totals = {"turns_total": self.turns_total, "seconds_total": self.seconds_total}
        extra = {**totals, "last_record": self._last_record, "task": self.task.state(self.iteration)}
        return Progress(self.iteration, self.instances, extra)

    def run(
        self,
        on_iteration: Callable[[Mapping[str, Any]], None] = lambda record: None,
        on_warning: Callable[[str], None] = warnings.warn,
    ) -> None:
        """Run the remaining iterations; an interrupt stops cleanly after the current one, with a checkpoint.

        Args:
            on_iteration: Called with the metrics of each iteration.
            on_warning: Called with the warnings of guards.

        Raises:
            RunStopped: Training stopped early; the run folder has a diagnosis and the last good checkpoint.
        """
        with stop_signals(self._request_stop):
            try:
                self._run(on_iteration, on_warning)
            except Exception as error:  # a launcher that has lost another rank may send a signal meanwhile
                raise self._stopped(error) from error

    def _run(self, on_iteration: Callable[[Mapping[str, Any]], None], on_warning: Callable[[str], None]) -> None:
        self.folder.reserve()
        playing = self.task.playing(self.folder, self.model, self.iteration)
        with MetricLog(self.folder, self.config, on_warning) as log, playing:
            while not self._is_over():
                record = self._one_iteration()
                self.phase = "files"
                record["tracking/failed"] = float(log.failed)
                log.write(record, self._detail)
                on_iteration(record)
                if self.iteration % self.config.checkpoint_every == 0:
                    self.save()
                for warning in self.watchdog.look(record):
                    on_warning(warning)
            self.save()
            self.folder.release()
            if self.stop_requested:
                self.folder.write_diagnosis(self._diagnosis(KeyboardInterrupt()).as_json())

    def _is_over(self) -> bool:
        """Return True if no further iteration starts; a signal to one rank stops all."""
        self.stop_requested = self.ranks.any(self.stop_requested)
        return self.stop_requested or self._has_reached_limit()

    def _request_stop(self) -> None:
        self.stop_requested = True

    def _diagnosis(self, error: BaseException) -> Diagnosis:
        checkpoints = all_checkpoints(self.folder.checkpoints)
        records = {record["iteration"]: record for record in [*self.folder.metrics()[-3:], self._last_record] if record}
        return diagnose(
            error,
            iteration=self.iteration,
            phase=self.phase,
            checkpoint=checkpoints[-1] if checkpoints else None,
            records=list(records.values())[-3:],
            memory=memory_advice(self.config, self.phase, self.model.network.device.type),
        )

    def _write_diagnosis(self, diagnosis: Diagnosis) -> None:
        try:
            self.folder.write_diagnosis(diagnosis.as_json())
        except OSError:
            keep_newest(self.folder.checkpoints, 1)  # the new checkpoint has filled the disk
            self.folder.write_diagnosis(diagnosis.as_json())

    def _stopped(self, error: Exception) -> RunStopped:
        """Write a checkpoint if possible, and return the error.

        A checkpoint is written unless an iteration's updates have started, because the state is then incomplete.
        """
        failed = ""
        self.folder.release()
        if is_out_of_memory(error):
            traceback.clear_frames(error.__traceback__)  # they hold the update's tensors
            self.learner.optimizer.zero_grad(set_to_none=True)
        if self.learner.updates == self._settled and self.iteration:
            try:
                self.checkpoints.write_last(self._progress(), error)
            except (OSError, SafetensorError, TurngymError, MemoryError, RuntimeError) as second:
                failed = f" (a checkpoint of now could not be written: {second})"
        diagnosis = self._diagnosis(error)
        diagnosis = replace(diagnosis, what=diagnosis.what + failed)
        try:
            self._write_diagnosis(diagnosis)
        except OSError as second:
            diagnosis = replace(diagnosis, what=f"{diagnosis.what} (diagnosis.json could not be written: {second})")
        return RunStopped(diagnosis.in_words(), diagnosis.as_json())

    def deadline(self) -> float:
        """Return the time at which the limits on time and turns end the training, at its current speed.

        Returns:
            A time of ``time.monotonic``; infinity without limits, or before the first iteration.
        """
        left = float("inf")
        if self.config.max_seconds:
            left = self.config.max_seconds - self.seconds_total
        if self.config.max_environment_turns and self.turns_total:
            turns = self.config.max_environment_turns - self.turns_total
            left = min(left, turns * self.seconds_total / self.turns_total)
        return time.monotonic() + max(left, 0.0)

    def _has_reached_limit(self) -> bool:
        out_of_time = 0 < self.config.max_seconds <= self.seconds_total
        out_of_turns = 0 < self.config.max_environment_turns <= self.turns_total
        return out_of_time or out_of_turns or self.iteration >= self.config.iterations

    def _one_iteration(self) -> dict[str, Any]:
        algorithm = self.learner.algorithm
        algorithm.begin_iteration(self.iteration, self.config.iterations)
        start, talked = time.perf_counter(), self.ranks.seconds
        played = Played([], [], [], [])
        self.phase = "rollout"
        trajectories = algorithm.collect(self._rollout(played))
        for turn in (turn for trajectory in trajectories for turn in trajectory.turns if turn.policy_version >= 0):
            turn.staleness = self.iteration - turn.policy_version
        for sampler in self.samplers:
            sampler.rest()
        self.phase = "update"
        gathered = time.perf_counter()
        metrics = self.learner.update(trajectories, self.iteration)
        done = time.perf_counter()
        algorithm.observe(metrics)
        everything = [*played.sampled, *played.compared, *played.branched, *played.noted]
        self.instances.update(trajectory.instance for trajectory in everything if trajectory.instance)
        turns = sum(len(trajectory.turns) for trajectory in everything)
        self.turns_total += turns
        self.seconds_total += self.ranks.from_first(done - start)
        record: dict[str, Any] = {"iteration": self.iteration, "turns_total": self.turns_total}
        record.update(rollout_metrics(played.sampled))
        for env_id, label in self.environments.items():
            record.update(metrics_on(env_id, label, played.sampled))
        record.update(exclusion_metrics(trajectories, self.config.update.exclusion))
        record.update(branch_metrics(played.branched))
        record.update(self.task.metrics())
        for sampler in self.samplers:
            record.update(sampler.metrics())
        record.update(metrics)
        record.update(timing_metrics(start, gathered, done, turns, self.seconds_total))
        if self.ranks.size > 1:
            record["time/communication"] = self.ranks.seconds - talked
        self.task.trained(self.model, self.iteration)
        self.iteration += 1
        self._settled, self._last_record = self.learner.updates, record
        self.phase = "evaluation"
        advantages, log_ratios = self.learner.advantages.detach().cpu(), self.learner.log_ratios
        self._detail = Detail(histograms(played.sampled, advantages, log_ratios))
        every = self.config.evaluation.every
        if every and (self.iteration % every == 0 or self._has_reached_limit()):
            record.update(self.evaluate())
            used = kept(trajectories, self.config.update.on_context)
            beside = advantages_by_turn(trajectories, self.learner.advantages.tolist(), used)[:_SAMPLES]
            name = f"iteration-{self.iteration:06d}"
            shown = trajectories[:_SAMPLES]
            self.folder.write_samples(name, shown, self.model.text_of, beside)
            self._detail = replace(self._detail, transcripts=list(map(transcript_of, shown)), images=images_of(shown))
        return record

    def _rollout(self, played: Played) -> Rollout:
        """Return a function that plays and records the episodes of this iteration.

        Every call plays new instances; with ``greedy=True``, a ``mixture`` or ``notes`` those of the previous call, and
        with ``branches`` it continues from turns of earlier episodes.
        """
        attempt = 0
        last: list[Trajectory] = []
        model, version = self._sampling_model()

        def gather(
            greedy: bool = False,
            branches: Sequence[Branch] | None = None,
            mixture: float | None = None,
            notes: Sequence[str] | None = None,
        ) -> list[Trajectory]:
            nonlocal attempt, last
            if notes is not None:
                specs = [each.spec for each in last]
                found = self.task.again(model, self.iteration, specs, notes, len(played.noted))
                played.noted.extend(found)
            elif branches is not None:
                found = self.task.branch(model, self.iteration, branches, len(played.branched))
                played.branched.extend(found)
            else:
                is_fresh = not greedy and mixture is None
                attempt += is_fresh
                player = model if mixture is None else self.learner.mixed(model, mixture)
                found = self.task.gather(player, self.iteration, max(attempt - 1, 0), greedy)
                (played.sampled if is_fresh else played.compared).extend(found)
                last = found if is_fresh else last
            for turn in (turn for trajectory in found for turn in trajectory.turns):
                turn.policy_version = version if turn.policy_version < 0 else turn.policy_version
            screen_rewards(found, self.config.guards.bad_reward)
            require_turns(found)
            return found

        return gather

    def _sampling_model(self) -> tuple[LanguageModel, int]:
        """Return the sampling policy of this iteration, and the iteration of its weights."""
        since = self.iteration % self.config.rollout.refresh_every
        if self.config.rollout.refresh_every == 1:
            return self.model, self.iteration
        if not since:
            self.learner.hold_back_sampler()
        network = cast("PreTrainedModel", self.learner.sampler)
        return self.model.with_network(network), self.iteration - since
