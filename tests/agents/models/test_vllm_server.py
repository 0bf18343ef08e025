"""A real vLLM server: played with over the chat protocol, killed in the middle, started again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import small_model

from turngym.__main__ import main

pytestmark = pytest.mark.integration
pytest.importorskip("vllm", reason="vllm is in .venvs/vllm only: run make test-integration")

LAKE = "turngym/FrozenLake-v0"
LABEL = f"{LAKE} max_turns=6"
EPISODES = 30
PATIENCE = 400.0


class Server:
    """A server process on the loopback; always the same port, so that it can come back."""

    def __init__(self, model: Path, log: Path) -> None:
        self.model, self.log = model, log
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def agent(self) -> str:
        return f"openai:small@http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        words = ["-m", "vllm.entrypoints.openai.api_server", "--model", str(self.model), "--served-model-name", "small"]
        words += ["--dtype", "float32", "--enforce-eager", "--kv-cache-memory-bytes", str(64 * 2**20)]
        words += ["--host", "127.0.0.1", "--port", str(self.port), "--max-model-len", "4096"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "VLLM_NO_USAGE_STATS": "1"},
            )
        end = time.monotonic() + PATIENCE
        while not self.is_ready():
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text("utf8")[-3000:]
            time.sleep(0.2)

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    small_model(hidden=64).save(folder / "model")
    server = Server(folder / "model", folder / "log")
    server.start()
    yield server
    server.kill()


def words_for(server: Server, out: Path, episodes: int = EPISODES) -> list[str]:
    words = ["eval", LAKE, "--agent", server.agent, "--episodes", str(episodes), "--out", str(out), "--resume"]
    words += ["--option", "max_turns=6", "--prompt", "instructions=false", "--num-envs", "2"]
    words += ["--max-new-tokens", "8", "--temperature", "1"]
    return [*words, "--server", "retries=3", "--server", "wait=0.005"]


def rows(out: Path) -> list[dict[str, Any]]:
    """Return the finished episodes of an evaluation, which may be under way."""
    file = out / "episodes.jsonl"
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] if file.exists() else []


def lost(out: Path) -> dict[int, int]:
    return {row["seed"]: row["seats"]["player_0"]["lost"] for row in rows(out)}


def test_a_prompt_that_the_server_refuses_as_too_long_ends_its_episode_only(server: Server, tmp_path: Path) -> None:
    words = ["eval", LAKE, "--agent", server.agent, "--episodes", "2", "--prompt", f"system={'wall ' * 5000}"]
    assert main([*words, "--max-new-tokens", "8", "--out", str(tmp_path / "out")]) == 0
    found = rows(tmp_path / "out")
    assert [(row["status"], row["length"], row["fault"]) for row in found] == [("context", 0, "")] * 2
    assert "4096" in found[0]["truncation_detail"]


def test_an_evaluation_is_played_and_repeats_by_its_seeds(server: Server, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert main(words_for(server, tmp_path / name, episodes=4)) == 0
    found = json.loads((tmp_path / "one" / "results.json").read_text("utf8"))
    usage = found["usage"]
    assert found["complete"] and found["environments"][LABEL]["success"]["n_games"] == 4
    assert usage["lost"] == usage["unmetered"] == 0 and set(usage["failures"]) <= {"empty"}
    assert 0 < usage["tokens_out"] <= 8 * usage["calls"] < usage["tokens_in"]
    one, two = ((tmp_path / name / "transcripts.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_server_that_dies_costs_no_episode_and_one_that_is_back_is_gone_on_with(
    server: Server, tmp_path: Path
) -> None:
    """Two evaluations see it die: the one stops and says so, the other is killed too; both are resumed."""
    stops, dies = tmp_path / "stops", tmp_path / "dies"
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "turngym", *words_for(server, out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for out in (stops, dies)
    ]
    try:
        end = time.monotonic() + PATIENCE
        while min(len(rows(stops)), len(rows(dies))) < 2:
            assert time.monotonic() < end and all(process.poll() is None for process in running)
            time.sleep(0.01)
        running[1].kill()
        server.kill()
        _, told = running[0].communicate(timeout=PATIENCE)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert running[0].returncode == 2
    assert "The server has stopped answering" in told and "--resume continues" in told and "Traceback" not in told

    before = {out: rows(out) for out in (stops, dies)}
    assert all(0 < len(kept) < EPISODES for kept in before.values())
    assert not (stops / "results.json").exists() and not (dies / "results.json").exists()
    server.start()
    for out, kept in before.items():
        assert main(words_for(server, out)) == 0
        after = rows(out)
        assert len(after) == EPISODES and all(row in after for row in kept)
        assert not sum(lost(out).values()), "no answer is lost, whatever the server did"
        assert json.loads((out / "results.json").read_text("utf8"))["complete"]


def test_the_server_tells_tokens_and_their_log_probabilities(server: Server) -> None:
    """What a client needs that trains on what a server sampled."""
    body = {
        "model": "small",
        "messages": [{"role": "user", "content": "player 2 3"}],
        **{"max_tokens": 5, "seed": 3, "return_token_ids": True, "logprobs": True},
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        found = json.load(answer)
    choice = found["choices"][0]
    assert len(choice["token_ids"]) == len(choice["logprobs"]["content"]) == found["usage"]["completion_tokens"]
    assert len(found["prompt_token_ids"]) == found["usage"]["prompt_tokens"]
