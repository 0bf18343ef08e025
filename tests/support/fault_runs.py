"""Tiny runs that faults are injected into, and what must hold after them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import injected
import torch

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

torch.set_num_threads(1)

ITERATIONS = 5
TINY = TrainConfig(
    env="test/Injected-v0",
    env_options={"max_turns": 3},
    algorithm="grpo",
    iterations=ITERATIONS,
    max_seconds=0,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=300),
    warmup=SupervisedConfig(demonstrations=0),
    rollout=RolloutConfig(groups=2, group_size=3, max_new_tokens=4, sampler="transformers"),
    update=UpdateConfig(minibatches=2),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)
Watch = Callable[[LanguageModel, Mapping[str, Any]], None]


def at(marker: Path, iteration: int) -> Watch:
    """Put the marker down at the end of an iteration, so that the next one breaks."""

    def watch(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == iteration:
            marker.touch()

    return watch


def faulty(marker: Path, fault: str, **options: Any) -> TrainConfig:
    assert fault in injected.FAULTS
    return replace(TINY, env_options={"max_turns": 3, "marker": str(marker), "fault": fault, **options})


def numbers(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if not k.startswith("time/")} for record in RunFolder(folder).metrics()]


def diagnosis(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "diagnosis.json").read_text("utf8"))
    assert isinstance(found, dict)
    return found


def assert_goes_on_to(whole: list[dict[str, Any]], config: TrainConfig, folder: Path) -> None:
    """Every line of the metrics is whole, and the resumed run ends with the numbers of one that never broke."""
    assert [record["iteration"] for record in numbers(folder)] == list(range(len(numbers(folder))))
    assert not [path for path in folder.rglob("*.tmp")]
    assert train(config, folder, resume=True).finished
    assert numbers(folder) == whole
    assert not (folder / "diagnosis.json").exists()
