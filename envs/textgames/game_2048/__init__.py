"""2048."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.game_2048.env import (
        Game2048,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.game_2048.env": ("Game2048",)},
    )

__all__ = ["Game2048"]
