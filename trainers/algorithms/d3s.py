"""D3S: training on the episodes and tokens with most signal, fewer at first than at the end (arXiv 2509.22115).

A modifier: dynamic dual-level down-sampling. Of the batch those episodes stay whose advantages vary most, the largest
and the smallest ones; of their tokens those with the largest product of advantage and entropy. The shares that stay
grow over the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from turngym.agents.trajectory import Trajectory, Turn
from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Credit, Need, Rollout
from turngym.trainers.core.columns import with_columns
from turngym.trainers.core.turn_table import TurnTable

ENTROPY = "sampled_entropy"
"""Column of a turn with the entropies of its tokens."""


@dataclass(frozen=True)
class D3SConfig:
    """Settings of dynamic dual-level down-sampling; shares move in a line from start to end."""

    episodes_start: float = 0.5
    """Share of a batch's episodes that is trained on in the first iteration."""
    episodes_end: float = 1.0
    """The same in the last iteration."""
    tokens_start: float = 0.5
    """Share of the tokens of these episodes that is trained on in the first iteration."""
    tokens_end: float = 1.0
    """The same in the last iteration."""

    def __post_init__(self) -> None:
        for name in ("episodes_start", "episodes_end", "tokens_start", "tokens_end"):
            within(name, getattr(self, name), 0.01, 1)


def widest(values: Sequence[float], count: int) -> list[int]:
    """Return the places of the values that vary most among all choices of as many: the lowest and the highest ones.

    >>> widest([1.5, 0.5, 0.5, -0.5, -0.5, -1.5], 4)
    [0, 2, 3, 5]
    """
    if count >= len(values):
        return list(range(len(values)))
    order = sorted(range(len(values)), key=lambda place: values[place])

    def variance(lowest: int) -> float:
        kept = torch.tensor([values[place] for place in order[:lowest] + order[len(order) - count + lowest :]])
        return float(kept.double().var(correction=0))

    lowest = max(range(count + 1), key=lambda each: (round(variance(each), 9), -abs(2 * each - count)))
    return sorted(order[:lowest] + order[len(order) - count + lowest :])


def with_entropies(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with the entropies of its tokens as a column of each turn that recorded them."""

    def told(turn: Turn) -> Turn:
        return with_columns(turn, {ENTROPY: turn.entropies}) if turn.entropies else turn

    return replace(trajectory, turns=[told(turn) for turn in trajectory.turns])


def _part(share: float, number: int) -> int:
    """Return a share of a number, rounded up."""
    return math.ceil(round(share * number, 9))


@ALGORITHMS.register("d3s")
class D3S(Modifier[D3SConfig]):
    """Training on the episodes and tokens with most signal, on another method."""

    Config: ClassVar[type[D3SConfig]] = D3SConfig
    needs_advantages: ClassVar[bool] = True

    def __init__(self, config: D3SConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        self._progress = 0.0

    @property
    def needs(self) -> frozenset[Need]:
        """The needs of the base, and the entropies of what was sampled."""
        return super().needs | {Need.SAMPLED_ENTROPIES}

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Store how far the run is."""
        super().begin_iteration(iteration, num_iterations)
        self._progress = min(iteration / max(num_iterations - 1, 1), 1.0)

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather trajectories as the base does; turns get their tokens' entropies as a column."""
        return [with_entropies(each) for each in super().collect(rollout)]

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does; what is not trained on leaves the loss and its averages."""
        credit, config = super().credit(table), self.config
        sizes, episodes = credit.advantages.abs(), table.episode[table.token_turn]
        entropies = table.columns["token"].get(ENTROPY)
        sizes = sizes * entropies.nan_to_num(0.0).to(sizes) if isinstance(entropies, Tensor) else sizes
        out = table.masked[table.token_turn] if len(table.masked) else torch.zeros_like(sizes, dtype=torch.bool)
        out = out if credit.masked is None else out | credit.masked
        counted = (~out).to(table.reward.dtype)
        tokens = table.token_sum(counted)
        values = (table.token_sum(credit.advantages.to(counted) * counted) / tokens.clamp_min(1)).tolist()
        numbers = table.episode_number.tolist() or list(range(len(values)))
        order = sorted(torch.nonzero(tokens).flatten().tolist(), key=lambda place: numbers[place])
        count = _part(self._share(config.episodes_start, config.episodes_end), len(order))
        chosen = torch.zeros(len(values), dtype=torch.bool)
        chosen[[order[place] for place in widest([values[each] for each in order], count)]] = True
        kept = chosen[episodes] & ~out
        if bool(kept.any()):
            rank = _part(self._share(config.tokens_start, config.tokens_end), int(kept.sum()))
            kept &= sizes >= sizes[kept].sort(descending=True).values[rank - 1]
        masked = ~kept if credit.masked is None else credit.masked | ~kept
        share = float(kept.double().mean()) if len(kept) else 0.0
        return replace(credit, masked=masked, metrics={**credit.metrics, "d3s_tokens": share})

    def _share(self, start: float, end: float) -> float:
        return start + (end - start) * self._progress
