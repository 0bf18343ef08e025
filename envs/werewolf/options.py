"""The options of Werewolf that are words and numbers, and what they may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngym.envs.werewolf.rewards import SCALES
from turngym.errors import ConfigError, nearest

CHOICES: Mapping[str, tuple[str, ...]] = {
    "talk_protocol": ("seat_order", "random", "bidding", "parallel"),
    "vote_protocol": ("simultaneous", "sequential"),
    "wolf_protocol": ("sequential", "simultaneous"),
    "exile": ("plurality", "majority"),
    "tie": ("none", "random", "runoff"),
    "reveal": ("none", "team", "role"),
    "rewards": tuple(SCALES),
    "rewards_at": ("turn", "end"),
}
LEAST: Mapping[str, int] = {"talk_rounds": 0, "bid_turns": 0, "max_days": 1}
FLAGS = ("doctor_self", "doctor_repeat")


def check_options(options: Mapping[str, Any]) -> None:
    """Check every option but the roles.

    Raises:
        ConfigError: One is out of its range, or two contradict each other.
    """
    for name, known in CHOICES.items():
        if options[name] not in known:
            raise ConfigError(f"werewolf knows no {name}={options[name]!r}. {nearest(str(options[name]), known)}")
    for name, least in LEAST.items():
        value = options[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} of werewolf must be a whole number of at least {least}, got {value!r}.")
    for name in FLAGS:
        if not isinstance(options[name], bool):
            raise ConfigError(f"{name} of werewolf must be True or False, got {options[name]!r}.")
    if options["exile"] == "majority" and options["tie"] != "none":
        raise ConfigError(
            f"exile='majority' leaves no tie to decide, so tie={options['tie']!r} would do nothing: pass tie='none'."
        )
