"""OpenSpiel's tree search as a player."""

from __future__ import annotations

import importlib
from typing import Any, cast

import numpy as np

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.views import SeatView, game_of
from turngym.envs.open_spiel.game import OpenSpiel
from turngym.errors import ConfigError

_SIMULATIONS = 100
_EXPLORATION = 2.0
_MEMORY_MB = 100


class MctsPlayer(Player):
    """Monte-Carlo tree search with random rollouts, for games in turns.

    In games of perfect information it searches from the position. In others it searches over positions that OpenSpiel
    samples from the seat's information state (information set MCTS), where the game can sample them. ``mcts:500``
    searches with 500 simulations instead of 100.

    Args:
        game: The game that is played.
        simulations: Simulations per move.

    Raises:
        ConfigError: OpenSpiel cannot search the game.
    """

    name = "mcts"

    def __init__(self, game: OpenSpiel, simulations: int = _SIMULATIONS) -> None:
        if not game.can_search():
            raise ConfigError(
                f"the player mcts cannot search {game.options.rules}: it needs turns, and rewards at the end, or "
                "positions that can be sampled from what a seat knows."
            )
        self._simulations = simulations

    @classmethod
    def from_argument(cls, argument: str, game: Game) -> MctsPlayer:
        """Return the player with that many simulations."""
        if not isinstance(game, OpenSpiel):
            raise ConfigError(f"the player mcts is for turngym/OpenSpiel-v0, not for {game.name}.")
        if argument and not (argument.isdecimal() and len(argument) <= 6 and int(argument)):
            raise ConfigError(f"the player mcts takes a number of simulations up to 999999, got {argument!r:.80}.")
        return cls(game, int(argument or _SIMULATIONS))

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._generator = generator

    def act(self, view: SeatView) -> str:
        """Return the action that a new search finds, with a seed drawn for this move."""
        game = cast("OpenSpiel", game_of(view))
        seed = int(self._generator.integers(2**31 - 1))
        search = self._in_public(game, seed) if game.is_perfect else self._in_private(game, seed)
        action = search.step(game.position.clone())
        return next(text for text, number in game.choices(view.seat).items() if number == action)

    def _in_public(self, game: OpenSpiel, seed: int) -> Any:
        spiel: Any = importlib.import_module("pyspiel")
        rollouts = spiel.RandomRolloutEvaluator(1, seed)
        return spiel.MCTSBot(game.loaded, rollouts, _EXPLORATION, self._simulations, _MEMORY_MB, True, seed, False)

    def _in_private(self, game: OpenSpiel, seed: int) -> Any:
        """Return the search in Python, whose samples of hidden facts can be seeded."""
        mcts: Any = importlib.import_module("open_spiel.python.algorithms.mcts")
        ismcts: Any = importlib.import_module("open_spiel.python.algorithms.ismcts")
        random = np.random.RandomState(seed)
        rollouts = mcts.RandomRolloutEvaluator(1, random)
        found = ismcts.ISMCTSBot(game.loaded, rollouts, _EXPLORATION, self._simulations, random_state=random)
        found.set_resampler(lambda state, player: state.resample_from_infostate(player, random.uniform))
        return found
