"""NetHack and MiniHack in words: one level with a task, or the whole game."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textworlds.nethack.minihack import MiniHack
    from turngym.envs.textworlds.nethack.nethack import NetHack
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textworlds.nethack.minihack": ("MiniHack",),
            "turngym.envs.textworlds.nethack.nethack": ("NetHack",),
        },
    )

__all__ = ["MiniHack", "NetHack"]
