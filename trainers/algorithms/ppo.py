"""PPO over tokens (Schulman et al. 2017) with generalised advantage estimation along an episode's sampled tokens.

The time step is a token that the policy sampled: observations between turns cost no discount. The reward of a turn is
assigned to its last token. ``per_row=True`` is the PPO baseline of verl-agent instead: every turn by itself, with the
return of the whole episode on its last token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.critic import CriticConfig, CriticMethod, critic_column
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class PPOConfig(CriticConfig):
    """Settings of PPO over tokens; the discount is per token."""

    per_row: bool = False
    """True if every turn is a sequence by itself that ends with the whole episode's return, never bootstrapped, as
    verl-agent has it; False runs the estimation along the episode."""


def last_tokens(token_turn: Int[Tensor, "token"]) -> Bool[Tensor, "token"]:
    """Return which tokens are the last of their turn.

    >>> last_tokens(torch.tensor([0, 0, 2]))
    tensor([False,  True,  True])
    """
    last = torch.ones_like(token_turn, dtype=torch.bool)
    last[:-1] = token_turn[1:] != token_turn[:-1]
    return last


def paying_turns(table: TurnTable) -> Int[Tensor, "turn"]:
    """Return for each turn the turn whose last token receives its reward, or -1 if its episode has no token.

    It is the turn itself where it has tokens, else the closest earlier turn of the episode with tokens, else the
    closest later one.
    """
    rows = torch.arange(table.num_turns)
    has_tokens = torch.bincount(table.token_turn, minlength=table.num_turns) > 0
    nothing = torch.full_like(rows, -1)
    earlier = torch.where(has_tokens, rows, nothing).cummax(0).values
    later = torch.where(has_tokens, rows, rows + table.num_turns).flip(0).cummin(0).values.flip(0)
    first = rows - table.turn
    end = first + table.turns_per_episode[table.episode]
    before = torch.where(earlier >= first, earlier, nothing)
    after = torch.where(later < end, later, nothing)
    return torch.where(before >= 0, before, after)


def token_rewards(table: TurnTable, rewards: Float[Tensor, "turn"]) -> Float[Tensor, "token"]:
    """Return the rewards of turns on the last tokens of the turns that receive them, 0 on the other tokens."""
    target = paying_turns(table)
    received = torch.zeros_like(rewards).index_add(0, target.clamp_min(0), rewards.masked_fill(target < 0, 0.0))
    return torch.where(last_tokens(table.token_turn), received[table.token_turn], 0.0)


@ALGORITHMS.register("ppo")
class PPO(CriticMethod[PPOConfig]):
    """Proximal policy optimisation over tokens."""

    Config: ClassVar[type[PPOConfig]] = PPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its generalised advantage, and the critic its target before whitening."""
        config = self.config
        values = critic_column(table.token_value, "token_value").to(table.reward.dtype)
        if config.per_row:
            penalties = table.invalid_penalties(self.config.invalid_penalty)
            whole = (table.episode_return()[table.episode] - penalties)[table.token_turn]
            rewards = torch.where(last_tokens(table.token_turn), whole, 0.0)
            layout, bootstrap = F.TokenRows.of(table.token_turn, table.num_turns), None
        else:
            rewards = token_rewards(table, self.penalised_rewards(table))
            layout = F.TokenRows.of(table.episode[table.token_turn], table.num_episodes)
            bootstrap = self.bootstrap(table)
        padded, padded_returns = F.token_gae(
            layout.pad(rewards - self.token_costs(table)),
            layout.pad(values),
            layout.mask,
            bootstrap,
            gamma=config.gamma,
            lam=config.lam,
        )
        advantages, returns = layout.unpad(padded), layout.unpad(padded_returns)
        metrics = {**self.kl_metrics(table), "explained_variance": F.explained_variance(values, returns)}
        return Credit(F.whiten(advantages) if config.whiten else advantages, returns, metrics)
