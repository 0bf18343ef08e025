"""A task with the rewards of a reward model."""

from __future__ import annotations

import math
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory
from turngym.errors import CheckpointError, ConfigError
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.loop.tasks.wrapped_task import WrappedTask
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.reward_models import FILE, load_reward_model
from turngym.trainers.reward_models.base.fitted import FittedReward, ranking
from turngym.trainers.reward_models.base.model import RewardModel, rewarded
from turngym.trainers.reward_models.base.recordings import lightened, read_trajectories, write_trajectories

_FOLDER = "reward_model"


class RewardedTask(WrappedTask[TaskSource]):
    """Wrapper of a task that replaces the rewards of training episodes by a model's.

    Demonstrations and evaluations do not change. A trainable model without a ``path`` is fitted to the episodes of the
    last iterations, with the environment's rewards; until then, rewards do not change.

    Args:
        task: The task.
        model: The reward model.
        seed: Seed of the run, for fits.
    """

    def __init__(self, task: TaskSource, model: RewardModel[Any], seed: int = 0) -> None:
        super().__init__(task)
        self.model = model
        self.seed = seed
        self.recent: deque[tuple[int, list[Trajectory]]] = deque()
        self._metrics: dict[str, float] = {}
        self._iteration = -1
        self._given: list[tuple[Trajectory, Trajectory]] = []
        """Original and rewarded episodes of the iteration, for models that compare groups."""

    @property
    def _fits(self) -> FittedReward[Any] | None:
        """The model, if it is fitted in this run."""
        model = self.model
        return model if isinstance(model, FittedReward) and not model.config.path else None

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of an iteration with the model's rewards."""
        if not greedy and not attempt:
            self._refit(iteration)
        played = self.task.gather(model, iteration, attempt, greedy, part)
        found = self._rewarded(iteration, played)
        if not greedy:
            self._note(iteration, played)
            self._metrics.update(_compared(self.model, played, found))
        return found

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch off from turns of episodes, with the model's rewards."""
        return self._rewarded(iteration, self.task.branch(model, iteration, branches, first))

    def again(
        self, model: LanguageModel, iteration: int, specs: Sequence[EpisodeSpec], notes: Sequence[str], first: int
    ) -> list[Trajectory]:
        """Play once more, with the model's rewards."""
        return self._rewarded(iteration, self.task.again(model, iteration, specs, notes, first))

    def _rewarded(self, iteration: int, played: Sequence[Trajectory]) -> list[Trajectory]:
        """Return episodes with the model's rewards; a model that compares groups rewards earlier ones again.

        Episodes that an algorithm plays later join their groups: the rewards of earlier episodes are updated in place,
        so that the whole iteration is rewarded consistently.
        """
        if not self.model.compares_groups:
            return rewarded(self.model, played)
        before = self._given if iteration == self._iteration else []
        found = rewarded(self.model, [*(one for one, _ in before), *played])
        for (_, given), again in zip(before, found, strict=False):
            for turn, other in zip(given.turns, again.turns, strict=True):
                turn.reward, turn.columns = other.reward, other.columns
        fresh = found[len(before) :]
        self._iteration, self._given = iteration, [*before, *zip(played, fresh, strict=True)]
        return fresh

    def metrics(self) -> Mapping[str, float]:
        """Return metrics of the reward model since the last call."""
        found, self._metrics = {**self._metrics, **self.model.metrics()}, {}
        return {**self.task.metrics(), **{f"reward_model/{name}": value for name, value in found.items()}}

    # Fitting in the run.

    def _note(self, iteration: int, played: Sequence[Trajectory]) -> None:
        if self._fits is None:
            return
        light = [lightened(each) for each in played if each.turns and not each.fault and each.spec.branch is None]
        if self.recent and self.recent[-1][0] == iteration:
            self.recent[-1][1].extend(light)
        else:
            self.recent.append((iteration, light))
        while len(self.recent) > self._fits.config.recent:
            self.recent.popleft()

    def _refit(self, iteration: int) -> None:
        """Fit the model if due and if the episodes suffice, such as at least one solved."""
        model = self._fits
        if model is None or not self.recent or (model.is_ready and iteration % model.config.refit_every):
            return
        episodes = [each for _, own in self.recent for each in own]
        if any(target is not None for target in model.targets(episodes)):
            found = model.fit(episodes, self.seed)
            self._metrics.update({f"fit_{name}": value for name, value in found.items()})

    # Checkpoints.

    def save(self, folder: RunFolder) -> None:
        """Write the model and the episodes it is fitted to, next to the newest checkpoint."""
        self.task.save(folder)
        if self._fits is None:
            return
        kept = [path.name for path in all_checkpoints(folder.checkpoints)]
        target = folder.path / _FOLDER / kept[-1]
        if not target.exists():
            temporary = target.with_name(f".{target.name}.tmp")
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            for iteration, own in self.recent:
                write_trajectories(temporary / "recent" / f"{iteration:06d}.jsonl", own)
            if self.model.is_ready:
                self.model.save(temporary)
            temporary.replace(target)
        for old in target.parent.glob("[0-9]*"):
            if old.name not in kept:
                shutil.rmtree(old)

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:
        """Restore model and episodes.

        Raises:
            CheckpointError: They are damaged or missing.
        """
        self.task.resume(folder, model, iteration)
        if self._fits is None:
            return
        stored = folder.path / _FOLDER / f"{iteration:06d}"
        try:
            self.recent = deque((int(path.stem), _read(path)) for path in sorted((stored / "recent").glob("*.jsonl")))
        except (ConfigError, ValueError) as error:
            raise CheckpointError(f"the episodes in {stored} are damaged: delete it and its checkpoint.") from error
        if (stored / FILE).is_file():
            config = self.model.config
            features = getattr(config, "features", None)
            self.model = load_reward_model(stored, None if features is None else {"features": features})
            self.model.config = config  # path stays empty: it is fitted again


def _read(path: Path) -> list[Trajectory]:
    return read_trajectories(path) if path.stat().st_size else []


def _compared(model: RewardModel[Any], played: Sequence[Trajectory], found: Sequence[Trajectory]) -> dict[str, float]:
    """Return the mean return of environment and model, and the ranking quality of the model's part."""
    pairs = [(one, two) for one, two in zip(played, found, strict=True) if one.turns and not one.fault]
    if not pairs:
        return {}
    metrics = {
        "environment_reward_sum": math.fsum(one.reward_sum for one, _ in pairs) / len(pairs),
        "reward_sum": math.fsum(two.reward_sum for _, two in pairs) / len(pairs),
    }
    parts = [(one.success == 1, two.reward_sum - (0 if model.replaces else one.reward_sum)) for one, two in pairs]
    solved = [part for is_solved, part in parts if is_solved]
    failed = [part for is_solved, part in parts if not is_solved]
    return metrics | ({"ranking": ranking(solved, failed)} if solved and failed and model.is_ready else {})
