"""The task interface: texts, demonstrations, trajectories and evaluations of a run.

The loop, the learner and the job use a :class:`TaskSource` and no vectors or tables, so environments with one agent and
games between seats share all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from turngym.agents.core import Agent
from turngym.agents.episodes.evaluate import EvaluationResult, distinct_instances, open_vector, play_all, summarise
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory
from turngym.errors import ConfigError, SnapshotUnsupported
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.loop.logged import logged_demonstrations
from turngym.trainers.loop.setup import environment_texts, iteration_specs, policy_agent, training_vector
from turngym.trainers.loop.sft import demonstrations
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.shared_play import played_by_all
from turngym.trainers.loop.tasks.starts import Starts
from turngym.trainers.records.rollout_metrics import CacheMeter
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

CURVE_SAMPLING, FINAL_SAMPLING = -2, -1
"""Iterations in the keys of the sampling streams of evaluations; training uses 0 and more."""
EVALUATION_SLOTS = 256
_CURVE_SEED, _FINAL_SEED = 1, 0
_FIRST_BRANCH = 2**40
"""Number of an iteration's first branched episode; fresh ones count from 0."""


class Evaluation(NamedTuple):
    """An evaluation, the name that it is kept under, and its trajectories."""

    name: str
    result: EvaluationResult
    trajectories: list[Trajectory]


class TaskSource(ABC):
    """Training task of a run."""

    @property
    @abstractmethod
    def has_expert(self) -> bool:
        """True if its demonstrations teach more than the answer format."""

    @property
    def has_comparable_rewards(self) -> bool:
        """True if equal rewards in two iterations mean equally good play; not so if opponents change meanwhile."""
        return True

    def warning(self, algorithm: Algorithm[Any]) -> str:
        """Return a warning about training on it with an algorithm; empty if there is none."""
        return ""

    @abstractmethod
    def texts(self) -> list[str]:
        """Return texts that occur in it, for a tokenizer."""

    @abstractmethod
    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return demonstrations, in the prompts and the answer format of the policy."""

    @abstractmethod
    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the trajectories of an iteration, fresh ones for every attempt.

        Args:
            model: The policy.
            iteration: Number of the iteration.
            attempt: Number of earlier rollouts of the iteration.
            greedy: Play each instance once, with greedy decoding.
            part: Index of its group.
        """

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch off from turns of gathered episodes, one new episode for each, in that order.

        Args:
            model: The policy.
            iteration: Number of the iteration.
            branches: Initial position.
            first: Number of earlier branched episodes of the iteration.

        Raises:
            ConfigError: It cannot start in the middle of an episode.
        """
        raise ConfigError(
            f"{type(self).__name__} cannot continue from the middle of an episode. Take a method without snapshots, "
            "such as ppo or grpo."
        )

    @abstractmethod
    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return metrics of a policy for the learning curve; ``eval/success`` is one of them. Called on every rank."""

    @abstractmethod
    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Evaluate a policy; the first evaluation is called ``name``.

        It is called on every rank, and the first one's results count.

        Args:
            model: The policy.
            name: Name of the evaluation.
            temperature: Sampling temperature, None for that of training.
        """

    # Optional parts.

    def metrics(self) -> Mapping[str, float]:
        """Return additional metrics of the iteration's episodes."""
        return {}

    def sampling_model(self, model: LanguageModel) -> LanguageModel:
        """Return the model that samples while a policy is being trained: itself, or a copy that follows it."""
        return model

    def playing(self, folder: RunFolder, model: LanguageModel, iteration: int) -> AbstractContextManager[object]:
        """Return the context in which a run gathers from an iteration on."""
        return nullcontext()

    def trained(self, model: LanguageModel, iteration: int) -> None:  # noqa: B027
        """Called when an iteration's update is over, with the new weights."""

    def state(self, iteration: int) -> dict[str, Any]:
        """Return what a checkpoint holds of it, as JSON has it.

        Args:
            iteration: Number of the next iteration; what belongs to it is left out.
        """
        return {}

    def restore(self, state: Mapping[str, Any], iteration: int) -> None:  # noqa: B027
        """Restore what the checkpoint of an iteration holds of it.

        Raises:
            CheckpointError: It is damaged.
        """

    def save(self, folder: RunFolder) -> None:  # noqa: B027
        """Write additional files for the latest checkpoint."""

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:  # noqa: B027
        """Restore them for the checkpoint of an iteration."""

    def close(self) -> None:  # noqa: B027
        """Release resources."""


class EnvTask(TaskSource):
    """An environment with one agent: training instances from its train split, evaluations from dev and test.

    Args:
        config: Settings of the run.
        snapshots: Whether turns keep the environment's state, so that episodes can branch off.
        entropies: Whether turns keep the entropies of their tokens' distributions.
        final_prompts: Whether truncated episodes keep the prompt that would have come next.
        ranks: The ranks that play the episodes of an iteration together.
    """

    def __init__(
        self,
        config: TrainConfig,
        snapshots: bool = False,
        entropies: bool = False,
        final_prompts: bool = False,
        ranks: Ranks = SINGLE,
    ) -> None:
        self.config = config
        self.ranks = ranks
        self.final_prompts = final_prompts
        self.snapshots = snapshots
        self.entropies = entropies
        self.starts = Starts(config) if config.start else None
        self.vector = training_vector(config, ranks)
        self.cache = CacheMeter()
        self._curve_seeds: list[int] = []

    @property
    def has_expert(self) -> bool:
        """The environment's solver."""
        return True

    def texts(self) -> list[str]:
        """Return the environment's observations and the actions in the answer format."""
        return environment_texts(self.vector, self.config.rollout.format, self.config.seed)

    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return episodes of the environment's solver, or of a log."""
        if log := self.config.warmup.log:
            return logged_demonstrations(Path(log), self.vector, policy_agent(self.config, model), self.config)
        return demonstrations(self.vector, policy_agent(self.config, model), count, self.config.seed)

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of an iteration; of each group only the first one if they are greedy."""
        specs = part.of(iteration_specs(self.config, iteration, attempt))
        specs = specs[:: self.config.rollout.group_size if greedy else 1]
        return self.play_noted(self.agent(model, iteration, 0.0 if greedy else None), specs)

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch off from turns of gathered episodes, with new samples in the same group."""
        specs = []
        for number, branch in enumerate(branches, _FIRST_BRANCH + first):
            origin = branch.trajectory.spec
            specs.append(EpisodeSpec(number, origin.seed, origin.group, origin.options, branch))
        return self.play_noted(self.agent(model, iteration), specs)

    def play_noted(self, agent: ModelAgent, specs: Sequence[EpisodeSpec]) -> list[Trajectory]:
        """Play episodes for training, and count what the sampler computed for them."""
        branches = [(spec.episode, spec.branch) for spec in specs if spec.branch is not None]
        played = played_by_all(self.ranks, specs, lambda own: self.play(agent, own), branches)
        self.cache.note(agent)
        return played

    def agent(self, model: LanguageModel, iteration: int, temperature: float | None = None) -> ModelAgent:
        """Return the agent that plays for training."""
        agent = policy_agent(self.config, model, iteration, temperature)
        agent.sampling = replace(agent.sampling, entropies=self.entropies)
        return agent

    def play(
        self, agent: Agent, specs: Sequence[EpisodeSpec], on_episode: Callable[[Trajectory], None] | None = None
    ) -> list[Trajectory]:
        """Play episodes for training.

        Args:
            agent: Plays them.
            specs: The episodes.
            on_episode: Called with each as soon as it ends.
        """
        play = partial(
            rollout,
            self.vector,
            schedule=self.config.rollout.order,
            on_episode=on_episode,
            snapshots=self.snapshots,
            final_prompts=self.final_prompts,
        )
        try:
            return play(agent, specs) if self.starts is None else self.starts.play(agent, specs, play)
        except SnapshotUnsupported as error:
            raise ConfigError(
                f"{self.config.algorithm} branches from the middle of episodes, and {self.config.env} cannot save its "
                f"state ({error}). Take a method without snapshots, such as ppo or grpo."
            ) from error

    def metrics(self) -> dict[str, float]:
        """Return what became of the tokens of prompts, and how many episodes continue recorded ones."""
        return self.ranks.sum_numbers(self.cache.metrics() | (self.starts.metrics() if self.starts else {}))

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return the success on dev instances, sampled as in training."""
        if not self._curve_seeds:
            self._curve_seeds = self._seeds("dev", self.config.evaluation.curve_episodes, _CURVE_SEED)
        agent = policy_agent(self.config, model, CURVE_SAMPLING)
        return curve_metrics(self._evaluated("", agent, "dev", self._curve_seeds).result)

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Evaluate on test instances, the same for every policy, sampling as ``turngym eval`` does."""
        seeds = self._seeds("test", self.config.evaluation.episodes, _FINAL_SEED)
        agent = policy_agent(replace(self.config, seed=_FINAL_SEED), model, temperature=temperature)
        yield self._evaluated(name, agent, "test", seeds)

    def _options(self, split: str) -> dict[str, Any]:
        return {**self.config.env_options, "split": split}

    def _seeds(self, split: str, count: int, seed: int) -> list[int]:
        def find() -> list[int]:
            found = distinct_instances(self.config.env, count, self._options(split), seed, whatever_there_is=True)
            return list(found.values())

        return self.ranks.on_first(find)

    def _evaluated(self, name: str, agent: ModelAgent, split: str, seeds: Sequence[int]) -> Evaluation:
        """Evaluate on instances of a split; every rank plays its share of them and returns the result of all."""
        specs = [EpisodeSpec(number, seed, number) for number, seed in enumerate(seeds)]
        found = played_by_all(self.ranks, specs, lambda own: self._play_held_out(agent, split, own) if own else [])
        return Evaluation(name, summarise(self.config.env, found), found)

    def _play_held_out(self, agent: ModelAgent, split: str, specs: Sequence[EpisodeSpec]) -> list[Trajectory]:
        """Play episodes of a split in their own vector."""
        settings = self.config.rollout
        slots = min(settings.num_envs or EVALUATION_SLOTS, len(specs))
        with open_vector(
            self.config.env, self._options(split), slots, settings.backend, self.config.wrappers
        ) as vector:
            return play_all(vector, agent, specs)

    def save(self, folder: RunFolder) -> None:
        """Write down which recorded states groups start from."""
        if self.starts:
            self.starts.save(folder)

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:
        """Check that they are the same."""
        if self.starts:
            self.starts.resume(folder)

    def close(self) -> None:
        """Close the vector."""
        self.vector.close()


def curve_metrics(result: EvaluationResult) -> dict[str, float]:
    """Return the metrics of an evaluation for a learning curve."""
    success = result.success
    return {
        "eval/success": success.value,
        "eval/success_low": success.low,
        "eval/success_high": success.high,
        "eval/reward_sum": result.reward_sum.value,
    }
