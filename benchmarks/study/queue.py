"""The runs of a study: finished ones are kept, interrupted ones continue, one that fails does not stop the others.

Several processes may work on one study: each run is locked while one of them runs it.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from turngym.benchmarks.study.plan import Job, Plan
from turngym.errors import ConfigError, FolderInUse
from turngym.storage.bounded import read_json
from turngym.storage.files import write_json
from turngym.system.locks import FolderLock
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

State: TypeAlias = Literal["finished", "begun", "not begun"]
_LOG_END = 2000
_LOCKS = ".locks"
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Ended:
    """Status of a finished run.

    Args:
        job: The run.
        status: Exit status of ``turngym train``.
        seconds: Duration.
        words: Last line of its log.
        is_elsewhere: Whether another process finished it.
    """

    job: Job
    status: int
    seconds: float
    words: str = ""
    is_elsewhere: bool = False


def state_of(folder: Path) -> State:
    """Return how far a run is."""
    if (folder / "done").exists():
        return "finished"
    return "begun" if (folder / "config.json").exists() else "not begun"


def states(plan: Plan, folder: Path) -> dict[Job, State]:
    """Return how far each run of a study is.

    Args:
        plan: The plan.
        folder: Folder of the study.
    """
    return {job: state_of(folder / job.name) for job in plan.jobs}


def processor_file(folder: Path) -> Path:
    """Return the file that holds the processor time of a run, next to its folder."""
    return folder.with_name(f"{folder.name}.processor.json")


def processor_seconds(folder: Path) -> float:
    """Return the processor time that a run has taken with all its processes, what was interrupted included.

    A part during which the study itself was killed is not counted, and a file that is damaged counts as none.
    """
    try:
        seconds = float(read_json(processor_file(folder))["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
    return seconds if 0 <= seconds < math.inf else 0.0


def require_planned(plan: Plan, folder: Path, settings: Callable[[Job], TrainConfig]) -> None:
    """Refuse runs that were made with other settings than the plan has now.

    Args:
        plan: The plan.
        folder: Folder of the study.
        settings: Returns the settings of a run.

    Raises:
        ConfigError: A run in the folder has other settings.
    """
    for job, state in states(plan, folder).items():
        if state == "not begun":
            continue
        made = RunFolder.open(folder / job.name).config()
        wanted = _with_choices(settings(job), made)
        if different := made.first_difference(wanted):
            name, before, now = different
            raise ConfigError(
                f"{folder / job.name} was made with other settings than the arm {job.arm!r} has now: its {name} is "
                f"{before!r} and not {now!r}. Give the arm a new name, pass another --out, or remove that folder."
            )


def _with_choices(wanted: TrainConfig, made: TrainConfig) -> TrainConfig:
    """Return settings with what a run chose for ``auto``, which its folder records.

    >>> made = replace(TrainConfig(), device="cpu", rollout=replace(TrainConfig().rollout, sampler="transformers"))
    >>> _with_choices(TrainConfig(), made) == made
    True
    """
    device = made.device if wanted.device == "auto" else wanted.device
    precision = made.precision if wanted.precision == "auto" else wanted.precision
    sampler = made.rollout.sampler if wanted.rollout.sampler == "auto" else wanted.rollout.sampler
    return replace(wanted, device=device, precision=precision, rollout=replace(wanted.rollout, sampler=sampler))


class Queue:
    """Runs what is missing of a study, each run in a separate process.

    Args:
        plan: The plan.
        folder: Folder of the study; its runs are in folders below it, the output of each in a file beside.
        at_once: Number of parallel runs.
    """

    def __init__(self, plan: Plan, folder: Path, at_once: int) -> None:
        self.plan = plan
        self.folder = folder
        self.at_once = at_once
        self._missing: list[Job] = []
        self._on_begin: Callable[[Job, Path], None] = lambda job, log: None
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def run(
        self,
        on_end: Callable[[Ended], None],
        on_wait: Callable[[Sequence[Job]], None],
        on_begin: Callable[[Job, Path], None] = lambda job, log: None,
    ) -> list[Ended]:
        """Run what is missing; returns how each run ended, in the order of the plan.

        Runs of other processes are left to them. If one of those processes ends before its run is finished, the run
        continues here.

        Args:
            on_end: Called after each run, in the thread of the run.
            on_wait: Called with the runs that are left when other processes run all of them.
            on_begin: Called before each run with the file of its output.

        Raises:
            KeyboardInterrupt: The runs have been interrupted; calling it again continues with them.
        """

        def run_next() -> Ended:
            ended = self._run_next(on_wait)
            if not self._closing.is_set():  # an interrupted run has not ended
                on_end(ended)  # before this thread starts its next run
            return ended

        missing = [job for job, state in states(self.plan, self.folder).items() if state != "finished"]
        self._missing, self._on_begin = list(missing), on_begin
        with ThreadPoolExecutor(self.at_once, thread_name_prefix="study") as threads:
            work = [threads.submit(run_next) for _ in missing]
            try:
                for future in as_completed(work):
                    future.result()
            except BaseException:
                self._stop(work)
                raise
        ended = {each.job: each for each in (future.result() for future in work)}
        return [ended[job] for job in missing]

    def _run_next(self, on_wait: Callable[[Sequence[Job]], None]) -> Ended:
        """Run the first run that no other process runs, as soon as there is one."""
        is_waiting = False
        while not self._closing.is_set():
            with self._lock:
                taken = next((found for job in self._missing if (found := self._taken(job))), None)
                left = tuple(self._missing)
            if taken is not None:
                job, lock = taken
                with lock:
                    if state_of(self.folder / job.name) == "finished":
                        return Ended(job, 0, 0.0, is_elsewhere=True)
                    return self._run_one(job, lock)
            if not is_waiting:
                is_waiting = True
                on_wait(left)
            self._closing.wait(_POLL_SECONDS)
        raise CancelledError

    def _taken(self, job: Job) -> tuple[Job, FolderLock] | None:
        """Return a job with the lock that keeps other processes from it; None if one of them runs it."""
        folder, run = self.folder / _LOCKS / job.name, self.folder / job.name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = FolderLock(folder, "run of a study")
            try:
                if state_of(run) == "begun":  # a study that was killed may have left its run behind, which continues
                    FolderLock(run, "training run").release()
            except BaseException:
                lock.release()
                raise
        except FolderInUse:
            return None
        self._missing.remove(job)
        return job, lock

    def _run_one(self, job: Job, taken: FolderLock) -> Ended:
        folder = self.folder / job.name
        options = [*self.plan.options(job), "--run-dir", str(folder)]
        if state_of(folder) == "begun":
            options.append("--resume")
        log = self.folder / f"{job.name}.log"
        began = time.monotonic()
        self._on_begin(job, log)
        with log.open("ab") as output:
            with self._lock:
                if self._closing.is_set():
                    raise CancelledError
                process = subprocess.Popen(
                    [sys.executable, "-m", "turngym", "train", *options],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._variables(),
                    pass_fds=(taken.descriptor,),  # the run keeps the lock if this process is killed
                    process_group=0,  # Ctrl+C reaches a run once, by way of the queue
                )
                self._processes.add(process)
            status, used = _wait(process)
        with self._lock:
            self._processes.discard(process)
        write_json(processor_file(folder), {"seconds": processor_seconds(folder) + used})
        return Ended(job, status, time.monotonic() - began, _last_line(log))

    def _variables(self) -> dict[str, str]:
        """Return the environment variables of a run: runs side by side share the cores."""
        threads = str(max(1, (os.cpu_count() or 1) // self.at_once))
        return {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, **os.environ}

    def _stop(self, work: Sequence[Future[Ended]]) -> None:
        """Interrupt the runs, so that each keeps a checkpoint, and start no others."""
        with self._lock:
            self._closing.set()
            for future in work:
                future.cancel()
            for process in self._processes:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait for a process; returns its status, and the processor time of it and of those that it has waited for."""
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except ChildProcessError:  # waited for elsewhere: Popen knows the status
        return process.wait(), 0.0
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_END))
        lines = file.read().decode("utf8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
