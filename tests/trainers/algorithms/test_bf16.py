"""A method of each base class trains in bfloat16, and what rounding does to log-probabilities stays within bounds."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from algorithm_batches import OF_EACH_BASE
from required import with_required
from small import small_model

from turngym.agents.models.generate import generate
from turngym.agents.models.loading import set_format
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.agents.trajectory import Trajectory
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.engine.policy_statistics import gap_figures
from turngym.trainers.engine.scoring import score
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

TINY = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 2, "highest": 2},
    iterations=2,
    max_seconds=0,
    control=False,
    precision="bf16",
    rollout=RolloutConfig(groups=2, group_size=2, max_new_tokens=2),
    update=UpdateConfig(learning_rate=1e-4),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "archer": {"archer": {"critic_iterations": 1}},
}
MEAN, P99, RATIO = 0.06, 0.4, 2.0
"""Bounds of the gap between a sampler and a trainer in bfloat16: mean and percentile a token, and the ratio of any."""


def trainer_of(algorithm: str, folder: Path) -> Trainer:
    config = with_required(replace(TINY, algorithm=algorithm, algorithm_options=OPTIONS.get(algorithm, {})))
    method, model = build_algorithm(config), small_model()
    set_format(model.network, torch.bfloat16)
    learner = build_learner(config, model, method)
    return Trainer(config, model, learner, make_task(config, method), RunFolder.create(folder, config))


def paying_odd_tokens(gather: Callable[..., list[Trajectory]]) -> Callable[..., list[Trajectory]]:
    """The same episodes, but each turn is paid for its odd tokens, so that episodes of a group differ."""

    def paid(*args: Any, **kwargs: Any) -> list[Trajectory]:
        found = gather(*args, **kwargs)
        for turn in (turn for trajectory in found for turn in trajectory.turns):
            turn.action_is_valid, turn.reward = True, float(sum(token % 2 for token in turn.completion_ids))
        return found

    return paid


@pytest.mark.parametrize("algorithm", OF_EACH_BASE)
def test_it_trains_in_bf16(algorithm: str, tmp_path: Path) -> None:
    trainer = trainer_of(algorithm, tmp_path / "run")
    learner = trainer.learner
    masters = [learner.masters.of(parameter) for parameter in learner.policy_parameters]
    before = [master.detach().clone() for master in masters]
    trainer.task.gather = paying_odd_tokens(trainer.task.gather)  # type: ignore[method-assign]
    trainer.task.branch = paying_odd_tokens(trainer.task.branch)  # type: ignore[method-assign]
    try:
        trainer.run()
    finally:
        trainer.task.close()
    for record in trainer.folder.metrics():
        assert all(math.isfinite(value) for value in record.values() if isinstance(value, float)), record
        assert record["train/logprob_gap_mean"] < MEAN and record["train/logprob_gap"] < math.log(RATIO)
    assert {parameter.dtype for parameter in learner.network.parameters()} == {torch.bfloat16}
    assert {master.dtype for master in masters} == {torch.float32}
    assert any(not torch.equal(a, b) for a, b in zip(before, masters, strict=True)), "nothing was learnt"
    for parameter, master in zip(learner.policy_parameters, masters, strict=True):
        assert torch.equal(parameter, master.to(torch.bfloat16))


def gap(sampler: torch.dtype, trainer: torch.dtype) -> torch.Tensor:
    """Return the gap at each token of 8 answers of 40: sampled one after another with a cache, scored at once."""
    played, scored = small_model(hidden=64), small_model(hidden=64)
    set_format(played.network, sampler)
    set_format(scored.network, trainer)
    prompts = [tuple(range(20, 30 + 3 * number)) for number in range(8)]
    uniforms = [turn_uniforms(0, 0, number, 0, 40) for number in range(8)]
    with torch.no_grad():
        found = generate(played.network, prompts, uniforms, Sampling(0.7, max_new_tokens=40), frozenset())
        rows = [
            Row.of(prompt + each.ids, tuple(Read(len(prompt) - 1 + k, t, k, 0, 0) for k, t in enumerate(each.ids)))
            for prompt, each in zip(prompts, found, strict=True)
        ]
        again = torch.cat([score(scored.network, [row], 0.7).logprobs.flatten() for row in rows])
    return (again - torch.tensor([p for each in found for p in each.logprobs])).abs()


def test_rounding_to_bf16_leaves_every_token_within_a_factor_of_two() -> None:
    figures = gap_figures(gap(torch.bfloat16, torch.bfloat16))
    assert figures["mean"] < MEAN and figures["p99"] < P99 and figures["max"] < math.log(RATIO), figures
    mixed = gap_figures(gap(torch.bfloat16, torch.float32))
    assert 1e-4 < mixed["mean"] < MEAN
    assert gap_figures(gap(torch.float32, torch.float32))["max"] < 1e-4
