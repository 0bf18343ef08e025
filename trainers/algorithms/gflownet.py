"""GFlowNet objectives: sampling in proportion to the reward, with a learnt flow of states (GFlowVLM, arXiv 2503.06514).

The critic is the logarithm of the flow F through the state before a turn. A state is its history, so that it has one
parent and ``log P_B`` is 0; after the last turn the flow is the reward R of the episode. For turns i to j - 1

    d_ij = log F_i + sum over their tokens of log p - log F_j

is 0 everywhere exactly if episodes are sampled in proportion to R. Sub-trajectory balance is the mean of all d^2 of an
episode with weights ``decay^(j - i)``, detailed balance that of single turns, trajectory balance that of the episode.
With rewards ``exp(return / temperature)`` all logarithms are times the temperature, so that the critic has the unit of
returns at any temperature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedMethod, one_of, required, sampled, within
from turngym.trainers.algorithms.base.critic import critic_column
from turngym.trainers.algorithms.var_tb import FlowConfig
from turngym.trainers.core.algorithm import Credit, LossInputs, LossOutput, Need, Term
from turngym.trainers.core.turn_table import TurnTable

_Objective: TypeAlias = Literal["subtrajectory", "detailed", "trajectory"]


@dataclass(frozen=True)
class GFlowNetConfig(FlowConfig):
    """Settings of the GFlowNet objectives."""

    objective: _Objective = "subtrajectory"
    """Parts of an episode that are balanced: all, single turns, or the whole episode."""
    decay: float = 0.9
    """Weight of a part of n + 1 turns over one of n, for ``subtrajectory``."""
    value_coef: float = 1.0
    """Weight of the flow's loss; 1 has the gradient of the squared balance, as for the policy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("objective", self.objective, get_args(_Objective))
        within("decay", self.decay, 1e-9, 1)
        within("value_coef", self.value_coef, 0)


class Balance(NamedTuple):
    """The balance of one episode of T turns.

    Args:
        loss: Weighted mean of the squared balances.
        pulls: [T] Minus half of the derivative by the log-likelihood of each turn.
        targets: [T] Log-flow before each turn, less half of the derivative by it; nan where no part begins or ends.
    """

    loss: Tensor
    pulls: Tensor
    targets: Tensor


def balance_of(flows: Tensor, likelihoods: Tensor, log_reward: Tensor | float, config: GFlowNetConfig) -> Balance:
    """Return the balance of an episode.

    Args:
        flows: [T] Log-flow before each turn.
        likelihoods: [T] Log-likelihood of each turn.
        log_reward: Logarithm of the episode's reward.
        config: Objective and decay.

    >>> flows, likelihoods = torch.tensor([-0.2, -0.6]), torch.tensor([-0.5, -0.7])
    >>> balance_of(flows, likelihoods, -0.2231, GFlowNetConfig()).loss
    tensor(0.8332)
    """
    before = torch.cat([flows.new_zeros(1), likelihoods.to(flows).cumsum(0)])
    heights = torch.cat([flows, torch.as_tensor(log_reward).to(flows).reshape(1)]) - before
    count = len(flows)
    if config.objective == "trajectory":
        weights = torch.zeros(count + 1, count + 1, dtype=flows.dtype)
        weights[0, count] = 1.0
    else:
        places = torch.arange(count + 1)
        lengths = places[None, :] - places[:, None]
        parts = lengths == 1 if config.objective == "detailed" else lengths > 0
        weights = (config.decay ** (lengths - 1).clamp_min(0).to(flows)) * parts
        weights = weights / weights.sum()
    gaps = heights[:, None] - heights[None, :]
    slopes = ((weights + weights.T) * gaps).sum(1)  # half of the derivative by each height
    used = (weights.sum(1) + weights.sum(0)) > 0
    targets = torch.where(used, torch.cat([flows, flows.new_zeros(1)]) - slopes, torch.nan)[:count]
    return Balance((weights * gaps**2).sum(), slopes.flip(0).cumsum(0).flip(0)[1:], targets)


@ALGORITHMS.register("gflownet")
class GFlowNet(ClippedMethod[GFlowNetConfig]):
    """Sampling in proportion to the reward, with a learnt flow of states."""

    Config: ClassVar[type[GFlowNetConfig]] = GFlowNetConfig

    @property
    def needs(self) -> frozenset[Need]:
        """The flow as values, the log-probabilities before the first update, and what the loss needs."""
        return super().needs | {Need.VALUES, Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the pull of its turn, and the flow its targets at the first tokens of turns.

        Turns without a token are not steps of the policy, and have no part in the balance.
        """
        config, first = self.config, table.first_tokens()
        acting = torch.nonzero(table.num_tokens > 0).flatten()
        flows = critic_column(table.token_value, "token_value")[first].double()
        unit = config.temperature if config.flow == "exponential" else 1.0  # all logarithms are times this
        likelihoods = table.reward.new_zeros(table.num_turns, dtype=torch.float64)
        likelihoods = unit * likelihoods.index_add(0, table.token_turn, table.token_old_logprob.double())[acting]
        sizes = torch.bincount(table.episode[acting], minlength=table.num_episodes).tolist()
        rewards = unit * config.log_rewards(table.episode_return().double())
        parts = zip(flows.split(sizes), likelihoods.split(sizes), rewards, strict=True)
        found = [balance_of(*each, config) for each in parts if len(each[0])]
        pulls, targets = (
            torch.cat([flows[:0], *column]) for column in ([e.pulls for e in found], [e.targets for e in found])
        )
        turns = torch.zeros_like(table.reward)
        turns[acting] = pulls.to(turns)
        trained = targets.isfinite()
        starts = torch.stack([each[0] for each in flows.split(sizes) if len(each)]) if found else flows
        metrics = {
            "explained_variance": F.explained_variance(flows[trained], targets[trained]),
            "balance_error": float(torch.stack([each.loss for each in found]).mean()) / unit**2 if found else 0.0,
            "log_flow": float(starts.mean()) / unit if len(starts) else 0.0,
        }
        returns = torch.full_like(table.token_logprob, torch.nan, dtype=table.reward.dtype)
        returns[first] = targets.to(returns)
        turns = turns - table.invalid_penalties(config.invalid_penalty)
        return Credit(table.to_tokens(turns), returns, metrics)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms and metrics of the policy, with those of the flow."""
        policy, over = super().loss(inputs), self.normalisation
        values = sampled(required(inputs.values, "values"), inputs)
        found = F.value_loss(values, values.detach(), required(inputs.returns, "returns"), clip=0.0)
        losses = sampled(found.loss, inputs)
        terms = {**policy.terms, "value": Term(self.config.value_coef * losses, over)}
        return LossOutput(terms, {**policy.metrics, "value_loss": Term(losses.detach(), over)}, policy.probes)
