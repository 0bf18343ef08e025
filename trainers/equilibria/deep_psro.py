"""PSRO with best responses that networks learn from sampled games."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from turngym.envs.multiagent.equilibria import DoubleOracle
from turngym.envs.multiagent.equilibria.psro import matrix_equilibrium
from turngym.envs.multiagent.equilibria.tree import Floats
from turngym.trainers.equilibria.features import Features, game_features
from turngym.trainers.equilibria.networks import ActionNetwork
from turngym.trainers.equilibria.nfsp import QLearning
from turngym.trainers.equilibria.sampled_games import SampledGames


@dataclass(slots=True, eq=False)
class DeepPSRO(DoubleOracle):
    """Policy-space response oracles (Lanctot et al. 2017, arXiv 1711.00832) with approximate best responses.

    As in double oracle, an iteration solves the matrix game between the populations and adds a response of each seat to
    the other's mixture. The responses are the greedy policies of a new network, which Q-learning trains on games of one
    seat that explores against the mixture of the other. What policies earn against each other is exact.

    Args:
        tree: The game.
        seed: Seed of games and networks.
        games: Games per round of training.
        rounds: Rounds of training for the responses of an iteration.
        training_steps: Steps of Adam per round.
        exploration: Probability of a uniform action in training.
        learning_rate: Of Adam.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import game_tree
    >>> solver = DeepPSRO(game_tree(make_game("turngym/KuhnPoker-v0")), rounds=2)
    >>> solver.step()
    >>> solver.payoffs.shape
    (2, 2)
    """

    seed: int = 0
    games: int = 200
    rounds: int = 50
    training_steps: int = 10
    exploration: float = 0.3
    learning_rate: float = 0.01
    _random: np.random.Generator = field(init=False)
    _features: Features = field(init=False)
    _played: SampledGames = field(init=False)

    def __post_init__(self) -> None:
        DoubleOracle.__post_init__(self)
        self._random, self._features = np.random.default_rng(self.seed), game_features(self.tree)
        self._played = SampledGames(self.tree)

    def step(self) -> None:
        """Add a response of each seat, unless its population has it."""
        response = self._response(self._mixed(matrix_equilibrium(self.payoffs)[:2]))
        for seat, (known, own) in enumerate(zip(self.populations, self.tree.entries, strict=True)):
            if not any(np.array_equal(response[own], policy[own]) for policy in known):
                self._add(seat, response)

    def _response(self, mixture: Floats) -> Floats:
        """Return the policy of both seats' learned responses to a mixture."""
        network = ActionNetwork(
            self._features, int(self._random.integers(2**31)), is_policy=False, learning_rate=self.learning_rate
        )
        learned = QLearning(self.tree, network, self._features, memory=100_000)
        kinds = np.eye(2, dtype=int)[np.arange(self.games) % 2]
        for _ in range(self.rounds):
            policies = np.stack([mixture, learned.greedy(self.exploration)])
            moves = self._played.play(policies, kinds, self._random)
            own = moves.kinds == 1
            learned.learn(type(moves)(*(each[own] for each in moves)), self.training_steps)
        return learned.greedy()
