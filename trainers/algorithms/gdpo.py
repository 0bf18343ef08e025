"""GDPO: every part of the reward is normalised separately (NVIDIA 2026, arXiv 2601.05242).

With several rewards, GRPO normalises their sum: different mixtures with the same sum become the same advantage, and the
part with the largest spread decides. Here each part is normalised inside the group, then

    s = sum over parts of weight * (r - mean) / (std + eps)        A = whiten(s) over the batch

The parts of a turn's reward are what its environment or wrapper puts into ``info["reward_components"]``; where there
is nothing, the reward is the one part. As in the other group methods an invalid action costs its own turn
``invalid_penalty``. ``weights="valid_actions=..."`` makes valid actions one more part instead, minus the number of
invalid ones, like the format reward of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from turngym.columns import REWARD as PREFIX
from turngym.errors import ConfigError, nearest
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, compared_turns, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float

_WhitenOver: TypeAlias = Literal["token", "trajectory"]
REWARD, VALID = "reward", "valid_actions"


@dataclass(frozen=True)
class GDPOConfig(OutcomeConfig):
    """Settings of GDPO."""

    weights: str = ""
    """Weights of the parts as in progress=0.5,cost=2; a part that is not named has 1. With valid_actions=... valid
    actions are a part too, and ``invalid_penalty`` is not read."""
    ddof: int = 1
    """1 for the sample standard deviation, 0 for the population's."""
    epsilon: float = 1e-6
    """Added to the standard deviation of a part."""
    whiten_over: _WhitenOver = "token"
    """Unit of the final normalisation: a token, so that long episodes weigh more, or a trajectory."""
    batch_epsilon: float = 1e-4
    """Added to the standard deviation over trajectories."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("ddof", self.ddof, 0, 1)
        within("epsilon", self.epsilon, 0)
        within("batch_epsilon", self.batch_epsilon, 0)
        one_of("whiten_over", self.whiten_over, get_args(_WhitenOver))
        read_weights(self.weights)


def read_weights(text: str) -> dict[str, float]:
    """Return part -> weight.

    Raises:
        ConfigError: It cannot be read.

    >>> read_weights("progress=0.5, cost=2")
    {'progress': 0.5, 'cost': 2.0}
    """
    found = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, sign, number = pair.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            sign = ""
        if not (sign and name.strip()):
            raise ConfigError(f"weights are written as in progress=0.5,cost=2; got {pair!r}.")
    return found


def turn_parts(table: TurnTable) -> dict[str, Float[Tensor, "turn"]]:
    """Return the reward of each turn part by part, 0 where a turn has no such part.

    A turn without any part has its reward as its one part. The order is that in which turns first have them.
    """
    named = [name.removeprefix(PREFIX) for name in table.columns["turn"] if name.startswith(PREFIX)]
    given = {name: table.numbers("turn", PREFIX + name) for name in named}
    absent = {name: column.isnan() for name, column in given.items()}
    whole = torch.stack([*absent.values(), torch.ones_like(table.is_valid)]).all(0)
    parts = {name: column.nan_to_num(0.0) for name, column in given.items()}
    if bool(whole.any()) or not parts:
        parts[REWARD] = torch.where(whole, table.reward, parts.get(REWARD, torch.zeros_like(table.reward)))
        absent[REWARD] = absent.get(REWARD, torch.ones_like(whole)) & ~whole
    first = {name: int((~nothing).to(torch.uint8).argmax()) if len(nothing) else 0 for name, nothing in absent.items()}
    return {name: parts[name] for name in sorted(parts, key=first.__getitem__)}


def reward_parts(table: TurnTable) -> dict[str, Float[Tensor, "episode"]]:
    """Return the return of each episode part by part; the part of valid actions only where one was invalid."""
    parts = {name: table.episode_sum(column) for name, column in turn_parts(table).items()}
    if bool((~table.is_valid).any()):
        parts[VALID] = -table.episode_sum((~table.is_valid).to(table.reward.dtype))
    return parts


def part_weights(method: str, given: Mapping[str, float], parts: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the weight of each part that is compared: 1 unless given, and valid actions only if they are.

    Raises:
        ConfigError: A weight is for a part that no turn has.
    """
    for name in given:
        if name not in parts and name != VALID:
            raise ConfigError(f"{method} has a weight for {name!r}, a part of no reward. {nearest(name, parts)}")
    return {name: given.get(name, 1.0) for name in parts if name != VALID or VALID in given}


@ALGORITHMS.register("gdpo")
class GDPO(OutcomeMethod[GDPOConfig]):
    """Group reward-decoupled normalisation policy optimisation."""

    Config: ClassVar[type[GDPOConfig]] = GDPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the whitened weighted sum of its episode's advantages in each part.

        Raises:
            ConfigError: A weight is for a part that no turn has.
        """
        config, parts = self.config, reward_parts(table)
        weights = part_weights("gdpo", read_weights(config.weights), parts)
        total = torch.zeros(table.num_episodes, dtype=table.reward.dtype)
        for name, weight in weights.items():
            total = total + weight * F.group_advantages(
                parts[name],
                table.episode_group,
                scale_by_std=True,
                ddof=config.ddof,
                epsilon=config.epsilon,
                singleton=config.singleton,
            )
        charged = replace(config, invalid_penalty=0.0) if VALID in weights else config
        credit = group_credit(table, self._whitened(table, total[table.episode]), charged)
        return replace(credit, metrics={**credit.metrics, "reward_parts": float(len(weights))})

    def _whitened(self, table: TurnTable, total: Float[Tensor, "turn"]) -> Float[Tensor, "turn"]:
        compared = compared_turns(table, self.config)
        if self.config.whiten_over == "token":
            return table.turn_entries(F.whiten(table.to_tokens(total), table.to_tokens(compared)))
        counted = compared & (table.turn == 0)
        found = torch.zeros(table.num_episodes, dtype=total.dtype)
        found[table.episode[counted]] = F.standardise(total[counted], ddof=1, epsilon=self.config.batch_epsilon)
        return found[table.episode]
