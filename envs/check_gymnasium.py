"""Whether Gymnasium's own checker accepts an environment."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env

from turngym.envs.check_case import Case, Env

_COLOUR = re.compile(r"\x1b\[\d*m")


class _Known(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows an unknown progress as -1, because Gymnasium's checker takes nan for a difference."""

    @property
    def unwrapped(self) -> Env:
        return self

    @property
    def spec(self) -> Any:  # type: ignore[override]
        return self.env.spec

    @property
    def _np_random(self) -> Any:  # type: ignore[override]
        return self.env.unwrapped._np_random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._known(info)

    def step(self, action: Any) -> Any:
        *result, info = self.env.step(action)
        return *result, self._known(info)

    def _known(self, info: dict[str, Any]) -> dict[str, Any]:
        return {key: -1.0 if isinstance(value, float) and math.isnan(value) else value for key, value in info.items()}


def gymnasium_accepts_it(case: Case) -> Iterator[str]:
    """Gymnasium's own checker has nothing to say."""
    env = case.make()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(_Known(env))
    for warning in said:
        if "alternative render modes" not in str(warning.message):  # said of an environment that has no id
            yield _COLOUR.sub("", str(warning.message))
