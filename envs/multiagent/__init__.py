"""Games between several seats: rules apart from the table that runs them, and the views that every framework knows."""

from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.multiagent.table import SeatRequest, Table

__all__ = ["Game", "InvalidAction", "SeatRequest", "Table"]
