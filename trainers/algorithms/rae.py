"""RAE: role-conditioned advantage estimation (SPIRAL, Liu et al. 2025, arXiv 2506.24119).

In self-play one model fills every seat, and the seats do not have equal chances: the first player wins more often, the
villagers less often. So each role of each game has its own baseline, a moving average of its returns. The
advantage of all tokens of an episode is its return minus that baseline, not divided by anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, within
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True)
class RAEConfig(ClippedConfig):
    """Settings of role-conditioned advantage estimation."""

    decay: float = 0.95
    """Weight of a role's old baseline when it is updated with an episode: it remembers about 1 / (1 - decay)
    episodes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("decay", self.decay, 0, 1)


def games_of(table: TurnTable) -> Int[Tensor, "episode"]:
    """Return the game of each episode: seats of one group that follow each other, until a seat comes again."""
    games, last = [-1], None
    seats: set[int] = set()
    for group, seat in zip(table.episode_group.tolist(), table.agent[table.turn == 0].tolist(), strict=True):
        if group != last or seat in seats:
            games.append(games[-1] + 1)
            seats = set()
        else:
            games.append(games[-1])
        seats.add(seat)
        last = group
    return torch.tensor(games[1:], dtype=torch.long)


@ALGORITHMS.register("rae")
class RAE(ClippedMethod[RAEConfig]):
    """Policy gradient with a baseline for each role of each game.

    The baselines are updated after the batch by ``update_state``, not by ``credit``.
    """

    Config: ClassVar[type[RAEConfig]] = RAEConfig

    def __init__(self, config: RAEConfig) -> None:
        super().__init__(config)
        self.baselines: dict[str, float] = {}
        """``environment/role`` -> moving average of the returns of earlier iterations; 0 for one not in here."""

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return minus the baseline of the role."""
        returns = table.episode_sum(self.penalised_rewards(table))
        before = torch.tensor([self.baselines.get(name, 0.0) for name in table.role_names], dtype=returns.dtype)
        roles = table.role[table.turn == 0]
        found = F.role_advantages(returns, roles, before, games_of(table), decay=self.config.decay)
        after = dict(zip(table.role_names, found.baselines.tolist(), strict=True))
        metrics = {f"baseline/{name}": value for name, value in after.items()}
        advantages = table.to_tokens(found.advantages[table.episode])
        return Credit(advantages, metrics=metrics, state={"baselines": after})

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Update the baselines after the batch."""
        self.baselines.update(credit.state["baselines"])

    def state(self) -> dict[str, Any]:
        """Return the baselines."""
        return {"baselines": dict(self.baselines)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the baselines."""
        self.baselines = {str(name): float(value) for name, value in state["baselines"].items()}
