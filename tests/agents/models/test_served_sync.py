"""How servers get new weights: what is written, what servers are told, in which order."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from scripted_policy_servers import ScriptedServer, scripted_servers

from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.rollout_servers.sync import folder as folder_module
from turngym.agents.models.rollout_servers.sync.core import WeightSync
from turngym.agents.models.rollout_servers.sync.folder import AdapterSync, FolderSync, NativeSync, write_weights
from turngym.agents.models.rollout_servers.sync.gpu import GpuSync

SHARED = torch.arange(6.0).view(2, 3)
WEIGHTS = {"embedding": SHARED, "head": SHARED, "turned": SHARED.T}
PAUSE: tuple[str, dict[str, Any]] = ("/pause?mode=wait&clear_cache=true", {})
RESUME: tuple[str, dict[str, Any]] = ("/resume", {})


def told(sync: WeightSync, server: ScriptedServer, label: str, model: str = "") -> list[tuple[str, dict[str, Any]]]:
    """What a server is told when it gets published weights."""
    server.calls.clear()
    sync.deliver(PolicyClient(server.url, model=model), label)
    return list(server.calls)


def test_files_hold_tied_weights_twice_and_the_last_two_versions_are_kept(tmp_path: Path) -> None:
    sync = FolderSync(tmp_path, 5.0)
    with scripted_servers(1) as (server,):
        for label in ("a", "b", "c"):
            sync.publish(label, WEIGHTS)
        assert told(sync, server, "c") == [
            PAUSE,
            ("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(tmp_path / "c")}}),
            ("/reset_prefix_cache", {}),
            ("/update_weight_version", {"new_version": "c"}),
            RESUME,
        ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]
    found = load_file(tmp_path / "c" / "model.safetensors")
    assert found.keys() == WEIGHTS.keys() and all(torch.equal(found[name], WEIGHTS[name]) for name in WEIGHTS)
    sync.close()
    assert not list(tmp_path.iterdir())


def test_large_weights_are_in_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "_FILE_BYTES", 40)
    write_weights(tmp_path / "new", WEIGHTS)
    files = sorted((tmp_path / "new").iterdir())
    assert [file.name for file in files] == ["model-00001.safetensors", "model.safetensors"]
    assert {name for file in files for name in load_file(file)} == WEIGHTS.keys()


def test_adapters_replace_those_of_the_same_name(tmp_path: Path) -> None:
    sync = AdapterSync(tmp_path, 5.0, {"r": 4})
    sync.publish("a", {"lora_A": SHARED})
    with scripted_servers(1) as (server,):
        path, body = told(sync, server, "a", "policy")[1]
    assert path == "/v1/load_lora_adapter"
    assert body == {"lora_name": "policy", "lora_path": str(tmp_path / "a"), "load_inplace": True}
    assert (tmp_path / "a" / "adapter_model.safetensors").is_file()
    assert json.loads((tmp_path / "a" / "adapter_config.json").read_text()) == {"r": 4}


def test_the_protocol_for_weights_is_told_of_every_file(tmp_path: Path) -> None:
    sync = NativeSync(tmp_path, 5.0)
    sync.publish("a", WEIGHTS)
    with scripted_servers(1) as (server,):
        calls = told(sync, server, "a")
    assert [path for path, _ in calls[1:5]] == [
        "/init_weight_transfer_engine",
        "/start_weight_update",
        "/update_weights",
        "/finish_weight_update",
    ]
    assert calls[3][1] == {"update_info": {"path": str(tmp_path / "a" / "model.safetensors")}}
    assert calls[4][1] == {"weight_version": "a"}


def test_a_server_that_returns_gets_weights_of_gpus_from_files(tmp_path: Path) -> None:
    """What the GPUs themselves do cannot be run here."""
    missing = False
    sync = GpuSync("nccl", FolderSync(tmp_path, 5.0), lambda: missing)
    sync.publish("a", WEIGHTS)
    sync.settle()
    with scripted_servers(1) as (server,):
        with pytest.raises(CallFailed, match="with the next weight sync"):
            told(sync, server, "a")
        missing = True
        sync.publish("b", WEIGHTS)
        sync.settle()
        told(sync, server, "b")
        assert server.weights == str(tmp_path / "b")
    sync.close()


def test_servers_sleep_and_wake() -> None:
    with scripted_servers(1) as (server,):
        client = PolicyClient(server.url)
        client.sleep(1, 5.0)
        client.wake(5.0, "weights")
        client.wake(5.0)
        assert [path for path, _ in server.calls] == ["/sleep?level=1&mode=wait", "/wake_up?tags=weights", "/wake_up"]
