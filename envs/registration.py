"""Registers every environment with Gymnasium, from tables of plain literals: registering imports no environment."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
from gymnasium.envs.registration import registry

FAMILIES = ("turngym.envs.textgames", "turngym.envs.textworlds", "turngym.envs.adapters")
GAME_FAMILIES = ("turngym.envs.werewolf", "turngym.envs.tablegames")
"""Packages whose ``SPECS`` list games between seats; each game has a seat id beside its own."""
NAMESPACE = "turngym"


class Spec(NamedTuple):
    """One line of a family's table.

    Args:
        entry_point: ``"module:Class"``, imported on first ``make``.
        kwargs: Options that the id stands for.
        summary: One sentence for ``turngym list``.
        extra: The extra that the environment needs; empty for none.
    """

    entry_point: str
    kwargs: Mapping[str, Any]
    summary: str
    extra: str = ""


def specs() -> dict[str, Spec]:
    """Return id -> line for every family."""
    found: dict[str, Spec] = {}
    for family in FAMILIES:
        found.update(importlib.import_module(family).SPECS)
    for game_id, spec in games().items():
        found[seat_id(game_id)] = Spec(
            "turngym.envs.seat:SeatEnv", {"game": game_id}, f"One seat of: {spec.summary}", spec.extra
        )
    return found


def games() -> dict[str, Spec]:
    """Return id -> line for every game between seats; its entry point is no environment but the rules."""
    found: dict[str, Spec] = {}
    for family in GAME_FAMILIES:
        found.update(importlib.import_module(family).SPECS)
    return found


def seat_id(game_id: str) -> str:
    """Return the id of the single-agent environment that is one seat of a game.

    >>> seat_id("turngym/Werewolf-v0")
    'turngym/WerewolfSeat-v0'
    """
    name, dash, version = game_id.rpartition("-v")
    return f"{name}Seat{dash}{version}"


def register_all() -> None:
    """Register every environment under ``turngym/``; doing it twice changes nothing.

    Gymnasium's own order and checker wrappers stay off, because the environments keep those promises themselves;
    the turn limit is the environment's own. So ``gymnasium.make`` returns the environment and not a wrapper.
    """
    for env_id, spec in specs().items():
        if env_id in registry:
            continue
        gymnasium.register(
            env_id,
            entry_point=spec.entry_point,
            vector_entry_point="turngym.envs.vector:make_vec",
            order_enforce=False,
            disable_env_checker=True,
            kwargs={"env_id": env_id, **spec.kwargs},
        )
