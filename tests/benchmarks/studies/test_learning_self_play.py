"""The studies of self-play: their arms are settings that exist, and a table learns with a method's credit and loss."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.tablegames.kuhn_poker.rules import exploitability
from turngym.errors import RunStopped

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

import board_policy
import board_population
import board_self_play
import facts_policy
import kuhn_magnet
import tic_tac_toe_self_play
import torch
import werewolf_model
import werewolf_self_play
from facts_policy import FactsAgent, FactsTask, random_policy
from kuhn_table import TabularKuhn
from tic_tac_toe_table import TabularTicTacToe, best_reply, evenly, perfect, results
from werewolf_deals import Games, interval
from werewolf_policy import WEREWOLF, Told, facts, known

from turngym.agents.core import Request


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
    perfect_player = {"tic-tac-toe": "minimax", "connect-four": "perfect"}[game]
    assert settings.demonstrator == settings.evaluation_opponents[0] == perfect_player
    assert not {"minimax", "perfect", "random"} & set(settings.opponents)


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


@pytest.mark.parametrize("arm", list(werewolf_self_play.MATCHES))
def test_werewolf_is_not_trained_against_its_held_out_opponents(arm: str) -> None:
    opponents = werewolf_self_play.config_of(arm, 0).self_play.opponents
    assert not set(opponents) & set(werewolf_self_play.HELD_OUT)
    assert werewolf_model.HELD_OUT not in werewolf_model.config_of(0).self_play.opponents


TOLD = """\
You are player_1. Role: seer.
Night 1. Alive: player_0, player_1, player_2, player_3, player_4.
[seer] player_3 is a werewolf.
Day 1. player_0 was killed in the night.
Vote: player_1 -> player_3.
Vote: player_2 -> player_1.
Vote: player_3 -> abstain.
Vote: player_4 -> player_1.
Tally: player_3 1, player_1 2. Nobody was eliminated.
Night 2. Alive: player_1, player_2, player_3, player_4.
[seer] player_2 is not a werewolf.
Day 2. Nobody was killed in the night."""


def test_the_small_policy_knows_what_its_seat_was_told() -> None:
    told = Told(TOLD.splitlines())
    assert (told.me, told.role, told.living) == (1, "seer", (1, 2, 3, 4))
    assert (told.seen, told.accusers, told.named) == ({3: True, 2: False}, {2, 4}, {3})
    wolf = facts(told, "vote player_3")
    assert {"a wolf", "1 ballots before", "I accused it before", "nobody is named", "has to vote"} <= {*wolf}
    assert {"clear", "accused me before"} <= {*facts(told, "vote player_2")}
    assert "abstain, a wolf is known" in facts(told, "abstain")


def test_the_small_policy_begins_as_random_play_and_moves_with_its_weights() -> None:
    legal = ("vote player_2", "vote player_3", "vote player_4", "abstain")
    requests = [
        Request(0, episode, 3, "", {"anchor": f"{TOLD}\nDay 2: your vote.", "legal_actions": legal}, "")
        for episode in range(2000)
    ]
    agent = FactsAgent(WEREWOLF, random_policy(WEREWOLF), 0)
    decisions = agent.act(requests)
    counts = Counter(decision.action for decision in decisions)
    assert counts.keys() == {*legal} and all(abs(count - 500) < 90 for count in counts.values())
    assert all(decision.logprobs == pytest.approx([-1.386294]) for decision in decisions)
    fact = known(requests[0].info["anchor"], legal)["vote player_3"].index("seer: a wolf")
    tokens = agent.game.prompt(requests[0].info["anchor"], ["vote player_3"])
    with torch.no_grad():
        agent.weight[(tokens[fact] - len(WEREWOLF.actions)) % WEREWOLF.num_facts] = 3.0
    again = Counter(decision.action for decision in agent.act(requests))
    assert again["vote player_3"] / 2000 == pytest.approx(0.870, abs=0.03)  # e^3 / (e^3 + 3)


def test_a_run_of_werewolf_goes_on_to_the_same_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = "population"
    full = werewolf_self_play.config_of(arm, 7)
    rollout, matching = replace(full.rollout, groups=12), replace(full.self_play, freeze_every=2)
    small = replace(full, iterations=4, checkpoint_every=2, rollout=rollout, self_play=matching)
    monkeypatch.setattr(werewolf_self_play, "RUNS", tmp_path / "broken")
    played: list[int] = []
    gather = FactsTask.gather

    def stop(self: FactsTask, *args: Any) -> object:
        if len(played) == 3:
            raise MemoryError("enough")
        played.append(1)
        return gather(self, *args)

    with monkeypatch.context() as broken, pytest.raises(RunStopped, match="enough"):
        broken.setattr(FactsTask, "gather", stop)
        facts_policy.train(WEREWOLF, small, werewolf_self_play.folder_of(arm, 7))
    found = []
    for name in ("whole", "broken"):
        monkeypatch.setattr(werewolf_self_play, "RUNS", tmp_path / name)
        facts_policy.train(WEREWOLF, small, werewolf_self_play.folder_of(arm, 7))
        agent = werewolf_self_play.policy(arm, 7, "after")
        assert isinstance(agent, FactsAgent)
        found.append(agent.weight)
    assert torch.equal(found[0], found[1]) and found[0].any()


def test_an_oracle_that_knows_the_werewolf_wins_every_game_for_the_village() -> None:
    games = Games()
    won = games.play(games.agent("oracle"), "random", range(20))
    assert sum(won["village"]) == 20 and sum(won["werewolves"]) > 10
    assert games.play(games.agent("random"), "random", range(20)) == games.play(
        games.agent("random"), "random", range(20)
    )


def test_intervals_draw_training_seeds_and_deals() -> None:
    alone = interval([[0.0, 1.0] * 100])
    assert alone["mean"] == 0.5 and 0.42 < alone["low"] < 0.45
    apart = interval([[0.0, 1.0] * 100, [1.0, 1.0] * 100, [1.0, 1.0] * 100])
    assert apart["low"] < 0.6 and apart["high"] > 0.95, "a seed that did worse widens it"


def test_a_board_policy_reads_the_lines_through_the_cell_that_a_move_fills() -> None:
    found = board_policy.of_tic_tac_toe("OO./.X./.X.; you are X", ["2", "8"])
    assert "X (0, 2) (0, 0) (0, 2) tt." in found["2"], "it blocks"
    assert "0 mine, 2 theirs" in found["2"] and "0 mine, 2 theirs" not in found["8"]
    anchor = "...../...../OOO../XXX.O; 4 in a row; you are X"
    found = board_policy.of_connect_four(anchor, ["3", "4"])
    assert "3 mine, 0 theirs" in found["3"] and "X fills (3, 3)" in found["3"]
    assert "above: 0 mine, 3 theirs" in found["3"], "the other one wins on top of it"
    assert "above: 0 mine, 3 theirs" not in found["4"] and "X fills (2, 4)" in found["4"]


def test_the_strength_of_random_play_in_tic_tac_toe_is_exact() -> None:
    found = board_population.exact(
        FactsAgent(board_population.TIC_TAC_TOE, random_policy(board_population.TIC_TAC_TOE))
    )
    assert found["0"]["won_against_random"] == pytest.approx(0.584921, abs=1e-6)
    assert found["1"]["drawn_against_perfect"] == pytest.approx(0.032, abs=1e-3)


@pytest.mark.parametrize("game", list(board_population.GAMES))
def test_no_board_policy_is_trained_against_another_player(game: str) -> None:
    assert set(board_population.config_of(game, 0).self_play.opponents) == {"self", "past:4"}
