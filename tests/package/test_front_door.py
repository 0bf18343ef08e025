"""``turngym.evaluate``, ``rollout``, ``compare`` and ``train``: the commands from Python."""

import dataclasses
import html
import json
import re
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import pytest

import turngym
from turngym.__main__ import main
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.evaluation.comparison import METRICS
from turngym.benchmarks.exports import export
from turngym.errors import MissingExtra, RunFolderExists
from turngym.trainers.records.run_folder import RunFolder

TINY = {
    "env": "turngym/FrozenLake-v0",
    "algorithm": "grpo",
    "control": False,
    "embedded": {"hidden_size": 16, "layers": 1, "heads": 2, "vocabulary": 340},
    "warmup": {"demonstrations": 4, "epochs": 1},
    "rollout": {"groups": 2, "group_size": 2, "sampler": "transformers"},
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
        with pytest.raises(turngym.ConfigError, match=rf"episodes of turngym\.\w+ must be a whole .*, got {episodes}"):
            play("turngym/FrozenLake-v0", "expert", episodes=episodes)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"seed": "3"}, "seed of turngym.evaluate must be a whole number, got '3'"),
        ({"options": [1]}, "options of turngym.evaluate must be a mapping or None"),
        ({"wrappers": "history:k=2"}, "wrappers of turngym.evaluate must be a list"),
        ({"num_envs": 0}, "num_envs of turngym.evaluate must be a whole number of at least 1"),
        ({"repeats": "2"}, "repeats of turngym.evaluate must be"),
        ({"time_budget": -1}, "time_budget of turngym.evaluate must be a number above 0 or None"),
        ({"temperature": -1}, "temperature of turngym.evaluate must be a number of at least 0"),
        ({"temprature": 1}, "turngym.evaluate has no option 'temprature'. Did you mean 'temperature'"),
        ({"prompt": "x"}, "prompt of turngym.evaluate must be a mapping or None"),
        ({"resume": True}, "resume continues with what a folder holds: pass the folder as out"),
        ({"agent": 3}, "the agent must be a name or an object of a class of turngym.Agent, got 3"),
        ({"target": turngym.TextEnv}, "pass an environment by name, as "),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_played(given: dict[str, Any], told: str) -> None:
    with pytest.raises(turngym.ConfigError, match=told):
        turngym.evaluate(**{"target": "turngym/FrozenLake-v0", "agent": "random", "episodes": 1, **given})


def turngym_random() -> turngym.Agent:
    from turngym.agents.players.random import RandomAgent

    return RandomAgent(0)


def test_results_are_compared_by_folder(tmp_path: Path) -> None:
    for agent in ("random", "expert"):
        turngym.evaluate("turngym/FrozenLake-v0", agent, episodes=5, out=tmp_path / agent)
    found = turngym.compare(str(tmp_path / "random"), tmp_path / "expert")
    assert found.names == ("random", "expert") and found.overall.second["success"] == 1


def test_results_are_compared_as_returned_or_by_folder(tmp_path: Path) -> None:
    first = turngym.evaluate("turngym/FrozenLake-v0", "random", episodes=5)
    second = turngym.evaluate("turngym/FrozenLake-v0", "expert", episodes=5, out=tmp_path / "expert")
    found = turngym.compare(first, second)
    assert found == turngym.compare(first, tmp_path / "expert") and found.overall.second["success"] == 1
    other = turngym.evaluate("turngym/FrozenLake-v0", "random", episodes=4)
    with pytest.raises(turngym.ConfigError, match="did not play the same tasks"):
        turngym.compare(other, second)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda folder: turngym.train(config=3), "config must be a path, as text or a pathlib.Path, got 3."),  # type: ignore[arg-type]
        (lambda folder: turngym.train(run_dir=3), "run_dir must be a path"),  # type: ignore[arg-type]
        (lambda folder: turngym.compare(1, 2), "unless it is what turngym.evaluate returned, must be a path, as text"),  # type: ignore[arg-type]
        (lambda folder: export(folder, "chat", 3), "out must be a path"),  # type: ignore[arg-type]
        (lambda folder: export(3, "chat", folder), "folder must be a path"),  # type: ignore[arg-type]
        (lambda folder: export(folder, 3, folder / "x"), "no export format named '3'"),  # type: ignore[arg-type]
        (lambda folder: turngym.evaluate("turngym/FrozenLake-v0", "random", out=3), "out must be a path"),  # type: ignore[arg-type]
        (
            lambda folder: turngym.train(rollout={"groups": 10**400}),
            "groups of .* must be a whole number of at least 1",
        ),
        (lambda folder: turngym.evaluate("turngym/FrozenLake-v0", "random", episodes=10**400), "episodes of turngym"),
    ],
)
def test_wrong_paths_and_numbers_are_named(call: Callable[[Path], Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(turngym.TurngymError, match=told):
        call(tmp_path)


def test_a_folder_in_use_says_how_to_resume_from_python(tmp_path: Path) -> None:
    turngym.evaluate("turngym/FrozenLake-v0", "random", episodes=2, out=tmp_path)
    with pytest.raises(RunFolderExists, match="resume=True in Python"):
        turngym.evaluate("turngym/FrozenLake-v0", "random", episodes=2, out=tmp_path)


def test_a_comparison_prints_as_sentences() -> None:
    first, second = (turngym.evaluate("turngym/FrozenLake-v0", name, episodes=20) for name in ("random", "expert"))
    lines = str(turngym.compare(first, second)).splitlines()
    assert lines[0] == "turngym/FrozenLake-v0: success % of random and expert"
    assert re.fullmatch(r"  turngym/FrozenLake-v0: \d+ and 100, difference \+\d+ \[\+\d+, \+\d+\]", lines[1])
    assert lines[-1] == "expert did better than random: the interval is above 0."


class Frame:
    """Stands for the class of a package that may be absent here."""

    def __init__(self, data: dict[str, list[Any]], **more: Any) -> None:
        self.data, self.more = data, more


@pytest.mark.parametrize(("package", "more"), [("polars", {"strict": False}), ("pandas", {})])
def test_results_become_data_frames(package: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(package)
    module.__dict__.update(DataFrame=Frame, __spec__=ModuleSpec(package, None))
    monkeypatch.setitem(sys.modules, package, module)
    first, second = (turngym.evaluate("turngym/FrozenLake-v0", name, episodes=5) for name in ("random", "expert"))
    frame = second.to_frame()
    assert isinstance(frame, Frame) and frame.more == more and frame.data["success"] == [1] * 5
    differences = turngym.compare(first, second).to_frame().data
    assert differences["environment"][-1] == "mean" and set(differences["metric"]) == set(METRICS)
    episodes = turngym.rollout("turngym/FrozenLake-v0", "expert", episodes=2)
    turns = episodes.to_frame().data
    assert turns["action"] == [turn.action for episode in episodes for turn in episode.turns]
    assert set(turns["episode"]) == {0, 1} and episodes[0].to_frame().data["turn"][0] == 0


def test_data_frames_without_a_package_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match="pip install polars"):
        turngym.rollout("turngym/FrozenLake-v0", "expert").to_frame()


ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def test_notebooks_show_results_without_running_texts_in_them() -> None:
    env = gymnasium.make("turngym/FrozenLake-v0").unwrapped
    assert isinstance(env, turngym.TextEnv)
    assert "not reset yet" in env._repr_html_()
    observation, _ = env.reset(seed=1)
    assert html.escape(str(observation).splitlines()[-1]) in env._repr_html_()
    turn = Turn(ATTACK, "", ATTACK, ATTACK)
    episode = Trajectory(EpisodeSpec(0, 1), ATTACK, turns=[turn])
    shown = episode._repr_html_()
    assert shown.count(html.escape(ATTACK)) == 4 and "<script" not in shown and "<img" not in shown
    played = turngym.evaluate("turngym/FrozenLake-v0", "random", episodes=3)
    bad = dataclasses.replace(played, agent_name=ATTACK)
    assert "turngym/FrozenLake-v0" in played._repr_html_() and "<script" not in bad._repr_html_()
    compared = turngym.compare(bad, played)._repr_html_()
    assert "<td>" in compared and "<script" not in compared and html.escape(ATTACK) in compared


def is_nested(row: dict[str, Any]) -> bool:
    return any(isinstance(value, dict | list) for value in row.values())


def test_training_takes_the_options_of_the_command_over_those_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({**TINY, "iterations": 9}))
    found = turngym.train(file, iterations=1, run_dir=tmp_path / "run")
    assert found.finished and found.path == tmp_path / "run" and found.report.is_file()
    monkeypatch.setattr("turngym.trainers.loop.job.data_frame", list)
    assert [row["iteration"] for row in found.to_frame()] == [0] and not any(map(is_nested, found.to_frame()))
    assert RunFolder.open(found.path).config() == parse_train(["--config", str(file), "--iterations", "1"])[0]


def test_a_wrong_option_of_training_is_named() -> None:
    with pytest.raises(turngym.ConfigError, match=r"has no option 'itrations'\. Did you mean 'iterations'"):
        turngym.train(itrations=3)


def test_the_table_of_a_comparison_fits_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for agent in ("random", "expert"):
        turngym.evaluate("turngym/BernoulliBandit-v0", agent, episodes=30, out=tmp_path / agent, num_envs=8)
    names = {name: f"scripted agent with a long name {name}" for name in ("random", "expert")}
    for agent, name in names.items():
        file = tmp_path / agent / "metadata.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"name": name}))
    assert main(["compare", str(tmp_path / "random"), str(tmp_path / "expert")]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = "\n".join(lines[: next(n for n, line in enumerate(lines) if "better" in line or "difference" in line)])
    assert max(map(len, table.splitlines())) <= 80 and "…" not in table
    for column in ("environment", "change", "95 % interval", "tasks +/-"):
        assert column in table
