"""Several environments or games in one run: each group's environment is drawn by weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np

from turngym.agents.episodes.evaluate import summarise_records
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, Trajectory
from turngym.arithmetic import float_sum
from turngym.envs.multiagent.registration import is_game
from turngym.errors import ConfigError
from turngym.seeding import stream
from turngym.trainers.algorithms import LEARNERS
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.loop.tasks.parts import WHOLE, Chosen, Part
from turngym.trainers.loop.tasks.shared_play import slots_of
from turngym.trainers.loop.tasks.task import Evaluation, TaskSource
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.mixture import Member


def drawn(weights: Sequence[float], groups: int, *key: int | str) -> list[int]:
    """Return the environment of each group of an iteration.

    The draw is systematic: every environment gets its share of the groups, rounded up or down at random, in random
    order.

    Args:
        weights: Weight of each environment.
        groups: Number of groups.
        key: Key of the random stream.

    >>> sorted(drawn([2, 1, 1], 8, "example"))
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    generator = stream("mixture", *key)
    points = (generator.permutation(groups) + generator.random()) / groups
    bounds = np.cumsum(weights) / math.fsum(weights)
    last = max(index for index, weight in enumerate(weights) if weight)
    return [min(int(place), last) for place in np.searchsorted(bounds, points, side="right")]


def demonstrations_of(weights: Sequence[float], count: int) -> list[int]:
    """Return each environment's number of demonstrations: at least one with a weight above 0, if there are enough.

    >>> demonstrations_of([2, 1, 1], 10), demonstrations_of([98, 1, 1], 10), demonstrations_of([1, 0], 3)
    ([5, 3, 2], [8, 1, 1], [3, 0])
    """
    found = [min(1, count) if weight else 0 for weight in weights]
    for _ in range(count - sum(found)):
        wanted = [weight / (have + 0.5) for weight, have in zip(weights, found, strict=True)]
        found[wanted.index(max(wanted))] += 1
    return found


class MixtureTask(TaskSource):
    """Task of several environments; an episode's group and seed are those of a run on its environment alone.

    Args:
        config: Settings of the run.
        make: Creates the task of one environment.
        ranks: The ranks that play the episodes of an iteration together.
    """

    def __init__(self, config: TrainConfig, make: Callable[[TrainConfig], TaskSource], ranks: Ranks = SINGLE) -> None:
        self.config = config
        self.members = config.members
        self.weights = [member.weight for member in self.members]
        self.tasks: list[TaskSource] = []
        with ExitStack() as stack:  # closes the created ones if another fails
            for member in self.members:
                self.tasks.append(make(self._slotted(member, ranks)))
                stack.callback(self.tasks[-1].close)
            self._open = stack.pop_all()

    def _slotted(self, member: Member, ranks: Ranks) -> TrainConfig:
        """Return the settings of an environment with vector slots for its groups only."""
        settings = member.config.rollout
        most = max(1, math.ceil(settings.groups * member.weight / math.fsum(self.weights)))
        slots = settings.num_envs or slots_of(most, settings.group_size, ranks)
        return replace(member.config, rollout=replace(settings, num_envs=slots))

    @property
    def has_expert(self) -> bool:
        """True if one of them has an expert."""
        return any(task.has_expert for task in self.tasks)

    @property
    def has_comparable_rewards(self) -> bool:
        """True if all of them have."""
        return all(task.has_comparable_rewards for task in self.tasks)

    def warning(self, algorithm: Algorithm[object]) -> str:
        """Return the warnings of all."""
        return " ".join(filter(None, (task.warning(algorithm) for task in self.tasks)))

    def texts(self) -> list[str]:
        """Return the texts of all."""
        return [text for task in self.tasks for text in task.texts()]

    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return demonstrations of each environment, in numbers by weight."""
        counts = demonstrations_of(self.weights, count)
        pairs = zip(self.tasks, counts, strict=True)
        return [each for task, share in pairs if share for each in task.demonstrations(model, share)]

    # Training.

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of an iteration, ordered by group."""
        chosen = self._drawn(iteration, attempt)
        found: list[Trajectory] = []
        for index, task in enumerate(self.tasks):
            mine = tuple(place for place in part.slice(range(len(chosen))) if chosen[place] == index)
            if mine:
                played = task.gather(model, iteration, attempt, greedy, Chosen(positions=mine))
                found += self._numbered(index, played)
        return sorted(found, key=lambda trajectory: trajectory.spec.group)

    def _drawn(self, iteration: int, attempt: int) -> list[int]:
        return drawn(self.weights, self.config.rollout.groups, self.config.seed, iteration, attempt)

    def _numbered(self, index: int, played: Sequence[Trajectory]) -> list[Trajectory]:
        """Return episodes with numbers that are unique over environments: games number seats, others episodes."""
        for trajectory in played:
            number = trajectory.spec.episode * len(self.tasks) + index
            trajectory.spec = replace(trajectory.spec, episode=number)
            trajectory.env_id = self.members[index].config.env
        return list(played)

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch off from turns of gathered episodes, each in its environment."""
        groups = self.config.rollout.groups
        draws = {each.trajectory.spec.group // groups for each in branches}
        chosen = {attempt: self._drawn(iteration, attempt) for attempt in draws}
        found: dict[int, Trajectory] = {}
        for index, task in enumerate(self.tasks):
            places = []
            for place, each in enumerate(branches):
                attempt, group = divmod(each.trajectory.spec.group, groups)
                places += [place] if chosen[attempt][group] == index else []
            if places:
                played = task.branch(model, iteration, [branches[place] for place in places], first)
                found.update(zip(places, self._numbered(index, played), strict=True))
        return [found[place] for place in range(len(branches))]

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics of all, which are counts and therefore summed."""
        found: dict[str, list[float]] = {}
        for task in self.tasks:
            for name, value in task.metrics().items():
                found.setdefault(name, []).append(value)
        return {name: float_sum(values) for name, values in found.items()}

    # Evaluation.

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return the metrics of each, and the means over the environments."""
        points = {member.label: task.curve_point(model) for member, task in zip(self.members, self.tasks, strict=True)}
        found = {
            name: float_sum([point[name] for point in points.values()]) / len(points)
            for name in ("eval/success", "eval/reward_sum")
        }
        half = [(point["eval/success_high"] - point["eval/success_low"]) / 2 for point in points.values()]
        width = math.sqrt(float_sum([each**2 for each in half])) / len(points)
        found["eval/success_low"] = max(0.0, found["eval/success"] - width)
        found["eval/success_high"] = min(1.0, found["eval/success"] + width)
        for label, point in points.items():
            found |= {f"{name}_on_{label}": value for name, value in point.items()}
        return found

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Evaluate on all environments: first over all episodes, then on each."""
        found = [
            list(task.evaluate(model, f"{name}-on-{member.label}", temperature))
            for member, task in zip(self.members, self.tasks, strict=True)
        ]
        yield self._together(name, [evaluations[0] for evaluations in found])
        for evaluations in found:
            yield from evaluations

    def _together(self, name: str, found: Sequence[Evaluation]) -> Evaluation:
        records = [
            {**record, "block_id": f"{member.label}:{record['block_id']}"}
            for member, evaluation in zip(self.members, found, strict=True)
            for record in evaluation.result.episodes
        ]
        result = summarise_records(", ".join(self.config.envs), records)
        rounds = zip(*(evaluation.trajectories for evaluation in found), strict=False)
        return Evaluation(name, result, [each for one_of_each in rounds for each in one_of_each])

    # What tasks keep.

    @contextmanager
    def playing(self, folder: RunFolder, model: LanguageModel, iteration: int) -> Iterator[None]:
        """Enter the contexts of all."""
        with ExitStack() as stack:
            for task in self.tasks:
                stack.enter_context(task.playing(folder, model, iteration))
            yield

    def trained(self, model: LanguageModel, iteration: int) -> None:
        """Notify all."""
        for task in self.tasks:
            task.trained(model, iteration)

    def save(self, folder: RunFolder) -> None:
        """Save all."""
        for task in self.tasks:
            task.save(folder)

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:
        """Restore all."""
        for task in self.tasks:
            task.resume(folder, model, iteration)

    def close(self) -> None:
        """Close all."""
        self._open.close()


def require_mixable(config: TrainConfig) -> None:
    """Raise for settings that only support one environment.

    Raises:
        ConfigError: A setting is incompatible.
    """
    if config.rollout.is_journaled:
        raise ConfigError(
            "asynchronous rollouts and journals play one environment: leave out --rollout.schedule async and "
            "--rollout.journal, or all but one of --env."
        )
    if config.agent.is_used:
        raise ConfigError("agent programs play one environment: leave out --agent.command, or all but one of --env.")
    if config.algorithm in LEARNERS:
        raise ConfigError(f"{config.algorithm} trains on one game: leave out all but one of --env.")
    games = [member.config.self_play for member in config.members if is_game(member.config.env)]
    if len(games) > 1 and any(each.num_past or each.is_prioritised for each in games):
        raise ConfigError(
            "frozen copies and results against opponents are kept for one game of a run: leave out past:N of "
            "--self-play.opponents and --self-play.matching, or all but one of the games."
        )
