"""Training with vLLM as what plays: it follows the weights, and what it logs is what the learner computes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small import small_model

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

pytestmark = pytest.mark.integration
pytest.importorskip("vllm", reason="vllm is in .venvs/vllm only: run make test-integration")

from turngym.agents.models.vllm.config import VllmConfig  # noqa: E402
from turngym.trainers.loop.sampling.vllm_rollouts import Follower, vllm_rollouts  # noqa: E402

ENGINE = VllmConfig(max_model_len=512, kv_cache_gib=0.05)
SMALL = TrainConfig(
    max_seconds=0,
    env_options={"view": "coordinates", "max_turns": 6, "max_moves": 2},
    iterations=3,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=64, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=20, epochs=2),
    rollout=RolloutConfig(groups=3, group_size=3, sampler="vllm", vllm=ENGINE),
    update=UpdateConfig(learning_rate=3e-3, minibatches=2),
    evaluation=EvaluationConfig(episodes=6, every=3, curve_episodes=5),
)


def gaps_of(config: TrainConfig, folder: Path) -> list[float]:
    """Return how far the logged log-probabilities are from the learner's, before the first update of each iteration."""
    assert train(config, folder).finished
    return [record["train/logprob_gap"] for record in RunFolder(folder).metrics()]


def test_what_vllm_logs_is_what_the_learner_computes(tmp_path: Path) -> None:
    """With low-rank adapters the merged weights are handed over."""
    gaps = gaps_of(replace(SMALL, lora_rank=2), tmp_path / "run")
    assert len(gaps) == 3 and 0 < max(gaps) < 1e-4
    run = RunFolder(tmp_path / "run")
    assert run.config().rollout.vllm == ENGINE
    assert "eval/success" in run.metrics()[-1] and len(run.evaluated_episodes("final-sampled")) == 6


def test_weights_that_are_not_handed_over_are_seen_in_the_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All weights are handed over after the first iteration; then, a negative oracle, vLLM stays behind."""
    follow = Follower.follow

    def until_the_second(self: Follower) -> None:
        if self.loads < 2:
            follow(self)

    monkeypatch.setattr(Follower, "follow", until_the_second)
    gaps = gaps_of(replace(SMALL, evaluation=EvaluationConfig(episodes=0, every=0)), tmp_path / "run")
    assert 0 < max(gaps[:2]) < 1e-4 < 1e-2 < gaps[2]


def test_conversations_that_outgrow_vllms_length_are_truncated_and_trained_on(tmp_path: Path) -> None:
    short = replace(
        SMALL.rollout,
        vllm=replace(ENGINE, max_model_len=160),
        prompt=PromptConfig(mode="conversation", instructions=False),
    )
    longer = {**SMALL.env_options, "max_turns": 12}
    assert train(replace(SMALL, rollout=short, env_options=longer), tmp_path / "run").finished
    records = RunFolder(tmp_path / "run").metrics()
    assert len(records) == 3 and any(record["rollout/context"] > 0 for record in records)
    assert all(record["rollout/faults"] == record["rollout/context_first"] == 0 for record in records)


def test_weights_are_handed_over_only_when_they_have_changed(tmp_path: Path) -> None:
    model = add_adapters(small_model(hidden=64), 2, 0)
    small_model(hidden=64).save(tmp_path)
    prompts, draws, sampling = [[5, 6]], [turn_uniforms(0, 0, 0, 0, 4)], Sampling(max_new_tokens=4)
    with vllm_rollouts(model, str(tmp_path), ENGINE) as follower:
        assert model.generate == follower.generate and model.context == 512
        first = follower.generate(prompts, draws, sampling)
        assert follower.generate(prompts, draws, sampling) == first and follower.loads == 1
        changed = next(p for name, p in model.network.named_parameters() if "lora_B" in name and "down_proj" in name)
        with torch.no_grad():
            changed.add_(1.0)
        assert follower.generate(prompts, draws, sampling) != first and follower.loads == 2
    assert model.generate is None and model.longest == 0
