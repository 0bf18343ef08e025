"""Wrapped environments for tests, in a module that worker processes can import."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import toy_envs  # noqa: F401  (registers the toy environments)

from turngym.seeding import stream
from turngym.wrappers import WRAPPERS, Wrapping, wrap

NAMES = tuple(WRAPPERS)
REPEATABLE: dict[str, dict[str, Any]] = {"normalize_reward": {"frozen": True}}
"""Options with which an episode does not depend on earlier ones; the defaults for all but one wrapper."""


def made(env_id: str, *names: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Make an environment under wrappers whose episodes repeat."""
    wrappers = [Wrapping(name, REPEATABLE.get(name, {})) for name in names]
    return wrap(gymnasium.make(env_id, **options), *wrappers)


def policy(seed: int) -> Callable[[Any, Mapping[str, Any]], str]:
    """Return one that is mostly legal and sometimes talks nonsense."""
    generator = stream("wrapper policy", seed)

    def act(observation: Any, info: Mapping[str, Any]) -> str:
        legal = info["legal_actions"]
        return str(legal[generator.integers(len(legal))]) if legal and generator.random() < 0.8 else "nonsense 7 up"

    return act
