"""Single-agent environment with asynchronous rollouts, recorded in a journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import CheckpointError, ConfigError
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.loop.asynchronous.gate import Gate
from turngym.trainers.loop.asynchronous.history import Batch, GroupHistory, History, trained_record
from turngym.trainers.loop.asynchronous.metrics import RolloutMeter, correction_warning
from turngym.trainers.loop.asynchronous.player import Player, Stage
from turngym.trainers.loop.asynchronous.pool import Group, Pool
from turngym.trainers.loop.asynchronous.rounds import RoundPlayer
from turngym.trainers.loop.asynchronous.streaming import StreamPlayer
from turngym.trainers.loop.asynchronous.weights import SamplerWeights
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.task import EnvTask
from turngym.trainers.loop.tasks.wrapped_task import WrappedTask
from turngym.trainers.records.journal import Journal
from turngym.trainers.records.run_folder import RunFolder


class AsyncTask(WrappedTask[EnvTask]):
    """Task whose episodes are played by a thread next to the learner and recorded in a journal.

    The journal is in the folder ``journal`` of a run. A resumed run first trains again on the batches since the
    checkpoint, read from the journal, and then resumes the unfinished episodes.

    Args:
        task: Inner task.
    """

    def __init__(self, task: EnvTask) -> None:
        super().__init__(task)
        self.config = task.config
        self._weights: SamplerWeights | None = None
        self._player: Player | None = None
        self._stage: Stage | None = None
        self._rounds: list[list[int]] = []
        self._meter = RolloutMeter(self.config.rollout.staleness)
        self._stored: Batch | None = None
        self._metrics: Mapping[str, float] = {}
        self._again: dict[int, GroupHistory] = {}

    # The player and what it shares with the learner.

    def sampling_model(self, model: LanguageModel) -> LanguageModel:
        """Return the sampling copy of the policy; the policy itself if rollouts do not overlap with updates."""
        if self._weights is None:
            self._weights = SamplerWeights(model, copies=self.config.rollout.staleness > 0)
        return self._weights.model

    @property
    def stage(self) -> Stage:
        """State shared by player and learner during rollouts."""
        assert self._stage is not None, "gathered outside of playing()"
        return self._stage

    @property
    def player(self) -> Player:
        """The player during rollouts."""
        assert self._player is not None, "gathered outside of playing()"
        return self._player

    @contextmanager
    def playing(self, folder: RunFolder, model: LanguageModel, iteration: int) -> Iterator[None]:
        """Context with an open journal and a player, from an iteration on."""
        self.sampling_model(model)
        weights = self._weights
        assert weights is not None
        weights.publish(model.network, iteration)
        journal = Journal(folder.path / "journal")
        records = journal.read(iteration)
        history = History.of(records, iteration)
        if not records:
            history.next_number = iteration * self.config.rollout.groups
        journal.keep([record for record in records if record.get("group") in history.groups])
        journal.open(iteration)
        gate = self._gate(history)
        self._stage = Stage(self.task, weights, gate, Pool(gate, self.config.rollout.on_stale), journal, history)
        self._again = {number: history.groups[number] for number in history.to_train()}
        self._player = self._make_player(self._stage)
        self._meter.begin(self._stage, self._player)
        self._start_unless_behind(iteration)
        try:
            yield
        finally:
            self._player.stop()
            journal.close()

    def _make_player(self, stage: Stage) -> Player:
        return StreamPlayer(stage) if self.config.rollout.order == "continuous" else RoundPlayer(stage)

    def _gate(self, history: History) -> Gate:
        """Return the gate of a resumed run: only groups still to be trained on count as started."""
        settings = self.config.rollout
        ahead = history.groups if settings.order == "continuous" else history.to_train()
        begun = history.iteration * settings.groups + len(ahead)
        return Gate(settings.groups, settings.staleness, self.config.iterations, history.iteration, begun)

    def _start_unless_behind(self, iteration: int) -> None:
        """Start the player once the learner has caught up with the interrupted run."""
        if iteration not in self.stage.history.trained:
            self.player.start()

    # Gathering.

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of a batch, as soon as it is complete.

        Raises:
            ConfigError: Greedy episodes, or a part of a batch, are requested.
            CheckpointError: The journal has another number of batches for the iteration.
        """
        if greedy:
            raise ConfigError(
                f"{self.config.algorithm} plays the instances of an iteration once more with greedy decoding, for "
                "which asynchronous rollouts and journals have no place: take --rollout.schedule lockstep or "
                "continuous without --rollout.journal, or another method."
            )
        if part != WHOLE:
            raise ConfigError(
                "asynchronous rollouts and journals feed one learner process: leave out --rollout.schedule async and "
                "--rollout.journal with several ranks."
            )
        if attempt:
            self.stage.gate.add(self.config.rollout.groups)
        stored = self.stage.history.trained.get(iteration)
        if stored is not None:
            groups = self._trained_before(stored, iteration, attempt)
        else:
            self.player.request(iteration, attempt)
            groups = self.stage.pool.take(self.config.rollout.groups)
            self._note_dropped(iteration)
        self._stored = stored
        self._rounds = [*self._rounds[:attempt], [group.number for group in groups]]
        episodes = [episode for group in groups for episode in group.episodes]
        if stored is None:
            self._meter.gathered(episodes, iteration)
        return episodes

    def _trained_before(self, stored: Batch, iteration: int, attempt: int) -> list[Group]:
        """Return a batch trained on between checkpoint and interruption."""
        if attempt >= len(stored.rounds):
            raise CheckpointError(
                f"the journal has {len(stored.rounds)} batches for iteration {iteration}, and one more is asked for: "
                "delete the folder journal of the run, and --resume plays the episodes again."
            )
        found = [self._again[number] for number in stored.rounds[attempt]]
        return [Group(one.number, one.version, one.whole()) for one in found]

    def _note_dropped(self, iteration: int) -> None:
        dropped, self.stage.pool.dropped = self.stage.pool.dropped, []
        records = [{"is": "dropped", "group": group.number, "iteration": iteration} for group in dropped]
        if records:
            self.stage.journal.append(records)
            self.stage.journal.forget([group.number for group in dropped])
            self._meter.dropped(dropped)

    def metrics(self) -> Mapping[str, float]:
        """Return rollout metrics of an iteration; for batches trained on again, the recorded ones."""
        if self._stored is not None:
            return self._stored.metrics
        self._metrics = {**self.player.metrics(), **self._meter.metrics()}
        return self._metrics

    def trained(self, model: LanguageModel, iteration: int) -> None:
        """Record the trained batch, and publish the new weights to the sampler."""
        stage = self.stage
        numbers = [number for each in self._rounds for number in each]
        if self._stored is None:
            stage.journal.append([trained_record(iteration, self._rounds, self._metrics)], sync=True)
            self._meter.trained()
        stage.journal.forget(numbers)
        for number in numbers:
            self._again.pop(number, None)
        self._rounds = []
        stage.weights.publish(model.network, iteration + 1)
        stage.gate.updated()
        self._start_unless_behind(iteration + 1)

    # Checkpoints.

    def save(self, folder: RunFolder) -> None:
        """Start the journal's segment for the newest checkpoint, unless batches are being trained on again."""
        if self._stage is None or self._again:
            return
        kept = [int(path.name) for path in all_checkpoints(folder.checkpoints)]
        header = {"is": "checkpoint", "iteration": kept[-1], "next": self.player.next_number}
        self.stage.journal.start_segment(kept[-1], header, kept[0])

    def warning(self, algorithm: Algorithm[object]) -> str:
        """Return a warning if samples may be stale and the method neither clips against the sampler nor corrects."""
        return correction_warning(self.config, algorithm)
