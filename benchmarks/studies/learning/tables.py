"""Games with a table instead of a network: one logit for each action of each situation.

A move is a turn of one token. Games become the project's trajectories, a method's own credit and loss are what is
minimised, and nothing is left of a language model: what remains is how a method behaves in a game.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from turngym.agents.trajectory import Trajectory
from turngym.seeding import stream
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.columns import lay_out_column
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.functional import loss_weights

_ILLEGAL = -1e9


class Played(NamedTuple):
    """The games of an iteration.

    Args:
        trajectories: Those of both seats.
        cells: Situation and action of each of their turns, in order.
    """

    trajectories: list[Trajectory]
    cells: Tensor


class TabularLearner(ABC):
    """A learner with one logit for each action; it begins with random play.

    Args:
        legal: Which actions each situation has, ``[situation, action]``.
        algorithm: Name of the method, such as ``mappo+mmd``.
        options: Part of the method -> its settings.
        seed: Seed of the games.
        learning_rate: Step size of Adam without momentum, which falls to 0 over the run.
        games: Games an iteration.
        iterations: Length of the run.
    """

    name = "tabular"

    def __init__(
        self,
        legal: Tensor,
        algorithm: str,
        options: Mapping[str, Mapping[str, Any]],
        *,
        seed: int,
        learning_rate: float,
        games: int,
        iterations: int,
    ) -> None:
        self.algorithm = build(algorithm, options)
        self.seed, self.games, self.iterations = seed, games, iterations
        self._blocked = torch.zeros(legal.shape).masked_fill(~legal, _ILLEGAL)
        self.logits = torch.zeros(legal.shape, requires_grad=True)
        self.magnet = self.logprobs().detach()
        others = [p for module in self.algorithm.modules().values() for p in module.parameters()]
        groups = [{"params": [self.logits], "lr": learning_rate}, {"params": others, "lr": 1e-3}]
        self.optimizer = torch.optim.Adam([each for each in groups if each["params"]], betas=(0.0, 0.99))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda k: max(1 - k / iterations, 0.0))

    def logprobs(self) -> Tensor:
        """Return the log-probability of each action of each situation."""
        return (self.logits + self._blocked).log_softmax(-1)

    @property
    def chances(self) -> Tensor:
        """The probability of each action of each situation, in double precision."""
        return (self.logits.detach() + self._blocked).double().softmax(-1)

    @abstractmethod
    def play(self, generator: np.random.Generator) -> Played:
        """Play the games of an iteration."""

    def iterate(self, iteration: int) -> None:
        """Play the games of an iteration, and make one update."""
        every = self.algorithm.reference_every
        if every and iteration % every == 0:
            self.magnet = self.logprobs().detach()
        self.algorithm.begin_iteration(iteration, self.iterations)
        trajectories, cells = self.play(stream(f"tabular {self.name}", self.seed, iteration))
        table = turn_table(trajectories)
        credit = self.algorithm.credit(table)
        index = torch.arange(len(cells))[None]
        logprobs = self.logprobs()
        inputs = LossInputs(
            logprobs=_at(logprobs, cells),
            old_logprobs=_at(logprobs.detach(), cells),
            advantages=credit.advantages[None].float(),
            action_mask=torch.ones(index.shape, dtype=torch.bool),
            turn_ids=index,
            weights={name: loss_weights(table, name)[None].float() for name in self.algorithm.normalisations},
            entropy=-(logprobs.exp() * logprobs).sum(-1)[cells[:, 0]][None],
            reference_logprobs=_at(self.magnet, cells),
            columns={name: lay_out_column(column, index) for name, column in credit.columns.items()},
        )
        self.optimizer.zero_grad()
        self.algorithm.loss(inputs).total(inputs).backward()
        self.optimizer.step()
        self.schedule.step()
        self.algorithm.update_state(trajectories, credit)


def _at(values: Tensor, cells: Tensor) -> Tensor:
    """Return the number of each sampled action."""
    return values[cells[:, 0], cells[:, 1]][None]
