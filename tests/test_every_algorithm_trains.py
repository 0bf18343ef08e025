"""Every registered method goes through the real loop: two iterations, finite weights, a resume to the same numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import small_model

from turngym.agents.models import LanguageModel
from turngym.trainers.algorithm import Need
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.config import RolloutConfig, TrainConfig
from turngym.trainers.learner import UpdateConfig
from turngym.trainers.making import make_task
from turngym.trainers.run_folder import RunFolder
from turngym.trainers.setup import build_algorithm, build_learner
from turngym.trainers.trainer import Trainer

torch.set_num_threads(1)

CONFIG = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 4, "highest": 3},
    iterations=2,
    max_seconds=0,
    checkpoint_every=1,
    control=False,
    rollout=RolloutConfig(groups=2, group_size=3, max_new_tokens=3),
    update=UpdateConfig(epochs=2, minibatches=2),
)


def trainer_of(algorithm: str, folder: RunFolder, model: LanguageModel) -> Trainer:
    config = replace(CONFIG, algorithm=algorithm)
    if Need.JOINT_VIEWS in build(algorithm).needs:
        config = replace(config, env="turngym/KuhnPoker-v0", env_options={})
    method = build_algorithm(config)
    return Trainer(config, model, build_learner(config, model, method), make_task(config, method), folder)


def weights(model: LanguageModel) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.network.state_dict().items()}


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_it_trains_and_goes_on_after_an_interruption(algorithm: str, tmp_path: Path) -> None:
    folder, model = RunFolder.create(tmp_path / "run", CONFIG), small_model()
    trainer = trainer_of(algorithm, folder, model)
    before, records = weights(model), list[Any]()
    try:
        trainer.run(records.append)
    finally:
        trainer.task.close()
    after = weights(model)
    assert [record["iteration"] for record in records] == [0, 1]
    assert all(bool(torch.isfinite(value).all()) for value in after.values())
    assert any(not torch.equal(value, before[name]) for name, value in after.items())
    assert all("loss/policy" in record and record["turns_total"] > 0 for record in records)
    again = small_model(seed=5)
    resumed = trainer_of(algorithm, folder, again)
    try:
        resumed.resume()
    finally:
        resumed.task.close()
    assert resumed.iteration == 2
    for name, value in weights(again).items():
        assert torch.equal(value, after[name]), name
