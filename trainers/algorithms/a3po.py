"""A-3PO: the proximal policy of stale samples is interpolated, not computed (repository inclusionAI/AReaL).

Samples may be older than the policy that is updated. PPO decoupled from the sampler clips against the policy at the
start of the update, and weighs by how far that one is from the sampler. Its log-probabilities cost a forward pass; with
versions counted in iterations they are put on the line between the sampler and the current policy instead,

    a = (d - 1) / d                                     d: iterations since the tokens were sampled
    log p_prox = log p_old + a * (log p - log p_old)    a constant for the gradient
    L = PPO clip of p / p_prox, times min(p_prox / p_old, cap)

Samples with d of 0 or 1 have a = 0, and this is GRPO. ``lp_old`` is always the sampler's: the trainer's own
log-probabilities would be the proximal policy itself, which is approximated here in order not to compute it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, sampled, within
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs, LossOutput, Term
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class A3POConfig(GroupConfig):
    """Settings of A-3PO."""

    weight_cap: float = 5.0
    """Largest weight of the proximal policy over the sampler; 0 for no bound."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("weight_cap", self.weight_cap, 0)


@ALGORITHMS.register("a3po")
class A3PO(OutcomeMethod[A3POConfig]):
    """Staleness-aware approximate proximal policy optimisation."""

    Config: ClassVar[type[A3POConfig]] = A3POConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group."""
        credit = group_credit(table, episode_advantages(table, self.config, scale_by_std=True), self.config)
        stale = float(table.staleness.to(torch.float64).mean()) if table.num_turns else 0.0
        columns = {"staleness": table.to_tokens(table.staleness)}
        return replace(credit, metrics={**credit.metrics, "staleness": stale}, columns=columns)

    @property
    def weighs_sampler(self) -> bool:
        """The proximal policy has a weight over the sampler."""
        return True

    def _proximal(self, inputs: LossInputs) -> Tensor:
        """Return the log-probabilities of the proximal policy, those of the sampler where nothing was sampled."""
        staleness = inputs.numbers("staleness").to(inputs.behaviour_logprobs)
        return F.proximal_logprobs(inputs.logprobs, inputs.behaviour_logprobs, staleness)

    def _weight(self, inputs: LossInputs) -> Tensor:
        """Return the weight of the proximal policy over the sampler, 1 for fresh tokens."""
        drift = F.log_ratios(self._proximal(inputs), inputs.behaviour_logprobs, inputs.action_mask)
        weight = self.ratio_level.ratio(drift, inputs.turn_ids).detach()
        return weight.clamp_max(self.config.weight_cap) if self.config.weight_cap else weight

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the clipped surrogate against the proximal policy, weighted."""
        proximal = torch.where(inputs.action_mask, self._proximal(inputs), inputs.behaviour_logprobs)
        found = super().surrogate(replace(inputs, old_logprobs=proximal))
        weight = self._weight(inputs)
        policy = found.policy._replace(loss=found.policy.loss * weight, unclipped=found.policy.unclipped * weight)
        return found._replace(policy=policy)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms and metrics, with the weight of the proximal policy over the sampler."""
        output = super().loss(inputs)
        weight = sampled(self._weight(inputs), inputs)
        return replace(output, metrics={**output.metrics, "behaviour_weight": Term(weight, self.ratio_level.over)})
