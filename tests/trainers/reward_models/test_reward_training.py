"""Reward models in use: in training runs, after a resume, as verifiers, and from the command line."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reward_games import line_episodes, walk

from turngym.__main__ import main
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.trajectory import Branch, Trajectory
from turngym.errors import CheckpointError, ConfigError
from turngym.terminal.console import Console
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.rewarded_task import RewardedTask
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.records.run_folder import RunFolder, config_from_store
from turngym.trainers.reward_models import load_reward_model, make_reward_model
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

SMALL = TrainConfig(
    env="turngym/GuessTheNumber-v0",
    env_options={"low": 1, "high": 2},
    algorithm="grpo",
    iterations=2,
    control=False,
    checkpoint_every=1,
    warmup=SupervisedConfig(epochs=2, demonstrations=10),
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=340),
    rollout=RolloutConfig(groups=2, group_size=4, max_new_tokens=3, sampler="transformers"),
    evaluation=EvaluationConfig(episodes=0, every=0),
)


class Played(TaskSource):
    """Hands out trajectories that were made beforehand."""

    has_expert = False

    def texts(self) -> list[str]:
        return ["a text"]

    def demonstrations(self, student: Any, count: int) -> list[Trajectory]:
        return []

    def gather(
        self, model: Any, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        return [walk("rr", 1)] if greedy else line_episodes()

    def branch(self, model: Any, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        return [walk("r", 1)]

    def curve_point(self, model: Any) -> dict[str, float]:
        return {"eval/success": 0.5}

    def evaluate(self, model: Any, name: str, temperature: float | None) -> Any:
        return iter(())

    def metrics(self) -> dict[str, float]:
        return {"own": 1.0}


def run(config: TrainConfig, path: Path) -> list[dict[str, Any]]:
    train(config, path, console=Console(quiet=True))
    return RunFolder.open(path).metrics()


# The task.


def test_a_task_is_rewarded_only_where_it_is_asked_for() -> None:
    assert not isinstance(make_task(SMALL), RewardedTask)
    task = make_task(replace(SMALL, reward_model="milestones:zero_when=never"))
    assert isinstance(task, RewardedTask) and task.has_expert
    task.close()
    with pytest.raises(ConfigError, match="gamma must be in"):
        make_task(replace(SMALL, reward_model="milestones:gamma=3"))


def test_every_kind_of_episode_gets_rewards() -> None:
    task = RewardedTask(Played(), make_reward_model('milestones:patterns=["at 1$"],zero_when=never'))
    model: Any = None
    assert [each.reward_sum for each in task.gather(model, 0, 0, greedy=True)] == [2.0]
    assert [each.reward_sum for each in task.branch(model, 0, [], 0)] == [2.0]
    assert sum(each.reward_sum for each in task.gather(model, 0, 0)) == 12 + 16, "16 of 24 have been at 1"
    found = task.metrics()
    assert found["own"] == 1.0 and found["reward_model/environment_reward_sum"] == 0.5
    assert found["reward_model/reward_sum"] == pytest.approx(28 / 24)
    assert 0.5 < found["reward_model/ranking"] <= 1
    assert task.metrics() == {"own": 1.0}, "told once"
    assert task.texts() == ["a text"] and task.curve_point(model) == {"eval/success": 0.5}


def test_a_model_is_fitted_to_the_last_iterations() -> None:
    task = RewardedTask(Played(), make_reward_model("progrm:dimensions=512,recent=2,refit_every=3,epochs=2"))
    fits = []
    for iteration in range(7):
        task.gather(None, iteration, 0)  # type: ignore[arg-type]
        task.gather(None, iteration, 1)  # type: ignore[arg-type]
        fits.append("reward_model/fit_loss" in task.metrics())
        assert [number for number, _ in task.recent] == [max(iteration - 1, 0), iteration][-iteration - 1 :]
    assert fits == [False, True, False, True, False, False, True]
    assert len(task.recent[-1][1]) == 48, "both attempts"


def test_a_loaded_model_stays_as_it_is(tmp_path: Path) -> None:
    model = make_reward_model("spa:dimensions=512,epochs=1")
    model.fit(line_episodes())
    model.save(tmp_path)
    task = RewardedTask(Played(), make_reward_model(f"spa:path={tmp_path}"))
    for iteration in range(3):
        task.gather(None, iteration, 0)  # type: ignore[arg-type]
        assert "reward_model/fit_loss" not in task.metrics()
    assert not task.recent


# Training.


@pytest.mark.parametrize(
    "name",
    [
        "progrm:epochs=2,labels=environment",
        "shepherd:epochs=2",
        "spa:epochs=2,outcome=success",
        "milestones",
        "otc:form=single",
    ],
)
def test_a_run_trains_with_every_reward_model(name: str, tmp_path: Path) -> None:
    records = run(replace(SMALL, reward_model=name), tmp_path / "run")
    assert len(records) == 2 and all("reward_model/reward_sum" in record for record in records)
    is_fitted = name.startswith(("progrm", "shepherd", "spa"))
    assert (tmp_path / "run" / "reward_model").is_dir() == is_fitted
    if is_fitted:
        assert "reward_model/fit_loss" in records[1] and "reward_model/fit_loss" not in records[0]
        newest = sorted((tmp_path / "run" / "reward_model").iterdir())[-1]
        assert load_reward_model(newest).is_ready


def test_a_resumed_run_has_the_same_numbers(tmp_path: Path) -> None:
    config = replace(SMALL, reward_model="spa:epochs=2,recent=2", iterations=3)
    whole = run(config, tmp_path / "whole")
    run(replace(config, iterations=1), tmp_path / "parts")
    settings = json.loads((tmp_path / "parts" / "config.json").read_text())
    assert config_from_store({**settings, "iterations": 3}) == config
    (tmp_path / "parts" / "config.json").write_text(json.dumps({**settings, "iterations": 3}))
    train(config, tmp_path / "parts", resume=True, console=Console(quiet=True))
    parts = RunFolder.open(tmp_path / "parts").metrics()
    names = [name for name in whole[-1] if not name.startswith("time/")]
    assert [[each[name] for name in names if name in each] for each in parts] == [
        [each[name] for name in names if name in each] for each in whole
    ]
    kept = [path.name for path in all_checkpoints(tmp_path / "parts" / "checkpoints")]
    assert sorted(path.name for path in (tmp_path / "parts" / "reward_model").iterdir()) == kept


def test_damaged_recordings_are_told_on_resume(tmp_path: Path) -> None:
    config = replace(SMALL, reward_model="spa:epochs=1", iterations=1)
    run(config, tmp_path / "run")
    [recent] = (tmp_path / "run" / "reward_model" / "000001" / "recent").iterdir()
    recent.write_text("no json\n{}\n")
    with pytest.raises(CheckpointError, match="are damaged"):
        train(config, tmp_path / "run", resume=True, console=Console(quiet=True))


def test_settings_of_older_runs_have_no_reward_model() -> None:
    stored = SMALL.as_json()
    del stored["reward_model"]
    assert TrainConfig.from_json(stored) == SMALL


# Verifiers and the command line.


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an evaluation of the random agent: 25 tasks of the train split, 4 tries each."""
    folder = tmp_path_factory.mktemp("recordings") / "frozen"
    words = ["--agent", "random", "--episodes", "25", "--repeats", "4", "--split", "train", "--out", str(folder)]
    assert main(["eval", "turngym/FrozenLake-v0", *words, "--json"]) == 0
    return folder


@pytest.mark.parametrize("name", ["progrm", "spa"])
def test_a_fitted_verifier_chooses_better_than_chance(
    name: str, recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tasks of the test split: the share of chosen tries that succeed is far above that of all tries."""
    assert main(["fit-reward", str(recordings), "--model", name, "-o", str(tmp_path / "fitted"), "--json"]) == 0
    capsys.readouterr()
    words = ["--agent", "random", "--episodes", "25", "--seed", "3", "--best-of", "4", "--json"]
    verifier = f"reward_model:{tmp_path / 'fitted'}"
    assert main(["eval", "turngym/FrozenLake-v0", *words, "--verifier", verifier]) == 0
    [found] = json.loads(capsys.readouterr().out)["environments"].values()
    chosen, mean = found["chosen_of_4"]["value"], found["mean_of_4"]["value"]
    assert found["oracle_of_4"]["value"] >= chosen > mean + 0.1


def test_fit_reward_says_what_it_did(recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    words = ["--model", "progrm", "--option", "epochs=2", "--option", "match=state", "-o", str(tmp_path / "out")]
    assert main(["fit-reward", str(recordings), *words]) == 0
    shown = capsys.readouterr().out
    assert "fitted progrm to" in shown and "were left out" in shown and "held-out episodes" in shown
    assert main(["fit-reward", str(recordings), *words]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit-reward", "nowhere", "--model", "otc", "-o", "new"], "is a rule"),
        (["fit-reward", "nowhere", "--model", "spa", "-o", "new"], "holds no recorded episodes"),
        (["fit-reward", "nowhere", "--model", "spc", "-o", "new"], "Did you mean 'spa'"),
        (["fit-reward", "--model", "spa", "-o", "new"], "needs a folder"),
        (
            ["eval", "turngym/FrozenLake-v0", "--agent", "random", "--best-of", "2", "--verifier", "reward_model"],
            "write reward_model:FOLDER",
        ),
        (["train", "--reward-model", "progrm:gama=1", "--run-dir", "new"], "Did you mean 'gamma'"),
    ],
)
def test_wrong_words_are_answered(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
