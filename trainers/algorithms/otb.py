"""OTB: the reward to go less the baseline of least variance, position by position in the group.

Read in the repository volcengine/verl (optimal token baseline). That baseline weighs an episode by the squared norm of
its gradient so far; that of a token, by its logits, follows from the probabilities: 1 - 2 p + the sum of all p squared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import required
from turngym.trainers.algorithms.gigpo import step_returns
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, compared_turns, group_credit
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class OTBConfig(OutcomeConfig):
    """Settings of OTB."""

    leave_one_out: bool = False
    """Whether an episode's own rewards stay out of its baseline, which removes the bias."""


def within_episodes(steps: Tensor, episode: Tensor) -> Tensor:
    """Return the running sum of a column over the tokens of each episode.

    >>> within_episodes(torch.tensor([1.0, 2.0, 5.0, 1.0]), torch.tensor([0, 0, 1, 1]))
    tensor([1., 3., 5., 6.])
    """
    total = steps.cumsum(0)
    first = torch.searchsorted(episode, episode)
    return total - total[first] + steps[first]


@ALGORITHMS.register("otb")
class OTB(OutcomeMethod[OTBConfig]):
    """Policy gradient of rewards to go with the optimal baseline for tokens."""

    Config: ClassVar[type[OTBConfig]] = OTBConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, probabilities before the first update, and what the loss needs."""
        return super().needs | {Need.SQUARED_PROBABILITIES, Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its reward to go less the baseline, and what its turn's action costs."""
        dtype, episode = table.reward.dtype, table.to_tokens(table.episode)
        squares = required(table.token_squares, "token_squares").to(dtype)
        weights = (1 - 2 * table.token_old_logprob.to(dtype).exp() + squares).clamp_min(0)
        number = within_episodes(torch.ones_like(episode), episode)
        place = F.joint_keys(table.to_tokens(table.group), number)
        to_go = table.to_tokens(step_returns(table, gamma=1.0))
        norms = within_episodes(weights, episode)
        found = to_go - F.length_weighted_baselines(to_go, norms, place, singleton="raw")
        if self.config.leave_one_out and len(place):
            total = torch.zeros_like(norms).index_add_(0, place, norms)[place]
            others = total - norms
            found = found * torch.where(others > 0, total / others, 1.0)
        credit = group_credit(table, torch.zeros_like(table.reward), self.config)
        compared = table.to_tokens(compared_turns(table, self.config))
        return replace(credit, advantages=credit.advantages + found * compared)
