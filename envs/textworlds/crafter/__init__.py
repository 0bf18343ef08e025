"""Crafter: survive, gather and build in a world of cells, as text."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textworlds.crafter.env import Crafter
else:
    __getattr__, __dir__ = lazy_names(__name__, {"turngym.envs.textworlds.crafter.env": ("Crafter",)})

__all__ = ["Crafter"]
