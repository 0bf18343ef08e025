"""Kuhn poker with a table: twelve information sets, two actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from tables import Played, TabularLearner

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.tablegames.kuhn_poker.rules import DEALS, information_set, information_sets, legal, winnings

SETS = tuple(information_sets())
ACTIONS = {name: legal(tuple(name.split()[1:])) for name in SETS}


class TabularKuhn(TabularLearner):
    """A learner of Kuhn poker; see :class:`tables.TabularLearner` for its settings."""

    name = "kuhn"

    def __init__(self, algorithm: str, options: Mapping[str, Mapping[str, Any]], **settings: Any) -> None:
        super().__init__(torch.ones(len(SETS), 2, dtype=torch.bool), algorithm, options, **settings)

    @property
    def policy(self) -> dict[str, dict[str, float]]:
        """Information set -> action -> probability."""
        rows = self.chances.tolist()
        return {name: dict(zip(ACTIONS[name], row, strict=True)) for name, row in zip(SETS, rows, strict=True)}

    def play(self, generator: np.random.Generator) -> Played:
        """Play both seats of some games."""
        chances = dict(zip(SETS, self.chances[:, 1].tolist(), strict=True))
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
        cells = [(SETS.index(turn.anchor), turn.completion_ids[0]) for each in found for turn in each.turns]
        return Played(found, torch.tensor(cells))
