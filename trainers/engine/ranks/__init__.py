"""Processes that train one model together: what they say to one another, and how work is shared out."""

from turngym.trainers.engine.ranks.base import SINGLE, Ranks, SingleProcess
from turngym.trainers.engine.ranks.sharing_out import shared_out

__all__ = ["SINGLE", "Ranks", "SingleProcess", "shared_out"]
