"""Kuhn poker with a table instead of a network: twelve information sets, two actions, one logit each.

A move is a turn of one token. Games become the project's trajectories, a method's own credit and loss are what is
minimised, and nothing is left of a language model: what remains is how a method behaves in a game.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.tablegames.kuhn_poker.rules import DEALS, information_set, information_sets, legal, winnings
from turngym.seeding import stream
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.columns import lay_out_column
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.functional import loss_weights

SETS = tuple(information_sets())
ACTIONS = {name: legal(tuple(name.split()[1:])) for name in SETS}


class TabularKuhn:
    """A learner of Kuhn poker with one logit for each action.

    Args:
        algorithm: Name of the method, such as ``mappo+mmd``.
        options: Part of the method -> its settings.
        seed: Seed of the games.
        learning_rate: Step size of Adam without momentum, which falls to 0 over the run.
        games: Games an iteration.
        iterations: Length of the run.
    """

    def __init__(
        self,
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
        self.logits = torch.zeros(len(SETS), 2, requires_grad=True)
        self.magnet = self.logits.detach().clone()
        others = [p for module in self.algorithm.modules().values() for p in module.parameters()]
        groups = [{"params": [self.logits], "lr": learning_rate}, {"params": others, "lr": 1e-3}]
        self.optimizer = torch.optim.Adam([each for each in groups if each["params"]], betas=(0.0, 0.99))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda k: max(1 - k / iterations, 0.0))

    @property
    def policy(self) -> dict[str, dict[str, float]]:
        """Information set -> action -> probability."""
        chances = self.logits.detach().double().softmax(-1).tolist()
        return {name: dict(zip(ACTIONS[name], row, strict=True)) for name, row in zip(SETS, chances, strict=True)}

    def iterate(self, iteration: int) -> None:
        """Play the games of an iteration, and make one update."""
        every = self.algorithm.reference_every
        if every and iteration % every == 0:
            self.magnet = self.logits.detach().clone()
        self.algorithm.begin_iteration(iteration, self.iterations)
        trajectories = self._play(stream("tabular kuhn", self.seed, iteration))
        table = turn_table(trajectories)
        credit = self.algorithm.credit(table)
        turns = [turn for trajectory in trajectories for turn in trajectory.turns]
        cells = torch.tensor([(SETS.index(turn.anchor), turn.completion_ids[0]) for turn in turns])
        index = torch.arange(len(turns))[None]
        logprobs = self.logits.log_softmax(-1)
        inputs = LossInputs(
            logprobs=_at(logprobs, cells),
            old_logprobs=_at(logprobs.detach(), cells),
            advantages=credit.advantages[None].float(),
            action_mask=torch.ones(index.shape, dtype=torch.bool),
            turn_ids=index,
            weights={name: loss_weights(table, name)[None].float() for name in self.algorithm.normalisations},
            entropy=-(logprobs.exp() * logprobs).sum(-1)[cells[:, 0]][None],
            reference_logprobs=_at(self.magnet.log_softmax(-1), cells),
            columns={name: lay_out_column(column, index) for name, column in credit.columns.items()},
        )
        self.optimizer.zero_grad()
        self.algorithm.loss(inputs).total(inputs).backward()
        self.optimizer.step()
        self.schedule.step()
        self.algorithm.update_state(trajectories, credit)

    def _play(self, generator: np.random.Generator) -> list[Trajectory]:
        """Return the trajectories of both seats of some games."""
        chances = {name: [*each.values()][1] for name, each in self.policy.items()}
        found = []
        for game in range(self.games):
            deal = DEALS[int(generator.integers(len(DEALS)))]
            history: tuple[str, ...] = ()
            seats: tuple[list[Turn], list[Turn]] = ([], [])
            while options := legal(history):
                seat = len(history) % 2
                name = information_set(deal[seat], history)
                action = int(generator.random() < chances[name])
                joint = {"joint_view": f"cards: {' '.join(deal)}\nseat: {seat} {' '.join((*deal, *history))}"}
                own = chances[name] if action else 1 - chances[name]
                turn = Turn("", name, "", completion_ids=(action,), logprobs=(float(np.log(own)),), columns=joint)
                seats[seat].append(turn)
                history = (*history, options[action])
            chips = winnings(*deal, history)
            for seat, turns in enumerate(seats):
                turns[-1].reward = float(chips if seat == 0 else -chips)
                spec = EpisodeSpec(2 * game + seat, 0, game)
                found.append(Trajectory(spec, "kuhn", turns=turns, terminated=True, role=f"player_{seat}"))
        return found


def _at(values: Tensor, cells: Tensor) -> Tensor:
    """Return the number of each sampled action."""
    return values[cells[:, 0], cells[:, 1]][None]
