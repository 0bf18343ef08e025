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

import board_self_play
import kuhn_magnet
import tic_tac_toe_self_play
import torch
import werewolf_self_play
from kuhn_table import TabularKuhn
from tic_tac_toe_table import TabularTicTacToe, best_reply, evenly, perfect, results
from werewolf_deals import Games, interval
from werewolf_policy import FactsAgent, FactsPolicy, FactsTask, Told, facts, prompt_of, random_policy

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


@pytest.mark.parametrize("arm", list(werewolf_self_play.MATCHES))
def test_werewolf_is_not_trained_against_its_held_out_opponents(arm: str) -> None:
    opponents = werewolf_self_play.config_of(arm, 0).self_play.opponents
    assert not set(opponents) & set(werewolf_self_play.HELD_OUT)


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
    model = random_policy()
    decisions = FactsAgent(model, 0).act(requests)
    counts = Counter(decision.action for decision in decisions)
    assert counts.keys() == {*legal} and all(abs(count - 500) < 90 for count in counts.values())
    assert all(decision.logprobs == pytest.approx([-1.386294]) for decision in decisions)
    bucket = (prompt_of(requests[0])[8 + 2] - 21) % 2048  # a fact of one action, by its place
    assert isinstance(model.network, FactsPolicy)
    with torch.no_grad():
        model.network.sums.weight[bucket] = 3.0
    assert {decision.logprobs for decision in FactsAgent(model, 0).act(requests[:200])} != {decisions[0].logprobs}


def test_a_run_of_werewolf_goes_on_to_the_same_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm, full = "population", werewolf_self_play.config_of

    def small(arm: str, seed: int) -> object:
        config = full(arm, seed)
        rollout = replace(config.rollout, groups=12)
        matching = replace(config.self_play, freeze_every=2)
        return replace(config, iterations=4, checkpoint_every=2, rollout=rollout, self_play=matching)

    monkeypatch.setattr(werewolf_self_play, "config_of", small)
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
        werewolf_self_play.run(arm, 7)
    found = []
    for name in ("whole", "broken"):
        monkeypatch.setattr(werewolf_self_play, "RUNS", tmp_path / name)
        werewolf_self_play.run(arm, 7)
        agent = werewolf_self_play.policy(arm, 7, "after")
        assert isinstance(agent, FactsAgent)
        found.append(agent.model.network.sums.weight)
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
