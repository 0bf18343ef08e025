"""T-PPO: truncated PPO with extended generalised advantage estimation (Fan et al. 2025, arXiv 2506.15050).

Episodes that were cut off are trained on, without waiting for their end and without a critic's estimate of a state
without an action: the value after the cut is taken to be the one at the last token before it. The critic itself learns
from finished episodes only, plain returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.critic import CriticConfig, CriticMethod, critic_column
from turngym.trainers.algorithms.ppo import token_rewards
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class TPPOConfig(CriticConfig):
    """Settings of T-PPO; the discount is per token."""

    lam: float = 0.95
    """Decay of the estimation of advantages; the critic's targets are plain returns."""
    bootstrap_truncated: bool = True
    """True if truncated episodes are bootstrapped with the value at the last token; False treats them as terminated."""


@ALGORITHMS.register("t_ppo")
class TPPO(CriticMethod[TPPOConfig]):
    """Proximal policy optimisation with extended advantage estimation for episodes that were cut off."""

    Config: ClassVar[type[TPPOConfig]] = TPPOConfig

    def extended(self, table: TurnTable, values: Float[Tensor, "token"]) -> Float[Tensor, "episode"]:
        """Return the value after each episode: at its last token if it was cut off, else 0."""
        after = torch.zeros(table.num_episodes, dtype=values.dtype)
        if not self.config.bootstrap_truncated or not len(values):
            return after
        episodes = table.episode[table.token_turn]
        last = torch.ones_like(episodes, dtype=torch.bool)
        last[:-1] = episodes[1:] != episodes[:-1]
        after[episodes[last]] = values[last]
        return after.masked_fill(~self._cut_off(table), 0.0)

    @staticmethod
    def _cut_off(table: TurnTable) -> Tensor:
        return table.episode_sum(table.truncated.to(table.reward.dtype)) > 0

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its generalised advantage; the critic's target is nan where an episode was cut off."""
        config = self.config
        values = critic_column(table.token_value, "token_value").to(table.reward.dtype)
        layout = F.TokenRows.of(table.episode[table.token_turn], table.num_episodes)
        rewards, padded_values = (
            layout.pad(token_rewards(table, self.penalised_rewards(table)) - self.token_costs(table)),
            layout.pad(values),
        )
        after = self.extended(table, values)
        padded, _ = F.token_gae(rewards, padded_values, layout.mask, after, gamma=config.gamma, lam=config.lam)
        _, padded_returns = F.token_gae(rewards, padded_values, layout.mask, gamma=config.gamma, lam=1.0)
        advantages, returns = layout.unpad(padded), layout.unpad(padded_returns)
        cut = self._cut_off(table)
        unfinished = cut[table.episode[table.token_turn]]
        metrics = {
            **self.kl_metrics(table),
            "explained_variance": F.explained_variance(values[~unfinished], returns[~unfinished]),
            "episodes_cut_off": float(cut.to(torch.float64).mean()) if len(cut) else 0.0,
        }
        targets = returns.masked_fill(unfinished, float("nan"))
        return Credit(F.whiten(advantages) if config.whiten else advantages, targets, metrics)
