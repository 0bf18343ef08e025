"""The algorithm interface: declared needs, pure credit assignment, pure loss, and optional hooks.

The trainer reads what an algorithm declares and never checks its name.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from turngym.agents.trajectory import Trajectory, Turn
from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, torch
from turngym.trainers.core.columns import SampledTokens, Texts, TokenColumn
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from turngym.trainers.engine.learner import Learner
    from turngym.trainers.settings.config import TrainConfig

ConfigT = TypeVar("ConfigT")

Normalisation: TypeAlias = Literal["token", "turn", "turn_sum", "trajectory", "trajectory_sum", "nested", "group"]
"""Unit over which a loss is averaged.

``token``: every sampled token of the batch weighs the same. ``turn``: every turn weighs the same, its tokens share it.
``turn_sum``: token terms are summed inside a turn, then averaged over turns. ``trajectory``: every trajectory weighs
the same, its tokens share it. ``trajectory_sum``: token terms are summed inside a trajectory, then averaged over
trajectories. ``nested``: mean over trajectories of the mean over turns of the mean over tokens. ``group``: every group
weighs the same, its tokens share it.
"""

Rollout: TypeAlias = Callable[..., list[Trajectory]]
"""Plays the episodes of an iteration, fresh ones at every call. With ``greedy=True`` it plays each instance of the call
before once more, always taking the likeliest token; those episodes are counted and not trained on by themselves. With
``mixture=WEIGHT``, for methods that need mixtures, it plays each episode of the call before once more, under the same
number, with tokens drawn in proportion to ``p ** (1 - WEIGHT) * p_ref ** WEIGHT``; they are counted likewise. With
``branches=[...]``, for methods that need snapshots, it continues from turns of episodes that it played and returns one
new episode for each :class:``~turngym.agents.trajectory.Branch``, in that order: same group, and only the new turns."""


class Need(enum.Enum):
    """Requirements of an algorithm on the trainer."""

    VALUES = "values"
    REFERENCE_LOGPROBS = "reference_logprobs"
    ANCHORS = "anchors"
    GROUPS = "groups"
    ENTROPY = "entropy"
    JOINT_VIEWS = "joint_views"
    SITUATIONS = "situations"
    """Turns record what an abstraction of the game keeps of them; see :mod:`turngym.agents.episodes.situations`."""
    SNAPSHOTS = "snapshots"
    SAMPLED_ENTROPIES = "sampled_entropies"
    TRAINER_LOGPROBS = "trainer_logprobs"
    GREEDY = "greedy_episodes"
    """``collect`` plays instances once more with greedy decoding."""
    MIXTURES = "mixture_episodes"
    """``collect`` plays instances once more with the geometric mixture of the policy and its reference."""
    TEACHER_LOGPROBS = "teacher_logprobs"
    OLD_LOGPROBS = "old_logprobs"
    """The credit reads what ratios are taken against, so that it must be known before the first update."""
    SQUARED_PROBABILITIES = "squared_probabilities"
    """The credit reads the sum of the squared probabilities that each sampled token was drawn from."""
    DIVERGENCES = "divergences"
    """The credit reads the method's :attr:`Algorithm.divergence` at each sampled token before the first update."""
    OTHER_PROMPTS = "other_prompts"
    """The credit reads the log-probabilities of what was sampled behind prompts with another observation, see
    :meth:`Algorithm.other_observation`."""
    OBSERVATIONS = "observations"
    """The loss reads the log-probabilities of what prompts say after an answer, see :attr:`LossInputs.observed`."""


class Divergence(NamedTuple):
    """A divergence between the next-token distributions p of the policy and q of its teacher or reference policy.

    Args:
        beta: ``beta * KL(q, m) + (1 - beta) * KL(p, m)`` with ``m = (1 - beta) * p + beta * q``; 0 is KL(q, p), 1 is
            KL(p, q).
        top: Likeliest tokens that it is taken over, renormalised; 0 for the whole vocabulary.
        of: Whose likeliest tokens these are.
        tail: Keep the probability of all other tokens as one more token, instead of renormalising.
        source: Whose distribution q is.
    """

    beta: float = 0.5
    top: int = 0
    of: Literal["student", "teacher"] = "student"
    tail: bool = False
    source: Literal["teacher", "reference"] = "teacher"


@dataclass(frozen=True)
class Credit:
    """The result of credit assignment, over sampled tokens in table order.

    Args:
        advantages: Advantage of each token.
        returns: Critic's target at each token, nan where the critic is not trained; None without a critic.
        metrics: Numbers to log, such as how many groups had shrunk to one member.
        columns: Name -> further numbers or texts of each token that the loss needs.
        state: State for ``update_state`` after the batch has been trained on.
        masked: Tokens that leave the loss, and the averages that it is made of; None if all stay.
    """

    advantages: Float[Tensor, "token"]
    returns: Float[Tensor, "token"] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    columns: Mapping[str, TokenColumn] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    masked: Bool[Tensor, "token"] | None = None


@dataclass(frozen=True)
class LossInputs:
    """One micro-batch, as the loss sees it. Every tensor is ``[batch, token]``; a turn never spans two rows.

    Args:
        logprobs: Log-probability of each token under the current policy, temperature included; carries gradients.
        old_logprobs: The same under the policy that ratios are taken against: as the sampler gave them, or as the
            trainer computed them before the first update.
        advantages: Advantage of each sampled token, 0 elsewhere.
        action_mask: True on tokens that the policy sampled.
        turn_ids: Turn that a sampled token belongs to, as its index in the turn table; -1 elsewhere.
        weights: Normalisation -> weight of each token; zero outside of the action mask. Computed once for the batch,
            so that sums over micro-batches do not depend on how the batch was cut.
        entropy: Entropy of the next-token distribution at each sampled token; carries gradients.
        reference_logprobs: Log-probability under the frozen reference policy.
        sampler_logprobs: Log-probability that the sampler gave; None if that is ``old_logprobs``.
        values: Critic before each sampled token; carries gradients.
        old_values: The same at the time of credit assignment.
        returns: Critic's target; nan where the critic is not trained.
        columns: Those of the credit, in their own precision; 0, or no text, where nothing was sampled.
        sampled: Places of the sampled tokens, if they are known; see :attr:`sampled_tokens`.
        divergence: The method's :attr:`Algorithm.divergence` at each sampled token, in nats; carries gradients, 0 where
            the teacher is silent.
        observed: True on tokens of observations, where ``logprobs`` holds theirs, and ``weights["observation"]`` the
            same weight for each, 1 in all; None unless the method needs them.
    """

    logprobs: Float[Tensor, "batch token"]
    old_logprobs: Float[Tensor, "batch token"]
    advantages: Float[Tensor, "batch token"]
    action_mask: Bool[Tensor, "batch token"]
    turn_ids: Int[Tensor, "batch token"]
    weights: Mapping[str, Float[Tensor, "batch token"]]
    entropy: Float[Tensor, "batch token"] | None = None
    reference_logprobs: Float[Tensor, "batch token"] | None = None
    sampler_logprobs: Float[Tensor, "batch token"] | None = None
    values: Float[Tensor, "batch token"] | None = None
    old_values: Float[Tensor, "batch token"] | None = None
    returns: Float[Tensor, "batch token"] | None = None
    columns: Mapping[str, TokenColumn] = field(default_factory=dict)
    sampled: SampledTokens | None = None
    divergence: Float[Tensor, "batch token"] | None = None
    observed: Bool[Tensor, "batch token"] | None = None

    @property
    def sampled_tokens(self) -> SampledTokens:
        """Places of the sampled tokens; looked up on the device if they are not known."""
        return SampledTokens.of(self.turn_ids) if self.sampled is None else self.sampled

    @property
    def behaviour_logprobs(self) -> Float[Tensor, "batch token"]:
        """Log-probability of each token under the policy that sampled it, as the sampler gave it."""
        return self.old_logprobs if self.sampler_logprobs is None else self.sampler_logprobs

    def numbers(self, name: str) -> Tensor:
        """Return a column of numbers of the credit.

        Raises:
            ConfigError: There is none.
        """
        column = self.columns.get(name)
        if not isinstance(column, Tensor):
            raise ConfigError(f"the loss needs the numbers {name!r} of the credit: pass Credit.columns on.")
        return column

    def texts(self, name: str) -> Texts:
        """Return a column of texts of the credit.

        Raises:
            ConfigError: There is none.
        """
        column = self.columns.get(name)
        if not isinstance(column, Texts):
            raise ConfigError(f"the loss needs the texts {name!r} of the credit: pass Credit.columns on.")
        return column


class Term(NamedTuple):
    """Per-token terms and the normalisation that they are summed with: ``sum(weights[over] * values)``."""

    values: Float[Tensor, "batch token"]
    over: str

    def total(self, inputs: LossInputs) -> Float[Tensor, ""]:
        """Return the weighted sum over a micro-batch."""
        return (inputs.weights[self.over] * self.values).sum()


@dataclass(frozen=True)
class LossOutput:
    """Result of a loss.

    Args:
        terms: Name -> term; their sum is minimised.
        metrics: Name -> term that is only logged.
        probes: Name -> term whose gradient is computed separately and passed to ``transform_gradients``.
    """

    terms: Mapping[str, Term]
    metrics: Mapping[str, Term] = field(default_factory=dict)
    probes: Mapping[str, Term] = field(default_factory=dict)

    def total(self, inputs: LossInputs) -> Float[Tensor, ""]:
        """Return the number to minimise: the sum of the terms over a micro-batch."""
        return torch.stack([term.total(inputs) for term in self.terms.values()]).sum()


class Gradients(NamedTuple):
    """Result of ``transform_gradients``.

    Args:
        values: The gradient to apply to each parameter of the policy.
        metrics: Numbers to log about them, as ``train/NAME``.
    """

    values: Sequence[Tensor]
    metrics: Mapping[str, float] = {}


class Algorithm(ABC, Generic[ConfigT]):
    """One training method.

    Args:
        config: The method's frozen dataclass of settings.
    """

    Config: ClassVar[type[Any]]

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @property
    @abstractmethod
    def needs(self) -> frozenset[Need]:
        """Inputs that the trainer must compute for this configuration."""

    @property
    @abstractmethod
    def normalisations(self) -> frozenset[str]:
        """The normalisations that the loss reads from ``LossInputs.weights``."""

    @abstractmethod
    def credit(self, table: TurnTable) -> Credit:
        """Assign credit to the sampled tokens of a batch; pure."""

    @abstractmethod
    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return per-token terms of one micro-batch; pure."""

    # Optional parts. The defaults do nothing.

    @property
    def compares_same_seat(self) -> bool:
        """True if a method that needs groups compares episodes of the same seat alone, in games between seats."""
        return False

    @property
    def named_roles(self) -> tuple[str, ...]:
        """Roles of a game, or seats where it has none, that the settings name."""
        return ()

    @property
    def reference_every(self) -> int:
        """Iterations after which the reference policy becomes a copy of the policy; 0 keeps the first one."""
        return 0

    @property
    def divergence(self) -> Divergence | None:
        """Divergence over the vocabulary, from teacher or reference, that the loss reads; None if it reads none."""
        return None

    def other_observation(self, turn: Turn) -> str | None:
        """Return a text in place of a turn's observation, for a further pass of the policy; None for no such pass."""
        return None

    def learner(self, run: TrainConfig) -> Callable[..., Learner] | None:
        """Return what makes the learner of a run, with the arguments of :class:`.Learner`; None for that one.

        For methods whose updates are not a loss over the sampled tokens.
        """
        return None

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Called at the start of each iteration."""

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Called with the metrics of a finished iteration."""

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Update the state after the last update with a batch, given its trajectories and their credit."""

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, as JSON-compatible data."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state`` returned."""

    def modules(self) -> Mapping[str, nn.Module]:
        """Return extra networks that are trained and checkpointed with the policy."""
        return {}

    def module_losses(self, credit: Credit) -> Iterator[Tensor]:
        """Yield losses of the networks of ``modules`` alone; each is minimised by one update before the next is drawn.

        They come after the updates with a batch and after ``update_state``, with the step size of the last update.
        """
        return iter(())

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather the trajectories of one iteration; may call ``rollout`` more than once."""
        return rollout()

    def transform_gradients(
        self, gradients: Sequence[Tensor], probes: Mapping[str, Sequence[Tensor]], metrics: Mapping[str, float]
    ) -> Gradients:
        """Return the policy gradients to apply, given those of the loss and of each probe."""
        return Gradients(gradients)

    def trains_policy(self, iteration: int) -> bool:
        """Return whether the policy is updated in this iteration; False for critic pretraining."""
        return True
