"""Bandits: one of several arms is pulled, again and again."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.bandit.env import (
        MOST_ARMS,
        PLAYERS,
        ArmedBandit,
        BernoulliBandit,
        GaussianBandit,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textgames.bandit.env": (
                "MOST_ARMS",
                "PLAYERS",
                "ArmedBandit",
                "BernoulliBandit",
                "GaussianBandit",
            )
        },
    )

__all__ = ["MOST_ARMS", "PLAYERS", "ArmedBandit", "BernoulliBandit", "GaussianBandit"]
