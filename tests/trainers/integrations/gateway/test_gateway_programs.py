"""Agent programs: started for each episode, played in environments of ours, trained and evaluated."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_clients import LIMITS
from small import small_model

from turngym.__main__ import main
from turngym.agents.agent_program import ProgramConfig
from turngym.agents.episodes.rollout import rollout
from turngym.agents.gateway.policy import gateway_for
from turngym.agents.gateway.programs import ProgramAgent, playing, with_tokens
from turngym.agents.gateway.programs.launching import HostLauncher
from turngym.agents.gateway.programs.process import Program
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.settings.supervised import SupervisedConfig

PROGRAM = Path(__file__).parents[3] / "support" / "program_agent.py"
GAME = "turngym/NumberLine-v0"
OPTIONS: dict[str, Any] = {"max_turns": 3, "highest": 3}


def command(way: str = "") -> str:
    return f"{sys.executable} {PROGRAM} {way}"


@contextmanager
def programs(way: str = "", seconds: float = 60.0) -> Iterator[ProgramAgent]:
    with playing(
        gateway_for(small_model(), limits=LIMITS), ProgramConfig(command=command(way), seconds=seconds)
    ) as agent:
        yield agent


def play(agent: ProgramAgent, count: int = 2) -> list[Trajectory]:
    vector = make_vec(GAME, count, autoreset_mode="disabled", **OPTIONS)
    try:
        return rollout(vector, agent, [EpisodeSpec(k, 5, 0) for k in range(count)], final_prompts=False)
    finally:
        vector.close()


def test_a_program_plays_and_its_calls_are_the_turns() -> None:
    with programs() as agent:
        played = play(agent)
        agent.settle()
        found = [with_tokens(each, agent.played[each.spec.episode]) for each in played]
        for native, trajectory in zip(played, found, strict=True):
            calls = agent.played[native.spec.episode].episode.calls
            assert len(native.turns) == len(trajectory.turns) == 3 and trajectory.truncated
            assert [turn.completion_ids for turn in trajectory.turns] == [call.completion_ids for call in calls]
            assert [turn.reward for turn in trajectory.turns] == [turn.reward for turn in native.turns]
            assert [call.link for call in calls] == ["root", "extended", "extended"]
            assert all(turn.usage is not None and turn.usage.calls == 1 for turn in native.turns)
        assert all(each.program.status == 0 for each in agent.played.values())


def test_a_program_that_ends_early_says_nothing_for_the_rest() -> None:
    with programs("crash") as agent:
        played = play(agent)
        agent.settle()
        assert [[turn.action for turn in each.turns] for each in played] == [["", "", ""]] * 2
        assert [len(with_tokens(each, agent.played[k]).turns) for k, each in enumerate(played)] == [1, 1]
        assert all("ended with 3" in each.episode.detail for each in agent.played.values())
        assert all(each.failed == "it ended with 3: it printed nothing" for each in agent.played.values())


def test_a_program_that_hangs_is_ended() -> None:
    with programs("hang", seconds=3.0) as agent:
        (played,) = play(agent, 1)
        agent.settle()
        assert played.truncated and agent.played[0].program.status is not None


def test_a_program_that_cannot_work_is_told_in_a_sentence() -> None:
    for words, message in (
        ("no-such-program", "cannot be started"),
        (f"{sys.executable} -c 'import sys; sys.exit(\"bad key\")'", "status 1 before it did anything: bad key"),
    ):
        with (
            playing(gateway_for(small_model(), limits=LIMITS), ProgramConfig(command=words)) as agent,
            pytest.raises(ConfigError, match=re.escape(message)),
        ):
            play(agent, 1)
    for wrong in ("agent --url {bse_url}", "agent 'open", "agent {"):
        with pytest.raises(ConfigError, match="agent command"):
            ProgramConfig(command=wrong)


def test_a_run_trains_a_program(tmp_path: Path) -> None:
    config = TrainConfig(
        env=GAME,
        env_options=OPTIONS,
        iterations=1,
        max_seconds=0,
        control=False,
        warmup=SupervisedConfig(demonstrations=0),
        rollout=RolloutConfig(groups=1, group_size=2, max_new_tokens=4),
        update=UpdateConfig(minibatches=1, old_logprobs="trainer"),
        evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
        agent=ProgramConfig(command=command()),
    )
    result = train(config, tmp_path / "run")
    assert result.finished
    record = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert record["rollout/faults"] == 0 and record["rollout/turns"] == 3 and record["rollout/tokens"] > 0
    assert record["rollout/gateway_programs_failed"] == 0
    assert record["rollout/gateway_share_kept"] > 0 and record["rollout/gateway_share_reencoded"] == 0
    assert record["train/rows"] == 2 and abs(record["train/logprob_gap"]) < 1e-4


def test_an_evaluation_plays_with_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "model"
    small_model().save(folder)
    words = ["eval", GAME, "--agent", f"hf:{folder}", "--agent-command", command(), "--episodes", "2"]
    words += ["--option", "max_turns=3", "--option", "highest=3", "--max-new-tokens", "4", "--num-envs", "2"]
    words += ["--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert "6 calls" in capsys.readouterr().out  # one for each turn, counted at the gateway
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["agent_details"] == {"agent_command": command()}
    assert main(["eval", GAME, "--agent", "random", "--agent-command", command(), "--episodes", "1"]) == 2
    assert "asks a language model in this process" in " ".join(capsys.readouterr().err.split())


def test_programs_on_the_host_are_watched_until_they_end() -> None:
    words = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    with HostLauncher(0) as launcher:
        first, second = (Program(words, {}, 600.0, launcher.place({}, "http://127.0.0.1:1")) for _ in range(2))
        first.end()
    deadline = time.monotonic() + 60  # the guardian has ended, and with it the program that was left
    while second.status is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert second.status == -signal.SIGKILL
    second.end()


def test_the_last_words_of_a_program_are_harmless_on_a_terminal() -> None:
    words = [sys.executable, "-I", "-S", "-c", "import sys; sys.exit('\\x1b[2J\\x1b]0;owned\\x07\\u202e')"]
    with HostLauncher(0) as launcher:
        program = Program(words, {"PYTHONIOENCODING": "utf8"}, 600.0, launcher.place({}, "http://127.0.0.1:1"))
        program._process.wait()
        assert program.tail() == r"\x1b[2J\x1b]0;owned\x07\u202e"
        program.end()
