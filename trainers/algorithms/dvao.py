"""DVAO: every part of the reward is weighted by its own spread in the group (arXiv 2605.25604, second-hand).

GDPO divides each part by its deviation, so that a part that hardly varies any more becomes noise of full size. Here a
part fades out as its deviation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.gdpo import part_weights, read_weights, reward_parts
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class DVAOConfig(OutcomeConfig):
    """Settings of DVAO."""

    weights: str = ""
    """Weights of the parts as in progress=0.5,cost=2; a part that is not named has 1."""
    epsilon: float = 1e-6
    """Added to the standard deviation of a part."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("epsilon", self.epsilon, 0)
        for name, weight in read_weights(self.weights).items():
            within(f"the weight of {name}", weight, 0)


def spread_weighted(parts: Sequence[Tensor], weights: Sequence[float], groups: Tensor, epsilon: float) -> Tensor:
    """Return the sum over parts of share * (part - mean) / (std + epsilon), where shares go by weight * std.

    Args:
        parts: Return of each episode, part by part.
        weights: Weight of each part, at least 0.
        groups: Group of each episode, dense.
        epsilon: Added to the standard deviations, which are those of the population.

    >>> parts = [torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.tensor([0.2, 0.4, 0.0, 0.2])]
    >>> spread_weighted(parts, [1.0, 1.0], torch.zeros(4).long(), 1e-6)
    tensor([ 0.7795, -0.4677,  0.4677, -0.7795])
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    found = [F.group_statistics(part, groups, count, ddof=0) for part in parts]
    spread = torch.stack([weight * each.std for weight, each in zip(weights, found, strict=True)])
    shares = spread / torch.where(spread.sum(0) > 0, spread.sum(0), 1.0)
    terms = [
        share[groups] * (part - each.mean[groups]) / torch.where(each.std > 0, each.std + epsilon, 1.0)[groups]
        for share, part, each in zip(shares, parts, found, strict=True)
    ]
    return torch.stack(terms).sum(0)


@ALGORITHMS.register("dvao")
class DVAO(OutcomeMethod[DVAOConfig]):
    """Policy gradient with every part of the reward weighted by its spread."""

    Config: ClassVar[type[DVAOConfig]] = DVAOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the weighted sum of its episode's advantages in each part.

        Raises:
            ConfigError: A weight is for a part that no turn has.
        """
        parts, groups = reward_parts(table), table.episode_group
        weights = part_weights("dvao", read_weights(self.config.weights), parts)
        chosen = [parts.get(name, torch.zeros_like(table.episode_return())) for name in weights]
        total = spread_weighted(chosen, list(weights.values()), groups, self.config.epsilon)
        if self.config.singleton == "raw" and len(groups):
            total = torch.where(torch.bincount(groups)[groups] == 1, table.episode_return(), total)
        return group_credit(table, total[table.episode], self.config)
