"""A player of asynchronous rollouts by rollout workers on a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.trainers.loop.asynchronous.history import begun_record, whole_records
from turngym.trainers.loop.asynchronous.player import Player, Stage
from turngym.trainers.loop.asynchronous.task import AsyncTask
from turngym.trainers.loop.rollout_workers.cluster import Cluster
from turngym.trainers.loop.rollout_workers.pool import Round
from turngym.trainers.loop.rollout_workers.worker import Planned
from turngym.trainers.loop.tasks.task import EnvTask


class ClusterPlayer(Player):
    """Assigns the next groups to free workers, in shares of half a worker's part of a batch.

    A share is played with a single version of the weights. Finished groups are in the journal; groups in progress at an
    interruption are replayed from their start.

    Args:
        stage: State shared with the learner.
        cluster: Workers.
    """

    def __init__(self, stage: Stage, cluster: Cluster) -> None:
        super().__init__(stage)
        self.cluster = cluster
        self._size = max(stage.gate.batch // (2 * cluster.config.rollout.ray.workers), 1)
        self._shares: dict[int, int] = {}
        """Share in progress -> version of its weights."""
        self._given = 0
        self._again: deque[Sequence[EpisodeSpec]] = deque()
        self._take_up()

    def metrics(self) -> Mapping[str, float]:
        """Return the summed metrics of the workers' tasks, and the number of lost workers."""
        return self.cluster.metrics()

    def play(self) -> None:
        """Play until the gate is closed."""
        round = Round()
        while not self.stage.gate.is_closed:
            while len(self._shares) < self.cluster.config.rollout.ray.workers and self._give(round):
                pass
            if self._shares:
                self.cluster.pool.advance(round)
                for number in list(round.answers):
                    answer = round.answers.pop(number)
                    self.cluster.add(answer.metrics)
                    self._finish(number, answer.trajectories)

    def _take_up(self) -> None:
        """Pass on the finished groups of the journal, and queue the others."""
        history = self.stage.history
        for number in sorted(set(history.groups) - history.to_train()):
            group = history.groups.pop(number)
            self.stage.pool.go_on(number, group.version)
            if group.is_finished:
                self.restored += len(group.episodes)
                self.stage.pool.finish(number, group.whole())
            else:
                self._again.append(group.specs)

    def _give(self, round: Round) -> bool:
        """Queue a share of groups that may start now; return True if there are any."""
        groups: list[Sequence[EpisodeSpec]] = []
        while len(groups) < self._size and (group := self._next_group(wait=not groups and not self._shares)):
            groups.append(group)
        if groups:
            number, version = self._given, self.stage.weights.refresh()  # at least as new as the groups
            episodes = [spec for group in groups for spec in group]
            self.stage.journal.append([begun_record(spec.group, spec.episode) for spec in episodes])
            round.add(number, self.cluster.job(self.stage.weights.model, Planned(episodes)))
            self._shares[number] = version
            self._given += 1
        return bool(groups)

    def _next_group(self, wait: bool) -> Sequence[EpisodeSpec]:
        """Return the episodes of an interrupted group, otherwise of the next one that may start."""
        return self._again.popleft() if self._again else self.plan(wait)

    def _finish(self, share: int, episodes: Sequence[Trajectory]) -> None:
        """Record the episodes of a share, and pass on its groups."""
        version = self._shares.pop(share)
        groups: dict[int, list[Trajectory]] = {}
        for episode in episodes:
            for turn in episode.turns:
                turn.policy_version = version
            self.stage.journal.append(whole_records(episode.spec.group, episode))
            groups.setdefault(episode.spec.group, []).append(episode)
        for number, own in groups.items():
            self.stage.pool.finish(number, own)


class AsyncRayTask(AsyncTask):
    """Task with asynchronous rollouts by workers on a Ray cluster.

    Args:
        task: Task for evaluations and settings.
        cluster: Workers.
    """

    def __init__(self, task: EnvTask, cluster: Cluster) -> None:
        super().__init__(task)
        self.cluster = cluster

    def _make_player(self, stage: Stage) -> Player:
        return ClusterPlayer(stage, self.cluster)

    def close(self) -> None:
        """End the workers, and close the task."""
        self.cluster.close()
        super().close()
