"""A clock that jumps by days, forwards and backwards, ends no training and changes none of its numbers."""

import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fault_runs import TINY, numbers

from turngym.agents.chat_client.client import retry_after
from turngym.errors import MissingExtra
from turngym.trainers.loop import setup
from turngym.trainers.loop.job import train
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

FEW = replace(TINY, iterations=3, max_seconds=1000.0)
DAY = 86400.0


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train(FEW, tmp_path / "steady").finished
    now, jumps = time.time(), itertools.cycle([0.0, 400 * DAY, -400 * DAY, 3 * DAY, -1e9])
    monkeypatch.setattr(time, "time", lambda: now + next(jumps))
    assert train(FEW, tmp_path / "jumping").finished
    assert numbers(tmp_path / "jumping") == numbers(tmp_path / "steady")
    for record in RunFolder(tmp_path / "jumping").metrics():
        assert 0 < record["time/seconds_total"] < DAY
        assert all(0 <= value < DAY for name, value in record.items() if name.startswith("time/seconds"))


def test_the_wait_that_a_server_asks_for_does_not_follow_the_clock_of_this_machine() -> None:
    told = {"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    assert retry_after(told) == 30.0


@pytest.mark.parametrize("settings", [{"lora_rank": 4}, {"rollout": "vllm"}, {"agent": "true"}])
def test_an_absent_package_is_told_before_anything_is_played(
    settings: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    config: TrainConfig = replace(TINY, lora_rank=4)
    if "rollout" in settings:
        config = replace(TINY, rollout=replace(TINY.rollout, sampler="vllm"))
    if "agent" in settings:
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        config = replace(TINY, agent=replace(TINY.agent, command="true"))
    with pytest.raises(MissingExtra, match=r"turngym\[(train|vllm|serve)\]"):
        setup.require_packages(config)
    with pytest.raises(MissingExtra):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
