"""A few kills of the study of a hundred: learner and worker processes, and nothing is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[4] / "benchmarks" / "studies" / "checks" / "kills.py"


@pytest.mark.integration
def test_no_kill_loses_an_episode_or_repeats_one(tmp_path: Path) -> None:
    call = [sys.executable, str(STUDY), "--kills", "2", "--longest-life", "500", "--out", str(tmp_path / "kills.json")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    found = json.loads((tmp_path / "kills.json").read_text("utf8"))
    assert found["is_good"] and found["totals"]["learner_kills"] + found["totals"]["worker_kills"] >= 2
    assert found["totals"]["episodes_lost"] == found["totals"]["episodes_trained_twice"] == 0
