"""POAD: policy optimisation with action decomposition (Wen et al. 2024, repository morning9393/ADRL).

The Bellman backup runs over tokens, and only the step from one action to the next costs a discount: inside of an action
the environment does not move, so its tokens are as far from the reward as each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.critic import CriticConfig, CriticMethod, critic_column
from turngym.trainers.algorithms.ppo import last_tokens, paying_turns
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class POADConfig(CriticConfig):
    """Settings of POAD; the discount is per turn, the decay per token."""

    entropy_coef: float = 0.01
    """Weight of the entropy bonus."""
    value_clip: float = 0.2
    """Clip range of the value around its old value; 0 for no limit."""
    gamma: float = 0.95
    """Discount from one turn to the next; inside of a turn there is none."""
    lam: float = 0.95
    """Decay of generalised advantage estimation, at every token."""
    whiten: bool = True
    """True if advantages are shifted and scaled to mean 0 and variance 1 over the tokens of the batch."""
    discount_tokens: bool = False
    """True if every token costs the discount, which is the naive form that POAD is compared with."""


def turn_boundaries(table: TurnTable) -> Float[Tensor, "token"]:
    """Return the number of turn boundaries between each token and the next one, or the end of the episode.

    It is 0 inside of a turn and 1 at its end; turns without a token add one each.
    """
    turn = table.token_turn
    if not len(turn):
        return torch.zeros(0, dtype=table.reward.dtype)
    end = (torch.arange(table.num_turns) - table.turn + table.turns_per_episode[table.episode])[turn]
    following = end.clone()
    same = table.episode[turn[1:]] == table.episode[turn[:-1]]
    following[:-1] = torch.where(same, turn[1:], end[:-1])
    return (following - turn).to(table.reward.dtype)


def discounted_token_rewards(table: TurnTable, rewards: Float[Tensor, "turn"], gamma: float) -> Float[Tensor, "token"]:
    """Return the rewards of turns on their last tokens.

    The reward of a turn without tokens goes to an earlier turn, less the discount on the way, or to the first one with
    tokens.
    """
    target = paying_turns(table)
    distance = (torch.arange(table.num_turns) - target).clamp_min(0).to(rewards.dtype)
    arriving = (rewards * gamma**distance).masked_fill(target < 0, 0.0)
    received = torch.zeros_like(rewards).index_add(0, target.clamp_min(0), arriving)
    return torch.where(last_tokens(table.token_turn), received[table.token_turn], 0.0)


@ALGORITHMS.register("poad")
class POAD(CriticMethod[POADConfig]):
    """Policy optimisation with action decomposition."""

    Config: ClassVar[type[POADConfig]] = POADConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its generalised advantage, and the critic its target."""
        config = self.config
        values = critic_column(table.token_value, "token_value").to(table.reward.dtype)
        steps = turn_boundaries(table)
        if config.discount_tokens:
            steps = steps.clamp_min(1)
        layout = F.TokenRows.of(table.episode[table.token_turn], table.num_episodes)
        rewards = discounted_token_rewards(table, self.penalised_rewards(table), config.gamma)
        padded, padded_returns = F.token_gae(
            layout.pad(rewards - self.token_costs(table)),
            layout.pad(values),
            layout.mask,
            self.bootstrap(table),
            gamma=layout.pad(config.gamma**steps),
            lam=config.lam,
        )
        advantages, returns = layout.unpad(padded), layout.unpad(padded_returns)
        metrics = {**self.kl_metrics(table), "explained_variance": F.explained_variance(values, returns)}
        if config.whiten:
            advantages = F.standardise(advantages, ddof=0, epsilon=1e-8)
        return Credit(advantages, returns, metrics)
