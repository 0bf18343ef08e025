"""Pool of a run's rollout workers: start, monitoring, replacement."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from turngym.envs.vector.backends.ray import is_ready
from turngym.envs.vector.backends.remote.ray_session import RayOptions, RaySession, import_ray
from turngym.errors import TurngymError
from turngym.trainers.loop.rollout_workers.worker import Answer, RolloutWorker
from turngym.trainers.settings.ray import RayConfig

_PLACE_SECONDS = 120.0
"""Time after which resources that no machine has end the run; an autoscaling cluster may add such a machine."""
_START_SECONDS = 600.0
"""Time after which workers that have not started end the run although machines are available."""
_CLOSE_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_MOST_LOSSES = 3
_LONGEST_REASON = 200
_STARTING = -1
"""Job number for losses of workers without a job."""


class Member:
    """A replaceable worker of the pool.

    Args:
        start: Starts an actor.
        number: Number of the worker in the pool.
    """

    def __init__(self, start: Callable[[], Any], number: int) -> None:
        self._start = start
        self._number = number
        self._launches = 0
        self.launch()

    @property
    def name(self) -> str:
        """Name of the actor, unique over replacements."""
        return f"worker {self._number}, actor {self._launches}"

    def launch(self) -> None:
        """Start an actor."""
        self.actor = self._start()
        self._launches += 1
        self.place = self.actor.where.remote()
        """Future of the actor's location."""
        self.share: int | None = None
        """Number of its share."""
        self.answer: Any = None
        self.has_arrived = False
        self._sign: Any = None
        self._progress = -1
        self.heard = time.monotonic()
        """Time of its start or latest activity."""

    @property
    def awaited(self) -> Any:
        """Future of its current call."""
        return self.answer if self.has_arrived else self.place

    def begin(self, share: int, answer: Any) -> None:
        """Record its job."""
        self.share, self.answer, self.heard = share, answer, time.monotonic()

    def is_silent(self, seconds: float) -> bool:
        """Return True if it has been inactive for that long."""
        now = time.monotonic()
        if self._sign is None:
            self._sign = self.actor.progress.remote()
        elif is_ready(self._sign):
            with contextlib.suppress(import_ray().exceptions.RayError):
                found = import_ray().get(self._sign)
                if found != self._progress:
                    self._progress, self.heard = found, now
            self._sign = None
        return now - self.heard > seconds

    def end(self) -> None:
        """End the actor."""
        import_ray().kill(self.actor)

    def restart(self) -> None:
        """Replace the actor."""
        self.end()
        self.launch()


class Job(Protocol):
    """A share with its weights."""

    def begin(self, actor: Any) -> Any:
        """Start the job in an actor, and return the future of its answer."""
        ...

    def fault_of(self, worker: str, answer: Answer) -> str:
        """Return the problem with the answer of a worker; empty for a valid one.

        A worker with an invalid answer counts as lost.
        """
        ...


@dataclass
class Round:
    """Pending jobs and new answers.

    Args:
        jobs: Number -> pending job.
        answers: Number -> answer, until the caller removes it.
    """

    jobs: dict[int, Job] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)
    """Jobs without a worker."""
    losses: Counter[int] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def add(self, number: int, job: Job) -> None:
        """Add a job for the next free worker."""
        self.jobs[number] = job
        self.waiting.append(number)


class WorkerPool:
    """Workers on a Ray cluster that play shares of an iteration.

    A job whose worker is lost is replayed by the first free worker; later answers of a lost worker are ignored.

    Args:
        config: Number of workers and reserved resources.
    """

    def __init__(self, config: RayConfig) -> None:
        self.config = config
        self.lost = 0
        """Number of replaced workers."""
        self._session = RaySession(RayOptions(address=config.address or None), config.workers)
        actor = import_ray().remote(RolloutWorker).options(**self._demands())
        self._members: list[Member] = []
        self._finalizer = weakref.finalize(self, _end_all, self._members, self._session, os.getpid())
        self._members += [Member(lambda: actor.remote(sys.path), number) for number in range(config.workers)]

    def _demands(self) -> dict[str, Any]:
        """Return the resources requested for every worker."""
        return {
            "num_cpus": 0 if self._session.is_own else self.config.cpus,
            "num_gpus": self.config.gpus,
            "scheduling_strategy": "SPREAD",
            "max_concurrency": 2,
            "max_restarts": 0,  # the pool replaces them, because it knows the jobs to repeat
            "max_task_retries": 0,
        }

    def places(self) -> list[tuple[str, int]]:
        """Return the machine and process of each worker, once all have started."""
        return [tuple(place) for place in import_ray().get([member.place for member in self._members])]

    def close(self) -> None:
        """End all workers, and Ray if it was started here and nothing else uses it."""
        self._finalizer()

    def play(self, jobs: Sequence[Job]) -> list[Answer]:
        """Play every job once, and return the answers in the order of the jobs.

        Raises:
            TurngymError: No machine has the resources of a worker, no worker starts, or several workers are lost on one
                job.
        """
        round = Round()
        for number, job in enumerate(jobs):
            round.add(number, job)
        while round.jobs:
            self.advance(round)
        return [round.answers[number] for number in range(len(jobs))]

    def advance(self, round: Round) -> None:
        """Assign jobs to free workers, and wait briefly for answers.

        Raises:
            TurngymError: As in :meth:`play`; busy workers are then replaced.
        """
        try:
            for member in self._members:
                if round.waiting and member.has_arrived and member.share is None:
                    number = round.waiting.popleft()
                    member.begin(number, round.jobs[number].begin(member.actor))
            self._look(round)
        except BaseException:
            for member in self._members:
                if member.share is not None:
                    member.restart()
            raise

    def _look(self, round: Round) -> None:
        """Wait briefly for starts and answers, and replace lost workers."""
        if not any(member.has_arrived for member in self._members):
            self._require_beginning(round.began)
        for member in self._ready():
            self._take(member, round)
        for member in self._members:
            if member.share is not None and member.is_silent(self.config.silent_seconds):
                self._lose(member, f"computed nothing for {self.config.silent_seconds:g} s", round)

    def _ready(self) -> list[Member]:
        """Return the workers that have started or answered; possibly none after a timeout."""
        awaited = {member.awaited: member for member in self._members if member.awaited is not None}
        wait = import_ray().wait
        ready, rest = wait(list(awaited), num_returns=1, timeout=_LOOK_SECONDS)
        if ready and rest:
            ready += wait(rest, num_returns=len(rest), timeout=0)[0]
        return [awaited[each] for each in ready]

    def _take(self, member: Member, round: Round) -> None:
        """Process the completed call of a worker."""
        ray = import_ray()
        try:
            found = ray.get(member.awaited)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else TurngymError(str(error)) from error
        except ray.exceptions.RayError as error:
            self._lose(member, _brief(error), round)
            return
        if not member.has_arrived:
            member.has_arrived = True
            del round.losses[_STARTING]
        elif member.share is not None:
            if fault := round.jobs[member.share].fault_of(member.name, found):
                self._lose(member, fault[:_LONGEST_REASON], round)
                return
            round.answers[member.share] = found
            del round.jobs[member.share], round.losses[member.share]
            member.share = member.answer = None

    def _lose(self, member: Member, reason: str, round: Round) -> None:
        """Replace a worker, and queue its job again."""
        self.lost += 1
        number = _STARTING if member.share is None else member.share
        round.losses[number] += 1
        if round.losses[number] > _MOST_LOSSES:
            what = "begins" if number < 0 else "plays the same groups"
            raise TurngymError(
                f"{round.losses[number]} rollout workers were lost one after the other as one {what} (the last one: "
                f"{reason}): look at its log in Ray's session folder, and at the memory of its machine."
            )
        if number >= 0:
            round.waiting.appendleft(number)
        member.restart()

    def _require_beginning(self, began: float) -> None:
        """Raise if workers cannot start, but not if they are only slow to start."""
        seconds = time.monotonic() - max(began, *(member.heard for member in self._members))
        demand = f"{self.config.cpus:g} CPUs and {self.config.gpus:g} GPUs"
        if seconds > _PLACE_SECONDS and not self._fits():
            raise TurngymError(
                f"no rollout worker has found a place in the Ray cluster within {_PLACE_SECONDS:g} s: each asks for "
                f"{demand}, and no machine has as many. Lower rollout.ray.cpus or rollout.ray.gpus."
            )
        if seconds > _START_SECONDS:
            raise TurngymError(
                f"no rollout worker has started within {_START_SECONDS:g} s: each asks for {demand}, free are "
                f"{import_ray().available_resources()}. If that is too little, wait until other jobs have ended, or "
                "lower rollout.ray.cpus or rollout.ray.gpus; otherwise look at the logs of the workers in Ray's "
                "session folder."
            )

    def _fits(self) -> bool:
        """Return True if any machine of the cluster has the resources of a worker when idle."""
        demands = self._demands()
        wanted = {"CPU": demands["num_cpus"], "GPU": demands["num_gpus"]}
        machines = [node["Resources"] for node in import_ray().nodes() if node["Alive"]]
        return any(all(machine.get(name, 0) >= amount for name, amount in wanted.items()) for machine in machines)


def _brief(error: BaseException) -> str:
    """Return Ray's message about a loss, on one line."""
    return " ".join(str(error).split())[:_LONGEST_REASON]


def _end_all(members: list[Member], session: RaySession, pid: int) -> None:
    """Close the environments of all workers, end the workers, and disconnect from Ray."""
    if os.getpid() != pid or not session.is_open():
        return  # a fork of this process, or Ray has ended already with all actors
    closing = [member.actor.close.remote() for member in members if member.has_arrived and member.share is None]
    if closing:
        import_ray().wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS)
    for member in members:
        member.end()
    session.leave()
