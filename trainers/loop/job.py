"""A training run: warm-up, training, evaluations before and after on held-out instances, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from turngym.agents.models.loading import LanguageModel, chosen_device, load_model
from turngym.agents.models.quantized import Quantize
from turngym.display import data_frame, plain
from turngym.errors import ConfigError, RunStopped, TurngymError
from turngym.terminal.console import Console
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.engine.adapters import without_adapters
from turngym.trainers.engine.probe import mismatch_warning
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.engine.ranks.launch import launched, rank_device
from turngym.trainers.engine.ranks.sharing_out import folder_of_first
from turngym.trainers.loop.bars import Bars
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.checkpoints.exporting import base_of_run, write_adapters
from turngym.trainers.loop.control import ControlArm, is_done
from turngym.trainers.loop.logged import examples_of
from turngym.trainers.loop.requirements import untrained_warning
from turngym.trainers.loop.sampling.samplers import RolloutSampler, SamplerSetup, own_network, rollouts_of
from turngym.trainers.loop.setup import (
    build_algorithm,
    build_learner,
    build_supervised,
    check_template,
    chosen_sampler,
    initial_model,
    require_drafts,
    require_packages,
    require_ranks,
    stays_on_cpu,
    with_adapters,
)
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.records.trackers import require_tracker
from turngym.trainers.records.unwritten import folder_of_ranks
from turngym.trainers.report.curve import write_curve
from turngym.trainers.report.diagnosis import diagnose, is_out_of_memory
from turngym.trainers.report.explanation import explanation
from turngym.trainers.report.findings import read_run
from turngym.trainers.report.run import write_report
from turngym.trainers.settings.config import EMBEDDED, TrainConfig
from turngym.trainers.settings.precision import DTYPES, chosen_precision
from turngym.trainers.settings.presets import preset_warning
from turngym.types import StrPath


@dataclass(frozen=True)
class JobResult:
    """Result of a run.

    Args:
        path: The run folder.
        report: The report page.
        finished: False if the run was interrupted; ``--resume`` continues it.
        explanation: Change of success in one sentence, with the likely cause if it did not rise.
    """

    path: Path
    report: Path
    finished: bool
    explanation: str

    def to_frame(self) -> Any:
        """Return the metrics of the iterations as a data frame of polars or pandas."""
        return data_frame(plain(record) for record in RunFolder(self.path).metrics())


Watch: TypeAlias = Callable[[LanguageModel, Mapping[str, Any]], None]
"""Called after every iteration with the policy and the iteration's metrics; must not change the policy."""


def train(
    config: TrainConfig,
    run_dir: StrPath,
    resume: bool = False,
    console: Console | None = None,
    watch: Watch | None = None,
) -> JobResult:
    """Run a training run.

    Args:
        config: Settings; on resume those of the run folder are used, except for those that only bound memory.
        run_dir: The run folder, new unless ``resume``.
        resume: Continue an interrupted run.
        console: Progress display.
        watch: Called with the policy after every iteration.

    Raises:
        RunFolderExists: The folder holds a run and ``resume`` is False.
        FolderInUse: Another process trains in it.
        CheckpointError: The checkpoint is missing or damaged.
        RunStopped: Training stopped early; the folder has the last good checkpoint and a diagnosis.
    """
    with launched(config.device) as ranks:
        screen = (console or Console()) if ranks.is_first else Console(quiet=True)
        if resume:
            return _resume(config, Path(run_dir), ranks, screen, watch)
        return _begin(config, Path(run_dir), ranks, screen, watch)


def _begin(config: TrainConfig, run_dir: Path, ranks: Ranks, console: Console, watch: Watch | None) -> JobResult:
    """Start a new run."""
    for name in config.track:
        require_tracker(name)
    require_packages(config)
    require_ranks(config, ranks)
    algorithm = build_algorithm(config)  # invalid names and settings fail before anything is written
    if ranks.size == 1 and torch.cuda.is_available() and stays_on_cpu(config):
        config = replace(config, device="cpu")
    precision = chosen_precision(config.precision, chosen_device(rank_device(config.device, ranks)))
    config = replace(config, precision=ranks.from_first(precision))
    sampler = chosen_sampler(config, algorithm, ranks)
    config = replace(config, rollout=replace(config.rollout, sampler=sampler))
    check_template(config)
    if log := config.warmup.log:
        ranks.on_first(lambda: examples_of(Path(log), config))  # before anything is written
    with closing(make_task(config, algorithm, ranks)) as task, folder_of_ranks(ranks, run_dir, config) as folder:
        return _run(_Job(config, folder, task, console, watch, ranks), algorithm, resume=False)


def _resume(given: TrainConfig, run_dir: Path, ranks: Ranks, console: Console, watch: Watch | None) -> JobResult:
    """Resume an interrupted run."""
    with folder_of_ranks(ranks, run_dir) as folder:
        config = ranks.agree(lambda: folder.resumed_config(given))
        require_packages(config)
        require_ranks(config, ranks)
        chosen_precision(config.precision, chosen_device(rank_device(config.device, ranks)))
        algorithm = build_algorithm(config)
        with closing(make_task(config, algorithm, ranks)) as task:
            return _run(_Job(config, folder, task, console, watch, ranks), algorithm, resume=True)


def _run(job: _Job, algorithm: Algorithm[Any], resume: bool) -> JobResult:
    """Run in a locked folder, which stays empty if setup fails."""
    try:
        return job.run(algorithm, resume)
    except RunStopped:
        raise
    except TurngymError:
        job.folder.remove_if_nothing_happened()
        raise
    except (OSError, MemoryError, RuntimeError) as error:
        if not (isinstance(error, OSError) or is_out_of_memory(error)):
            raise
        raise _stopped_outside(error, job.folder) from error


def _stopped_outside(error: Exception, folder: RunFolder) -> RunStopped:
    """Return the error of a run without files or memory before or after its training."""
    kept = all_checkpoints(folder.checkpoints)
    done = int(kept[-1].name) if kept else 0
    phase = "files" if isinstance(error, OSError) else "setup"
    found = diagnose(error, iteration=done, phase=phase, checkpoint=kept[-1] if kept else None, records=[])
    with suppress(OSError):
        folder.write_diagnosis(found.as_json())
    return RunStopped(found.in_words(), found.as_json())


class _Job:
    """One training run."""

    def __init__(
        self,
        config: TrainConfig,
        folder: RunFolder,
        task: TaskSource,
        console: Console,
        watch: Watch | None = None,
        ranks: Ranks = SINGLE,
    ) -> None:
        self.config = config
        self.ranks = ranks
        self.folder = folder
        self.task = task
        self.console = console
        self.watch = watch
        if config.threads:
            torch.set_num_threads(config.threads)

    def run(self, algorithm: Any, resume: bool) -> JobResult:
        model = self.warm_start()
        require_drafts(self.config, model)
        suited = preset_warning(self.config, model.network.num_parameters())
        for warning in (suited, self.task.warning(algorithm), untrained_warning(self.config, algorithm)):
            if warning:
                self.console.print(f"warning: {warning}", markup=False, soft_wrap=True)
        model = with_adapters(self.config, model)
        learner = build_learner(self.config, model, algorithm, self.ranks)
        trainer = Trainer(self.config, model, learner, self.task, self.folder, lambda: self.task.curve_point(model))
        if resume:
            trainer.resume()
        control = ControlArm(self.folder) if self.has_control and not is_done(self.folder) else None
        try:
            with self.rollouts_of(self.task.sampling_model(model), trainer) as sampler:
                trainer.samplers = [sampler]
                if warning := self.sampler_warning(model):
                    self.console.print(f"warning: {warning}", markup=False, soft_wrap=True)
                self.train(trainer, control)
            finished = not trainer.stop_requested
            if finished:
                trained = without_adapters(model)
                self.ranks.on_first(lambda: self.finish(trained, trainer, control))
                self.evaluate_all(trained, trainer)
        finally:
            if control is not None:
                control.stop()
        report, words = self.ranks.on_first(lambda: self.write_up(finished))
        return JobResult(self.folder.path, Path(report), finished, words)

    def write_up(self, finished: bool) -> tuple[str, str]:
        """Write curve and report; return the report's path and the explanation of the run."""
        report = write_report(self.folder, curve=write_curve(self.folder))
        if finished:
            (self.folder.path / "done").touch()
        return str(report), explanation(read_run(self.folder))

    def rollouts_of(self, model: LanguageModel, trainer: Trainer) -> AbstractContextManager[RolloutSampler]:
        """Return the context of the configured sampler; servers are not used for evaluations."""
        if self.config.rollout.ray.workers or not self.ranks.is_first:
            return own_network()
        warmup = self.folder.path / "warmup"
        source = str(warmup) if (warmup / "done").exists() else model.name
        return rollouts_of(SamplerSetup(self.config, model, source, self.folder.path, lambda: trainer.iteration))

    def evaluated_with(self, model: LanguageModel, trainer: Trainer) -> AbstractContextManager[RolloutSampler]:
        """Return the context in which a model generates for evaluations: with vLLM if it runs in this process."""
        return self.rollouts_of(model, trainer) if self.config.rollout.sampler == "vllm" else own_network()

    def sampler_warning(self, model: LanguageModel) -> str:
        """Return a warning about the sampler's precision; empty for none."""
        settings = self.config.rollout
        return mismatch_warning(model, settings.vllm.dtype, DTYPES[self.config.precision], settings.temperature)

    def finish(self, trained: LanguageModel, trainer: Trainer, control: ControlArm | None) -> None:
        """Save the trained model, or only its adapters, and let the control catch up."""
        self.console.print(f"trained for {trainer.seconds_total:.0f} s on {trainer.turns_total} turns")
        target = self.folder.path / "model"
        if self.config.lora_rank and self.config.quantize == "none":
            target.mkdir(exist_ok=True)
            write_adapters(trainer.model, self.config, base_of_run(self.config, self.folder.path), target)
            trained.save_tokenizer(target)
        else:
            trained.save(target)
        self.config.model_settings("trained").write(target)
        if control is not None:
            control.finish(trainer.seconds_total)

    @property
    def has_control(self) -> bool:
        """True if a control runs next to rank 0; it requires a warm-up on an expert's demonstrations."""
        return self.config.control and self.warms_up and self.task.has_expert and self.ranks.is_first

    @property
    def warms_up(self) -> bool:
        """True if this model is warmed up."""
        settings = self.config.warmup
        wanted = self.config.model == EMBEDDED or settings.models == "any"
        return wanted and settings.demonstrations > 0 and settings.epochs > 0

    def load(self, source: str, quantize: Quantize = "none") -> LanguageModel:
        """Load a model onto the configured device, in the precision of the run."""
        device = rank_device(self.config.device, self.ranks)
        return load_model(source, DTYPES[self.config.precision], device, self.config.attention, quantize)

    def warm_start(self) -> LanguageModel:
        """Return the initial model of training; if built or warmed up here, it is saved in ``warmup``."""
        if self.config.model != EMBEDDED and not self.warms_up:
            return self.load(self.config.model, self.config.quantize)
        target = self.folder.path / "warmup"
        self.ranks.on_first(lambda: self.write_warm_start(target))
        return self.load_written(target, self.config.quantize)

    def load_written(self, folder: Path, quantize: Quantize = "none") -> LanguageModel:
        """Load a model from a folder of rank 0."""
        with folder_of_first(self.ranks, folder) as source:
            return self.load(str(source), quantize)

    def write_warm_start(self, target: Path) -> None:
        """Write the initial model of training, unless it exists."""
        if (target / "done").exists():
            return
        device = rank_device(self.config.device, self.ranks)
        model = initial_model(replace(self.config, device=device), self.task.texts, self.warms_up)
        require_drafts(self.config, model)
        if self.warms_up:
            self.warm_up(model)
        model.save(target)
        self.config.model_settings("warm-up").write(target)
        (target / "done").touch()

    def warm_up(self, model: LanguageModel) -> None:
        """Fit the model to demonstrations."""
        settings = self.config.warmup
        data = self.task.demonstrations(model, settings.demonstrations)
        if not data:
            where = ", ".join(self.config.envs) or self.config.env
            raise ConfigError(f"{where} gave no demonstration: pass --warmup.demonstrations 0 to go without.")
        self.folder.write_instances({trajectory.instance for trajectory in data if trajectory.instance})
        learner = build_supervised(self.config, model, data)
        with Bars(self.console) as progress:
            task = progress.add_task("warm-up", total=settings.epochs, note="")
            for _ in range(settings.epochs):
                loss = learner.run_epoch()
                progress.update(task, advance=1, note=f"loss {loss:.3f}")

    def train(self, trainer: Trainer, control: ControlArm | None) -> None:
        """Run the training loop with a progress bar."""
        with Bars(self.console) as progress:
            total, done = self.config.iterations, trainer.iteration
            task = progress.add_task("train", total=total, completed=done, note="", deadline=trainer.deadline())

            def show(record: Mapping[str, Any]) -> None:
                if control is not None:
                    control.allow(trainer.seconds_total)
                if self.watch is not None and self.ranks.is_first:
                    self.watch(trainer.model, record)
                note = "nothing played"
                if "rollout/success" in record:
                    success, speed = record["rollout/success"], record["time/turns_per_second"]
                    note = f"success {100 * success:.0f} %, {speed:.0f} turns/s"
                if record.get("rollout/context"):
                    note += f", {100 * record['rollout/context']:.0f} % cut by long prompts"
                if "eval/success" in record:
                    progress.console.print(
                        f"iteration {record['iteration'] + 1}: dev success {100 * record['eval/success']:.0f} %, {note}"
                    )
                progress.update(task, completed=record["iteration"] + 1, note=note, deadline=trainer.deadline())

            trainer.run(show, lambda warning: progress.console.print(f"warning: {warning}", markup=False))

    def evaluate_all(self, model: LanguageModel, trainer: Trainer) -> None:
        """Evaluate before, after and control on the same held-out instances, sampled and greedy, on all ranks."""
        if not self.config.evaluation.episodes:
            return
        warmup, control = self.folder.path / "warmup", self.folder.path / "control" / "model"
        has_warmup, has_control = self.ranks.from_first(((warmup / "done").exists(), is_done(self.folder)))
        candidates: dict[str, Callable[[], LanguageModel]] = {"final": lambda: model}
        candidates["warmup"] = lambda: self.load_written(warmup) if has_warmup else self.load(self.config.model)
        if has_control:
            candidates["control"] = lambda: self.load_written(control)
        with Bars(self.console) as progress:
            task = progress.add_task("evaluate", total=2 * len(candidates), note="")
            for name, load in candidates.items():
                candidate = load()
                with self.evaluated_with(candidate, trainer):
                    for way, temperature in (("sampled", None), ("greedy", 0.0)):
                        self._evaluate_one(candidate, f"{name}-{way}", temperature)
                        progress.update(task, advance=1, note=name)

    def _evaluate_one(self, model: LanguageModel, name: str, temperature: float | None) -> None:
        found = list(self.task.evaluate(model, name, temperature))

        def write() -> None:
            for evaluation in found:
                self.folder.write_evaluation(evaluation.name, evaluation.result)
                self.folder.write_samples(evaluation.name, evaluation.trajectories[:4], model.text_of)

        self.ranks.on_first(write)
