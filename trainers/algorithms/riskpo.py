"""RiskPO: the lower part of the distribution of scores is raised, over bundles of questions (arXiv 2510.00911).

A paper is one answer to each question of a bundle, and its score their sum. Papers below a low quantile of scores count
most, those above a high one not at all. Bundles have more distinct scores than a question that is right or wrong, and a
question that no answer solves keeps a signal from the others of its bundle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

_Quantiles: TypeAlias = Literal["track", "batch", "mix"]
_Share: TypeAlias = Literal["uniform", "std"]
EPSILON = 1e-6


@dataclass(frozen=True)
class RiskPOConfig(OutcomeConfig):
    """Settings of risk-based policy optimisation."""

    bundle: int = 5
    """Groups of a bundle; what is left over is spread over the bundles."""
    low: float = 0.2
    """Level of the quantile of scores below which a paper counts most."""
    high: float = 0.9
    """Level of the quantile from which on a paper counts nothing."""
    tail_weight: float = 1.5
    """Weight of the part below the low quantile, relative to that between the quantiles."""
    scale_by_std: bool = True
    """True if advantages are divided by the standard deviation of the bundle's scores."""
    share: _Share = "uniform"
    """Advantage of an answer: its paper's, or that over the standard deviation of its question."""
    quantiles: _Quantiles = "track"
    """Quantiles of scores: followed over iterations, those of the bundle, or the mean of both."""
    step: float = 0.1
    """Step of the followed quantiles, as a share of a question's return."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("bundle", self.bundle, 1)
        within("low", self.low, 0, 1)
        within("high", self.high, 0, 1)
        if self.low >= self.high:
            raise ConfigError(f"low must be less than high={self.high}, got {self.low}.")
        within("tail_weight", self.tail_weight, 0)
        within("step", self.step, 0)
        one_of("share", self.share, get_args(_Share))
        one_of("quantiles", self.quantiles, get_args(_Quantiles))


def risk_advantages(scores: Tensor, low: float, high: float, config: RiskPOConfig) -> Tensor:
    """Return the advantage of each paper of a bundle, at most 0.

    Args:
        scores: Score of each paper.
        low: Low quantile of scores.
        high: High quantile of scores.
        config: Settings of the method.

    >>> risk_advantages(torch.tensor([1.0, 0.0, 2.0]), 0.5, 1.5, RiskPOConfig())
    tensor([-0.2857, -2.0714,  0.0000])
    """
    middle = ((scores - low).relu() - (scores - high).relu() + low - high) / (config.high - config.low + EPSILON)
    tail = -(low - scores).relu() / (config.low + EPSILON)
    found = (config.tail_weight * tail + middle) / (config.tail_weight + 1)
    deviation = float(scores.std()) if len(scores) > 1 else 0.0
    return found / (deviation + EPSILON) if config.scale_by_std else found


def bundles_of(table: TurnTable, size: int) -> list[list[list[int]]]:
    """Return the bundles: of each question its episodes, both in the order of episode numbers.

    Groups reduced to one episode are in no bundle.
    """
    groups = table.episode_group.tolist()
    numbers = table.episode_number.tolist() or range(len(groups))
    members: dict[int, list[int]] = {}
    for _, episode in sorted(zip(numbers, range(len(groups)), strict=True)):
        members.setdefault(groups[episode], []).append(episode)
    questions = [each for each in members.values() if len(each) > 1]
    count = max(len(questions) // size, 1)
    cuts = [len(questions) * k // count for k in range(count + 1)]
    return [questions[start:end] for start, end in pairwise(cuts) if start < end]


@ALGORITHMS.register("riskpo")
class RiskPO(OutcomeMethod[RiskPOConfig]):
    """Policy gradient of the lower part of the scores of bundles of groups."""

    Config: ClassVar[type[RiskPOConfig]] = RiskPOConfig

    def __init__(self, config: RiskPOConfig) -> None:
        super().__init__(config)
        self.followed: list[float] = []
        """Low and high quantile of a paper's mean return; empty before the first batch."""

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the advantage of its episode's paper, 0 to episodes that no paper has a place for."""
        returns, means = table.episode_return(), []
        advantages = torch.zeros_like(returns)
        for bundle in bundles_of(table, self.config.bundle):
            papers = torch.tensor([question[: min(map(len, bundle))] for question in bundle])
            scores = returns[papers].sum(0)
            means.append(scores / len(bundle))
            if float(scores.std()) > EPSILON:
                found = risk_advantages(scores, *self._quantiles_of(scores, len(bundle)), self.config)
                for question, episodes in zip(bundle, papers, strict=True):
                    advantages[episodes] = found / self._spread(returns[question])
        after = self._followed_after(torch.cat(means)) if means else self.followed
        credit = group_credit(table, advantages[table.episode], self.config)
        metrics = {f"riskpo_{name}": value for name, value in zip(("low", "high"), after or (0.0, 0.0), strict=True)}
        return replace(credit, metrics={**credit.metrics, **metrics}, state={"followed": after})

    def _quantiles_of(self, scores: Tensor, questions: int) -> tuple[float, float]:
        own = [float(torch.quantile(scores, level)) for level in (self.config.low, self.config.high)]
        followed = [questions * each for each in self.followed] or own
        share = {"track": 1.0, "batch": 0.0, "mix": 0.5}[self.config.quantiles]
        low, high = (share * old + (1 - share) * new for old, new in zip(followed, own, strict=True))
        return low, high

    def _spread(self, returns: Tensor) -> float:
        deviation = float(returns.std())
        return deviation + EPSILON if self.config.share == "std" and deviation > 1e-3 else 1.0

    def _followed_after(self, means: Tensor) -> list[float]:
        levels = (self.config.low, self.config.high)
        if not self.followed:
            return [float(torch.quantile(means, level)) for level in levels]
        below = [float((means < old).double().mean()) for old in self.followed]
        moves = [level - share for level, share in zip(levels, below, strict=True)]
        return [old + self.config.step * move for old, move in zip(self.followed, moves, strict=True)]

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Move the followed quantiles after the batch."""
        self.followed = list(credit.state["followed"])

    def state(self) -> dict[str, Any]:
        """Return the followed quantiles."""
        return {"followed": list(self.followed)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the followed quantiles."""
        self.followed = [float(each) for each in state["followed"]]
