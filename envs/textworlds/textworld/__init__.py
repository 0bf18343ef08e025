"""TextWorld: generated text adventures."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textworlds.textworld.env import (
        TextWorld,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textworlds.textworld.env": ("TextWorld",)},
    )

__all__ = ["TextWorld"]
