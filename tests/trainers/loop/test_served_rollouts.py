"""Training with a policy server of ours: it follows the weights, or the run stops and says why."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from policy_servers import served

from turngym.agents.agent_program import QUESTIONS, ProgramConfig
from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import load_model
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.errors import RunStopped, TurngymError
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

TASK_AGENT = Path(__file__).parents[2] / "support" / "task_agent.py"
RUN = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 4, "highest": 3},
    max_seconds=0,
    iterations=3,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=32, layers=1, heads=2, vocabulary=300),
    warmup=SupervisedConfig(demonstrations=4, epochs=1),
    rollout=RolloutConfig(groups=2, group_size=2, max_new_tokens=4),
    update=UpdateConfig(learning_rate=3e-3, minibatches=2),
    evaluation=EvaluationConfig(episodes=0, every=0),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the policy's shape."""
    folder = tmp_path_factory.mktemp("base")
    assert train(replace(RUN, iterations=1), folder / "run").finished
    return folder / "run" / "model"


def run_with_servers(base: Path, folder: Path, config: TrainConfig = RUN, **settings: Any) -> list[dict[str, Any]]:
    """Train with two servers, and return the metrics."""
    exchange = folder / "exchange"
    exchange.mkdir(parents=True)
    with ExitStack() as stack:
        servers = [stack.enter_context(served(load_model(str(base)), exchange)) for _ in range(2)]
        urls = tuple(f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
        served_config = ServedConfig(poll=0.2, folder=str(exchange), **settings)
        rollout = replace(config.rollout, sampler="vllm-server", servers=urls, served=served_config)
        chosen = replace(config, model=str(base), rollout=rollout)
        assert train(chosen, folder / "run").finished
    assert not list(exchange.iterdir()), "nothing is left of the weights"
    return RunFolder(folder / "run").metrics()


@pytest.mark.parametrize(("rank", "sync"), [(0, "folder"), (2, "adapter")])
def test_servers_follow_the_policy(base: Path, tmp_path: Path, rank: int, sync: str) -> None:
    records = run_with_servers(base, tmp_path, replace(RUN, lora_rank=rank), sync=sync)
    assert [record["rollout/weight_syncs"] for record in records] == [1, 1, 1]
    assert max(record["rollout/weight_gap"] for record in records) < 1e-4  # 0 where the bits happen to be equal
    assert max(record["train/logprob_gap"] for record in records) < 1e-4
    assert [(record["rollout/server_faults"], record["rollout/faults"]) for record in records] == [(0, 0)] * 3
    assert [record["policy/staleness_max"] for record in records] == [0, 0, 0]


def test_servers_play_while_the_learner_learns(base: Path, tmp_path: Path) -> None:
    """Each completion is of one version of the weights, and no group is older than it may be."""
    rollout = replace(RUN.rollout, schedule="async", max_staleness=1)
    records = run_with_servers(base, tmp_path, replace(RUN, iterations=4, rollout=rollout))
    assert len(records) == 4 and sum(record["rollout/weight_syncs"] for record in records) >= 2
    assert max(record["policy/staleness_max"] for record in records) <= 1
    assert [(record["rollout/server_stale"], record["rollout/server_faults"]) for record in records] == [(0, 0)] * 4


@pytest.mark.integration
def test_agent_programs_play_with_what_the_servers_sample(base: Path, tmp_path: Path) -> None:
    """Programs ask the gateway, and the gateway asks servers that follow the policy."""
    lines = [json.dumps({"id": f"t{k}", "prompt": f"Say seven, {k}", "answer": 7}) for k in range(9)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    command = f"{sys.executable} {TASK_AGENT} post {{task}} {{workdir}}"
    agent = ProgramConfig(command=command, tasks=str(tmp_path / "tasks.jsonl"), judge="numeric")
    config = TrainConfig(**{**vars(RUN), "env": QUESTIONS, "env_options": {}, "agent": agent, "iterations": 2})
    records = run_with_servers(base, tmp_path / "served", config)
    assert [record["rollout/weight_syncs"] for record in records] == [1, 1]
    assert all(record["rollout/success"] == 1 and record["rollout/faults"] == 0 for record in records)
    assert all(record["train/logprob_gap"] < 1e-4 and record["rollout/server_faults"] == 0 for record in records)


def test_the_run_stops_where_no_server_takes_the_weights(base: Path, tmp_path: Path) -> None:
    """The folder is not the one that the servers may read."""
    (tmp_path / "other").mkdir()
    config = ServedConfig(poll=0.1, folder=str(tmp_path / "mine"))
    with served(load_model(str(base)), tmp_path / "other") as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        rollout = replace(RUN.rollout, sampler="vllm-server", servers=(url,), served=config)
        with pytest.raises((RunStopped, TurngymError), match=rf"no server can be used \({url}: http_403"):
            train(replace(RUN, model=str(base), rollout=rollout), tmp_path / "run")


def test_a_server_of_another_model_is_found_on_the_probe(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it has taken the weights, and continues with its own."""
    monkeypatch.setattr(PolicyClient, "call_workers", lambda self, method, timeout, **arguments: None)
    with pytest.raises((RunStopped, TurngymError), match="it computes with other weights than it was given"):
        run_with_servers(base, tmp_path, replace(RUN, seed=1))
    assert json.loads((tmp_path / "run" / "config.json").read_text())["seed"] == 1


def serve_process(base: Path, exchange: Path, port: int) -> "subprocess.Popen[bytes]":
    """``turngym serve-model`` in a process of its own."""
    words = ["serve-model", str(base), "--port", str(port), "--weights-folder", str(exchange)]
    environment = {**os.environ, "TURNGYM_TOKEN": os.environ["TURNGYM_API_KEY"]}
    return subprocess.Popen([sys.executable, "-m", "turngym", *words], stdout=subprocess.DEVNULL, env=environment)


@pytest.mark.integration
def test_a_run_outlives_its_only_server_in_another_process(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is killed after the first iteration, and started again at the same address with the first weights."""
    monkeypatch.setenv("TURNGYM_API_KEY", "secret")
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    processes = [serve_process(base, exchange, port)]

    def kill(model: object, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 0:
            processes[0].kill()
            processes[0].wait()
            processes.append(serve_process(base, exchange, port))

    settings = ServedConfig(poll=0.2, folder=str(exchange))
    url = f"http://127.0.0.1:{port}"
    rollout = replace(RUN.rollout, sampler="vllm-server", servers=(url,), served=settings)
    try:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                PolicyClient(url).check_health(1.0)
                break
            except CallFailed:
                time.sleep(0.1)
        assert train(replace(RUN, model=str(base), rollout=rollout), tmp_path / "run", watch=kill).finished
    finally:
        for process in processes:
            process.kill()
            process.wait()
    records = RunFolder(tmp_path / "run").metrics()
    assert len(records) == 3 and all(record["train/logprob_gap"] < 1e-4 for record in records)
    assert sum(record["rollout/server_faults"] for record in records) >= 1
    assert sum(record["rollout/server_returns"] for record in records) >= 1
    assert all(record["rollout/faults"] == 0 for record in records)
