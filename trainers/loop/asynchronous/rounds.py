"""A player of batches on request, as in synchronous rollouts."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import asdict

from turngym.agents.core import Decision, Request
from turngym.agents.models.kv_cache import CacheCounts
from turngym.agents.models.sampler import Sampler
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.trainers.loop.asynchronous.agent import VersionedAgent
from turngym.trainers.loop.asynchronous.history import begun_record, planned_record, whole_records
from turngym.trainers.loop.asynchronous.player import RETRIES, Player, Stage, lost_its_worker
from turngym.trainers.loop.setup import iteration_specs


class _Closed(Exception):
    """The player was stopped during a batch."""


class _Stoppable(VersionedAgent):
    """A versioned agent that ends an abandoned batch at its next turn."""

    stage: Stage

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request, in order."""
        if self.stage.gate.is_closed:
            raise _Closed
        return super().act(requests)


class RoundPlayer(Player):
    """Plays a batch in lockstep per request of the learner, with the same results as without a thread.

    Finished batches are read from the journal. An interrupted batch is replayed, bit for bit.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._requests: queue.SimpleQueue[tuple[int, int] | None] = queue.SimpleQueue()
        known = sorted(set(stage.history.groups) - stage.history.to_train())
        self.next_number = known[0] if known else self.next_number

    def request(self, iteration: int, attempt: int) -> None:
        """Request the batch of an iteration's attempt."""
        self._requests.put((iteration, attempt))

    def stop(self) -> None:
        """Stop at the next turn."""
        self.stage.gate.close()
        self._requests.put(None)
        super().stop()

    def play(self) -> None:
        """Play requested batches until the gate is closed."""
        while True:
            with self.idle():
                wanted = self._requests.get()
            if wanted is None:
                return
            try:
                self._play_round(*wanted)
            except _Closed:
                return

    def _play_round(self, iteration: int, attempt: int) -> None:
        specs = iteration_specs(self.stage.task.config, iteration, attempt)
        size = self.stage.task.config.rollout.group_size
        groups = [specs[start : start + size] for start in range(0, len(specs), size)]
        first, self.next_number = self.next_number, self.next_number + len(groups)
        numbers = range(first, self.next_number)
        version = self.stage.weights.refresh()
        if any(self.stage.pool.begin(number) is None for number in numbers):
            raise _Closed
        found = self._known(numbers, groups)
        if not found:
            for number, own in zip(numbers, groups, strict=True):
                begun = [begun_record(number, spec.episode) for spec in own]
                self.stage.journal.append([planned_record(number, version, own), *begun])
            found = self._played(iteration, specs, first)
        for place, number in enumerate(numbers):
            self.stage.pool.finish(number, found[place * size : (place + 1) * size])

    def _known(self, numbers: range, groups: Sequence[Sequence[EpisodeSpec]]) -> list[Trajectory]:
        """Return the episodes of a batch from the journal; empty if incomplete."""
        known = [self.stage.history.groups.pop(number, None) for number in numbers]
        found = [one for one in known if one is not None and one.is_finished]
        if (
            len(found) < len(groups)
            or not found[0].costs
            or any(one.specs != own for one, own in zip(found, groups, strict=True))
        ):
            return []
        self.restored += sum(len(one.episodes) for one in found)
        self.stage.task.cache.add(CacheCounts(**found[0].costs))
        return [episode for one in found for episode in one.whole()]

    def _played(self, iteration: int, specs: Sequence[EpisodeSpec], first: int) -> list[Trajectory]:
        """Play a batch; episodes whose worker died are replayed."""
        task, size = self.stage.task, self.stage.task.config.rollout.group_size
        place = {spec.episode: number for number, spec in enumerate(specs)}
        found: dict[int, Trajectory] = {}
        wanted, costs = list(specs), CacheCounts()
        for attempt in range(RETRIES + 1):
            agent = _Stoppable(task.agent(self.stage.weights.model, iteration), self.stage.weights.refresh)
            agent.stage = self.stage
            is_last = attempt == RETRIES

            def ended(trajectory: Trajectory, is_last: bool = is_last) -> None:
                if is_last or not lost_its_worker(trajectory):
                    found[trajectory.spec.episode] = trajectory
                    number = first + place[trajectory.spec.episode] // size
                    self.stage.journal.append(whole_records(number, trajectory))

            task.play(agent, wanted, ended)
            if isinstance(agent.agent.generate, Sampler):
                costs += agent.agent.generate.counts
            wanted = [spec for spec in wanted if spec.episode not in found]
            if not wanted:
                break
            self.replayed += len(wanted)
        self.stage.journal.append([{"is": "played", "group": first, "costs": asdict(costs)}])
        task.cache.add(costs)
        return [found[spec.episode] for spec in specs]
