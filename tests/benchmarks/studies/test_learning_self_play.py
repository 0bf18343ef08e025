"""The studies of self-play: their arms are settings that exist, and a table learns with a method's credit and loss."""

import sys
from pathlib import Path

import pytest

from turngym.envs.tablegames.kuhn_poker.rules import exploitability

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

import board_self_play
import kuhn_magnet
import tic_tac_toe_self_play
from kuhn_table import TabularKuhn
from tic_tac_toe_table import TabularTicTacToe, best_reply, evenly, perfect, results


@pytest.mark.parametrize("arm", list(kuhn_magnet.MAGNETS))
def test_a_table_learns_kuhn_poker_with_every_arm(arm: str) -> None:
    """Random play, which a table begins with, is exploitable by 0.458."""
    algorithm, options = kuhn_magnet.method_of(arm)
    learner = TabularKuhn(algorithm, options, seed=7, learning_rate=0.1, games=64, iterations=20)
    assert exploitability(learner.policy) == pytest.approx(0.458333, abs=1e-6)
    for iteration in range(20):
        learner.iterate(iteration)
    assert exploitability(learner.policy) < 0.3


def test_the_arms_of_a_language_model_are_settings_of_training() -> None:
    config = kuhn_magnet.config_of(kuhn_magnet.FOLLOWS, 1)
    assert (config.algorithm, config.seed, config.update.schedule) == ("mappo+mmd", 1, "linear")
    assert config.algorithm_options["mmd"] == {"magnet_coef": 0.2, "refresh_every": 100}


@pytest.mark.parametrize("game", list(board_self_play.GAMES))
def test_no_board_game_is_trained_against_the_perfect_player(game: str) -> None:
    settings = board_self_play.config_of(game, 0).self_play
    assert settings.demonstrator == settings.evaluation_opponents[0] == "minimax"
    assert not {"minimax", "random"} & set(settings.opponents)


def test_an_interval_reaches_the_target_only_if_all_of_it_lies_below() -> None:
    assert kuhn_magnet.verdict([0.02, 0.03, 0.025])["below_target"]
    assert not kuhn_magnet.verdict([0.02, 0.03, 0.06])["below_target"]


def test_a_table_learns_tic_tac_toe_and_its_strength_is_exact() -> None:
    """Random play wins 58.5 % of its games against itself as the first seat, and the best reply wins 0.925 of it."""
    settings = tic_tac_toe_self_play.OPTIONS
    learner = TabularTicTacToe("mappo+mmd", settings, seed=7, learning_rate=0.2, games=64, iterations=20)
    before = learner.strength()
    assert before["0"]["won_against_random"] == pytest.approx(0.584921, abs=1e-6)
    assert before["0"]["best_reply_wins"] == pytest.approx(0.924868, abs=1e-6)
    for iteration in range(20):
        learner.iterate(iteration)
    after = learner.strength()
    assert all(after[seat]["won_against_random"] > before[seat]["won_against_random"] for seat in before)


def test_the_perfect_player_is_perfect_from_either_seat() -> None:
    for seat in (0, 1):
        assert best_reply(perfect, seat) == 0
        assert results(perfect, evenly, seat)[-1.0] == 0
