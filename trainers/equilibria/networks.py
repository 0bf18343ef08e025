"""Networks with an output for every action of a game."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from turngym.envs.multiagent.equilibria.tree import Floats
from turngym.trainers.equilibria.features import Features


class ActionNetwork:
    """Two hidden layers and Adam, over all information sets of a game at once.

    Args:
        features: Inputs and legal actions of the information sets.
        seed: Seed of the first weights.
        is_policy: Whether outputs are probabilities; else they are values.
        hidden: Units of both hidden layers.
        learning_rate: Of Adam.
    """

    def __init__(
        self, features: Features, seed: int, is_policy: bool, hidden: int = 64, learning_rate: float = 0.01
    ) -> None:
        self._features, self._is_policy = features, is_policy
        self._inputs, self._legal = (
            torch.tensor(each, dtype=torch.float32) for each in (features.inputs, features.legal)
        )
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            layers = [nn.Linear(self._inputs.shape[1], hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
            self._network = nn.Sequential(*layers, nn.Linear(hidden, self._legal.shape[1]))
        self._optimizer = torch.optim.Adam(self._network.parameters(), learning_rate, fused=True)

    def fit(self, weights: Floats, targets: Floats, steps: int) -> None:
        """Reduce the weighted squared error.

        Args:
            weights: [sets, actions] or [sets, 1].
            targets: [sets, actions].
            steps: Steps of Adam, each on all information sets.
        """
        weight, target = (torch.tensor(each, dtype=torch.float32) for each in (weights, targets))
        for _ in range(steps):
            loss = (weight * (self._output() - target).square()).sum()
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()

    def entries(self) -> Floats:
        """Return the output of every policy entry."""
        with torch.no_grad():
            outputs = self._output().numpy().astype(np.float64)
        rows, columns = np.nonzero(self._features.legal)
        found = np.zeros(len(rows))
        found[self._features.entries[rows, columns]] = outputs[rows, columns]
        return found

    def _output(self) -> torch.Tensor:
        raw: torch.Tensor = self._network(self._inputs)
        return raw.masked_fill(self._legal == 0, -torch.inf).softmax(-1) if self._is_policy else raw * self._legal
