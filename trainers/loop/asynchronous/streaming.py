"""A player that never waits for the slowest episode: groups start as soon as gate and slots permit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from turngym.agents.episodes.stream import Feed, OpenTurn, continued, play_stream
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.trainers.loop.asynchronous.agent import VersionedAgent
from turngym.trainers.loop.asynchronous.background import BackgroundAgent
from turngym.trainers.loop.asynchronous.history import (
    EpisodeHistory,
    GroupHistory,
    begun_record,
    finished_record,
    turn_record,
)
from turngym.trainers.loop.asynchronous.player import RETRIES, Player, Stage, lost_its_worker

_RESTORE_FAILED = "restore failed"


class StreamPlayer(Player, Feed):
    """Plays a stream of groups; all episodes of a group start with the same weights.

    Unfinished groups in the journal are resumed: from the environment's snapshot before an episode's last turn, or by
    replaying the recorded actions if it has no snapshots.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.size = stage.task.config.rollout.group_size
        self.agent = self._agent()
        self._ready: deque[list[EpisodeSpec]] = deque()
        self._done: dict[int, dict[int, Trajectory]] = {}
        self._specs: dict[int, Sequence[EpisodeSpec]] = {}
        self._open: dict[int, OpenTurn] = {}
        self._attempts: Counter[int] = Counter()
        self._take_up()

    def _agent(self) -> VersionedAgent:
        """Return the agent, one that samples in the background if the sampler supports it."""
        weights = self.stage.weights
        plays = self.stage.task.agent(weights.model, 0)
        sampler = weights.model.background
        if sampler is None or weights.model.pictures is not None:
            return VersionedAgent(plays, weights.refresh)
        return BackgroundAgent(plays, sampler, weights)

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics since the last call, including sampler costs."""
        self.stage.task.cache.note(self.agent.agent)
        return super().metrics()

    def play(self) -> None:
        """Play until the gate is closed."""
        task = self.stage.task
        play_stream(task.vector, self.agent, self, snapshots=True, final_prompts=task.final_prompts)

    # What was interrupted.

    def _take_up(self) -> None:
        """Queue the unfinished groups of the journal, and pass on the finished ones."""
        history = self.stage.history
        for number in sorted(set(history.groups) - history.to_train()):
            group = history.groups.pop(number)
            self.stage.pool.go_on(number, group.version)
            self._specs[number] = group.specs
            self._done[number] = {n: each.whole for n, each in group.episodes.items() if each.whole is not None}
            self.restored += sum(each.has_begun for each in group.episodes.values())
            if len(self._done[number]) == len(group.specs):
                self._hand_over(number)
            elif any(each.turns or each.whole for each in group.episodes.values()):
                self._ready.extend([self._again(each, group.episodes[each.episode])] for each in self._missing(group))
            else:
                self._ready.append(list(group.specs))

    def _missing(self, group: GroupHistory) -> list[EpisodeSpec]:
        return [spec for spec in group.specs if group.episodes[spec.episode].whole is None]

    def _again(self, spec: EpisodeSpec, known: EpisodeHistory) -> EpisodeSpec:
        """Return the resumed episode of journal entries."""
        if not known.turns:
            return spec
        before, turn = [None, *known.turns][-2], known.turns[-1]
        self._open[spec.episode] = OpenTurn(spec, len(known.turns) - 1, turn, before, known.state)
        self.agent.expect(spec.episode, known.turns)
        return continued(spec, known.turns, known.state) if known.state else spec

    # The feed.

    def take(self, free: int, wait: bool) -> Sequence[EpisodeSpec] | None:
        """Return episodes to start now; None once the gate is closed."""
        found: list[EpisodeSpec] = []
        if self.stage.gate.is_closed:
            return None
        while self._ready and len(self._ready[0]) <= free - len(found):
            found += self._ready.popleft()
        while not self._ready and self.size <= free - len(found):
            group = self._plan(wait and not found)
            if not group:
                break
            found += group
        if self.stage.gate.is_closed:
            return None
        if found:
            self.stage.journal.append([begun_record(spec.group, spec.episode) for spec in found])
        return found

    def _plan(self, wait: bool) -> list[EpisodeSpec]:
        """Return the episodes of the next group; empty if none may start."""
        specs = list(self.plan(wait))
        if specs:
            number = specs[0].group
            self._specs[number], self._done[number] = specs, {}
        return specs

    def decided(self, turns: Sequence[OpenTurn]) -> None:
        """Write decided turns before their actions are sent."""
        self._open.update((turn.spec.episode, turn) for turn in turns)
        self.stage.journal.append([turn_record(turn.spec.group, turn) for turn in turns])

    def ended(self, trajectory: Trajectory) -> None:
        """Record a finished episode, and pass on its group if it was the last one."""
        spec = trajectory.spec
        if self._goes_on(trajectory):
            return
        self._open.pop(spec.episode, None)
        self._attempts.pop(spec.episode, None)
        self._done[spec.group][spec.episode] = trajectory
        self.stage.journal.append([finished_record(spec.group, trajectory)])
        if len(self._done[spec.group]) == len(self._specs[spec.group]):
            self._hand_over(spec.group)

    def _hand_over(self, number: int) -> None:
        done, specs = self._done.pop(number), self._specs.pop(number)
        self.stage.pool.finish(number, [done[spec.episode] for spec in specs])

    def _goes_on(self, trajectory: Trajectory) -> bool:
        """Queue an episode again if its worker died or its state could not be restored; return True if queued."""
        spec, has_failed = trajectory.spec, trajectory.fault.startswith(_RESTORE_FAILED)
        if not (has_failed or lost_its_worker(trajectory)) or self._attempts[spec.episode] >= RETRIES:
            return False
        self._attempts[spec.episode] += 1
        self.replayed += 1
        last = self._open.get(spec.episode)
        known = EpisodeHistory(trajectory.turns)
        if last is not None:
            state = b"" if has_failed else last.state
            known = EpisodeHistory([*trajectory.turns[: last.index], last.turn], state)
        self._ready.append([self._again(spec, known)])
        return True
