"""Processes that train one model together: communication and distribution of work."""

from turngym.trainers.engine.ranks.base import SINGLE, Ranks, SingleProcess
from turngym.trainers.engine.ranks.sharing_out import shared_out

__all__ = ["SINGLE", "Ranks", "SingleProcess", "shared_out"]
