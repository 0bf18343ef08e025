"""MAPPO: PPO for several agents with one centralised critic (Yu et al. 2022, arXiv 2103.01955).

Each seat acts on its own view; the critic, which only training needs, sees the views of all seats together. A seat's
time step is its own turn: its reward is everything that it earned until it was asked again, and the next value is the
one at its own next turn. The critic learns returns that are normalised by their running mean and deviation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithm import Credit, LossInputs, LossOutput, Need, Term
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.clipped import ClippedConfig, ClippedMethod, sampled, within
from turngym.trainers.turn_table import TurnTable


@dataclass(frozen=True)
class MAPPOConfig(ClippedConfig):
    """Settings of MAPPO."""

    gamma: float = 1.0
    """Discount per turn of a seat."""
    lam: float = 0.95
    """Decay of generalised advantage estimation over a seat's turns."""
    whiten: bool = True
    """Whether advantages are shifted and scaled to mean 0 and variance 1 over the turns of the batch."""
    bootstrap_truncated: bool = True
    """Whether the critic's value stands for the rest of a game that was cut off; False treats it as ended."""
    value_coef: float = 1.0
    """Weight of the value loss, which is half of a squared error of normalised returns."""
    value_clip: float = 0.2
    """How far the critic may move from its old value before the loss stops rewarding it; 0 for no limit."""
    value_decay: float = 0.99
    """Weight of the old mean and deviation of returns when a batch is taken in; 0 takes those of the batch alone."""
    buckets: int = 4096
    """Size of the critic's hash table of words and pairs of words."""
    width: int = 64
    """Size of the critic's hidden layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("gamma", "lam"):
            within(setting, getattr(self, setting), 0, 1)
        within("value_decay", self.value_decay, 0, 0.999999)
        for setting in ("value_coef", "value_clip"):
            within(setting, getattr(self, setting), 0)
        for setting in ("buckets", "width"):
            within(setting, getattr(self, setting), 1)


@ALGORITHMS.register("mappo")
class MAPPO(ClippedMethod[MAPPOConfig]):
    """Proximal policy optimisation with a critic of joint views.

    The loss is told the numbers of turns and not their joint views: ``credit`` keeps those of its table, with the
    critic's values and targets, for the losses of the same batch. The moments of returns move at the end of the
    iteration.
    """

    Config: ClassVar[type[MAPPOConfig]] = MAPPOConfig

    def __init__(self, config: MAPPOConfig) -> None:
        super().__init__(config)
        from turngym.trainers.joint_critic import JointCritic  # a class of torch's

        self.critic = JointCritic(config.buckets, config.width)
        self.moments = F.Moments()
        self._after: F.Moments | None = None
        self._views: tuple[str, ...] = ()
        self._old = self._targets = torch.zeros(0)

    @property
    def needs(self) -> frozenset[Need]:
        """Joint views, and what the policy loss needs."""
        return super().needs | {Need.JOINT_VIEWS}

    @property
    def normalisations(self) -> frozenset[str]:
        """Those of the policy loss; the value loss is averaged over turns, then over trajectories."""
        return super().normalisations | {"nested"}

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the centralised critic."""
        return {"joint_critic": self.critic}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its turn's generalised advantage, and keep the critic's targets for the losses.

        Raises:
            ConfigError: The batch has no joint views.
        """
        if not all(table.joint):
            raise ConfigError(
                "mappo needs what all seats together know, which only games between seats give. Train on a game such "
                "as turngym/KuhnPoker-v0, or take ppo for an environment with one agent."
            )
        config, dtype = self.config, table.reward.dtype
        self._views, self._old = table.joint, self._read(table.joint)
        values = self.moments.restore(self._old.to(dtype))
        padded, padded_returns = F.turn_gae(
            table.pad(self.penalised_rewards(table)),
            table.pad(values),
            table.turn_mask(),
            self._bootstrap(table),
            gamma=config.gamma,
            lam=config.lam,
        )
        advantages, returns = table.unpad(padded), table.unpad(padded_returns)
        self._after = self.moments.updated(returns, decay=config.value_decay)
        with_tokens = table.num_tokens > 0
        metrics = {"explained_variance": F.explained_variance(values[with_tokens], returns[with_tokens])}
        if config.whiten:
            advantages = F.whiten(advantages, with_tokens)
        self._targets = self._after.normalise(returns)
        return Credit(table.to_tokens(advantages), metrics=metrics)

    @no_grad
    def _read(self, views: tuple[str, ...]) -> Tensor:
        found: Tensor = self.critic(views)
        return found

    def _bootstrap(self, table: TurnTable) -> Tensor:
        """Return the value after the last turn of each episode: 0 unless it was truncated."""
        truncated = table.episode_sum(table.truncated.to(table.reward.dtype)) > 0
        if not (self.config.bootstrap_truncated and bool(truncated.any())):
            return torch.zeros(table.num_episodes, dtype=table.reward.dtype)
        values = self.moments.restore(self._read(table.final_joint).to(table.reward.dtype))
        return torch.where(truncated, values, torch.zeros_like(values))

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms and metrics of the policy, with those of the centralised critic."""
        policy = super().loss(inputs)
        turns = inputs.turn_ids[inputs.action_mask].cpu()
        values = self.critic([self._views[turn] for turn in turns.tolist()])
        value = F.value_loss(
            self._spread(values, inputs),
            self._spread(self._old[turns], inputs),
            self._spread(self._targets[turns], inputs),
            clip=self.config.value_clip,
        )
        losses = sampled(value.loss, inputs)
        clipped = sampled(value.clipped.to(losses.dtype), inputs)
        metrics = {
            **policy.metrics,
            "joint_value_loss": Term(losses.detach(), "nested"),
            "joint_value_clip_fraction": Term(clipped, "nested"),
        }
        terms = {**policy.terms, "value": Term(self.config.value_coef * losses, "nested")}
        return replace(policy, terms=terms, metrics=metrics)

    @staticmethod
    def _spread(column: Tensor, inputs: LossInputs) -> Tensor:
        """Lay a column over the sampled tokens of the micro-batch out in its rows, 0 elsewhere."""
        return torch.zeros_like(inputs.logprobs).masked_scatter(inputs.action_mask, column.to(inputs.logprobs))

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Take the moments of the finished iteration over."""
        if self._after is not None:
            self.moments, self._after = self._after, None

    def state(self) -> dict[str, Any]:
        """Return the moments of returns; the critic is saved as a module."""
        return {"moments": list(self.moments)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Bring the moments back."""
        self.moments = F.Moments(*map(float, state["moments"]))
