"""PF-PPO: episodes with extreme rewards train the policy, the doubtful middle does not (arXiv 2409.06957).

A modifier: policy filtration. A reward model is right most often where it is sure: on very good and very bad samples.
The source draws rollouts again with probabilities that follow from their rewards; here each episode's credit is
multiplied by how often it would be drawn on average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

_Filter: TypeAlias = Literal["pow", "max_min", "max_random"]
_Among: TypeAlias = Literal["batch", "group"]
LEAST = 1e-8
"""Added to every weight."""


@dataclass(frozen=True)
class PFPPOConfig:
    """Settings of policy filtration."""

    filter: _Filter = "pow"
    """Weight of an episode: a power of its absolute return; 1 for the best and the worst and 0 for the others; or 0.4
    for the best and 0.1 for the others."""
    power: float = 2.0
    """Exponent of the absolute return; 0 weighs all episodes alike."""
    among: _Among = "batch"
    """Episodes that one is drawn from: those of the batch, as in verl, or those of its group, as in the paper."""

    def __post_init__(self) -> None:
        one_of("filter", self.filter, get_args(_Filter))
        one_of("among", self.among, get_args(_Among))
        within("power", self.power, 0, 10)


def filter_weights(returns: Tensor, config: PFPPOConfig) -> Tensor:
    """Return the weights that episodes are drawn with, not normalised.

    >>> filter_weights(torch.tensor([2.0, -1.0, 0.5, 2.0]), PFPPOConfig())
    tensor([4.0000, 1.0000, 0.2500, 4.0000])
    """
    if config.filter == "pow":
        return returns.abs() ** config.power + LEAST
    best = returns == returns.max()
    if config.filter == "max_random":
        return torch.where(best, 0.4, 0.1).to(returns) + LEAST
    return (best | (returns == returns.min())).to(returns) + LEAST


@ALGORITHMS.register("pf_ppo")
class PFPPO(Modifier[PFPPOConfig]):
    """More credit for episodes with extreme returns, on another method."""

    Config: ClassVar[type[PFPPOConfig]] = PFPPOConfig
    needs_advantages: ClassVar[bool] = True

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does, times how often the episode would be drawn; a critic's targets stay."""
        credit, returns = super().credit(table), table.episode_return()
        drawn = torch.ones_like(returns)
        keys = table.episode_group if self.config.among == "group" else torch.zeros_like(table.episode_group)
        for key in keys.unique():
            here = keys == key
            weights = filter_weights(returns[here], self.config)
            drawn[here] = len(weights) * weights / weights.sum()
        metrics = {"pf_ppo_largest": float(drawn.max()) if len(drawn) else 0.0}
        advantages = credit.advantages * table.to_tokens(drawn[table.episode]).to(credit.advantages)
        return replace(credit, advantages=advantages, metrics={**credit.metrics, **metrics})
