"""Trackers: what TensorBoard gets, and trackers that are absent or fail."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from fault_runs import TINY, numbers

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.png import png
from turngym.errors import MissingExtra
from turngym.trainers.loop.job import train
from turngym.trainers.records.metric_log import MetricLog
from turngym.trainers.records.rollout_metrics import histograms
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.records.samples import images_of, transcript_of
from turngym.trainers.records.trackers import Detail, require_tracker
from turngym.trainers.settings.config import EvaluationConfig, TrainConfig

IMAGE = png(np.zeros((4, 4, 3), dtype=np.uint8))


@pytest.mark.parametrize("name", ["wandb", "mlflow", "trackio"])
def test_a_tracker_that_is_not_installed_is_named_before_anything_is_written(
    name: Literal["wandb", "mlflow", "trackio"], tmp_path: Path
) -> None:
    if importlib.util.find_spec(name):
        pytest.skip(f"{name} is installed here")
    with pytest.raises(
        MissingExtra, match=rf'--track {name} needs the package {name}.*pip install "turngym\[{name}\]"'
    ):
        train(replace(TINY, track=(name,)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tensorboard_gets_metrics_histograms_and_transcripts(tmp_path: Path) -> None:
    require_tracker("tensorboard")
    evaluated = replace(TINY, iterations=2, evaluation=EvaluationConfig(episodes=0, every=2, curve_episodes=1))
    assert train(evaluated, tmp_path / "run").finished
    tags = board(tmp_path / "run").Tags()
    assert {"rollout/success", "eval/success", "tracking/failed"} <= set(tags["scalars"])
    names = {"reward_sum", "turns", "completion_tokens", "advantages", "log_ratios"}
    assert set(tags["histograms"]) == {f"histograms/{name}" for name in names}
    assert "transcripts/0/text_summary" in tags["tensors"]
    episodes = board(tmp_path / "run").Histograms("histograms/turns")
    assert [(each.step, each.histogram_value.num) for each in episodes] == [(0, 6.0), (1, 6.0)]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_prometheus_reads_the_newest_iteration(
    elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tracker("prometheus")
    if elsewhere:
        monkeypatch.setenv("TURNGYM_PROMETHEUS_FOLDER", str(tmp_path / "textfiles"))
    config = replace(TINY, track=("prometheus",))
    folder = tmp_path / 'a "run" of mine'
    with MetricLog(RunFolder.create(folder, config), config, pytest.fail) as log:
        for iteration in range(2):
            log.write({"iteration": iteration, "rollout/success": 0.25 * iteration}, Detail())
    path = tmp_path / "textfiles" / "a__run__of_mine.prom" if elsewhere else folder / "metrics.prom"
    assert path.read_text("utf8").splitlines() == [
        "# TYPE turngym_iteration gauge",
        r'turngym_iteration{run="a \"run\" of mine"} 1.0',
        "# TYPE turngym_rollout_success gauge",
        r'turngym_rollout_success{run="a \"run\" of mine"} 0.25',
    ]


def test_a_tracker_that_cannot_start_is_reported_once_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    warnings: list[str] = []
    config = replace(TINY, iterations=2)
    run = RunFolder.create(folder, config)
    (folder / "tensorboard").write_text("a file where the folder should be", "utf8")
    with MetricLog(run, config, warnings.append) as log:
        for iteration in range(2):
            log.write({"iteration": iteration, "tracking/failed": log.failed}, Detail())
    assert len(warnings) == 1 and "tensorboard failed to start" in warnings[0] and "run continues" in warnings[0]
    assert [(each["iteration"], each["tracking/failed"]) for each in numbers(folder)] == [(0, 1), (1, 1)]


def test_a_tracker_that_fails_in_mid_run_is_reported_once_and_counted(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", TINY)
    warnings: list[str] = []
    with MetricLog(folder, TINY, warnings.append) as log:
        for iteration, image in enumerate([IMAGE, b"no image", IMAGE]):
            log.write({"iteration": iteration, "tracking/failed": log.failed}, Detail(images=[image]))
    assert len(warnings) == 1 and "tensorboard failed to log" in warnings[0]
    assert [each["tracking/failed"] for each in numbers(folder.path)] == [0, 0, 1]
    assert board(folder.path).Tags()["images"] == ["images/turn_0"]


def test_a_run_goes_on_without_the_tracker_of_a_package_that_is_gone(tmp_path: Path) -> None:
    """A resumed run, as on another machine."""
    if importlib.util.find_spec("wandb"):
        pytest.skip("wandb is installed here")
    config, folder = replace(TINY, iterations=2, track=("wandb",)), tmp_path / "run"
    RunFolder.create(folder, config)
    assert train(config, folder, resume=True).finished
    assert [record["tracking/failed"] for record in numbers(folder)] == [1, 1]


def test_histograms_leave_out_faults_and_what_is_no_number() -> None:
    whole = Trajectory(EpisodeSpec(0, 0), turns=[Turn("", "", "", completion_ids=(1, 2), reward=0.5)])
    broken = Trajectory(EpisodeSpec(1, 0), turns=[Turn("", "", "", reward=9.0)], fault="worker died")
    found = histograms([whole, broken], [float("nan"), 1.0], [])
    assert {name: values.tolist() for name, values in found.items()} == {
        "histograms/reward_sum": [0.5],
        "histograms/turns": [1.0],
        "histograms/completion_tokens": [2.0],
        "histograms/advantages": [1.0],
    }


def test_images_are_the_newest_of_each_turn_of_one_episode() -> None:
    plain = Trajectory(EpisodeSpec(0, 0), turns=[Turn("", "", "")])
    seen = [Turn("", "", "", pictures=(b"old", str(number).encode())) for number in range(12)]
    found = images_of([plain, Trajectory(EpisodeSpec(1, 0), turns=seen)])
    assert found == [str(number).encode() for number in range(8)]


def test_a_transcript_is_text_of_bounded_length() -> None:
    long = Trajectory(EpisodeSpec(0, 0), turns=[Turn("x" * 100_000, "", "", completion="\udc80")])
    assert len(transcript_of(long)) == 20_000
    transcript_of(replace(long, turns=[Turn("", "", "", completion="\udc80")])).encode()


def test_the_trackers_of_a_run_are_kept_in_its_settings() -> None:
    assert TrainConfig.from_json({**TrainConfig().as_json(), "track": ["mlflow", "wandb"]}).track == ("mlflow", "wandb")


def board(folder: Path) -> Any:
    """Return the event files of a run, read."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"histograms": 0})
    found.Reload()
    return found
