"""The algorithm interface: declared needs, pure credit assignment, pure loss, and optional hooks.

The trainer uses the declared needs and never checks the name of an algorithm.
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

``token``: all sampled tokens of the batch have equal weight. ``turn``: all turns have equal weight, divided among their
tokens. ``turn_sum``: terms are summed over the tokens of a turn and averaged over turns. ``trajectory``: all
trajectories have equal weight, divided among their tokens. ``trajectory_sum``: terms are summed over the tokens of a
trajectory and averaged over trajectories. ``nested``: mean over trajectories of the mean over turns of the mean over
tokens. ``group``: all groups have equal weight, divided among their tokens.
"""

Rollout: TypeAlias = Callable[..., list[Trajectory]]
"""Plays the episodes of an iteration, new ones at every call. With ``greedy=True`` it plays each instance of the
previous call once more with greedy decoding; those episodes are counted but not trained on. With ``mixture=WEIGHT``,
for methods that need mixtures, it plays each episode of the previous call again, under the same number, with tokens
sampled in proportion to ``p ** (1 - WEIGHT) * p_ref ** WEIGHT``; these are also only counted. With ``notes=[...]``, for
methods that need notes, it plays each episode of the previous call again, under a new number, with that text in front
of its observations. With ``branches=[...]``, for methods that need snapshots, it continues from turns of earlier
episodes and returns one new episode for each :class:``~turngym.agents.trajectory.Branch``, in that order, in the same
group and with only the new turns."""


class Need(enum.Enum):
    """Requirements of an algorithm on the trainer."""

    VALUES = "values"
    REFERENCE_LOGPROBS = "reference_logprobs"
    ANCHORS = "anchors"
    GROUPS = "groups"
    ENTROPY = "entropy"
    JOINT_VIEWS = "joint_views"
    SITUATIONS = "situations"
    """Turns record the game's abstraction of the decision; see :mod:`turngym.agents.episodes.situations`."""
    SNAPSHOTS = "snapshots"
    SAMPLED_ENTROPIES = "sampled_entropies"
    TRAINER_LOGPROBS = "trainer_logprobs"
    GREEDY = "greedy_episodes"
    """``collect`` plays instances again with greedy decoding."""
    MIXTURES = "mixture_episodes"
    """``collect`` plays instances again with the geometric mixture of the policy and its reference."""
    NOTES = "noted_episodes"
    """``collect`` plays episodes again with a text in front of their observations."""
    TEACHER_LOGPROBS = "teacher_logprobs"
    OLD_LOGPROBS = "old_logprobs"
    """The credit reads the old log-probabilities, which must therefore be computed before the first update."""
    SQUARED_PROBABILITIES = "squared_probabilities"
    """The credit reads the sum of squared probabilities of the distribution of each sampled token."""
    DIVERGENCES = "divergences"
    """The credit reads the method's :attr:`Algorithm.divergence` at each sampled token before the first update."""
    CURRENT_LOGPROBS = "current_logprobs"
    """The loss reads columns that :meth:`Algorithm.update_columns` makes before every update."""
    OTHER_PROMPTS = "other_prompts"
    """The credit reads the log-probabilities of the sampled tokens after prompts with another observation, see
    :meth:`Algorithm.other_observation`."""
    OBSERVATIONS = "observations"
    """The loss reads the log-probabilities of observations after an answer, see :attr:`LossInputs.observed`."""


class Divergence(NamedTuple):
    """Divergence between the next-token distributions p of the policy and q of its teacher or reference policy.

    Args:
        beta: ``beta * KL(q, m) + (1 - beta) * KL(p, m)`` with ``m = (1 - beta) * p + beta * q``; 0 is KL(q, p), 1 is
            KL(p, q).
        top: Number of most likely tokens to which it is restricted, renormalised; 0 for the whole vocabulary.
        of: Distribution that determines the most likely tokens.
        tail: Treat all other tokens as one additional token, instead of renormalising.
        source: Network with the distribution q.
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
        returns: Critic's target at each token, nan if the critic is not trained there; None without a critic.
        metrics: Numbers to log, such as the number of groups that shrank to one member.
        columns: Name -> further numbers or strings per token, for the loss.
        state: State for ``update_state`` after the batch has been trained on.
        masked: Tokens excluded from the loss and from its averages; None for none.
    """

    advantages: Float[Tensor, "token"]
    returns: Float[Tensor, "token"] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    columns: Mapping[str, TokenColumn] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    masked: Bool[Tensor, "token"] | None = None


@dataclass(frozen=True)
class LossInputs:
    """One micro-batch for the loss. Every tensor is ``[batch, token]``; a turn never spans two rows.

    Args:
        logprobs: Log-probability of each token under the current policy, temperature included; carries gradients.
        old_logprobs: The same under the old policy, the denominator of ratios: from the sampler, or computed by the
            trainer before the first update.
        advantages: Advantage of each sampled token, 0 elsewhere.
        action_mask: True on tokens that the policy sampled.
        turn_ids: Index in the turn table of each sampled token's turn; -1 elsewhere.
        weights: Normalisation -> weight of each token; zero outside the action mask. Computed once per batch, so sums
            do not depend on the split into micro-batches.
        entropy: Entropy of the next-token distribution at each sampled token; carries gradients.
        reference_logprobs: Log-probability under the frozen reference policy.
        sampler_logprobs: The sampler's log-probabilities; None if they equal ``old_logprobs``.
        values: Critic's value before each sampled token; carries gradients.
        old_values: The same at the time of credit assignment.
        returns: Critic's target; nan if the critic is not trained there.
        columns: Columns of the credit, in their own precision; 0 or an empty string if no token was sampled.
        sampled: Positions of the sampled tokens, if known; see :attr:`sampled_tokens`.
        divergence: The method's :attr:`Algorithm.divergence` at each sampled token, in nats; carries gradients, 0
            without a teacher's distribution.
        observed: True on tokens of observations, for which ``logprobs`` and ``weights["observation"]`` (equal weights
            with sum 1) are set as well; None unless the method needs them.
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
        """Positions of the sampled tokens; computed on the device if unknown."""
        return SampledTokens.of(self.turn_ids) if self.sampled is None else self.sampled

    @property
    def behaviour_logprobs(self) -> Float[Tensor, "batch token"]:
        """The sampler's log-probability of each token."""
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
    """Per-token terms with their normalisation: the total is ``sum(weights[over] * values)``."""

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
        """Return the loss: the sum of the terms over a micro-batch."""
        return torch.stack([term.total(inputs) for term in self.terms.values()]).sum()


class Gradients(NamedTuple):
    """Result of ``transform_gradients``.

    Args:
        values: Gradient to apply, by parameter of the policy.
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
        """Normalisations that the loss uses in ``LossInputs.weights``."""

    @abstractmethod
    def credit(self, table: TurnTable) -> Credit:
        """Assign credit to the sampled tokens of a batch; pure."""

    @abstractmethod
    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return per-token terms of one micro-batch; pure."""

    # Optional parts. The defaults do nothing.

    @property
    def compares_same_seat(self) -> bool:
        """True if, in multi-agent games, a group method compares only episodes of the same seat."""
        return False

    @property
    def named_roles(self) -> tuple[str, ...]:
        """Roles of a game (seats if it has no roles) that the settings name."""
        return ()

    @property
    def reference_every(self) -> int:
        """Iterations between refreshes of the reference policy from the policy; 0 for none."""
        return 0

    @property
    def divergence(self) -> Divergence | None:
        """Divergence over the vocabulary from teacher or reference that the loss uses; None for none."""
        return None

    def update_columns(self, table: TurnTable, logprobs: Float[Tensor, "token"]) -> Mapping[str, TokenColumn]:
        """Return columns of the loss, given the policy's log-probabilities of all sampled tokens before an update.

        For methods that need current log-probabilities: sums over an episode whose sequences are in several
        micro-batches. They replace columns of the credit with the same names.
        """
        return {}

    def other_observation(self, turn: Turn) -> str | None:
        """Return a replacement for a turn's observation, for an additional forward pass; None for no such pass."""
        return None

    def learner(self, run: TrainConfig) -> Callable[..., Learner] | None:
        """Return the factory of the run's learner, with the arguments of :class:`.Learner`; None for the default.

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
        """Restore a state returned by ``state``."""

    def modules(self) -> Mapping[str, nn.Module]:
        """Return extra networks that are trained and checkpointed with the policy."""
        return {}

    def module_losses(self, credit: Credit) -> Iterator[Tensor]:
        """Yield losses of the networks of ``modules`` alone; each is minimised by one update before the next is drawn.

        These updates follow those on a batch and ``update_state``, with the learning rate of the last update.
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
