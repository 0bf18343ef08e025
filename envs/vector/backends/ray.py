"""Runs the slots on a Ray cluster: one actor per worker, which manages a process with the environments."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from turngym.envs.vector.backends.base import VECTOR_BACKENDS, BackendOptions
from turngym.envs.vector.backends.channel import decode, encode
from turngym.envs.vector.backends.remote.ray_host import BEAT_SECONDS, Host, Sealed
from turngym.envs.vector.backends.remote.ray_session import RayOptions, RaySession, import_ray
from turngym.envs.vector.backends.workers import Order, Worker, WorkersBackend, num_processors, shares
from turngym.envs.vector.slots.maker import Maker
from turngym.errors import TurngymError

_START_SECONDS = 120.0
_CLOSE_SECONDS = 6.0
_SILENT_SECONDS = 60.0
_LONGEST_REASON = 200


class RayWorker(Worker):
    """One worker of the pool: an actor, which may be replaced.

    Args:
        slots: Its slots.
        make_actor: Starts an actor for them.
    """

    def __init__(self, slots: Sequence[int], make_actor: Callable[[], Any]) -> None:
        self._make_actor = make_actor
        super().__init__(slots)

    def launch(self) -> None:
        """Start an actor."""
        self.actor = self._make_actor()
        self.where = self.actor.where.remote()
        """Future of the actor's place."""
        self.call: Any = None
        """Future of the answers that the vector waits for, if any."""
        self.heard = self.started
        """When the actor started or was last called, from which the liveness limit counts."""
        self._has_arrived = False

    def exchange(self, frame: bytes | None) -> None:
        """Send jobs and wait for answers."""
        self.call = self.actor.exchange.remote(frame)
        self.heard = time.monotonic()

    def has_arrived(self) -> bool:
        """Return whether the actor has found a place and started its work there."""
        if not self._has_arrived and is_ready(self.where):
            ray = import_ray()
            with contextlib.suppress(ray.exceptions.RayError):
                ray.get(self.where)
                self._has_arrived, self.heard = True, time.monotonic()
        return self._has_arrived

    def end(self) -> None:
        """End the actor; its process notices that and ends too."""
        import_ray().kill(self.actor)


@VECTOR_BACKENDS.register("ray")
class RayBackend(WorkersBackend[RayWorker]):
    """Runs slots on the nodes of a Ray cluster; survives the same as ``process``, and the loss of actors and nodes.

    Losing an actor or node costs no episode: its slots are rebuilt from their journals on another node. A slot faults
    only if its operation was the only one in flight when an actor ended for the second time. ``turngym`` must be
    installed on every node.
    """

    own_options = RayOptions
    own: RayOptions

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        super().__init__(makers, options)
        self._session = RaySession(self.own, min(options.num_workers or num_processors(), len(makers)))
        self._finalizer = weakref.finalize(self, _end_all, self._workers, self._session, os.getpid())
        count = min(options.num_workers or self._session.num_processors(), len(makers))
        actor = import_ray().remote(Host).options(**self._demands())
        for share in shares(makers, count):
            self._workers.append(RayWorker(list(share), _actor_maker(actor, share, options)))

    def _demands(self) -> dict[str, Any]:
        """Return what Ray is asked for with every actor."""
        num_cpus = self.own.num_cpus
        return {
            "num_cpus": (0 if self._session.is_own else 1) if num_cpus is None else num_cpus,
            "resources": dict(self.own.resources),
            "scheduling_strategy": self.own.placement,
            "max_restarts": 0,  # the vector replaces them itself, because it knows what must be repeated
            "max_task_retries": 0,
        }

    def shut_down(self) -> None:
        """End every worker, and Ray itself if no other vector uses it."""
        self._finalizer()

    def places(self) -> list[tuple[str, int]]:
        """Return the node id and the process id of each worker's actor, as soon as all have started."""
        return [tuple(place) for place in import_ray().get([worker.where for worker in self._workers])]

    def _transmit(self, worker: RayWorker, jobs: list[Order]) -> None:
        worker.exchange(encode(("run", jobs)))

    def _wait(self, seconds: float) -> None:
        calls = {worker.call: worker for worker in self._workers if worker.call is not None}
        if not calls:
            time.sleep(seconds)
            return
        wait = import_ray().wait
        ready, rest = wait(list(calls), num_returns=1, timeout=seconds)
        if ready and rest:
            ready += wait(rest, num_returns=len(rest), timeout=0)[0]
        for call in ready:
            self._take(calls[call])

    def _read(self, worker: RayWorker) -> None:
        if worker.call is not None and is_ready(worker.call):
            self._take(worker)

    def _take(self, worker: RayWorker) -> None:
        """Take the answers of a call that has ended."""
        ray = import_ray()
        try:
            frame, num_replaced = ray.get(worker.call)
        except ray.exceptions.RayError as error:
            self._bury(worker, _brief(error))
        else:
            worker.call = None
            self.workers_replaced += num_replaced
            self._accept(worker, decode(frame))
            if worker.flight:
                worker.exchange(None)
        self._go_on(worker)

    def _look_after(self, worker: RayWorker, now: float) -> None:
        """Detect whether the actor is not scheduled, or does not respond."""
        if now - worker.heard < 2 * BEAT_SECONDS or is_ready(worker.call):
            return
        if worker.has_arrived():
            if now - worker.heard > _SILENT_SECONDS:
                self._bury(worker, f"no sign of life for {_SILENT_SECONDS:g} s")
                self._send(worker)
        elif now - worker.started > _START_SECONDS:
            free = import_ray().available_resources()
            crowded = (
                f"a worker has found no place in the Ray cluster within {_START_SECONDS:g} s: each asks for "
                f"{self._demands()}, free are {free}. Pass a smaller num_workers."
            )
            raise self._give_up(TurngymError(crowded))

    def _bury(self, worker: RayWorker, reason: str) -> None:
        """Replace an actor that is lost; a job that was alone in it twice is to blame."""
        is_alone = worker.is_cautious and len(worker.flight) == 1 and worker.has_arrived()
        culprit = next(iter(worker.flight.values())) if is_alone else None
        worker.end()
        self._replace(worker, culprit, f"worker died ({reason})")


def _actor_maker(actor: Any, share: dict[int, Maker], options: BackendOptions) -> Callable[[], Any]:
    """Return a function that starts an actor for some slots."""
    sealed = [Sealed(maker) for maker in share.values()]
    return lambda: actor.remote(sealed, list(share), options, sys.path)


def is_ready(reference: Any) -> bool:
    """Return whether a call has ended, well or not."""
    return bool(import_ray().wait([reference], timeout=0)[0])


def _brief(error: BaseException) -> str:
    """Return Ray's message about a loss, on one line."""
    return " ".join(str(error).split())[:_LONGEST_REASON]


def _end_all(workers: list[RayWorker], session: RaySession, pid: int) -> None:
    """End every actor, after it has ended its process, and leave Ray."""
    if os.getpid() != pid or not session.is_open():
        return  # a forked copy of this process, or Ray has ended already and every actor with it
    closing = [worker.actor.close.remote() for worker in workers if worker.has_arrived()]
    if closing:
        import_ray().wait(closing, num_returns=len(closing), timeout=BEAT_SECONDS + _CLOSE_SECONDS)
    for worker in workers:
        worker.end()
    session.leave()
