"""Tasks of other packages: listed and played by another interpreter, scored there, trained on exact tokens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import task_package_script
from small import small_model

from turngym.agents import agent_program, task_packages
from turngym.agents.agent_program import QUESTIONS, ProgramConfig
from turngym.agents.models.agent import ModelAgent
from turngym.agents.task_packages import PACKAGES, TaskPackage
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.tools.questions import read_tasks
from turngym.errors import ConfigError, MissingExtra, UnknownName
from turngym.trainers.loop.setup import policy_agent, require_packages
from turngym.trainers.loop.tasks.agent_task import AgentTask
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

SCRIPT = Path(task_package_script.__file__)


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let there be a package, and an empty cache."""
    known = {"letters": TaskPackage(SCRIPT, "SET", "letters"), "inspect": PACKAGES["inspect"]}
    monkeypatch.setattr(task_packages, "PACKAGES", known)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def config(package: str = "letters:even", *options: str, seconds: float = 300.0) -> TrainConfig:
    agent = ProgramConfig(package=package, package_options=options, seconds=seconds)
    return TrainConfig(agent=agent, rollout=RolloutConfig(groups=1, group_size=2, max_new_tokens=4))


def play(run: TrainConfig, count: int = 2) -> list[Trajectory]:
    require_packages(run)
    task = AgentTask(run)
    try:
        agent = policy_agent(run, small_model())
        assert isinstance(agent, ModelAgent)
        return task.play(agent, [EpisodeSpec(k, 5, 0) for k in range(count)])
    finally:
        task.close()


def test_its_tasks_are_played_and_its_scores_are_the_rewards() -> None:
    run = config("letters:even", "count=4")
    assert run.env == QUESTIONS and TrainConfig.from_json(json.loads(json.dumps(run.as_json()))) == run
    for played in play(run):
        assert not played.fault and len(played.turns) == 1
        (turn,) = played.turns
        assert turn.completion_ids and len(turn.logprobs) == len(turn.completion_ids)
        assert turn.reward == played.score == task_package_script.score(turn.action)
    tasks = read_tasks(run.agent.task_file)
    assert [each.id for each in tasks] == ["t0", "t1", "t2", "t3"] and tasks[0].instruction == "Say something, 0"


def test_a_score_that_is_not_finite_is_a_fault_and_a_set_without_scores_an_error() -> None:
    (played,) = play(config("letters:even", "score=nan"), 1)
    assert "a reward is a finite number" in played.fault and [turn.reward for turn in played.turns] == [0.0]
    with pytest.raises(ConfigError, match="ended with status 2: the scorer of letters gives 'maybe'"):
        play(config("letters:even", "score=none"), 1)


@pytest.mark.parametrize(
    ("score", "said"), [("killed", "ended with status -9"), ("exit", "ended with status 0"), ("late", "out of time")]
)
def test_a_package_that_ends_without_a_score_is_a_fault(score: str, said: str) -> None:
    (played,) = play(config("letters:even", f"score={score}", seconds=2.0 if score == "late" else 300.0), 1)
    assert said in played.fault and "gave no score" in played.fault


def test_a_process_that_a_package_leaves_holds_nothing_up() -> None:
    run = config("letters:background", "count=2")
    require_packages(run)
    assert len(read_tasks(run.agent.task_file)) == 2


@pytest.mark.parametrize(
    ("package", "python", "error", "said"),
    [
        ("letters:absent", "", MissingExtra, r"no package for letters .*pip install letters.*--agent.python"),
        ("letters:unknown", "", ConfigError, r"cannot be listed: there is no set 'unknown'; the sets are: letters"),
        ("letters:even", "/no/such/python", ConfigError, r"'/no/such/python' cannot be started"),
    ],
)
def test_what_cannot_be_listed_is_refused_before_anything_is_played(
    package: str, python: str, error: type[Exception], said: str
) -> None:
    run = TrainConfig(agent=ProgramConfig(package=package, python=python))
    with pytest.raises(error, match=said):
        require_packages(run)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"package": "letters:even", "command": "true"}, "leave out --agent.command"),
        ({"package": "letters:even", "sandbox": "bubblewrap"}, "leave out --agent.sandbox"),
        ({"package": "letters:"}, "names no tasks: pass letters:SET"),
        ({"package": "letters:even", "package_options": ("limit",)}, "options of tasks are name=value, got 'limit'"),
        ({"python": sys.executable}, "pass --agent.package as well"),
    ],
)
def test_settings_that_contradict_one_another_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ProgramConfig(**settings)  # type: ignore[arg-type]


def test_an_unknown_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_packages, "PACKAGES", PACKAGES)
    with pytest.raises(UnknownName, match=r"no task package named 'inspct'. Did you mean 'inspect'"):
        ProgramConfig(package="inspct:file.py@task")


def test_names_with_braces_reach_the_package_as_they_are() -> None:
    words = ProgramConfig(package="letters:{a}", package_options=("b={1: 2}",)).words(
        dict.fromkeys(agent_program.FIELDS, "t{1}")
    )
    assert words[2:] == [str(SCRIPT), "play", "{a}", "t{1}", "b={1: 2}"]
