"""Every registered game between seats, in PettingZoo's own tests and in every view; no exceptions are listed."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kinds import games_without_packages
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test
from pettingzoo.utils.conversions import turn_based_aec_to_parallel
from pettingzoo.utils.wrappers import OrderEnforcingWrapper
from table_views import play_aec, play_parallel, play_seat, play_vector

from turngym.envs.multiagent import make_aec, make_game, make_parallel, make_player

TOYS = ("toy_games:Secret", "toy_games:Coins", "toy_games:Spies")
IDS = games_without_packages() + list(TOYS)
SIMULTANEOUS = [game_id for game_id in IDS if make_game(game_id).is_simultaneous]


@contextmanager
def only_the_warnings_about_text() -> Iterator[None]:
    """PettingZoo warns about all spaces and observations that are not arrays; whatever else it says is an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Observation is not a NumPy array")
        warnings.filterwarnings("ignore", ".* space for each agent probably should be gymnasium.spaces.box or")
        yield


@pytest.mark.parametrize("game_id", IDS)
def test_pettingzoo_accepts_the_game_seat_by_seat(game_id: str) -> None:
    with only_the_warnings_about_text():
        api_test(make_aec(game_id), num_cycles=100)
        api_test(OrderEnforcingWrapper(make_aec(game_id)), num_cycles=20)
    seed_test(lambda: make_aec(game_id), num_cycles=100)
    render_test(lambda **options: make_aec(game_id, **options))


@pytest.mark.parametrize("game_id", IDS)
def test_pettingzoo_accepts_the_game_all_seats_at_once(game_id: str) -> None:
    parallel_api_test(make_parallel(game_id), num_cycles=100)
    parallel_seed_test(lambda: make_parallel(game_id), num_cycles=100)


@pytest.mark.parametrize("game_id", IDS)
def test_pettingzoo_can_turn_it_from_seat_by_seat_to_all_at_once(game_id: str) -> None:
    parallel_api_test(turn_based_aec_to_parallel(make_aec(game_id)), num_cycles=100)
    parallel_seed_test(lambda: turn_based_aec_to_parallel(make_aec(game_id)), num_cycles=100)


@pytest.mark.parametrize("game_id", IDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_view_shows_the_same_game(game_id: str, seed: int) -> None:
    shown = play_aec(game_id, seed)
    assert play_parallel(game_id, seed) == shown
    assert play_vector(game_id, seed) == shown
    assert play_seat(game_id, seed) == shown


@pytest.mark.parametrize("game_id", SIMULTANEOUS)
def test_a_simultaneous_game_takes_one_parallel_step_per_decision(game_id: str) -> None:
    env = make_parallel(game_id)
    env.reset(seed=0)
    while env.agents:
        assert env.active_agents == tuple(env.possible_agents)
        before = len(env.table.actions)
        legal = {agent: env.info(agent)["legal_actions"] for agent in env.agents}
        env.step({agent: actions[0] if actions else "hello" for agent, actions in legal.items()})
        assert len(env.table.actions) == before + len(env.possible_agents)


@pytest.mark.parametrize("game_id", IDS)
def test_the_games_own_players_can_be_made_and_play_without_an_invalid_answer(game_id: str) -> None:
    game = make_game(game_id)
    for name in (*game.players, "random", "first_legal"):
        assert make_player(name, game).name
