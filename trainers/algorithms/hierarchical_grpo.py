"""Hierarchical GRPO: some roles are compared within their game, the others over the group (repository prime-rl).

Where one seat sets a task and others solve it, the solvers of one game have the same task and are compared with one
another; solvers of other games of the group have had other tasks. The setters all start alike and are compared over the
group. Differences from the mean are not divided by a deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod
from turngym.trainers.algorithms.rae import games_of
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class HierarchicalGRPOConfig(OutcomeConfig):
    """Settings of hierarchical GRPO."""

    within_game: str = ""
    """Roles whose episodes are compared within one game, with commas between them, such as solver; all others are
    compared with the same role of the group."""


@ALGORITHMS.register("hierarchical_grpo")
class HierarchicalGRPO(OutcomeMethod[HierarchicalGRPOConfig]):
    """Group-relative policy optimisation within games for some roles, over the group for the others."""

    Config: ClassVar[type[HierarchicalGRPOConfig]] = HierarchicalGRPOConfig

    @property
    def compares_same_seat(self) -> bool:
        """Roles are compared apart."""
        return True

    @property
    def named_roles(self) -> tuple[str, ...]:
        """Roles that are compared within their game."""
        return tuple([name.strip() for name in self.config.within_game.split(",") if name.strip()])

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the mean of those that it is compared with."""
        roles = table.role[table.turn == 0]
        inside = self._inside(table)[roles]
        where = torch.where(inside, games_of(table), table.episode_group)
        keys = F.joint_keys(F.joint_keys(where, inside.long()), roles)
        singleton = self.config.singleton
        above = F.group_advantages(table.episode_return(), keys, scale_by_std=False, singleton=singleton)
        members = torch.bincount(keys)
        turns = above[table.episode] - table.invalid_penalties(self.config.invalid_penalty)
        if singleton == "zero":
            turns = turns.masked_fill(members[keys][table.episode] == 1, 0.0)
        metrics = {"groups_shrunk_to_one": float((members == 1).sum()), "groups_of_one_role": float(len(members))}
        return Credit(table.to_tokens(turns), metrics=metrics)

    def _inside(self, table: TurnTable) -> Tensor:
        """Return which of the table's roles are compared within a game."""
        return torch.tensor(
            [name.rpartition("/")[2] in self.named_roles for name in table.role_names], dtype=torch.bool
        )
