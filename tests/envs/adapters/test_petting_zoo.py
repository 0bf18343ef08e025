"""Environments of PettingZoo as games between seats, in turns and parallel."""

import sys
from pathlib import Path
from typing import Any

import pytest
from table_play import at_random, decisions, started

from turngym.envs.check import check
from turngym.envs.multiagent import make_game
from turngym.envs.multiagent.registration import game_refusal
from turngym.envs.multiagent.table import Table
from turngym.envs.petting_zoo.game import PettingZoo
from turngym.errors import ConfigError
from turngym.seeding import stream

GAME = "turngym/PettingZoo-v0"
TURNS, PARALLEL = "pettingzoo.classic.tictactoe_v3", "pettingzoo.classic.rps_v2"
OWN = """
import random
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Pot(ParallelEnv):
    metadata = {"name": "pot"}
    possible_agents = ["ann", "bob", "cid"]

    def __init__(self, rounds=3, shape=(1,)):
        self.rounds, self.shape = rounds, shape

    def observation_space(self, agent):
        return spaces.Box(0, 9, self.shape, np.int8)

    def action_space(self, agent):
        return spaces.Discrete(2, start=1)

    def reset(self, seed=None, options=None):
        self.agents, self.left, self.bonus = list(self.possible_agents), self.rounds, random.randrange(9)
        return self.seen(), {agent: {"action_mask": np.array([1, 1])} for agent in self.agents}

    def seen(self):
        return {agent: np.full(self.shape, self.bonus, np.int8) for agent in self.agents}

    def step(self, actions):
        self.left -= 1
        out = {agent: agent == "ann" or not self.left for agent in self.agents}
        rewards = {agent: float(action) for agent, action in actions.items()}
        infos = {agent: {} for agent in self.agents}
        result = self.seen(), rewards, out, {agent: False for agent in self.agents}, infos
        self.agents = [agent for agent in self.agents if not out[agent]]
        return result


def parallel_env(**options):
    return Pot(**options)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "pot_of_three.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pot_of_three", raising=False)
    return "pot_of_three"


def made(module: str, **options: Any) -> PettingZoo:
    game = make_game(GAME, module=module, **options)
    assert isinstance(game, PettingZoo)
    return game


@pytest.mark.integration
def test_a_seat_of_a_parallel_environment_keeps_every_promise() -> None:
    """The default, in turns, is checked as every id is."""
    assert not check("turngym/PettingZooSeat-v0", options={"module": PARALLEL}, episodes=1, in_process=True).failed


def test_a_whole_game_of_turns_is_the_environment_s(own: str) -> None:
    game = made(TURNS)
    table = started(game, 0)
    for answer in ("0", "[3]", "1", "4", "2"):
        (seat,) = table.pending
        assert table.answer(seat, answer).is_valid
    assert table.is_over and game.winners() == (0,) and table.returns == [1.0, -1.0]
    assert game.seats == ("player_0", "player_1")
    assert "[1 0] [1 0] [1 0]" not in game.prompt(1) and game.anchor(0) == "over; 1"


def test_agents_of_a_parallel_environment_leave_and_snapshots_replay(own: str) -> None:
    game, fresh = made(own, setting={"rounds": 4}, actions=("keep", "give")), made(own, setting={"rounds": 4})
    table = started(game, 5)
    for move, _ in enumerate(decisions(table, at_random(stream("pot", 1)))):
        if move == 4:
            other = Table(made(own, setting={"rounds": 4}, actions=("keep", "give")))
            other.restore(table.snapshot())
            assert [view.anchor for view in other.views] == [view.anchor for view in table.views]
    assert move == 8, "three seats decide once, and two of them three times more"
    assert all(4 <= each <= 8 for each in table.returns[1:]) and table.returns[0] in (1.0, 2.0)
    assert started(fresh, 5).views[0].anchor == started(made(own, setting={"rounds": 4}), 5).views[0].anchor


@pytest.mark.parametrize("totals", [[5.0, 0.0, 0.0], [float("nan"), 0.0, 0.0]])
def test_sums_that_the_moves_do_not_give_are_refused(totals: list[float], own: str) -> None:
    game = made(own)
    started(game, 0)
    state = game.state()
    assert isinstance(state, dict)
    with pytest.raises(ValueError, match="damaged"):
        made(own).load(state | {"totals": totals})


def test_a_forfeit_is_below_every_sum(own: str) -> None:
    table = started(made(own), 0)
    for _ in range(2):
        table.answer(0, "no such action")
    assert table.is_over and table.returns == [-1.0, 0.0, 0.0] and table.game.winners() == (1, 2)


def test_what_cannot_be_played_is_one_sentence(own: str, tmp_path: Path) -> None:
    for module in ("pettingzoo.classic.ludo", "no_such_package.game", "json", ""):
        with pytest.raises(ConfigError, match=r"expected a module with a function env|cannot make"):
            made(module)
    with pytest.raises(ConfigError, match="more than 10,000 numbers, as images do"):
        made(own, setting={"shape": (200, 200)})
    with pytest.raises(ConfigError, match="must be 2 different names"):
        made(own, actions=("keep", "Keep"))
    with pytest.raises(ConfigError, match=r"cannot make pot_of_three: TypeError: .*'seats'"):
        made(own, setting={"seats": 3})


def test_files_of_others_name_modules_of_pettingzoo_alone() -> None:
    assert not game_refusal(GAME, {"module": PARALLEL})
    assert game_refusal(GAME, {"module": "os"}) and game_refusal(GAME, {"module": "pettingzoo.classic.x.y"})
