"""Programs of other frameworks, unchanged: they play through the gateway, are trained, and are evaluated on a suite."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from plugin_examples import code_lines
from small import small_model

from turngym.__main__ import main
from turngym.benchmarks.studies.checks.program_experts import PROGRAMS, AgentProgram, expert_episodes
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

pytestmark = pytest.mark.integration
SHORT = {"max_turns": 12}
"""What shortens a household, as its smallest number of turns."""


def require(name: str) -> AgentProgram:
    """Skip without the package; it is not imported, since ``agents`` is also a folder of this repository."""
    program = PROGRAMS[name]
    try:
        version(program.framework)
    except PackageNotFoundError:
        pytest.skip(f"{program.framework} is not installed")
    if program.framework == "mini-swe-agent" and shutil.which("bwrap") is None:
        pytest.skip("its sandbox, bubblewrap, is not installed")
    return program


def small_suite(program: AgentProgram) -> str:
    """Register a suite of one episode of what a program plays, and return its name."""
    options = SHORT if "Household" in program.env else {}
    name = f"one-of-{program.suite}"
    if name not in SUITES:
        entry = SuiteEntry(program.env, options, episodes=1)
        SUITES.register(name)(Suite(name=name, version=1, description="One episode.", entries=(entry,)))
    return name


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_of_its_tools_solve_the_task(name: str) -> None:
    (played,), report = expert_episodes(small_model(), require(name), sys.executable, [3])
    assert played.success == 1 and played.terminated and not played.fault
    assert report["tokens/abandoned"] == report["calls/unread"] == 0
    links = [turn.columns["link"] for turn in played.turns]
    later = "forked" if name == "smolagents" else "extended"
    assert links == ["root"] + [later] * (len(played.turns) - 1)
    tools = {"mini-swe-agent": "bash", "smolagents": "search", "openai-agents": "act", "openai": None}
    assert played.turns[0].columns.get("tools") == tools[PROGRAMS[name].framework]


@pytest.mark.parametrize("name", ["mini-swe-agent", "smolagents", "openai-agents", "openai"])
def test_it_is_trained_and_evaluated_on_a_suite(name: str, tmp_path: Path) -> None:
    program = require(name)
    command = program.command(sys.executable)
    words = ["train", "--env", program.env, "--agent.command", command, "--iterations", "2", "--no-control"]
    words += ["--max-seconds", "0", "--warmup.demonstrations", "0", "--embedded.context", "16384"]
    words += ["--embedded.hidden-size", "16", "--embedded.layers", "1", "--embedded.heads", "2"]
    words += ["--rollout.groups", "1", "--rollout.group-size", "2", "--rollout.max-new-tokens", "6"]
    words += ["--evaluation.every", "0", "--evaluation.episodes", "0", "--run-dir", str(tmp_path / "run")]
    if "Household" in program.env:
        words += ["--env-options", *(f"{key}={value}" for key, value in SHORT.items())]
    assert main(words) == 0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 2
    for record in records:
        assert record["rollout/faults"] == 0 and record["rollout/tokens"] > 0
        assert record["train/rows"] > 0 and abs(record["train/logprob_gap"]) < 1e-4
    words = ["eval", small_suite(program), "--agent", f"hf:{tmp_path / 'run' / 'model'}", "--agent-command", command]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    (episode,) = map(json.loads, (tmp_path / "out" / "episodes.jsonl").read_text().splitlines())
    assert not episode["fault"] and episode["seats"]["player_0"]["calls"] > 0


@pytest.mark.parametrize("script", ["mini_swe_repair", "mini_swe_repo", "smolagents_search", "agents_sdk_household"])
def test_the_examples_are_short(script: str) -> None:
    assert code_lines(script) <= 75
