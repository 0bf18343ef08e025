"""Dr. MAS: GRPO whose mean and deviation are computed per agent (arXiv 2602.08847).

With one mean and one deviation for all agents, the gradient of an agent with a different range of returns is larger by
``(std_agent^2 + (mean_agent - mean)^2) / std^2`` in the second moment, and training becomes unstable. So the key of a
group becomes the group and the agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedMethod, one_of
from turngym.trainers.algorithms.grpo import GroupConfig
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable

By: TypeAlias = Literal["agent", "role"]


@dataclass(frozen=True)
class DrMASConfig(GroupConfig):
    """Settings of Dr. MAS."""

    invalid_penalty: float = 0.01
    """Penalty for an invalid action."""
    by: By = "agent"
    """Who is compared with one another inside a group: the seats of one name, or all seats of one role, such as the
    villagers of a game."""
    scale_by_std: bool = True
    """True if the advantage is divided by the agent's standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("by", self.by, get_args(By))


@ALGORITHMS.register("dr_mas")
class DrMAS(ClippedMethod[DrMASConfig]):
    """Group-relative policy optimisation, agent by agent."""

    Config: ClassVar[type[DrMASConfig]] = DrMASConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, and what the loss needs."""
        return super().needs | {Need.GROUPS}

    @property
    def compares_same_seat(self) -> bool:
        """Seats, or roles where the settings say so, are compared apart."""
        return True

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return among those of the same agent in the group."""
        config = self.config
        keys = F.joint_keys(table.group, table.agent if config.by == "agent" else table.role)
        first = _first_turns(table.episode, keys)
        turns = F.group_advantages(
            table.episode_return()[table.episode],
            keys,
            first if config.over == "trajectories" else None,
            scale_by_std=config.scale_by_std,
            ddof=config.ddof,
            epsilon=config.epsilon,
            singleton=config.singleton,
        )
        turns = turns - table.invalid_penalties(config.invalid_penalty)
        members = torch.bincount(keys[first])
        if config.singleton == "zero":
            turns = turns.masked_fill(members[keys] == 1, 0.0)
        metrics = {"groups_shrunk_to_one": float((members == 1).sum()), "groups_of_one_agent": float(len(members))}
        return Credit(table.to_tokens(turns), metrics=metrics)


def _first_turns(episode: Tensor, keys: Tensor) -> Tensor:
    """Return which turns are the first of their agent in their episode."""
    seen: set[tuple[int, int]] = set()
    first = []
    for pair in zip(episode.tolist(), keys.tolist(), strict=True):
        first.append(pair not in seen)
        seen.add(pair)
    return torch.tensor(first, dtype=torch.bool)
