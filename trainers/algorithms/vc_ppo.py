"""VC-PPO: value-calibrated PPO (Yuan et al. 2025, arXiv 2503.01491), with VAPO's adaptive decay (arXiv 2504.05118).

Token PPO with two changes for sparse rewards at the end of long completions. For some iterations only the critic
learns, on returns of the policy that training starts from. After that the critic's targets keep a decay of 1, returns
that nothing biases, while advantages decay. In VAPO's form their decay depends on how many tokens the episode has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.lazy import Tensor
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.critic import CriticConfig, CriticMethod, critic_column
from turngym.trainers.algorithms.ppo import token_rewards
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class VCPPOConfig(CriticConfig):
    """Settings of VC-PPO; the discount is per token."""

    lam: float = 0.95
    """Decay of the estimation of advantages."""
    critic_lam: float = 1.0
    """Decay of the estimation of the critic's targets; 1 makes them plain returns."""
    pretrain_iterations: int = 50
    """Iterations at the beginning in which only the critic is trained."""
    alpha: float = 0.0
    """Above 0 the decay of advantages is 1 - 1 / (alpha * length) of each episode, at least 0, and ``lam`` is not read;
    VAPO takes 0.05."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("critic_lam", self.critic_lam, 0, 1)
        within("pretrain_iterations", self.pretrain_iterations, 0)
        within("alpha", self.alpha, 0)


def adaptive_decay(lengths: Float[Tensor, "episode"], alpha: float) -> Float[Tensor, "episode"]:
    """Return VAPO's decay for episodes of these many tokens, kept in [0, 1].

    >>> from torch import tensor
    >>> adaptive_decay(tensor([10.0, 20.0, 40.0, 100.0]), 0.05)
    tensor([0.0000, 0.0000, 0.5000, 0.8000])
    """
    return (1 - 1 / (alpha * lengths.clamp_min(1))).clamp(0, 1)


@ALGORITHMS.register("vc_ppo")
class VCPPO(CriticMethod[VCPPOConfig]):
    """Proximal policy optimisation with a pretrained critic and two decays."""

    Config: ClassVar[type[VCPPOConfig]] = VCPPOConfig

    def trains_policy(self, iteration: int) -> bool:
        """Return whether the critic has been trained for long enough."""
        return iteration >= self.config.pretrain_iterations

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its generalised advantage, and the critic its own target."""
        config = self.config
        values = critic_column(table.token_value, "token_value").to(table.reward.dtype)
        layout = F.TokenRows.of(table.episode[table.token_turn], table.num_episodes)
        rewards, bootstrap = (
            layout.pad(token_rewards(table, self.penalised_rewards(table)) - self.token_costs(table)),
            self.bootstrap(table),
        )
        padded_values = layout.pad(values)

        def estimated(lam: float | Tensor) -> tuple[Tensor, Tensor]:
            return F.token_gae(rewards, padded_values, layout.mask, bootstrap, gamma=config.gamma, lam=lam)

        decay: float | Tensor = config.lam
        metrics = self.kl_metrics(table)
        if config.alpha:
            lengths = layout.mask.sum(1)
            decays = adaptive_decay(lengths.to(values.dtype), config.alpha)
            decay = decays[:, None]
            counted = decays[lengths > 0]
            metrics["adaptive_lam"] = float(counted.mean()) if len(counted) else 0.0
        advantages = layout.unpad(estimated(decay)[0])
        returns = layout.unpad(estimated(config.critic_lam)[1])
        metrics["explained_variance"] = F.explained_variance(values, returns)
        return Credit(F.whiten(advantages) if config.whiten else advantages, returns, metrics)
