"""Episodes of experts, and players without skill, in environments whose instances have a hidden solution."""

from collections.abc import Callable, Iterator
from typing import Any

from turngym.envs.core import TextEnv


def solve(env: TextEnv[str], seed: int) -> tuple[list[str], dict[str, Any]]:
    """Play one episode as the expert; where there is a list of legal actions, each action of it is among them."""
    observation, info = env.reset(seed=seed)
    shown = [observation]
    while info["success"] < 0:
        action = env.expert_action()
        assert not info["legal_actions"] or action in info["legal_actions"], action
        observation, _, _, _, info = env.step(action)
        shown += [action, observation]
    return shown, info


def succeeds(env: TextEnv[str], actions: Iterator[str]) -> bool:
    """Return whether a player without skill solves the instance; it may stop before the episode ends."""
    success = -1
    for action in actions:
        success = env.step(action)[4]["success"]
        if success >= 0:
            break
    return success == 1


def mirrored(other: TextEnv[str]) -> Callable[[TextEnv[str]], Iterator[str]]:
    """Return a player that does what the expert of another instance does."""

    def mirror(env: TextEnv[str]) -> Iterator[str]:
        _, info = other.reset(seed=int(env.instance_hash, 16) % 1000)
        while info["success"] < 0:
            action = other.expert_action()
            yield action
            info = other.step(action)[4]

    return mirror
