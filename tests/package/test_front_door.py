"""``turngym.evaluate``, ``rollout``, ``compare`` and ``train``: the commands from Python."""

import json
from pathlib import Path
from typing import Any

import pytest

import turngym
from turngym.benchmarks.cli.train import parse_train
from turngym.trainers.records.run_folder import RunFolder

TINY = {
    "env": "turngym/FrozenLake-v0",
    "algorithm": "grpo",
    "control": False,
    "embedded": {"hidden_size": 16, "layers": 1, "heads": 2, "vocabulary": 340},
    "warmup": {"demonstrations": 4, "epochs": 1},
    "rollout": {"groups": 2, "group_size": 2},
    "evaluation": {"episodes": 2, "every": 0},
}


def test_episodes_are_those_of_the_evaluation() -> None:
    episodes = turngym.rollout("turngym/FrozenLake-v0", "random", episodes=3, options={"view": "grid"}, seed=4)
    found = turngym.evaluate("turngym/FrozenLake-v0", "random", episodes=3, options={"view": "grid"}, seed=4)
    played = [[turn.action for turn in episode.turns] for episode in episodes]
    assert played == [record["actions"] for record in found.result.results[0].episodes]
    with pytest.raises(turngym.ConfigError, match="takes no settings"):
        turngym.rollout("turngym/FrozenLake-v0", turngym_random(), temperature=1.0)


@pytest.mark.parametrize("episodes", [0, -1, 2.5, True])
def test_a_number_of_episodes_that_is_none_is_refused(episodes: Any) -> None:
    for play in (turngym.evaluate, turngym.rollout):
        with pytest.raises(turngym.ConfigError, match=f"episodes must be a whole number of at least 1, got {episodes}"):
            play("turngym/FrozenLake-v0", "expert", episodes=episodes)


def turngym_random() -> turngym.Agent:
    from turngym.agents.players.random import RandomAgent

    return RandomAgent(0)


def test_results_are_compared_by_folder(tmp_path: Path) -> None:
    for agent in ("random", "expert"):
        turngym.evaluate("turngym/FrozenLake-v0", agent, episodes=5, out=tmp_path / agent)
    found = turngym.compare(str(tmp_path / "random"), tmp_path / "expert")
    assert found.names == ("random", "expert") and found.overall.second["success"] == 1


def test_training_takes_the_options_of_the_command_over_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({**TINY, "iterations": 9}))
    found = turngym.train(file, iterations=1, run_dir=tmp_path / "run")
    assert found.finished and found.path == tmp_path / "run" and found.report.is_file()
    assert RunFolder.open(found.path).config() == parse_train(["--config", str(file), "--iterations", "1"])[0]


def test_a_wrong_option_of_training_is_named() -> None:
    with pytest.raises(turngym.ConfigError, match=r"has no option 'itrations'\. Did you mean 'iterations'"):
        turngym.train(itrations=3)
