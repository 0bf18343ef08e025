"""Baselines of roles, for games whose seats do not have equal chances."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class RoleAdvantages(NamedTuple):
    """Advantages of episodes, and the baselines after the last of them."""

    advantages: Float[Tensor, "episode"]
    baselines: Float[Tensor, "role"]


def role_advantages(
    returns: Float[Tensor, "episode"],
    roles: Int[Tensor, "episode"],
    baselines: Float[Tensor, "role"],
    games: Int[Tensor, "episode"] | None = None,
    *,
    decay: float,
) -> RoleAdvantages:
    """Return each return minus its role's baseline, an exponential moving average of the returns before it.

        A = R - b[role]
        b[role] = decay * b[role] + (1 - decay) * R

    The episodes are taken in order, and the baselines of all seats of a game are used before they are updated with any
    of its returns, so they never depend on the actions of that game.

    Args:
        returns: Undiscounted return of each episode.
        roles: Role of each episode, an index of ``baselines``.
        baselines: Baseline of each role before the first episode; not changed.
        games: Game of each episode, those of one game next to each other; each is its own unless given.
        decay: Weight of the old baseline, in [0, 1].

    >>> found = role_advantages(torch.tensor([1.0, 1.0, -1.0]), torch.zeros(3).long(), torch.zeros(1), decay=0.95)
    >>> found.advantages, found.baselines
    (tensor([ 1.0000,  0.9500, -1.0975]), tensor([0.0426]))
    """
    after = baselines.tolist()
    before, current = list(after), None
    advantages = []
    numbers = range(len(returns)) if games is None else games.tolist()
    for value, role, game in zip(returns.tolist(), roles.tolist(), numbers, strict=True):
        if game != current:
            before, current = list(after), game
        advantages.append(value - before[role])
        after[role] = decay * after[role] + (1 - decay) * value
    return RoleAdvantages(returns.new_tensor(advantages), baselines.new_tensor(after))


def joint_keys(first: Int[Tensor, "item"], second: Int[Tensor, "item"]) -> Int[Tensor, "item"]:
    """Return dense keys of pairs: equal where both keys are equal.

    >>> joint_keys(torch.tensor([0, 0, 1, 0]), torch.tensor([0, 1, 0, 0]))
    tensor([0, 1, 2, 0])
    """
    if len(first) == 0:
        return first
    pairs = torch.stack([first, second])
    keys: Tensor = torch.unique(pairs, dim=1, return_inverse=True)[1]
    return keys
