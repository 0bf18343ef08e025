"""Bi-level GAE: credit over turns first, then over the tokens inside of each turn (repository RAGEN-AI/VAGEN).

Generalised advantages over turns, with the critic read at the last token of each, say what each turn was worth. That
number is then the reward at the turn's last token of a second estimation over its tokens, which starts from 0 there, so
that nothing else propagates between turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.critic import CriticConfig, CriticMethod, critic_column
from turngym.trainers.algorithms.ppo import last_tokens
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class BiLevelGAEConfig(CriticConfig):
    """Settings of bi-level GAE; ``gamma`` and ``lam`` are those inside of a turn, per token."""

    reward_kl_coef: float = 0.001
    """Weight of the KL divergence that is subtracted from the reward; above 0 a frozen copy of the policy is kept."""
    turn_gamma: float = 0.95
    """Discount per turn."""
    turn_lam: float = 1.0
    """Decay of the estimation over turns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("turn_gamma", self.turn_gamma, 0, 1)
        within("turn_lam", self.turn_lam, 0, 1)


@ALGORITHMS.register("bi_level_gae")
class BiLevelGAE(CriticMethod[BiLevelGAEConfig]):
    """Proximal policy optimisation with credit over turns, then over their tokens."""

    Config: ClassVar[type[BiLevelGAEConfig]] = BiLevelGAEConfig

    def turn_returns(self, table: TurnTable) -> Float[Tensor, "turn"]:
        """Return what each turn was worth: its generalised advantage over turns plus its value."""
        values = critic_column(table.turn_value, "turn_value").to(table.reward.dtype).clone()
        tokens = critic_column(table.token_value, "token_value").to(table.reward.dtype)
        last = last_tokens(table.token_turn)
        values[table.token_turn[last]] = tokens[last]
        _, returns = F.turn_gae(
            table.pad(self.turn_rewards(table)),
            table.pad(values),
            table.turn_mask(),
            self.bootstrap(table),
            gamma=self.config.turn_gamma,
            lam=self.config.turn_lam,
        )
        return table.unpad(returns)

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its generalised advantage inside of its turn, and the critic its target."""
        config = self.config
        values = critic_column(table.token_value, "token_value").to(table.reward.dtype)
        worth = self.turn_returns(table)
        rewards = torch.where(last_tokens(table.token_turn), worth[table.token_turn], 0.0)
        layout = F.TokenRows.of(table.token_turn, table.num_turns)
        padded, padded_returns = F.token_gae(
            layout.pad(rewards), layout.pad(values), layout.mask, gamma=config.gamma, lam=config.lam
        )
        advantages, returns = layout.unpad(padded), layout.unpad(padded_returns)
        metrics = {**self.kl_metrics(table), "explained_variance": F.explained_variance(values, returns)}
        return Credit(F.whiten(advantages) if config.whiten else advantages, returns, metrics)
