"""Whether what an environment gives can stand in a batch beside what others give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


def require_fitting(env: gymnasium.Env[Any, Any], observation: Any, info: Any) -> None:
    """Raise where an environment gives what no batch can hold, so that only its own slot breaks."""
    if not isinstance(info, dict):
        raise TypeError(f"info must be a dict, got {type(info).__name__}")
    if not fits(env.observation_space, observation):
        raise ValueError(f"the observation {str(observation)[:60]!r} does not fit {env.observation_space}")


def fits(space: gymnasium.Space[Any], observation: Any) -> bool:
    """Return whether an observation has the shape that its space says; numbers are not compared with their limits.

    >>> from gymnasium.spaces import Box, Dict
    >>> space = Dict(a=Box(0, 1, (2,)))
    >>> fits(space, {"a": np.zeros(2)}), fits(space, {"a": np.zeros(3)}), fits(space, None)
    (True, False, False)
    """
    if isinstance(space, spaces.Dict):
        is_dict = isinstance(observation, Mapping) and observation.keys() == space.spaces.keys()
        return is_dict and all(fits(part, observation[name]) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        is_tuple = isinstance(observation, tuple) and len(observation) == len(space.spaces)
        return is_tuple and all(fits(part, each) for part, each in zip(space.spaces, observation, strict=True))
    if isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        return observation is not None and np.shape(observation) == space.shape
    return bool(space.contains(observation))
