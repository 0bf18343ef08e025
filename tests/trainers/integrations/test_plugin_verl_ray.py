"""verl's agent-loop manager plays our episodes in Ray actors, with settings from a configuration file."""

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
from plugin_examples import EXAMPLES, example

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not any(importlib.metadata.distributions(name="verl")),
        reason="verl is in .venvs/verl only: run make test-integration",
    ),
]
ROLLOUT = "actor_rollout_ref.rollout"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ray on this machine; its workers find the examples."""
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 * 1024 * 1024, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_two_workers_share_a_batch_and_follow_the_configuration_file(cluster: Any, tmp_path: Path) -> None:
    """A worker imports the loop because the file names it: that must not undo the file's settings."""
    tiny, server = example("tiny_model"), example("hf_server")
    import numpy as np
    from hydra import compose, initialize_config_module
    from verl import DataProto
    from verl.experimental.agent_loop.agent_loop import AgentLoopManager

    from turngym.agents.models.loading import LanguageModel
    from turngym.trainers.integrations.verl import verl_rows

    network, tokenizer = tiny.tiny_model(tiny.talks(8), steps=0)
    model = LanguageModel(network, tokenizer, "untrained")
    model.save(tmp_path)
    settings = {
        "actor_rollout_ref.model.path": tmp_path,
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.prompt_length": 256,
        f"{ROLLOUT}.response_length": 160,
        f"{ROLLOUT}.agent.num_workers": 2,
        f"{ROLLOUT}.agent.agent_loop_config_path": EXAMPLES / "verl_agent_loop.yaml",
    }
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", [f"{name}={value}" for name, value in settings.items()])
    manager = AgentLoopManager.create(config, server.HFServer(config, model))
    rows = [row for row in verl_rows(tiny.ENV_ID, range(4), settings=tiny.SETTINGS) for _ in range(2)]
    columns = {("raw_prompt" if name == "prompt" else name): [row[name] for row in rows] for name in rows[0]}
    asked = DataProto.from_dict(non_tensors={name: np.fromiter(each, object) for name, each in columns.items()})
    batch = manager.generate_sequences(asked)
    answered = batch.batch["attention_mask"][:, 256:].sum(-1)
    sampled = batch.batch["response_mask"].sum(-1)
    turns = batch.non_tensor_batch["turns"]
    assert len(batch) == len(rows)
    assert all(1 <= count <= 24 * n for count, n in zip(sampled.tolist(), turns, strict=True)), "24 tokens a turn"
    assert (answered <= 160).all() and (turns > 1).all()
    assert list(batch.non_tensor_batch["terminated"] + batch.non_tensor_batch["truncated"]) == [1.0] * len(rows)
    prompts = batch.batch["prompts"].tolist()
    assert prompts[::2] == prompts[1::2] and prompts[0] != prompts[2]
