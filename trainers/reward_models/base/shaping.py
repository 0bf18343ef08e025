"""From a potential of states to rewards of turns."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError, nearest
from turngym.trainers.reward_models.base.turns import whole_turns
from turngym.wrappers.rewards.progress_reward import ZERO_WHEN


def differences(potentials: Sequence[float], gamma: float = 1.0, last_is_zero: bool = False) -> list[float]:
    """Return ``gamma * next - current`` for each turn.

    Args:
        potentials: Potential before the first turn and after each.
        gamma: Discount of a turn.
        last_is_zero: Whether the potential after the last turn counts as 0.

    >>> differences([0.0, 0.5, 0.25, 1.0])
    [0.5, -0.25, 0.75]
    >>> sum(differences([0.25, 0.5, 1.0], last_is_zero=True))
    -0.25
    """
    after = list(potentials[1:])
    if last_is_zero and after:
        after[-1] = 0.0
    return [gamma * later - earlier for earlier, later in zip(potentials, after, strict=False)]


def require_zero_when(value: str, name: str) -> None:
    """Raise for an unknown ``zero_when``.

    Raises:
        ConfigError: It is unknown.
    """
    if value not in ZERO_WHEN:
        raise ConfigError(f"{name} has no zero_when {value!r}. {nearest(value, ZERO_WHEN)}")


def potential_rewards(trajectory: Trajectory, potentials: Sequence[float], gamma: float, zero_when: str) -> list[float]:
    """Return the shaping reward of each turn of a trajectory, those from before it branched off left out.

    Args:
        trajectory: The episode.
        potentials: Potential before its first whole turn and after each.
        gamma: Discount of a turn.
        zero_when: When the potential at the end is 0, as for the wrapper ``progress_reward``.
    """
    is_zero = trajectory.terminated if zero_when == "terminated" else zero_when == "over"
    return own_part(trajectory, differences(potentials, gamma, is_zero))


def own_part(trajectory: Trajectory, values: Sequence[float]) -> list[float]:
    """Return the values of an episode's own turns, given those of its whole turns."""
    return list(values[len(whole_turns(trajectory)) - len(trajectory.turns) :])
