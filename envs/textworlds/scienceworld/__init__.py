"""ScienceWorld: experiments of a primary school in a text world."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textworlds.scienceworld.env import (
        ScienceWorld,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textworlds.scienceworld.env": ("ScienceWorld",)},
    )

__all__ = ["ScienceWorld"]
