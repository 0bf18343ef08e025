"""Packs what several slots return into batches, and takes batches of actions apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from turngym.envs.spaces import Unicode
from turngym.envs.vector.info import Infos
from turngym.envs.vector.slots.slot import Result
from turngym.errors import ConfigError

Array: TypeAlias = np.ndarray[Any, Any]
Batch: TypeAlias = tuple[Any, Array, Array, Array, Infos]
"""Observations, rewards, terminations, truncations, infos."""


class Packing:
    """Batches of one pair of spaces. Texts stay plain Python; other spaces take Gymnasium's way.

    Args:
        observation_space: State of one slot.
        action_space: State of one slot.
    """

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        self._observation_space = observation_space
        self._action_space = action_space
        self._shows_text = isinstance(observation_space, Unicode)
        self.takes_text = isinstance(action_space, Unicode)

    def empty(self) -> Any:
        """Return the observation that stands for none: the empty text, or zeros."""
        one = create_empty_array(self._observation_space, 1)
        return next(iter(iterate(batch_space(self._observation_space, 1), one)))

    def join(self, observations: Sequence[Any]) -> Any:
        """Return one batch of observations; it shares nothing with earlier ones."""
        if self._shows_text:
            return tuple(observations)
        out = create_empty_array(self._observation_space, len(observations))
        return concatenate(self._observation_space, observations, cast("Any", out))

    def split(self, actions: Any, count: int) -> Sequence[Any]:
        """Return ``count`` single actions."""
        is_sequence = hasattr(actions, "__len__") and not isinstance(actions, str)
        if not is_sequence or len(actions) != count:
            got = len(actions) if is_sequence else repr(actions)[:80]
            raise ConfigError(f"expected a sequence of {count} actions, one per stepped slot, got {got}.")
        if self.takes_text:
            return cast("Sequence[Any]", actions)
        return list(iterate(batch_space(self._action_space, count), actions))

    def batch(self, results: Iterable[Result]) -> Batch:
        """Return the results of several slots as one batch; they are taken one by one and not kept."""
        observations: list[Any] = []
        rewards: list[float] = []
        terminations: list[bool] = []
        truncations: list[bool] = []
        rows: list[dict[str, Any]] = []
        for observation, reward, terminated, truncated, info, _ in results:
            observations.append(observation)
            rewards.append(reward)
            terminations.append(terminated)
            truncations.append(truncated)
            rows.append(info)
        return (
            self.join(observations),
            np.array(rewards, dtype=np.float64),
            np.array(terminations, dtype=np.bool_),
            np.array(truncations, dtype=np.bool_),
            Infos(rows),
        )
