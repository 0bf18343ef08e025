"""Trackers with their own packages, offline: what arrives there, resumed runs, servers that do not answer."""

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warm
from fault_runs import TINY

from turngym.envs.png import png
from turngym.trainers.records.metric_log import MetricLog
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.records.trackers import Detail

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

NAMES = ("wandb", "mlflow", "trackio")
COMMAND = (
    "train --env turngym/GuessTheNumber-v0 --env-options --no-control --embedded.hidden-size 16 --embedded.layers 1 "
    "--embedded.heads 2 --embedded.vocabulary 300 --warmup.demonstrations 0 --iterations 2 --rollout.groups 1 "
    "--rollout.group-size 2 --evaluation.episodes 0 --evaluation.every 2 --evaluation.curve-episodes 1 "
    "--track wandb --track mlflow --track trackio --run-dir run --json"
)
OWN = ("WANDB_", "MLFLOW_", "TRACKIO_")


def turngym(words: str, folder: Path, **variables: str) -> tuple[dict[str, Any], str]:
    """Run a command in a folder without the settings of trackers; return its JSON and its other output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    env = kept | {"HOME": str(folder), "TRACKIO_DIR": str(folder / "trackio")} | variables
    done = warm.run("-m", "turngym", *words.split(), cwd=folder, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout), " ".join(done.stderr.split())


@pytest.fixture(autouse=True)
def needs_the_packages() -> None:
    for name in (*NAMES, "sqlalchemy"):
        pytest.importorskip(name)


def ids(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "run" / "tracking.json").read_text("utf8"))
    return found


def failures(folder: Path) -> list[float]:
    return [record["tracking/failed"] for record in RunFolder(folder / "run").metrics()]


def test_a_run_and_its_continuation_arrive_in_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = turngym(COMMAND, tmp_path, WANDB_MODE="offline")
    assert result["finished"] and failures(tmp_path) == [0, 0]
    first = ids(tmp_path)
    assert set(first) == set(NAMES)
    assert list((tmp_path / "run" / "wandb").glob(f"offline-run-*-{first['wandb']}/*.wandb"))
    files = {path.name for path in (tmp_path / "mlruns").rglob("transcripts/*")}
    assert files == {"000001-0.txt", "000001-1.txt"}
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        history = database.execute("select step from metrics where key = 'rollout/turns' order by step").fetchall()
        (seed,) = database.execute("select value from params where key = 'rollout.group_size'").fetchall()
        (status,) = database.execute("select status from runs").fetchall()
    assert (history, seed, status) == ([(0,), (1,)], ("2",), ("FINISHED",))
    logged = trackio_metrics(tmp_path, first["trackio"], monkeypatch)
    assert [row["step"] for row in logged if "rollout/turns" in row] == [0, 1]
    assert logged[0]["histograms/turns"]["_type"] == "trackio.histogram"
    assert logged[1]["transcripts"]["_type"] == "trackio.table"


def trackio_metrics(folder: Path, run: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what Trackio keeps of a run, by another process: its folder is read at its import."""
    code = (
        "import json, sys\nfrom trackio.sqlite_storage import SQLiteStorage\n"
        "print(json.dumps(SQLiteStorage.get_logs('turngym', sys.argv[1]), default=str))"
    )
    env = {**os.environ, "TRACKIO_DIR": str(folder / "trackio")}
    call = [sys.executable, "-c", code, run]
    done = subprocess.run(call, env=env, capture_output=True, text=True, timeout=900, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_trackers_without_key_and_server_cost_a_run_nothing(tmp_path: Path) -> None:
    nowhere = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "TRACKIO_SERVER_URL": "http://127.0.0.1:9/?write_token=x"}
    result, told = turngym(COMMAND, tmp_path, **nowhere)
    assert result["finished"] and result["iterations"] == 2
    assert told.count("wandb failed to start (UsageError: No API key configured") == 1
    assert told.count("mlflow failed to start (MlflowException") == 1
    assert failures(tmp_path) == [2, 2]  # trackio writes to its local database instead


def test_a_database_that_breaks_in_mid_run_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    database = tmp_path / "mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
    monkeypatch.setenv("MLFLOW_ARTIFACTS_DESTINATION", str(tmp_path / "mlruns"))
    config = replace(TINY, track=("mlflow",))
    folder, warnings = RunFolder.create(tmp_path / "run", config), list[str]()
    image = png(np.zeros((4, 4, 3), dtype=np.uint8))
    with MetricLog(folder, config, warnings.append) as log:
        log.write({"iteration": 0}, Detail(images=[image]))
        with sqlite3.connect(database) as connection:
            connection.execute("drop table metrics")
        for iteration in (1, 2):
            log.write({"iteration": iteration}, Detail())
        assert log.failed == 1
    assert len(warnings) == 1 and warnings[0].startswith("mlflow failed to log (")
    assert [path.name for path in (tmp_path / "mlruns").rglob("*.png")] == ["000000-0.png"]
    assert [record["iteration"] for record in folder.metrics()] == [0, 1, 2]


def test_images_arrive_in_wandb_and_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    config = replace(TINY, track=("wandb", "trackio"))
    folder, warnings = RunFolder.create(tmp_path / "run", config), list[str]()
    image = png(np.zeros((4, 4, 3), dtype=np.uint8))
    with MetricLog(folder, config, warnings.append) as log:
        log.write({"iteration": 0}, Detail(images=[image, image]))
    assert warnings == []
    assert len(list((tmp_path / "run" / "wandb").rglob("media/images/images/turn_*.png"))) == 2
