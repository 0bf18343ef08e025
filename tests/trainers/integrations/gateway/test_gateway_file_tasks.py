"""Agent programs with tasks from a file: how they answer, who rewards them, a whole run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from small import small_model

from turngym.__main__ import main
from turngym.agents.agent_program import QUESTIONS, ProgramConfig
from turngym.agents.models.agent import ModelAgent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.errors import ConfigError
from turngym.trainers.loop.setup import policy_agent
from turngym.trainers.loop.tasks.agent_task import AgentTask
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

pytestmark = pytest.mark.integration
AGENT = Path(__file__).parents[3] / "support" / "task_agent.py"


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    files = {"in/number.txt": "7"}
    lines = [{"id": f"t{k}", "prompt": f"Say seven, {k}", "answer": 7, "files": files} for k in range(9)]
    path = tmp_path / "sevens.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def command(way: str) -> str:
    return f"{sys.executable} {AGENT} {way} {{task}} {{workdir}}"


def play(config: ProgramConfig, count: int = 2) -> list[Trajectory]:
    run = TrainConfig(agent=config, rollout=RolloutConfig(groups=1, group_size=count, max_new_tokens=4))
    task = AgentTask(run)
    try:
        agent = policy_agent(run, small_model())
        assert isinstance(agent, ModelAgent)
        return task.play(agent, [EpisodeSpec(k, 5, 0) for k in range(count)])
    finally:
        task.close()


def outcomes(played: Sequence[Trajectory]) -> list[tuple[float, int, str]]:
    return [(sum(turn.reward for turn in each.turns), each.success, each.fault) for each in played]


@pytest.mark.parametrize(
    ("way", "answer", "wanted"),
    [
        ("post", "post", (1.0, 1, "")),
        ("stdout", "stdout", (1.0, 1, "")),
        ("stdout", "post", (0.0, 0, "")),
        ("crash", "stdout", (0.0, 0, "")),
        ("silent", "last", (0.0, 0, "")),
    ],
)
def test_the_answer_of_a_program_is_judged(way: str, answer: str, wanted: tuple[float, int, str], tasks: str) -> None:
    config = ProgramConfig(command=command(way), tasks=tasks, judge="numeric", answer=answer)  # type: ignore[arg-type]
    played = play(config)
    assert outcomes(played) == [wanted] * 2
    assert len({each.instance for each in played}) == 1 and all(len(each.turns) == 1 for each in played)


def test_the_last_answer_of_the_model_is_that_of_the_program(tasks: str, tmp_path: Path) -> None:
    (tmp_path / "said.py").write_text("def said(task, answer):\n    return len(answer) > 0 and task.id[0] == 't'\n")
    played = play(
        ProgramConfig(command=command("silent"), tasks=tasks, judge=f"{tmp_path}/said.py:said", answer="last")
    )
    assert all(each.success == bool(each.turns[0].action.strip()) for each in played)


def test_a_program_rewards_itself_only_where_it_may(tasks: str) -> None:
    played = play(ProgramConfig(command=command("reward"), tasks=tasks, judge="program"))
    assert outcomes(played) == [(0.75, 1, "")] * 2 and [each.score for each in played] == [0.75] * 2
    refused = play(ProgramConfig(command=command("reward").replace("TURNGYM", ""), tasks=tasks, judge="numeric"))
    assert outcomes(refused) == [(0.0, 0, "")] * 2


def test_a_verifier_judges_without_the_outcome(tasks: str, tmp_path: Path) -> None:
    (tmp_path / "verifying.py").write_text(
        "class Blind:\n"
        "    def score(self, trajectory):\n"
        "        assert trajectory.success == -1\n"
        "        return 0.75 if 'seven' in trajectory.turns[0].observation else float('nan')\n"
    )
    played = play(
        ProgramConfig(command=command("silent"), tasks=tasks, judge=f"verifier:{tmp_path}/verifying.py:Blind")
    )
    assert outcomes(played) == [(0.75, 1, "")] * 2


def test_a_run_trains_and_is_evaluated_on_tasks_of_a_file(
    tasks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--agent.tasks", tasks, "--agent.judge", "numeric", "--agent.command", command("stdout")]
    words += ["--agent.answer", "stdout", "--iterations", "1", "--no-control", "--run-dir", str(tmp_path / "run")]
    words += ["--rollout.groups", "2", "--rollout.group-size", "2", "--rollout.max-new-tokens", "4"]
    words += ["--warmup.demonstrations", "4", "--warmup.epochs", "1", "--evaluation.every", "1"]
    words += ["--evaluation.episodes", "2", "--evaluation.curve-episodes", "2", "--algorithm", "grpo"]
    assert main(words) == 0
    record = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert record["rollout/success"] == 1 and record["eval/success"] == 1 and record["rollout/faults"] == 0
    shown = capsys.readouterr().out.splitlines()
    words = shlex.split(shown[-1])[1:]  # the command that the run recommends
    assert words[:2] == ["eval", QUESTIONS] and main([*words, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["environments"].values()
    assert result["success"]["value"] == 1


def test_a_bad_line_is_told_before_anything_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"prompt": "a", "answer": 1}\n{"prompt": "b", "answr": 1}\n')
    assert main(["train", "--agent.tasks", str(tmp_path / "bad.jsonl"), "--run-dir", str(tmp_path / "run")]) == 2
    assert "line 2: there is no key 'answr'" in capsys.readouterr().err and not (tmp_path / "run").exists()
    (tmp_path / "open.jsonl").write_text('{"prompt": "a"}\n')
    with pytest.raises(ConfigError, match="no answer"):
        play(ProgramConfig(command=command("post"), tasks=str(tmp_path / "open.jsonl")))
