"""Bandits: one of several arms is pulled, again and again."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.bandit.env import (
        ArmedBandit,
        BernoulliBandit,
        GaussianBandit,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textgames.bandit.env": (
                "ArmedBandit",
                "BernoulliBandit",
                "GaussianBandit",
            )
        },
    )

__all__ = ["ArmedBandit", "BernoulliBandit", "GaussianBandit"]
