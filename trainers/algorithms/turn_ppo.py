"""Turn-PPO: PPO in which a turn is the action (Li et al. 2025, arXiv 2512.17008).

State: everything before the completion. Action: the whole completion. The advantage is generalised over turns, the
importance ratio is the product over the turn's tokens, and the objective of a trajectory is

    J = (1 / number of its tokens) * sum over turns of min(ratio * A, clip(ratio) * A)

so that each turn enters once. The loss is the negated mean of J over trajectories. Not the Turn-PPO of ST-PPO, which
is ``turn_is`` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RatioName, Surrogate, one_of
from turngym.trainers.algorithms.base.critic import CriticConfig, CriticMethod, critic_column
from turngym.trainers.algorithms.ppo import last_tokens
from turngym.trainers.core.algorithm import Credit, LossInputs, Normalisation
from turngym.trainers.core.turn_table import TurnTable

_ValuePosition: TypeAlias = Literal["turn_start", "turn_end"]


@dataclass(frozen=True)
class TurnPPOConfig(CriticConfig):
    """Settings of Turn-PPO; the discount is per turn, and whitening counts each turn once."""

    kl_coef: float = 0.001
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    invalid_penalty: float = 0.1
    """Penalty for an invalid action."""
    gamma: float = 0.99
    """Discount per turn."""
    lam: float = 0.9
    """Decay of generalised advantage estimation over turns."""
    ratio: RatioName = "turn_product"
    """Level of the importance ratio; the paper uses the product over the turn."""
    normalisation: Normalisation = "trajectory"
    """Over what the policy loss is averaged, once each turn's surrogate is shared out among its tokens."""
    value_position: _ValuePosition = "turn_start"
    """Position of the critic's value: before the turn's first token, or before its last one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("value_position", self.value_position, get_args(_ValuePosition))


@ALGORITHMS.register("turn_ppo")
class TurnPPO(CriticMethod[TurnPPOConfig]):
    """Proximal policy optimisation over turns."""

    Config: ClassVar[type[TurnPPOConfig]] = TurnPPOConfig

    @property
    def value_normalisation(self) -> str:
        """The value loss is averaged over the turns of a trajectory, then over trajectories."""
        return "nested"

    def value_scale(self, inputs: LossInputs) -> Tensor | float:
        """Return the length of each turn: its only trained position represents all of its tokens."""
        return F.turn_lengths(inputs.turn_ids, inputs.logprobs.dtype)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return each turn's surrogate shared out evenly among its tokens."""
        whole = super().surrogate(inputs)
        lengths = F.turn_lengths(inputs.turn_ids, inputs.logprobs.dtype).clamp_min(1)
        shared = whole.policy._replace(loss=whole.policy.loss / lengths, unclipped=whole.policy.unclipped / lengths)
        return whole._replace(policy=shared)

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its turn's generalised advantage; the critic's target is nan off the turn's position."""
        config = self.config
        values = self._turn_values(table).to(table.reward.dtype)
        padded, padded_returns = F.turn_gae(
            table.pad(self.turn_rewards(table)),
            table.pad(values),
            table.turn_mask(),
            self.bootstrap(table),
            gamma=config.gamma,
            lam=config.lam,
        )
        advantages, returns = table.unpad(padded), table.unpad(padded_returns)
        with_tokens = torch.bincount(table.token_turn, minlength=table.num_turns) > 0
        explained = F.explained_variance(values[with_tokens], returns[with_tokens])
        metrics = {**self.kl_metrics(table), "explained_variance": explained}
        if config.whiten:
            advantages = F.whiten(advantages, with_tokens)
        targets = table.to_tokens(returns).masked_fill(~self._positions(table), float("nan"))
        return Credit(table.to_tokens(advantages), targets, metrics)

    def _positions(self, table: TurnTable) -> Tensor:
        return table.first_tokens() if self.config.value_position == "turn_start" else last_tokens(table.token_turn)

    def _turn_values(self, table: TurnTable) -> Tensor:
        """Return the critic at each turn's position; a turn without a token has only the value of its prompt."""
        values = critic_column(table.turn_value, "turn_value").clone()
        tokens = critic_column(table.token_value, "token_value")
        positions = self._positions(table)
        values[table.token_turn[positions]] = tokens[positions].to(values.dtype)
        return values
