"""SDFT: self-distillation from a teacher that was shown a demonstration (arXiv 2601.19897; repository huggingface/trl).

The teacher is the policy, or its moving average, with a demonstration in front of its prompts. At each token that the
policy sampled, with ``p`` its next-token distribution and ``q`` the teacher's,

    L = mean of KL(q, p)

over the vocabulary, after the first ``skip`` tokens of each turn. ``beta``, ``top`` and ``top_of`` give the forms of
the released codes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.gkd import DivergenceMethod, GKDConfig
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class SDFTConfig(GKDConfig):
    """Settings of self-distillation with demonstrations."""

    beta: float = 0.0
    """0 for KL(teacher, policy), 1 for KL(policy, teacher), between them a Jensen-Shannon divergence."""
    skip: int = 0
    """First tokens of each turn that are left out: there a teacher may refer to the demonstration."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("skip", self.skip, 0)


@ALGORITHMS.register("sdft")
class SDFT(DivergenceMethod[SDFTConfig]):
    """Self-distillation over the vocabulary from a teacher that was shown more."""

    Config: ClassVar[type[SDFTConfig]] = SDFTConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as gkd does; the first tokens of each turn leave the loss as well."""
        credit = super().credit(table)
        if not self.config.skip:
            return credit
        starts = torch.cumsum(table.num_tokens, 0) - table.num_tokens
        early = torch.arange(len(table.token_turn)) - starts[table.token_turn] < self.config.skip
        return replace(credit, masked=early if credit.masked is None else early | credit.masked)
