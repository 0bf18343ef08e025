"""MAPPO: PPO for several agents with one centralised critic (Yu et al. 2022, arXiv 2103.01955).

Each seat acts on its own view; the critic, which only training needs, sees the views of all seats together. A seat's
time step is its own turn: its reward is everything that it earned until its next request, and the next value is the one
at its own next turn. The critic learns returns that are normalised by their running mean and deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, sampled, within
from turngym.trainers.core.algorithm import Credit, LossInputs, LossOutput, Need, Term
from turngym.trainers.core.columns import Texts, TokenColumn
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from turngym.trainers.engine.critics.joint import JointCritic


@dataclass(frozen=True)
class MAPPOConfig(ClippedConfig):
    """Settings of MAPPO."""

    entropy_coef: float = 0.01
    """Weight of the entropy bonus."""
    gamma: float = 0.99
    """Discount per turn of a seat."""
    lam: float = 0.95
    """Decay of generalised advantage estimation over a seat's turns."""
    whiten: bool = True
    """True if advantages are shifted and scaled to mean 0 and variance 1 over the turns of the batch."""
    bootstrap_truncated: bool = True
    """True if truncated games are bootstrapped with the critic's value; False treats them as terminated."""
    value_coef: float = 1.0
    """Weight of the value loss, which is half of a squared error of normalised returns."""
    value_clip: float = 0.2
    """Clip range of the value around its old value; 0 for no limit."""
    value_decay: float = 0.99
    """Weight of the old mean and deviation of returns in an update; 0 uses only the batch."""
    buckets: int = 4096
    """Size of the critic's hash table of words and pairs of words."""
    width: int = 64
    """Size of the critic's hidden layers."""
    value_by_role: bool = False
    """True if the critic also reads the role of the seat whose turn it values. It is needed where several seats act on
    one joint view or whose turn it is does not show, as in Werewolf, where one side's win is the other's loss."""

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

    The credit passes the joint view of each token's turn, the critic's value and its target to the loss as columns. The
    moments of returns are updated after the batch.
    """

    Config: ClassVar[type[MAPPOConfig]] = MAPPOConfig

    def __init__(self, config: MAPPOConfig) -> None:
        super().__init__(config)
        self.moments = F.Moments()

    @cached_property
    def critic(self) -> JointCritic:
        """Centralised critic."""
        from turngym.trainers.engine.critics.joint import JointCritic  # a class of torch's

        return JointCritic(self.config.buckets, self.config.width)

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
        """Assign each token its turn's generalised advantage.

        Raises:
            ConfigError: The batch has no joint views.
        """
        views = table.texts("turn", "joint_view")
        if not all(views):
            raise ConfigError(
                "mappo needs what all seats together know, which only games between seats give. Train on a game such "
                "as turngym/KuhnPoker-v0, or take ppo for an environment with one agent."
            )
        config, dtype = self.config, table.reward.dtype
        views = self._valued(views, table, table.role)
        old = self._read(views)
        values = self.moments.restore(old.to(dtype))
        padded, padded_returns = F.turn_gae(
            table.pad(self.penalised_rewards(table)),
            table.pad(values),
            table.turn_mask(),
            self._bootstrap(table),
            gamma=config.gamma,
            lam=config.lam,
        )
        advantages, returns = table.unpad(padded), table.unpad(padded_returns)
        after = self.moments.updated(returns, decay=config.value_decay)
        with_tokens = table.num_tokens > 0
        metrics = {"explained_variance": F.explained_variance(values[with_tokens], returns[with_tokens])}
        if config.whiten:
            advantages = F.whiten(advantages, with_tokens)
        columns: dict[str, TokenColumn] = {
            "joint_view": Texts.of(views)[table.token_turn],
            "joint_value": table.to_tokens(old),
            "joint_target": table.to_tokens(after.normalise(returns)),
        }
        return Credit(table.to_tokens(advantages), metrics=metrics, columns=columns, state={"moments": after})

    def _valued(self, views: tuple[str, ...], table: TurnTable, role: Tensor) -> tuple[str, ...]:
        """Return what the critic reads: joint views, with ``value_by_role`` each line after the role of the seat."""
        if not self.config.value_by_role:
            return views
        names = [table.role_names[index] for index in role.tolist()]
        return tuple(
            "\n".join(f"{name}|{line}" for line in view.splitlines()) for name, view in zip(names, views, strict=True)
        )

    @no_grad
    def _read(self, views: tuple[str, ...]) -> Tensor:
        found: Tensor = self.critic(views)
        return found

    def _bootstrap(self, table: TurnTable) -> Tensor:
        """Return the value after the last turn of each episode: 0 unless it was truncated."""
        truncated = table.episode_sum(table.truncated.to(table.reward.dtype)) > 0
        if not (self.config.bootstrap_truncated and bool(truncated.any())):
            return torch.zeros(table.num_episodes, dtype=table.reward.dtype)
        views = self._valued(table.texts("episode", "final_joint_view"), table, table.role[table.turn == 0])
        values = self.moments.restore(self._read(views).to(table.reward.dtype))
        return torch.where(truncated, values, torch.zeros_like(values))

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms and metrics of the policy, with those of the centralised critic."""
        policy = super().loss(inputs)
        values = self.critic(inputs.texts("joint_view").at(inputs.action_mask)).to(inputs.logprobs)
        value = F.value_loss(
            torch.zeros_like(inputs.logprobs).masked_scatter(inputs.action_mask, values),
            inputs.numbers("joint_value").to(inputs.logprobs),
            inputs.numbers("joint_target").to(inputs.logprobs),
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

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Update the moments after the batch."""
        self.moments = credit.state["moments"]

    def state(self) -> dict[str, Any]:
        """Return the moments of returns; the critic is saved as a module."""
        return {"moments": list(self.moments)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the moments."""
        self.moments = F.Moments(*map(float, state["moments"]))
