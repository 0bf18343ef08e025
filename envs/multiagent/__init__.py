"""Multi-agent games: rules, the table that runs them, and views for PettingZoo, Gymnasium and vectors.

Everything is imported on first use, so that games can be listed without importing them.

A custom game is one class. The example has all required methods; :class:`Game` documents each of them:

>>> from turngym.envs.multiagent import Game, InvalidAction, TableAEC, TableVector
>>> class Stones(Game):
...     name = "stones"
...
...     def __init__(self, stones: int = 4) -> None:
...         super().__init__(num_seats=2)
...         self.stones = stones
...
...     def instructions(self, seat):
...         return "Take 1 or 2 stones in turn. Whoever takes the last one wins."
...
...     def begin(self, generator, options):  # all chance comes from this generator
...         self.left, self.turn = self.stones, int(generator.integers(2))
...         self.tell(self.everyone, f"There are {self.left} stones. {self.seats[self.turn]} begins.")
...
...     def asked(self):  # several seats decide at once; nobody is asked when the game is over
...         return (self.turn,) if self.left else ()
...
...     def prompt(self, seat):
...         return f"{self.left} left. How many do you take?"
...
...     def legal_actions(self, seat):
...         return ("1", "2")[: self.left]
...
...     def read(self, seat, text):  # any text may come
...         if text.strip() not in self.legal_actions(seat):
...             raise InvalidAction(f"Answer with one of {', '.join(self.legal_actions(seat))}.")
...         return text.strip()
...
...     def forfeit(self, seats):  # of a seat that gives no legal action: here the game is over
...         self.left = 0
...         return [-1.0 if seat in seats else 1.0 for seat in self.everyone]
...
...     def commit(self, actions):  # a secret would be a line for one seat: self.tell([seat], "...")
...         ((seat, action),) = actions.items()
...         self.left, self.turn = self.left - int(action), 1 - seat
...         self.tell(self.everyone, f"{self.seats[seat]} takes {action}.")
...         return [0.0, 0.0] if self.left else [1.0 if seat in self.winners() else -1.0 for seat in self.everyone]
...
...     def anchor(self, seat):
...         return f"{self.left} left"
...
...     def winners(self):
...         return () if self.left else (1 - self.turn,)
...
...     def state(self):
...         return [self.left, self.turn]
...
...     def load(self, state):
...         self.left, self.turn = state

Every view plays it: PettingZoo's, a vector of tables, and :class:`turngym.envs.seat.SeatEnv` for one seat.

>>> env = TableAEC(Stones(stones=3))
>>> env.reset(seed=0)
>>> print(env.observe(env.agent_selection)["text"])
There are 3 stones. player_0 begins.
3 left. How many do you take?
>>> for answer in ("all of them", "2", "1"):
...     env.step(answer)
>>> env.rewards, env.table.winners()
({'player_0': -1.0, 'player_1': 1.0}, (1,))
>>> vector = TableVector(Stones, 100, auto_reset=False)
>>> vector.reset(seed=0)
>>> while vector.is_open:
...     _ = vector.submit([(one.request_id, one.legal_actions[-1]) for one in vector.pending()])
>>> len(vector.drain_episodes())
100
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.multiagent.game import Game, InvalidAction
    from turngym.envs.multiagent.pettingzoo.aec import TableAEC
    from turngym.envs.multiagent.pettingzoo.parallel import TableParallel
    from turngym.envs.multiagent.players import PLAYERS, Player, make_player
    from turngym.envs.multiagent.records import EpisodeRecord, StepRecord
    from turngym.envs.multiagent.registration import GAMES, make_aec, make_game, make_parallel
    from turngym.envs.multiagent.table import SeatRequest, SeatView, Table
    from turngym.envs.multiagent.vector import TableVector
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.multiagent.game": ("Game", "InvalidAction"),
            "turngym.envs.multiagent.pettingzoo.aec": ("TableAEC",),
            "turngym.envs.multiagent.pettingzoo.parallel": ("TableParallel",),
            "turngym.envs.multiagent.players": ("PLAYERS", "Player", "make_player"),
            "turngym.envs.multiagent.records": ("EpisodeRecord", "StepRecord"),
            "turngym.envs.multiagent.registration": ("GAMES", "make_aec", "make_game", "make_parallel"),
            "turngym.envs.multiagent.table": ("SeatRequest", "SeatView", "Table"),
            "turngym.envs.multiagent.vector": ("TableVector",),
        },
    )

__all__ = [
    "GAMES",
    "PLAYERS",
    "EpisodeRecord",
    "Game",
    "InvalidAction",
    "Player",
    "SeatRequest",
    "SeatView",
    "StepRecord",
    "Table",
    "TableAEC",
    "TableParallel",
    "TableVector",
    "make_aec",
    "make_game",
    "make_parallel",
    "make_player",
]
