"""Servers that sample: settings, commands, answers that cannot be read, and processes that end with ours."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.rollout_servers.client import read_generated
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.rollout_servers.launcher import OwnServer, ServerCommand, start_watched, stop_watched
from turngym.agents.models.vllm.config import VllmConfig
from turngym.benchmarks.cli.train import parse_train
from turngym.errors import ConfigError
from turngym.trainers.settings.config import RolloutConfig, TrainConfig
from turngym.trainers.settings.ray import RayConfig

URL = "http://127.0.0.1:8000"


SETTINGS_THAT_CONTRADICT_EACH_OTHER_ARE: list[tuple[dict[str, Any], str]] = [
    ({"servers": (URL,)}, "with --rollout.sampler vllm-server alone"),
    ({"start_servers": 1}, "with --rollout.sampler vllm-server alone"),
    ({"sampler": "vllm-server"}, "--rollout.start-servers N to start some"),
    ({"sampler": "vllm-server", "servers": (URL,), "start_servers": 1}, "either --rollout.servers URL"),
    ({"sampler": "vllm-server", "servers": (URL, URL)}, "named twice"),
    ({"sampler": "vllm-server", "servers": ("127.0.0.1:8000",)}, "must be like http://"),
    ({"sampler": "vllm-server", "start_servers": -1}, r"a whole number in \[0, 1024\], got -1"),
    ({"sampler": "vllm-server", "servers": (URL,), "refresh_every": 2}, "always gets the current weights"),
    (
        {"sampler": "vllm-server", "servers": (URL,), "schedule": "async", "served": ServedConfig(sleep=1)},
        "cannot sample then",
    ),
    ({"sampler": "vllm-server", "servers": (URL,), "ray": RayConfig(workers=1)}, "have their own models"),
    (
        {"sampler": "vllm-server", "start_servers": 2, "served": ServedConfig(devices=(1,))},
        "2 servers of 1 GPUs each need 2 devices, got 1",
    ),
]


def test_settings_that_contradict_each_other_are_refused() -> None:
    for settings, problem in SETTINGS_THAT_CONTRADICT_EACH_OTHER_ARE:
        with pytest.raises(ConfigError, match=problem):
            RolloutConfig(**settings)


WRONG_VALUES_ARE_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sync": "post"}, "sync must be one of 'auto', 'folder'"),
    ({"concurrency": 0}, "concurrency must be a whole number of at least 1, got 0"),
    ({"retries": -1}, "retries must be a whole number of at least 0"),
    ({"timeout": 0}, "timeout must be a number above 0 and below 1000000, got 0"),
    ({"patience": "long"}, "patience must be a number"),
    ({"max_gap": -1}, "max_gap must be a number of at least 0, got -1"),
    ({"sleep": 3}, "sleep must be one of 0, 1, 2"),
    ({"devices": (-1,)}, "devices must be a list, each a whole number of at least 0"),
]


def test_wrong_values_are_refused() -> None:
    for settings, problem in WRONG_VALUES_ARE_REFUSED:
        with pytest.raises(ConfigError, match=problem):
            ServedConfig(**settings)


def test_the_command_line_takes_servers_and_a_run_folder_keeps_them() -> None:
    words = ["--rollout.sampler", "vllm-server", "--rollout.servers", URL, "http://127.0.0.1:8001"]
    words += ["--rollout.served.timeout", "20"]
    config = parse_train(words)[0]
    assert config.rollout.servers == (URL, "http://127.0.0.1:8001") and config.rollout.served.timeout == 20
    chosen = TrainConfig(
        rollout=RolloutConfig(sampler="vllm-server", start_servers=2, served=ServedConfig(devices=(0, 1)))
    )
    assert TrainConfig.from_json(chosen.as_json()) == chosen


def test_servers_to_start_need_vllm_here_or_a_python_that_has_it() -> None:
    start = RolloutConfig(sampler="vllm-server", start_servers=1)
    elsewhere = RolloutConfig(
        sampler="vllm-server", start_servers=1, served=ServedConfig(python="/opt/vllm/bin/python")
    )
    given = RolloutConfig(sampler="vllm-server", servers=(URL,))
    assert [each.needs_vllm for each in (start, elsewhere, given)] == [True, False, False]


def test_servers_are_started_on_the_loopback_with_a_key_that_no_command_line_shows() -> None:
    options = VllmConfig(dtype="float32", max_model_len=512, kv_cache_gib=0.5, tensor_parallel_size=2)
    command = ServerCommand("model", options, on_cpu=True, lora_rank=5, devices=(2, 3))
    words = command.words(8123)
    assert words[words.index("--host") + 1] == "127.0.0.1" and "processed_logprobs" in words
    assert words[words.index("--max-lora-rank") + 1] == "8" and "--enforce-eager" in words
    variables = command.environment("secret")
    assert not any("secret" in word for word in words) and variables["VLLM_API_KEY"] == "secret"
    assert variables["CUDA_VISIBLE_DEVICES"] == "2,3" and variables["VLLM_SERVER_DEV_MODE"] == "1"
    assert "secret" not in repr(OwnServer(command, Path("log"), _key="secret"))


def generated(**changes: Any) -> dict[str, Any]:
    """An answer with two tokens."""
    choice = {
        "token_ids": [4, 5],
        "finish_reason": "stop",
        "weight_versions": [{"version": "v", "start": 0, "end": 2}],
        "logprobs": {"content": [{"token_id": 4, "logprob": -1.0}, {"token_id": 5, "logprob": -2}]},
    }
    return {"choices": [{**choice, **changes}], "prompt_logprobs": [None, {"8": {"logprob": -3.0}}]}


def test_a_server_does_not_join_the_ranks_of_its_learner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OF_THE_USER", "kept")
    variables = ServerCommand(str(tmp_path), VllmConfig()).environment("key")
    assert variables["OF_THE_USER"] == "kept"
    assert not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"} & set(variables)


def test_adapters_alone_do_not_wake_servers_that_dropped_all_weights() -> None:
    served = ServedConfig(sync="adapter", sleep=2)
    with pytest.raises(ConfigError, match=r"drop all weights.*sleep 1"):
        TrainConfig(lora_rank=8, rollout=RolloutConfig(sampler="vllm-server", start_servers=1, served=served))


def test_answers_are_read() -> None:
    answer = read_generated(generated(), [7, 8], 2, prompt_logprobs=True)
    assert (answer.ids, answer.logprobs, answer.versions) == ((4, 5), (-1.0, -2.0), ("v",))
    assert answer.prompt_logprobs == (-3.0,)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"choices": []},
        {"choices": [{}, {}]},
        generated(token_ids=[4, 6]),
        generated(token_ids=[]),
        generated(token_ids=[4, 5, 6]),
        generated(token_ids=[4, "5"]),
        generated(finish_reason="abort"),
        generated(logprobs=None),
        generated(logprobs={"content": [{"token_id": 4, "logprob": -1.0}]}),
        generated(logprobs={"content": [{"token_id": 4, "logprob": -1.0}, {"token_id": 5, "logprob": float("nan")}]}),
        generated(logprobs={"content": [{"token_id": 4, "logprob": -1.0}, {"token_id": 5, "logprob": 0.5}]}),
        generated(logprobs={"content": [{"token_id": 4, "logprob": -1.0}, {"token_id": 5, "logprob": -(10**400)}]}),
        generated(weight_versions=[{"start": 0}]),
    ],
)
def test_answers_that_do_not_follow_the_protocol_are_failures(content: dict[str, Any]) -> None:
    with pytest.raises(CallFailed, match="malformed"):
        read_generated(content, [7, 8], 2)


_SERVER = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "600"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
_RUN = """
import os, sys, time
from pathlib import Path
from turngym.agents.models.rollout_servers.launcher import start_watched
process = start_watched([sys.executable, "-c", sys.argv[1]], os.environ, Path(sys.argv[2]))
time.sleep(600)
"""


def pids(log: Path) -> list[int]:
    """Wait for a server to tell its number and that of its child."""
    end = time.monotonic() + 300
    while not log.exists() or len(log.read_text().split()) < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    return [int(word) for word in log.read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_gone(found: list[int]) -> None:
    end = time.monotonic() + 300
    while any(map(is_alive, found)):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_ends_with_its_children_when_it_is_stopped(tmp_path: Path) -> None:
    process = start_watched([sys.executable, "-c", _SERVER], os.environ, tmp_path / "log")
    found = pids(tmp_path / "log")
    assert all(map(is_alive, found))
    stop_watched(process)
    assert_gone(found)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_ends_with_its_children_when_the_run_is_killed(tmp_path: Path) -> None:
    run = subprocess.Popen([sys.executable, "-c", _RUN, _SERVER, str(tmp_path / "log")])
    found = pids(tmp_path / "log")
    assert all(map(is_alive, found))
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert_gone(found)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_children_of_a_server_that_died_do_not_stay_behind(tmp_path: Path) -> None:
    process = start_watched([sys.executable, "-c", _SERVER], os.environ, tmp_path / "log")
    found = pids(tmp_path / "log")
    os.kill(found[0], signal.SIGKILL)
    assert process.wait(120) == 128 + signal.SIGKILL
    assert_gone(found)
    stop_watched(process)


def test_the_command_names_settings_that_contradict_each_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", "--rollout.servers", URL, "--run-dir", str(tmp_path / "run")]) != 0
    assert "--rollout.sampler vllm-server" in capsys.readouterr().err
