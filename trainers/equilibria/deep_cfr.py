"""Deep counterfactual regret minimisation: networks in place of the tables of regrets and of the average policy."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from turngym.envs.multiagent.equilibria import GameTree, MonteCarloCFR
from turngym.envs.multiagent.equilibria.tree import Floats, Ints
from turngym.trainers.equilibria.features import Features, game_features
from turngym.trainers.equilibria.networks import ActionNetwork


class Reservoir:
    """Keeps each of the samples seen so far with the same probability (Vitter 1985, algorithm R).

    Args:
        capacity: Number of samples that are kept.
        width: Numbers per sample.

    >>> kept, random = Reservoir(2, 1), np.random.default_rng(0)
    >>> kept.extend(np.array([0, 1, 1]), 1, np.array([[0.5], [0.2], [0.2]]), random)
    >>> len(kept), kept.means(2)[1][1]
    (2, array([0.2]))
    """

    def __init__(self, capacity: int, width: int) -> None:
        self.capacity, self.seen = capacity, 0
        self._sets: Ints = np.zeros(0, int)
        self._times: Floats = np.zeros(0)
        self._targets: Floats = np.zeros((0, width))

    def __len__(self) -> int:
        return len(self._sets)

    def extend(self, sets: Ints, time: int, targets: Floats, random: np.random.Generator) -> None:
        """Offer samples.

        Args:
            sets: [samples] numbers of information sets.
            time: Iteration, the weight of the samples.
            targets: [samples, width] regrets or probabilities.
            random: Draws which samples are kept.
        """
        order = self.seen + np.arange(len(sets))
        places = np.where(order < self.capacity, order, (random.random(len(sets)) * (order + 1)).astype(int))
        self.seen += len(sets)
        more = min(self.capacity, self.seen) - len(self)
        self._sets = np.concatenate([self._sets, np.zeros(more, int)])
        self._times = np.concatenate([self._times, np.zeros(more)])
        self._targets = np.concatenate([self._targets, np.zeros((more, self._targets.shape[1]))])
        kept = places < self.capacity
        self._sets[places[kept]], self._times[places[kept]] = sets[kept], time
        self._targets[places[kept]] = targets[kept]

    def means(self, count: int) -> tuple[Floats, Floats]:
        """Return the sum of the weights of each information set, and the weighted means of its targets.

        Args:
            count: Number of information sets.

        Returns:
            [count] and [count, width].
        """
        weights = np.bincount(self._sets, self._times, count).astype(np.float64)
        sums = np.stack([np.bincount(self._sets, self._times * each, count) for each in self._targets.T], axis=1)
        return weights, sums / np.maximum(weights, 1e-300)[:, None]


@dataclass(slots=True, eq=False)
class _Walks(MonteCarloCFR):
    """External sampling by a given policy, which keeps every regret and policy on its way."""

    policy: list[list[float]] = field(default_factory=list)
    regrets: list[tuple[int, list[float]]] = field(default_factory=list)
    policies: list[tuple[int, list[float]]] = field(default_factory=list)

    def walk(self, seat: int) -> None:
        """Walk once for a seat."""
        self._external(0, seat)

    def _policy(self, number: int) -> list[float]:
        return self.policy[number]

    def _keep_regrets(self, number: int, regrets: list[float]) -> None:
        self.regrets.append((number, regrets))

    def _keep_policy(self, number: int, policy: list[float]) -> None:
        self.policies.append((number, policy))


@dataclass(slots=True, eq=False)
class DeepCFR:
    """Deep CFR (Brown et al. 2019, arXiv 1811.00164) with external sampling.

    Each iteration walks the game for each seat, keeps the sampled regrets in a reservoir, and trains a new network of
    that seat on it, with samples weighted by their iteration. The walks follow regret matching on the networks'
    outputs; where none is positive they take the largest. The average policy is one network, trained on the policies
    that the walks met at decisions of the other seats.

    Training takes the whole reservoir in every step: the squared loss of the samples of an information set is that of
    their weighted mean, but for a constant.

    Args:
        tree: The game.
        seed: Seed of walks, reservoirs and networks.
        walks: Walks per seat and iteration.
        training_steps: Steps of Adam for each network.
        hidden: Units of both hidden layers.
        learning_rate: Of Adam.
        memory: Samples that each reservoir keeps.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import game_tree
    >>> solver = DeepCFR(game_tree(make_game("turngym/KuhnPoker-v0")), walks=20, training_steps=20)
    >>> solver.step()
    >>> list(solver.tree.table(solver.average())["player_0"]["J"])
    ['check', 'bet']
    """

    tree: GameTree
    seed: int = 0
    walks: int = 100
    training_steps: int = 200
    hidden: int = 64
    learning_rate: float = 0.01
    memory: int = 1_000_000
    iteration: int = 0
    _features: Features = field(init=False)
    _walks: _Walks = field(init=False)
    _regrets: list[Reservoir] = field(init=False)
    _policies: Reservoir = field(init=False)
    _random: np.random.Generator = field(init=False)
    _scale: float = field(init=False)

    def __post_init__(self) -> None:
        self._features = game_features(self.tree)
        width = len(self._features.actions)
        self._regrets = [Reservoir(self.memory, width) for _ in self.tree.seats]
        self._policies = Reservoir(self.memory, width)
        self._random = np.random.default_rng(self.seed)
        self._walks = _Walks(self.tree, seed=self.seed)
        self._walks.policy = [[1 / len(each.actions)] * len(each.actions) for each in self.tree.sets]
        self._scale = float(np.abs(self.tree.payoff).max()) or 1.0

    def step(self) -> None:
        """Walk for each seat and train its network."""
        self.iteration += 1
        for seat in range(len(self.tree.seats)):
            for _ in range(self.walks):
                self._walks.walk(seat)
            self._store(self._regrets[seat], self._walks.regrets, self._scale)
            self._store(self._policies, self._walks.policies, 1.0)
            found = self._fitted(self._regrets[seat], is_policy=False)
            for number, each in enumerate(self.tree.sets):
                if each.seat == seat:
                    self._walks.policy[number] = _matched(found[each.start : each.start + len(each.actions)])

    def average(self) -> Floats:
        """Train the network of the average policy, and return its policy."""
        return self.tree.normalised(self._fitted(self._policies, is_policy=True))

    def _store(self, memory: Reservoir, found: list[tuple[int, list[float]]], scale: float) -> None:
        """Move what the walks have kept to a reservoir."""
        targets = np.zeros((len(found), len(self._features.actions)))
        for row, (number, amounts) in enumerate(found):
            targets[row, self._features.columns[number]] = amounts
        memory.extend(np.array([number for number, _ in found], int), self.iteration, targets / scale, self._random)
        found.clear()

    def _fitted(self, memory: Reservoir, is_policy: bool) -> Floats:
        """Train a new network on a reservoir, and return its output for every policy entry."""
        weights, targets = memory.means(len(self.tree.sets))
        seed = int(self._random.integers(2**31))
        network = ActionNetwork(self._features, seed, is_policy, self.hidden, self.learning_rate)
        network.fit(weights[:, None] / max(weights.sum(), 1.0), targets, self.training_steps)
        return network.entries()


def _matched(regrets: Floats) -> list[float]:
    """Return the policy of regret matching; the largest regret alone where none is positive."""
    positive = np.maximum(regrets, 0.0)
    if not positive.any():
        positive[np.argmax(regrets)] = 1.0
    return [float(each) for each in positive / positive.sum()]
