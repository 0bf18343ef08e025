"""The policy server: what it samples, how it changes weights, and what it refuses."""

import contextlib
import copy
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from policy_servers import ask, call, served, write_adapter
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small import small_model

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.policy_server import PolicyServer
from turngym.agents.models.policy_server.engine import token_logprobs
from turngym.agents.models.policy_server.requests import Limits, Refused, read_generate, read_object
from turngym.errors import ConfigError
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.engine.adapters import add_adapters, without_adapters
from turngym.trainers.engine.scoring import score

SETTINGS = {"temperature": 0.7, "max_tokens": 12, "logprobs": 0, "seed": 1, "ignore_eos": True}
PROMPT = [100 + k * 7 % 200 for k in range(150)]


def scored(model: LanguageModel, prompt: list[int], ids: list[int], temperature: float = 0.7) -> torch.Tensor:
    reads = [Read(len(prompt) - 1 + k, token, k, 0, 0) for k, token in enumerate(ids)]
    with torch.no_grad():
        return score(model.network, [Row.of((*prompt, *ids), reads)], temperature).logprobs.flatten()


def gap(model: LanguageModel, prompt: list[int], answer: dict[str, Any]) -> float:
    (choice,) = answer["choices"]
    logprobs = torch.tensor([part["logprob"] for part in choice["logprobs"]["content"]])
    assert [part["token_id"] for part in choice["logprobs"]["content"]] == choice["token_ids"]
    return float((logprobs - scored(model, prompt, choice["token_ids"])).abs().max())


def ids_of(answer: dict[str, Any]) -> list[int]:
    return list(answer["choices"][0]["token_ids"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PolicyServer]:
    with served(small_model(), folder, longest=600) as found:
        yield found


def test_tokens_follow_from_prompt_and_seed_alone_whatever_is_generated_beside_them(server: PolicyServer) -> None:
    prompts = [PROMPT[: 20 + 9 * k] for k in range(12)]
    alone = [ask(server, prompt, seed) for seed, prompt in enumerate(prompts)]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda each: ask(server, each[1], each[0]), enumerate(prompts)))
    assert [ids_of(found) for found in together] == [ids_of(found) for found in alone]
    assert len({tuple(ids_of(found)) for found in alone}) > 6
    assert max(gap(small_model(), prompt, found) for prompt, found in zip(prompts, together, strict=True)) < 1e-4


def test_requests_of_different_settings_share_a_batch(server: PolicyServer) -> None:
    kinds: list[dict[str, Any]] = [{"temperature": 0.0}, {"temperature": 2.0, "max_tokens": 30}, {"top_p": 0.5}]
    kinds += [{"max_tokens": 1}]
    alone = [ids_of(ask(server, PROMPT, 3, **kind)) for kind in kinds]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda kind: ids_of(ask(server, PROMPT, 3, **kind)), kinds * 2)) == alone * 2
    assert [len(ids) for ids in alone] == [12, 30, 12, 1]


def test_a_stop_token_ends_a_completion_and_is_part_of_it(server: PolicyServer) -> None:
    ids = ids_of(ask(server, PROMPT, 5))
    found = ask(server, PROMPT, 5, stop_token_ids=[ids[3]])["choices"][0]
    assert found["token_ids"] == ids[: ids.index(ids[3]) + 1] and found["finish_reason"] == "stop"
    assert ask(server, PROMPT, 5)["choices"][0]["finish_reason"] == "length"


def test_log_probabilities_of_a_prompt_are_those_of_a_forward_pass_at_temperature_1(server: PolicyServer) -> None:
    rows = ask(server, PROMPT, prompt_logprobs=0)["prompt_logprobs"]
    found = torch.tensor([row[str(token)]["logprob"] for row, token in zip(rows[1:], PROMPT[1:], strict=True)])
    model = small_model()
    with torch.no_grad():
        logits = model.network(torch.tensor([PROMPT])).logits[0, :-1]
    expected = torch.log_softmax(logits, -1).gather(-1, torch.tensor(PROMPT[1:])[:, None])[:, 0]
    assert rows[0] is None and (found - expected).abs().max() < 1e-5
    assert token_logprobs(model.network, PROMPT) == pytest.approx(expected.tolist(), abs=1e-5)


def test_completions_take_several_prompts_of_token_ids(server: PolicyServer) -> None:
    body = {"prompt": [PROMPT, PROMPT[:9]], "max_tokens": 4, "seed": 7, "logprobs": 0, "return_token_ids": True}
    status, found = call(server, "/v1/completions", {**body, "ignore_eos": True, "return_tokens_as_token_ids": True})
    assert status == 200 and [choice["prompt_token_ids"] for choice in found["choices"]] == body["prompt"]
    first = found["choices"][0]
    assert first["logprobs"]["tokens"] == [f"token_id:{token}" for token in first["token_ids"]]
    assert first["token_ids"] == ids_of(ask(server, PROMPT, 7, temperature=1.0, max_tokens=4))
    assert found["usage"] == {"prompt_tokens": 159, "completion_tokens": 8, "total_tokens": 167}


def test_the_server_says_what_it_serves(server: PolicyServer) -> None:
    assert call(server, "/health") == (200, {})
    status, found = call(server, "/v1/models")
    assert status == 200 and found["data"] == [{"id": "small", "object": "model", "max_model_len": 600}]


def reloaded(server: PolicyServer, path: Path | str) -> tuple[int, Any]:
    body = {"method": "reload_weights", "kwargs": {"weights_path": str(path)}}
    return call(server, "/collective_rpc", body)


def test_new_weights_replace_the_old_ones_and_all_that_was_computed_with_them(folder: Path) -> None:
    old, new = small_model(), small_model(seed=1)
    new.save(folder / "new")
    with served(small_model(), folder) as server:
        before = ask(server, PROMPT, 1)
        assert reloaded(server, folder / "new")[0] == 200
        assert call(server, "/update_weight_version", {"new_version": "17"})[0] == 200
        after = ask(server, PROMPT, 1)
        assert call(server, "/weight_info") == (200, {"weight_version": "17"})
    assert gap(old, PROMPT, before) < 1e-4 < 0.1 < gap(old, PROMPT, after)
    assert gap(new, PROMPT, after) < 1e-4
    assert after["choices"][0]["weight_versions"] == [{"version": "17", "start": 0, "end": 12}]


def test_weights_never_change_inside_a_completion(folder: Path) -> None:
    models = [small_model(), small_model(seed=2)]
    models[1].save(folder / "other")
    models[0].save(folder / "first")
    names = {"default": 0, "other": 1, "first": 0}
    with served(small_model(), folder) as server, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, server, PROMPT, seed, max_tokens=200) for seed in range(8)]
        for name in ("other", "first", "other"):
            call(server, "/pause?mode=wait&clear_cache=true", method="POST")
            assert reloaded(server, folder / name)[0] == 200
            call(server, "/update_weight_version", {"new_version": name})
            assert call(server, "/reset_prefix_cache", method="POST") == (200, {"success": True})
            call(server, "/resume", method="POST")
        found = [future.result() for future in asked]
    for answer in found:
        (span,) = answer["choices"][0]["weight_versions"]
        assert (span["start"], span["end"]) == (0, 200)
        assert gap(models[names[span["version"]]], PROMPT, answer) < 1e-4


def test_completions_held_by_a_pause_begin_again_with_the_new_weights(folder: Path) -> None:
    new = small_model(seed=3)
    new.save(folder / "third")
    with served(small_model(), folder) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, server, PROMPT, 4, max_tokens=400)
        while not server.engine.counts["running"]:
            time.sleep(0.005)
        call(server, "/pause?mode=keep", method="POST")
        assert call(server, "/is_paused") == (200, {"is_paused": True})
        assert reloaded(server, folder / "third")[0] == 200
        call(server, "/resume", method="POST")
        assert gap(new, PROMPT, asked.result()) < 1e-4


def test_a_pause_may_end_completions_with_the_tokens_that_they_have(server: PolicyServer) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, server, PROMPT, 4, max_tokens=440)
        while not server.engine.counts["running"]:
            time.sleep(0.005)
        assert call(server, "/pause?mode=abort", method="POST")[0] == 200
        found = asked.result()["choices"][0]
        assert call(server, "/resume", method="POST")[0] == 200
    assert found["finish_reason"] == "abort" and len(found["token_ids"]) < 440


def test_an_adapter_is_a_model_of_its_own_and_can_be_replaced(folder: Path) -> None:
    first, second = (add_adapters(small_model(), 2, seed) for seed in (0, 1))
    for number, adapted in enumerate((first, second)):
        torch.manual_seed(number)
        for name, parameter in adapted.network.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.3)
        write_adapter(adapted, folder / f"adapter-{number}", 2)
    body = {"lora_name": "actor", "lora_path": str(folder / "adapter-0")}
    with served(small_model(), folder) as server:
        unknown = {"token_ids": [5], "sampling_params": {}, "model": "actor"}
        assert call(server, "/inference/v1/generate", unknown)[0] == 404
        assert call(server, "/v1/load_lora_adapter", body)[0] == 200
        assert call(server, "/v1/load_lora_adapter", body)[0] == 400
        expected = {"actor": without_adapters(first), "small": small_model()}
        _check_models(server, expected)
        other = {**body, "lora_path": str(folder / "adapter-1"), "load_inplace": True}
        assert call(server, "/v1/load_lora_adapter", other)[0] == 200
        _check_models(server, {**expected, "actor": without_adapters(second)})
        assert call(server, "/v1/unload_lora_adapter", {"lora_name": "actor"})[0] == 200
        assert [each["id"] for each in call(server, "/v1/models")[1]["data"]] == ["small"]


def _check_models(server: PolicyServer, expected: dict[str, LanguageModel]) -> None:
    """Ask for several models at the same time."""

    def one(name: str) -> float:
        settings = {"temperature": 0.7, "max_tokens": 12, "logprobs": 0, "seed": 1, "ignore_eos": True}
        body = {"token_ids": PROMPT, "sampling_params": settings, "model": name}
        status, found = call(server, "/inference/v1/generate", body)
        assert status == 200
        return gap(expected[name], PROMPT, found)

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(one, list(expected) * 4)) < 1e-4


def test_an_abandoned_request_is_dropped(server: PolicyServer) -> None:
    settings = {"max_tokens": 440, "ignore_eos": True, "seed": 1}
    body = json.dumps({"token_ids": PROMPT, "sampling_params": settings}).encode()
    server.engine.pause("keep")
    with contextlib.closing(socket.create_connection(("127.0.0.1", server.server_address[1]))) as connection:
        head = f"POST /inference/v1/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        while not server.engine.counts["waiting"]:
            time.sleep(0.005)
    deadline = time.monotonic() + 120
    server.engine.resume()
    while any(server.engine.counts.values()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.engine.counts == {"waiting": 0, "running": 0}
    assert len(ids_of(ask(server, PROMPT))) == 12


def test_unusable_weights_change_nothing(server: PolicyServer, folder: Path, tmp_path: Path) -> None:
    before = ids_of(ask(server, PROMPT, 9))
    whole = small_model(seed=5)
    whole.save(folder / "whole")
    tensors = load_file(folder / "whole" / "model.safetensors")
    name = "model.layers.1.mlp.up_proj.weight"
    wrong: dict[str, dict[str, torch.Tensor]] = {
        "missing": {key: tensor for key, tensor in tensors.items() if key != name},
        "shape": {**tensors, name: tensors[name][:-1].contiguous()},
        "unknown": {**tensors, "model.layers.7.mlp.up_proj.weight": tensors[name].clone()},
        "untied": {**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"] + 1},
    }
    for kind, content in wrong.items():
        (folder / kind).mkdir()
        save_file(content, folder / kind / "model.safetensors")
    (folder / "nothing").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "model.safetensors").write_bytes(b"\xff" * 64)
    (folder / "pickle").mkdir()
    torch.save(whole.network.state_dict(), folder / "pickle" / "pytorch_model.bin")
    for kind in (*wrong, "nothing", "broken", "pickle"):
        status, found = reloaded(server, folder / kind)
        assert status == 400 and found["error"]["message"], kind
    assert ids_of(ask(server, PROMPT, 9)) == before


def test_a_server_is_well_while_it_reads_weights_and_not_once_a_read_has_ended_half_way(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is asked while it reads would otherwise be taken for a broken one."""
    small_model(seed=6).save(folder / "slow")
    seen: list[int] = []
    breaks_at = 0

    class Watched:
        def __init__(self, *given: Any, **named: Any) -> None:
            self.file: Any = safe_open(*given, **named)

        def __enter__(self) -> "Watched":
            return self

        def __exit__(self, *error: object) -> None:
            self.file.__exit__(*error)

        def keys(self) -> list[str]:
            return list(self.file.keys())

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def get_tensor(self, name: str) -> torch.Tensor:
            seen.append(call(reading, "/health")[0])
            if len(seen) == breaks_at:
                raise OSError("the disk is gone")
            return torch.as_tensor(self.file.get_tensor(name))

    monkeypatch.setattr("turngym.agents.models.policy_server.weights.safe_open", Watched)
    with served(small_model(), folder) as reading:
        assert reloaded(reading, folder / "slow")[0] == 200
        assert len(seen) > 5 and set(seen) == {200}
        breaks_at = len(seen) * 3 // 2 + 3  # each tensor is read to be checked, and then to be copied
        assert reloaded(reading, folder / "slow")[0] == 400
        assert call(reading, "/health")[0] == 503
        breaks_at = 0
        assert reloaded(reading, folder / "slow")[0] == 200
        assert call(reading, "/health")[0] == 200


@pytest.mark.parametrize("kind", ["pipe", "device", "link", "large", "nan", "infinite"])
def test_files_that_would_hang_or_break_the_server_change_nothing(
    server: PolicyServer, folder: Path, tmp_path: Path, kind: str
) -> None:
    before = ids_of(ask(server, PROMPT, 9))
    name = "model.layers.1.mlp.up_proj.weight"
    whole = tmp_path / "whole"
    small_model(seed=5).save(whole)
    tensors = load_file(whole / "model.safetensors")
    for part, base in (("weights", "model.safetensors"), ("adapter", "adapter_model.safetensors")):
        place = folder / f"{kind}-{part}"
        if part == "adapter":
            write_adapter(add_adapters(small_model(), 2, 0), place, 2)
            tensors = load_file(place / base)
            name = next(iter(tensors))
            (place / base).unlink()
        else:
            place.mkdir()
        if kind == "pipe":
            os.mkfifo(place / base)
        elif kind in ("device", "link"):
            (place / base).symlink_to("/dev/zero" if kind == "device" else whole / "model.safetensors")
        elif kind == "large":
            with (place / base).open("wb") as file:
                file.truncate(2**30)
        else:
            tensors[name][0, 0] = float("nan" if kind == "nan" else "inf")
            save_file(tensors, place / base)
        route, body = "/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(place)}}
        if part == "adapter":
            route, body = "/v1/load_lora_adapter", {"lora_name": kind, "lora_path": str(place)}
        status, found = call(server, route, body)
        assert status == 400 and found["error"]["message"], found
    assert ids_of(ask(server, PROMPT, 9)) == before and call(server, "/health")[0] == 200


def test_weights_are_read_below_one_folder_alone(server: PolicyServer, folder: Path, tmp_path: Path) -> None:
    small_model(seed=5).save(tmp_path / "outside")
    (folder / "link").symlink_to(tmp_path / "outside")
    for path in (tmp_path / "outside", folder / ".." / "x", folder / "link", "/etc", "\ud800", "x" * 5000, "", 7):
        body = {"method": "reload_weights", "kwargs": {"weights_path": path if isinstance(path, int) else str(path)}}
        assert call(server, "/collective_rpc", body)[0] in (400, 403), path
        assert call(server, "/v1/load_lora_adapter", {"lora_name": "a", "lora_path": str(path)})[0] in (400, 403)
    assert call(server, "/collective_rpc", {"method": "load_model", "kwargs": {}})[0] == 400
    with served(small_model()) as closed:
        assert reloaded(closed, folder / "whole")[0] == 403


HOSTILE: list[Any] = [
    b"",
    b"[",
    b"[" * 100_000,
    b"7",
    {},
    {"token_ids": [5]},
    {"token_ids": [], "sampling_params": {}},
    {"token_ids": [-1], "sampling_params": {}},
    {"token_ids": [324], "sampling_params": {}},
    {"token_ids": [5.0], "sampling_params": {}},
    {"token_ids": [True], "sampling_params": {}},
    {"token_ids": "text", "sampling_params": {}},
    {"token_ids": [5] * 600, "sampling_params": {}},
    {"token_ids": [10**400], "sampling_params": {}},
    {"token_ids": [5], "sampling_params": []},
    *({"token_ids": [5], "sampling_params": {"max_tokens": each}} for each in (0, 600, "many")),
    *({"token_ids": [5], "sampling_params": {"temperature": each}} for each in (-1, "hot", 1e9)),
    *({"token_ids": [5], "sampling_params": {each: 10**400}} for each in ("temperature", "top_p", "max_tokens", "n")),
    *({"token_ids": [5], "sampling_params": {each: -(10**400)}} for each in ("temperature", "top_p", "seed")),
    b'{"token_ids": [5], "sampling_params": {"temperature": NaN}}',
    b'{"token_ids": [5], "sampling_params": {"temperature": 1e999}}',
    *({"token_ids": [5], "sampling_params": {"seed": each}} for each in (0.5, "a", 2**80)),
    {"token_ids": [5], "sampling_params": {"top_p": 0}},
    {"token_ids": [5], "sampling_params": {"top_k": 5}},
    {"token_ids": [5], "sampling_params": {"n": 3}},
    {"token_ids": [5], "sampling_params": {"logprobs": 20}},
    {"token_ids": [5], "sampling_params": {"prompt_logprobs": -1}},
    {"token_ids": [5], "sampling_params": {"stop_token_ids": [999]}},
    {"token_ids": [5], "sampling_params": {"ignore_eos": "yes"}},
    {"token_ids": [5], "sampling_params": {}, "stream": True},
    {"token_ids": [5], "sampling_params": {}, "model": "no\nbody"},
]


def test_hostile_requests_are_refused_and_the_server_lives_on(server: PolicyServer) -> None:
    for body in HOSTILE:
        status, found = call(server, "/inference/v1/generate", body, method="POST")
        assert status == 400 and found["error"]["message"], body
    for body in ({"prompt": "text"}, {"prompt": []}, {"prompt": [[5]] * 257}, {"prompt": [[5]], "echo": True}):
        assert call(server, "/v1/completions", body)[0] == 400, body
    assert call(server, "/pause?mode=forever", method="POST")[0] == 400
    assert call(server, "/update_weight_version", {"new_version": ""})[0] == 400
    assert call(server, "/nowhere", {})[0] == call(server, "/nowhere")[0] == 404
    assert call(server, "/v1/completions", b"", "POST", **{"Content-Length": "99999999999"})[0] == 413
    assert call(server, "/v1/completions", b"{}", "POST", **{"Content-Length": "-1"})[0] in (400, 413)
    assert len(ids_of(ask(server, PROMPT))) == 12


def test_a_completion_that_breaks_its_batch_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [[5, 6 + k, 9] for k in range(6)]
    with served(small_model()) as server, ThreadPoolExecutor(6) as pool:
        expected = [ids_of(ask(server, prompt, 1)) for prompt in prompts]
        server.engine.forget_prefixes()
        forward, sizes = server.engine._sessions._forward, []
        working = forward.prefill

        def fragile(parts: Any) -> Any:
            sizes.append(len(parts))
            if any(8 in tokens for _, tokens in parts):
                raise RuntimeError("a bad prompt")
            return working(parts)

        monkeypatch.setattr(forward, "prefill", fragile)
        server.engine.pause("keep")
        asked = [
            pool.submit(call, server, "/inference/v1/generate", {"token_ids": prompt, "sampling_params": SETTINGS})
            for prompt in prompts
        ]
        while server.engine.counts["waiting"] < 6:
            time.sleep(0.005)
        server.engine.resume()
        found = [future.result() for future in asked]
        assert [status for status, _ in found] == [200, 200, 500, 200, 200, 200], sizes
        assert "a bad prompt" in found[2][1]["error"]["message"]
        assert [ids_of(answer) for status, answer in found if status == 200] == expected[:2] + expected[3:]
        assert max(sizes) > 1, "they shared no batch"
        assert server.engine.counts == {"waiting": 0, "running": 0}


def test_a_token_guards_everything_but_the_health_route() -> None:
    with served(small_model(), token="secret") as server:
        body = {"token_ids": [5], "sampling_params": {"max_tokens": 1}}
        assert call(server, "/health")[0] == 200
        assert call(server, "/v1/models")[0] == call(server, "/inference/v1/generate", body)[0] == 401
        assert call(server, "/inference/v1/generate", body, Authorization="Bearer secret")[0] == 200
        assert call(server, "/v1/models", Origin="http://evil.example", Authorization="Bearer secret")[0] == 403
    with served(small_model()) as server, pytest.raises(ConfigError, match="pass a token"):
        PolicyServer(server.engine, host="0.0.0.0")


def test_more_requests_than_may_wait_are_refused(folder: Path) -> None:
    with served(small_model(), max_waiting=3) as server, ThreadPoolExecutor(8) as pool:
        server.engine.pause("keep")
        body = {"token_ids": [5], "sampling_params": {"max_tokens": 1}}
        asked = [pool.submit(call, server, "/inference/v1/generate", body) for _ in range(8)]
        while sum(future.done() for future in asked) < 5:
            time.sleep(0.005)
        server.engine.resume()
        assert sorted(future.result()[0] for future in asked) == [200] * 3 + [503] * 5


def test_closing_answers_those_who_wait() -> None:
    with ThreadPoolExecutor(1) as pool, served(copy.copy(small_model())) as server:
        server.engine.pause("keep")
        asked = pool.submit(call, server, "/inference/v1/generate", {"token_ids": [5], "sampling_params": {}})
        while not server.engine.counts["waiting"]:
            time.sleep(0.005)
        threading.Thread(target=server.engine.close).start()
        assert asked.result()[0] == 500


def test_bodies_are_read_strictly() -> None:
    assert read_generate({"token_ids": [5], "sampling_params": {}}, Limits(300, 64)).sampling.max_new_tokens == 63
    with pytest.raises(Refused):
        read_object(b"null")
