"""The task interface: texts, demonstrations, trajectories and evaluations of a run.

Loop, learner and job use a :class:`TaskSource` instead of vectors or tables, so they support single-agent environments
and multi-agent games alike.
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
"""Iteration numbers in the sampling keys of evaluations; training uses 0 and above."""
EVALUATION_SLOTS = 256
_CURVE_SEED, _FINAL_SEED = 1, 0
_FIRST_BRANCH, _FIRST_NOTED = 2**40, 2**41
"""Number of an iteration's first branched and first noted episode; other episodes count from 0."""


class Evaluation(NamedTuple):
    """An evaluation with its name and trajectories."""

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
        """True if rewards of different iterations are comparable; not with changing opponents."""
        return True

    def warning(self, algorithm: Algorithm[Any]) -> str:
        """Return a warning about training on it with an algorithm; empty for none."""
        return ""

    @abstractmethod
    def texts(self) -> list[str]:
        """Return texts of the task, to train a tokenizer."""

    @abstractmethod
    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return demonstrations, in the prompts and the answer format of the policy."""

    @abstractmethod
    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return new trajectories of an iteration.

        Args:
            model: The policy.
            iteration: Number of the iteration.
            attempt: Number of earlier rollouts of the iteration.
            greedy: Play each instance once, with greedy decoding.
            part: Index of its group.
        """

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch from turns of earlier episodes; return one new episode per branch, in order.

        Args:
            model: The policy.
            iteration: Number of the iteration.
            branches: The branching points.
            first: Number of earlier branched episodes of the iteration.

        Raises:
            ConfigError: The task does not support branching.
        """
        raise ConfigError(
            f"{type(self).__name__} cannot continue from the middle of an episode. Take a method without snapshots, "
            "such as ppo or grpo."
        )

    def again(
        self, model: LanguageModel, iteration: int, specs: Sequence[EpisodeSpec], notes: Sequence[str], first: int
    ) -> list[Trajectory]:
        """Play gathered episodes once more, each with a note in front of what it observes, in that order.

        Args:
            model: The policy.
            iteration: Number of the iteration.
            specs: What was played.
            notes: A text for each; empty for none.
            first: Number of earlier noted episodes of the iteration.

        Raises:
            ConfigError: It cannot change prompts.
        """
        raise ConfigError(f"{type(self).__name__} cannot put notes into prompts. Take a method such as grpo.")

    @abstractmethod
    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return metrics of a policy for the learning curve, including ``eval/success``. Called on every rank."""

    @abstractmethod
    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Evaluate a policy; the first evaluation has the name ``name``.

        Called on every rank; the results of rank 0 count.

        Args:
            model: The policy.
            name: Name of the evaluation.
            temperature: Sampling temperature; None for that of training.
        """

    # Optional parts.

    def metrics(self) -> Mapping[str, float]:
        """Return additional metrics of the iteration's episodes."""
        return {}

    def sampling_model(self, model: LanguageModel) -> LanguageModel:
        """Return the sampling model of a trained policy: the policy itself, or a copy that is synced."""
        return model

    def playing(self, folder: RunFolder, model: LanguageModel, iteration: int) -> AbstractContextManager[object]:
        """Return the context of the rollouts from an iteration on."""
        return nullcontext()

    def trained(self, model: LanguageModel, iteration: int) -> None:  # noqa: B027
        """Called after an iteration's updates, with the new weights."""

    def state(self, iteration: int) -> dict[str, Any]:
        """Return the state for a checkpoint, as JSON-compatible data.

        Args:
            iteration: Number of the next iteration, whose data is excluded.
        """
        return {}

    def restore(self, state: Mapping[str, Any], iteration: int) -> None:  # noqa: B027
        """Restore the state from a checkpoint.

        Raises:
            CheckpointError: The state is damaged.
        """

    def save(self, folder: RunFolder) -> None:  # noqa: B027
        """Write additional files for the latest checkpoint."""

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:  # noqa: B027
        """Restore the additional files for the checkpoint of an iteration."""

    def close(self) -> None:  # noqa: B027
        """Release resources."""


class EnvTask(TaskSource):
    """Single-agent environment: training on the train split, evaluations on dev and test.

    Args:
        config: Settings of the run.
        snapshots: Keep the environment's state in turns, for branching.
        entropies: Keep the entropies of the tokens' distributions in turns.
        final_prompts: Keep the next prompt of truncated episodes.
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
        """True if the environment has a solver."""
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
        """Return the episodes of an iteration; with ``greedy``, only the first of each group."""
        specs = part.of(iteration_specs(self.config, iteration, attempt))
        specs = specs[:: self.config.rollout.group_size if greedy else 1]
        return self.play_noted(self.agent(model, iteration, 0.0 if greedy else None), specs)

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch from turns of earlier episodes, with new samples in the same group."""
        specs = []
        for number, branch in enumerate(branches, _FIRST_BRANCH + first):
            origin = branch.trajectory.spec
            specs.append(EpisodeSpec(number, origin.seed, origin.group, origin.options, branch))
        return self.play_noted(self.agent(model, iteration), specs)

    def again(
        self, model: LanguageModel, iteration: int, specs: Sequence[EpisodeSpec], notes: Sequence[str], first: int
    ) -> list[Trajectory]:
        """Play the same instances in the same groups, each with its note and new samples."""
        numbered = [replace(spec, episode=_FIRST_NOTED + first + k) for k, spec in enumerate(specs)]
        agent = self.agent(model, iteration)
        agent.notes = {spec.episode: note for spec, note in zip(numbered, notes, strict=True)}
        return self.play_noted(agent, numbered)

    def play_noted(self, agent: ModelAgent, specs: Sequence[EpisodeSpec]) -> list[Trajectory]:
        """Play training episodes, and count the sampler's prompt tokens."""
        branches = [(spec.episode, spec.branch) for spec in specs if spec.branch is not None]
        played = played_by_all(self.ranks, specs, lambda own: self.play(agent, own), branches)
        self.cache.note(agent)
        return played

    def agent(self, model: LanguageModel, iteration: int, temperature: float | None = None) -> ModelAgent:
        """Return the agent for training episodes."""
        agent = policy_agent(self.config, model, iteration, temperature)
        agent.sampling = replace(agent.sampling, entropies=self.entropies)
        return agent

    def play(
        self, agent: Agent, specs: Sequence[EpisodeSpec], on_episode: Callable[[Trajectory], None] | None = None
    ) -> list[Trajectory]:
        """Play episodes for training.

        Args:
            agent: The agent.
            specs: The episodes.
            on_episode: Called with each trajectory as soon as its episode ends.
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
        """Return metrics of prompt tokens, and of episodes that continue recorded ones."""
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
        """Evaluate on instances of a split; every rank plays its share and returns the overall result."""
        specs = [EpisodeSpec(number, seed, number) for number, seed in enumerate(seeds)]
        found = played_by_all(self.ranks, specs, lambda own: self._play_held_out(agent, split, own) if own else [])
        return Evaluation(name, summarise(self.config.env, found), found)

    def _play_held_out(self, agent: ModelAgent, split: str, specs: Sequence[EpisodeSpec]) -> list[Trajectory]:
        """Play episodes of a split in a separate vector."""
        settings = self.config.rollout
        slots = min(settings.num_envs or EVALUATION_SLOTS, len(specs))
        with open_vector(
            self.config.env, self._options(split), slots, settings.backend, self.config.wrappers
        ) as vector:
            return play_all(vector, agent, specs)

    def save(self, folder: RunFolder) -> None:
        """Write a description of the recorded states of groups."""
        if self.starts:
            self.starts.save(folder)

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:
        """Check that the recorded states have not changed."""
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
