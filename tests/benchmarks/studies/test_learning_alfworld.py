"""The study of ALFWorld by imitation: settings that train takes, results that are kept, and their intervals."""

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.agents.core import Agent
from turngym.agents.players import make_agent
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.studies.learning import alfworld_imitation as study


def test_the_settings_warm_up_the_pretrained_model_with_whole_conversations() -> None:
    config = parse_train(study.WARM_UPS.options(study.WARM_UPS.jobs[2]))[0]
    assert (config.iterations, config.evaluation.episodes, config.control) == (0, 0, False)
    assert config.env == "turngym/ALFWorld-v0" and config.seed == 2 and config.threads == 1
    assert config.warmup.models == "any" and config.warmup.precision == "bf16" and config.model == study.MODEL
    assert config.rollout.prompt.mode == "conversation" and config.rollout.max_new_tokens == 16


def test_an_evaluation_that_is_there_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def played(agent: Agent, split: str) -> dict[str, Any]:
        count.append(split)
        return {"success": {"value": 0.5, "low": 0.4, "high": 0.6}, "games": [0, 1], "turns": 3.0, "faults": 0}

    count: list[str] = []
    monkeypatch.setattr(study, "RUNS", tmp_path)
    monkeypatch.setattr(study, "played", played)
    agent = make_agent("random")
    first = study.of_agent("run", "sampled", agent)
    assert study.of_agent("run", "sampled", agent) == first and count == ["valid_seen", "valid_unseen"]
    assert json.loads((tmp_path / "run" / "games" / "sampled-valid_seen.json").read_text("utf8")) == first["valid_seen"]


def test_the_mean_over_seeds_has_students_interval() -> None:
    def run(value: float) -> dict[str, Any]:
        return {way: {split: {"success": {"value": value}} for split in study.SPLITS} for way in study.WAYS}

    found = study.over_seeds({seed: run(value) for seed, value in enumerate((0.4, 0.5, 0.6))})
    assert found["greedy"]["valid_unseen"] == pytest.approx({"mean": 0.5, "low": 0.2516, "high": 0.7484}, abs=1e-4)
