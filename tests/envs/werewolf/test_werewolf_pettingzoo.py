"""Werewolf under PettingZoo's own tests, every listed game, no exceptions."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from turngym.envs.multiagent.registration import make_aec, make_parallel
from turngym.envs.werewolf import SPECS, env, parallel_env
from turngym.envs.werewolf.game import Werewolf
from turngym.errors import ConfigError


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what PettingZoo's tests print, and their warnings that text is not an array of numbers."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(NumPy|numpy|[Oo]bservation|Action space for each agent).*")
        yield


@pytest.mark.parametrize("game_id", SPECS)
def test_the_turn_based_view_passes_pettingzoos_tests(game_id: str) -> None:
    with quiet():
        api_test(make_aec(game_id), num_cycles=200)
        seed_test(lambda: make_aec(game_id), num_cycles=60)


@pytest.mark.parametrize("game_id", SPECS)
def test_the_parallel_view_passes_pettingzoos_tests(game_id: str) -> None:
    with quiet():
        parallel_api_test(make_parallel(game_id), num_cycles=200)
        parallel_seed_test(lambda: make_parallel(game_id), num_cycles=60)


def test_the_turn_based_view_converted_passes_too() -> None:
    with quiet():
        parallel_api_test(turn_based_aec_to_parallel(env()), num_cycles=200)


@pytest.mark.parametrize("make", [env, parallel_env])
def test_options_reach_the_game_and_the_table(make: Any) -> None:
    made = make(num_seats=9, reveal="team", retries=2, invalid_penalty=0.1)
    assert isinstance(made.game, Werewolf)
    assert (made.game.num_seats, made.game.reveal, made.table.retries) == (9, "team", 2)
    assert made.possible_agents == [f"player_{seat}" for seat in range(9)]
    with pytest.raises(ConfigError, match=r"werewolf has no option 'reveals'\. Did you mean 'reveal'"):
        make(reveals="team")


def test_a_seed_names_the_same_game_in_both_views() -> None:
    turns, parallel = env(talk_protocol="random"), parallel_env(talk_protocol="random")
    turns.reset(seed=11)
    observations, _ = parallel.reset(seed=11)
    assert {agent: turns.observe(agent) for agent in turns.agents} == observations


def test_eliminated_seats_stay_and_share_the_result() -> None:
    made = env(num_seats=5)
    made.reset(seed=2, options={"roles": ["villager", "werewolf", "doctor", "seer", "villager"]})
    for text in ("kill player_0", "see player_1", "save player_2"):
        made.step(text)
    assert "player_0" in made.agents and not made.terminations["player_0"]
    assert made.observe("player_0")["text"].splitlines()[-1] == "Day 1. player_0 was killed in the night."
    while not any(made.terminations.values()):
        made.step("[say]" if made.table.game.phase() == "talk" else "[vote player_1]")
        assert made.agent_selection != "player_0" or any(made.terminations.values())
    assert all(made.terminations.values())
    assert made._cumulative_rewards == {f"player_{seat}": -1.0 if seat == 1 else 1.0 for seat in range(5)}
