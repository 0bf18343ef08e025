"""A frozen lake with holes."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.frozen_lake.env import (
        FrozenLake,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.frozen_lake.env": ("FrozenLake",)},
    )

__all__ = ["FrozenLake"]
