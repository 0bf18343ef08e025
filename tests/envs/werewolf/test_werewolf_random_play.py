"""Random play ends as often in the village's favour as it did in an independent simulation of the same rules."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from turngym.envs.werewolf.game import Werewolf

GAMES = 2000
VILLAGE_WINS = {  # share over 40,000 games of the independent simulation, 95 % half-width at most .005
    (5, "none"): 0.299,
    (6, "none"): 0.079,
    (7, "none"): 0.096,
    (8, "none"): 0.131,
    (9, "none"): 0.030,
    (5, "random"): 0.328,
    (6, "random"): 0.130,
    (7, "random"): 0.131,
    (8, "random"): 0.218,
    (9, "random"): 0.057,
}
MEAN_DAYS = {(7, "none"): 2.69, (7, "random"): 2.35}


def play(game: Werewolf, generator: np.random.Generator, draw: Callable[[], float]) -> None:
    """Play a game in which every seat names any legal seat, all equally likely, and nobody abstains."""
    game.news.clear()
    game.begin(generator, {})
    while asked := game.asked():
        actions = {}
        for seat in asked:
            legal = [action for action in game.legal_actions(seat) if action != "abstain"]
            actions[seat] = legal[int(draw() * len(legal))]
        game.commit(actions)


@pytest.mark.parametrize(("num_seats", "tie"), VILLAGE_WINS)
def test_random_play_wins_as_often_as_known(num_seats: int, tie: str) -> None:
    game = Werewolf(num_seats, tie=tie, talk_rounds=0)
    generator, draw = np.random.default_rng([num_seats, 1]), random.Random(num_seats).random
    wins = days = 0
    for _ in range(GAMES):
        play(game, generator, draw)
        wins += game.winner == "village"
        days += game.day
    assert wins / GAMES == pytest.approx(VILLAGE_WINS[num_seats, tie], abs=0.02)
    if (num_seats, tie) in MEAN_DAYS:
        assert days / GAMES == pytest.approx(MEAN_DAYS[num_seats, tie], abs=0.1)
