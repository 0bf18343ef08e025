"""The suites of the text worlds: what their papers report on, with held-out tasks and the limits on turns."""

from dataclasses import replace

import pytest
from household_games import needs_real

from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.suites import SUITES
from turngym.envs.textworlds.textworld.games import GAMES, read_params


def test_alfworld_plays_each_game_of_both_folds_once_with_50_turns() -> None:
    suite = SUITES["alfworld"]
    assert [(entry.env_kwargs["split"], entry.episodes) for entry in suite.entries] == [("test", 134), ("dev", 140)]
    assert "50 turns" in suite.protocol and suite.metric == "success"


@needs_real
def test_the_walkthroughs_solve_alfworld_and_random_play_does_not() -> None:
    suite = SUITES["alfworld"]
    seeds = [entry.find_seeds(12) for entry in suite.entries]
    assert all(len(set(found)) == 12 for found in seeds)
    assert evaluate(suite, ExpertAgent(), episodes=12).mean.value == 1.0
    assert evaluate(suite, RandomAgent(), episodes=12).mean.value < 0.2


def test_babyai_has_a_level_for_each_skill_and_the_bot_solves_small_ones() -> None:
    pytest.importorskip("minigrid", reason="needs the optional package minigrid")
    suite = SUITES["babyai"]
    assert len(suite.entries) == 9
    small = replace(suite, entries=suite.entries[:4])
    assert evaluate(small, ExpertAgent(), episodes=2).mean.value == 1.0


def test_textworld_names_games_that_can_be_asked_for() -> None:
    suite = SUITES["textworld"]
    assert {entry.options["game"] for entry in suite.entries} == {
        "coin_collector",
        "treasure_hunter",
        "cooking",
        "custom",
    }
    for entry in suite.entries:
        assert (
            read_params(entry.options["game"], entry.options["params"]).keys()
            == GAMES[entry.options["game"]].parameters.keys()
        )
        assert entry.options["games"] == entry.episodes == 20
