"""Neural fictitious self-play: a network that learns best responses, and one of their average."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from turngym.envs.multiagent.equilibria import GameTree
from turngym.envs.multiagent.equilibria.tree import Floats
from turngym.trainers.equilibria.deep_cfr import Reservoir
from turngym.trainers.equilibria.features import Features, game_features
from turngym.trainers.equilibria.networks import ActionNetwork
from turngym.trainers.equilibria.sampled_games import Moves, SampledGames


class QLearning:
    """Learns the values of actions from moves: a network, and a ring of the latest moves.

    Targets take the best next action by the values before training, which are thus the target network. Each step takes
    the whole ring: the squared loss of the moves by an action is that of their mean target, but for a constant.

    Args:
        tree: The game.
        network: Network of values, relative to the largest payoff.
        features: Its inputs and actions.
        memory: Moves that are kept.
    """

    def __init__(self, tree: GameTree, network: ActionNetwork, features: Features, memory: int) -> None:
        self._tree, self._network, self._memory, self._seen = tree, network, memory, 0
        self._ring = Moves(np.zeros(memory, int), np.zeros(memory, int), np.zeros(memory, int), np.zeros(memory))
        self._scale = float(np.abs(tree.payoff).max()) or 1.0
        self._places = features.entries, features.legal
        self._starts = [each.start for each in tree.sets]
        self._values = network.entries()

    def learn(self, moves: Moves, steps: int) -> None:
        """Keep moves in place of the oldest ones, and train."""
        places = (self._seen + np.arange(len(moves.slots))) % self._memory
        self._seen += len(moves.slots)
        for kept, new in zip(self._ring, moves, strict=True):
            kept[places] = new
        count, (entries, legal) = min(self._seen, self._memory), self._places
        slots, _, following, payoffs = (each[:count] for each in self._ring)
        best = np.append(np.maximum.reduceat(self._values, self._starts), 0.0)
        weights = np.bincount(slots, minlength=self._tree.size)
        targets = np.bincount(slots, payoffs / self._scale + best[following], self._tree.size) / np.maximum(weights, 1)
        self._network.fit(legal * (weights / count)[entries], legal * targets[entries], steps)
        self._values = self._network.entries()

    def greedy(self, exploration: float = 0.0) -> Floats:
        """Return the policy that plays the best action, or with some probability any."""
        best = np.maximum.reduceat(self._values, self._starts)[self._tree.set_of]
        chosen = self._tree.normalised((self._values == best).astype(float))
        return (1 - exploration) * chosen + exploration * self._tree.uniform()


@dataclass(slots=True, eq=False)
class NFSP:
    """Neural fictitious self-play (Heinrich and Silver 2016, arXiv 1603.01121).

    Before each game, each seat chooses between its best response, with a probability of ``anticipation``, and the
    average policy. Q-learning trains the best response on the latest moves of both, and supervised learning the average
    policy on a reservoir of all moves by best responses. Both networks serve all seats, which see who they are.

    Args:
        tree: The game.
        seed: Seed of games, reservoir and networks.
        games: Games per iteration.
        training_steps: Steps of Adam for each network and iteration.
        anticipation: Probability with which a seat plays its best response.
        exploration: Probability of a uniform action in a best response; falls as 1 / sqrt(iteration).
        recent: Moves that Q-learning keeps.
        memory: Moves that the reservoir keeps.
        learning_rate: Of Adam.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import game_tree
    >>> solver = NFSP(game_tree(make_game("turngym/KuhnPoker-v0")))
    >>> solver.step()
    >>> list(solver.tree.table(solver.average())["player_0"]["J"])
    ['check', 'bet']
    """

    tree: GameTree
    seed: int = 0
    games: int = 200
    training_steps: int = 5
    anticipation: float = 0.1
    exploration: float = 0.1
    recent: int = 50_000
    memory: int = 1_000_000
    learning_rate: float = 0.01
    iteration: int = 0
    _random: np.random.Generator = field(init=False)
    _features: Features = field(init=False)
    _played: SampledGames = field(init=False)
    _best: QLearning = field(init=False)
    _average: ActionNetwork = field(init=False)
    _reservoir: Reservoir = field(init=False)

    def __post_init__(self) -> None:
        self._random, found = np.random.default_rng(self.seed), game_features(self.tree)
        first, second = self._random.integers(2**31, size=2).tolist()
        self._features, self._played = found, SampledGames(self.tree)
        best = ActionNetwork(found, first, is_policy=False, learning_rate=self.learning_rate)
        self._best = QLearning(self.tree, best, found, self.recent)
        self._average = ActionNetwork(found, second, is_policy=True, learning_rate=self.learning_rate)
        self._reservoir = Reservoir(self.memory, len(found.actions))

    def step(self) -> None:
        """Play games and train both networks."""
        self.iteration += 1
        explored = self._best.greedy(self.exploration / self.iteration**0.5)
        kinds = (self._random.random((self.games, len(self.tree.seats))) < self.anticipation).astype(int)
        moves = self._played.play(np.stack([self.average(), explored]), kinds, self._random)
        self._best.learn(moves, self.training_steps)
        slots = moves.slots[moves.kinds == 1]
        sets = self.tree.set_of[slots]
        chosen = (self._features.entries[sets] == slots[:, None]).astype(float)
        self._reservoir.extend(sets, 1, chosen, self._random)
        weights, targets = self._reservoir.means(len(self.tree.sets))
        self._average.fit(weights[:, None] / max(weights.sum(), 1.0), targets, self.training_steps)

    def average(self) -> Floats:
        """Return the policy of the average network."""
        return self.tree.normalised(self._average.entries())
