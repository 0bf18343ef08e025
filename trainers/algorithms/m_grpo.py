"""M-GRPO and MATPO: group-relative credit for a main agent that calls sub-agents (arXiv 2511.13288, 2510.04678).

Main agents are compared with each other in their group. The calls of sub-agents are compared with the calls of the
group in which every rollout counts once, however many calls it made (M-GRPO), or copy the advantage of their main
agent (MATPO). The columns ``caller`` of calls say whose they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod
from turngym.trainers.core.algorithm import Credit, Normalisation
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Calls: TypeAlias = Literal["own", "root"]


@dataclass(frozen=True)
class MGRPOConfig(OutcomeConfig):
    """Settings of M-GRPO."""

    normalisation: Normalisation = "trajectory"
    """Normalisation of the policy loss."""
    clip_high: float = 0.28
    """Clip range above a ratio of 1."""
    calls: Calls = "own"
    """Advantage of a call: ``own`` among the calls of its role in the group (M-GRPO), or that of its ``root``, the main
    agent (MATPO)."""
    scale_by_std: bool = True
    """True if the advantage is divided by the standard deviation, that of the population."""
    epsilon: float = 0.0
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("calls", self.calls, get_args(Calls))
        within("epsilon", self.epsilon, 0)


def roots_of(table: TurnTable) -> Int[Tensor, "episode"]:
    """Return the place of the episode whose agent called each episode, directly or through others; else its own.

    An episode that is not in the table, such as that of a player without training or with a fault, has a place after
    the last one, the same for all that it called.
    """
    place = {number: index for index, number in enumerate(table.episode_number.tolist())}
    callers = [None if number != number else int(number) for number in table.numbers("episode", "caller").tolist()]
    roots, absent = [], dict[int, int]()
    for index in range(table.num_episodes):
        root, seen = index, {index}
        while (caller := callers[root]) is not None:
            if caller not in place:
                root = absent.setdefault(caller, table.num_episodes + len(absent))
                break
            if (root := place[caller]) in seen:
                break
            seen.add(root)
        roots.append(root)
    return torch.tensor(roots, dtype=torch.long)


def weighted_advantages(
    returns: Float[Tensor, "episode"],
    weights: Float[Tensor, "episode"],
    keys: Int[Tensor, "episode"],
    *,
    scale_by_std: bool,
    epsilon: float = 0.0,
) -> Float[Tensor, "episode"]:
    """Return each return minus the weighted mean of its key, over the weighted standard deviation of the population.

    Equal returns have the advantage 0.

    >>> scores, weights = torch.tensor([0.9, 0.4, 0.1]), torch.tensor([1.0, 0.5, 0.5])
    >>> weighted_advantages(scores, weights, torch.zeros(3, dtype=torch.long), scale_by_std=True)
    tensor([ 0.9507, -0.5119, -1.3894])
    """
    if len(returns) == 0:
        return returns
    zeros = returns.new_zeros(int(keys.max()) + 1)
    weights = weights.to(returns.dtype)
    above = returns - zeros.scatter_reduce(0, keys, returns, "amin", include_self=False)[keys]
    total = zeros.index_add(0, keys, weights)
    centred = above - (zeros.index_add(0, keys, weights * above) / total)[keys]
    if not scale_by_std:
        return centred
    std = (zeros.index_add(0, keys, weights * centred**2) / total).sqrt()
    return centred / torch.where(std > epsilon, std + epsilon, torch.ones_like(std))[keys]


@ALGORITHMS.register("m_grpo")
class MGRPO(OutcomeMethod[MGRPOConfig]):
    """Group-relative policy optimisation of a main agent and the sub-agents that it calls."""

    Config: ClassVar[type[MGRPOConfig]] = MGRPOConfig

    @property
    def compares_same_seat(self) -> bool:
        """Roles are compared apart."""
        return True

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage among those of its role, or that of its main agent."""
        config, first = self.config, table.turn == 0
        roots, roles = roots_of(table), table.role[first]
        keys = F.joint_keys(table.episode_group, roles)
        _, rollout = torch.unique(torch.stack([keys, roots]), dim=1, return_inverse=True)
        weights = 1.0 / torch.bincount(rollout)[rollout].double() if len(rollout) else rollout.double()
        returns = table.episode_return()
        found = weighted_advantages(returns, weights, keys, scale_by_std=config.scale_by_std, epsilon=config.epsilon)
        members = torch.bincount(keys)
        alone = members[keys] == 1
        found = torch.where(alone, returns if config.singleton == "raw" else torch.zeros_like(returns), found)
        if config.calls == "root":
            is_here = roots < len(returns)
            roots = roots.clamp(max=max(len(returns) - 1, 0))
            found, alone = torch.where(is_here, found[roots], torch.zeros_like(found)), alone[roots] | ~is_here
        else:
            found = found * weights
        turns = found[table.episode] - table.invalid_penalties(config.invalid_penalty)
        if config.singleton == "zero":
            turns = turns.masked_fill(alone[table.episode], 0.0)
        metrics = {
            "groups_shrunk_to_one": float((members == 1).sum()),
            "groups_of_one_role": float(len(members)),
            "calls_without_root": float((roots_of(table) >= len(returns)).sum()),
        }
        return Credit(table.to_tokens(turns), metrics=metrics)
