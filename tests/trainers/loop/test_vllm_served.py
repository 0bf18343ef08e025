"""Training with vLLM servers in processes of their own: they follow the weights, and one is killed on the way."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.rollout_servers.launcher import OwnServer
from turngym.agents.models.rollout_servers.members import State
from turngym.agents.models.vllm.config import VllmConfig
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sampling.served_rollouts import ServedRollouts
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

pytestmark = pytest.mark.integration
pytest.importorskip("vllm", reason="vllm is in .venvs/vllm only: run make test-integration")

RUN = TrainConfig(
    max_seconds=0,
    env_options={"view": "coordinates", "max_turns": 6, "max_moves": 2},
    iterations=5,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=64, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=20, epochs=2),
    rollout=RolloutConfig(
        groups=3,
        group_size=3,
        sampler="vllm-server",
        start_servers=2,
        served=ServedConfig(poll=0.5),
        vllm=VllmConfig(max_model_len=512, kv_cache_gib=0.05),
    ),
    update=UpdateConfig(learning_rate=3e-3, minibatches=2),
    evaluation=EvaluationConfig(episodes=0, every=0),
)
PATIENCE = 400.0


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Killer:
    """Kills a server after the second iteration, and lets the fifth begin when it is back."""

    def __init__(self, started: list[OwnServer]) -> None:
        self.started = started
        self.state_after_the_kill: list[State] = []
        self.answered = 0

    def __call__(self, model: LanguageModel, record: Mapping[str, Any]) -> None:
        rollouts = getattr(model.generate, "__self__", None)
        assert isinstance(rollouts, ServedRollouts)
        member, other = rollouts.pool.members
        if record["iteration"] == 1:
            process = self.started[0]._process
            assert process is not None
            (server,) = children(process.pid)
            os.kill(server, signal.SIGKILL)
        elif record["iteration"] == 2:
            self.state_after_the_kill = [member.state, other.state]
        elif record["iteration"] == 3:
            end = time.monotonic() + PATIENCE
            while member.state is not State.IN_USE:
                assert time.monotonic() < end, member.reason
                time.sleep(0.2)
            assert member.label == other.label, "it has the weights of now"
            assert member.server.version() == other.server.version() == member.label


def test_training_goes_on_when_a_server_dies_and_takes_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[OwnServer] = []
    start = OwnServer.start

    def noted(self: OwnServer) -> Any:
        started.append(self)
        return start(self)

    monkeypatch.setattr(OwnServer, "start", noted)
    killer = Killer(started)
    assert train(RUN, tmp_path / "run", watch=killer).finished
    records = RunFolder(tmp_path / "run").metrics()
    assert len(records) == 5
    gaps = [record["train/logprob_gap"] for record in records]
    assert 0 < max(gaps) < 1e-4, "what the servers log is what the learner computes, so the weights did arrive"
    assert max(record["rollout/weight_gap"] for record in records) < 1e-4
    assert all(record["rollout/weight_syncs"] == 1 for record in records)
    assert killer.state_after_the_kill == [State.LOST, State.IN_USE]
    sums = {
        name: sum(record[f"rollout/server_{name}"] for record in records) for name in ("faults", "returns", "restarts")
    }
    assert sums == {"faults": 1, "returns": 1, "restarts": 1} and records[-1]["rollout/servers"] == 2
    assert all(record["rollout/server_stale"] == record["rollout/faults"] == 0 for record in records)
    assert all(server.has_ended for server in started), "no server is left behind"
    assert not list((tmp_path / "run" / "weights").iterdir())
