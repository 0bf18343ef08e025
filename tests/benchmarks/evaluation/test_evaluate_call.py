"""Evaluating and comparing in one call each."""

from pathlib import Path

import pytest

from turngym.agents.players.random import RandomAgent
from turngym.benchmarks import Suite, SuiteEntry, compare, evaluate, load_submission, verify_submission
from turngym.benchmarks.cli.eval import main
from turngym.errors import ConfigError, UnknownName
from turngym.storage.bounded import read_json

GAME = "turngym/GuessTheNumber-v0"


def test_the_call_and_the_command_find_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(GAME, "random", episodes=6, options={"high": 20}, baselines=True, out=tmp_path / "call")
    words = ["--agent", "random", "--episodes", "6", "--option", "high=20", "--baselines"]
    assert main([GAME, *words, "--out", str(tmp_path / "command")]) == 0
    called, commanded = (read_json(tmp_path / name / "results.json") for name in ("call", "command"))
    assert called.pop("usage")["calls"] == commanded.pop("usage")["calls"]  # its latency differs
    assert called == commanded
    assert read_json(tmp_path / "call" / "config.json") == read_json(tmp_path / "command" / "config.json")
    assert verify_submission(tmp_path / "call", replay=1, seed=0).is_accepted


def test_agents_and_suites_as_objects() -> None:
    suite = Suite("two", 1, "Two games.", (SuiteEntry(GAME, {"high": 8}), SuiteEntry("turngym/FrozenLake-v0")))
    found = evaluate(suite, RandomAgent(3), episodes=3)
    assert [len(result.episodes) for result in found.result.results] == [3, 3]
    assert found.agent_name == "RandomAgent" and found.mean == found.result.mean
    assert found.as_json()["suite"] == "two"


def test_two_folders_are_compared_by_path(tmp_path: Path) -> None:
    for agent in ("random", "expert"):
        evaluate(GAME, agent, episodes=5, out=tmp_path / agent)
    found = compare(tmp_path / "random", str(tmp_path / "expert"))
    assert found.overall.second["success"] == 1
    assert found == compare(load_submission(tmp_path / "random"), load_submission(tmp_path / "expert"))


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ConfigError, match="has its own options and wrappers"):
        evaluate("turngym-core", "random", options={"high": 3})
    with pytest.raises(UnknownName, match="GuessTheNumber"):
        evaluate("turngym/GuesTheNumber-v0", "random")
    with pytest.raises(ConfigError, match="temperature: an agent that has been made takes no settings"):
        evaluate(GAME, RandomAgent(0), temperature=1.0)
