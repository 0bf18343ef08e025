"""A server that is down, wrong, or dies: told in a sentence before anything is played, and never a score of 0."""

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from chat_servers import Body, Reply, chat_server

from turngym.__main__ import main
from turngym.agents.players import AgentSettings, make_agent
from turngym.benchmarks.leaderboard.entries import read_entries
from turngym.benchmarks.verification.verify import verify
from turngym.errors import ServerDown

LAKE = "turngym/FrozenLake-v0"
QUICK = ["--server", "wait=0.001", "--server", "longest_wait=0.002", "--server", "retries=1"]


def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def refused(*words: str) -> str:
    """Return the one line on the error stream of a command that fails."""
    done = subprocess.run([sys.executable, "-m", "turngym", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and not done.stdout.strip(), done
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_nobody_listening_is_told_at_once_and_writes_nothing(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    told = refused("eval", LAKE, "--agent", f"openai:m@{url}", "--server", "retries=1", "--out", str(tmp_path / "out"))
    assert f"nothing can be reached at {url}" in told and "start the server" in told
    assert not (tmp_path / "out").exists()
    told = refused("tournament", "turngym/TicTacToe-v0", "--players", f"a=openai:m@{url}", "random", "--blocks", "1")
    assert "nothing can be reached" in told


@pytest.mark.parametrize(
    ("reply", "models", "words"),
    [
        (Reply(status=404, raw=b"no such model"), ("other", "third"), ["http_404", "'m'", "Its models: other, third."]),
        (Reply(status=404, raw=b"nothing here"), (), ["no model 'm' or no chat at", "correct the model or the URL"]),
        (Reply(status=401, raw=b"who are you"), (), ["refuses the key", "who are you"]),
        (Reply(status=400, raw=b"bad"), (), ["no usable answer", "http_400: bad"]),
        (Reply(raw=b"<html>hello</html>"), (), ["no usable answer", "malformed"]),
        (Reply(drop="before"), (), ["nothing can be reached"]),
    ],
)
def test_a_server_that_cannot_serve_is_explained(reply: Reply, models: tuple[str, ...], words: list[str]) -> None:
    with chat_server(lambda body: reply) as server:
        server.models = models
        settings = AgentSettings(server={"wait": 0.01})
        with pytest.raises(ServerDown) as found:
            make_agent(f"openai:m@{server.url}", settings).prepare()
    assert all(word in str(found.value) for word in words), found.value


def test_a_server_that_works_is_asked_once_at_most() -> None:
    with chat_server(lambda body: Reply(text="")) as server:
        make_agent(f"openai:m@{server.url}").prepare()
        assert not server.requests
        make_agent(f"openai:an-alias@{server.url}").prepare()
        assert [(body["model"], body["max_tokens"]) for body in server.requests] == [("an-alias", 16)]


@pytest.mark.parametrize("kind", ["unreachable", "failing"])
def test_a_server_that_dies_stops_the_evaluation_and_resume_goes_on(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The episodes that were finished are kept; those cut off are played anew, as if nothing had happened."""
    state, lock = {"left": 60}, threading.Lock()

    def answer(body: Body) -> Reply:
        with lock:
            state["left"] -= 1
        if state["left"] >= 0:
            return Reply("<action>right</action>")
        server.is_gone = kind == "unreachable"
        return Reply(drop="before") if server.is_gone else Reply(status=503)

    out, words = tmp_path / "out", ["eval", LAKE, "--episodes", "12", "--num-envs", "2", "--json", *QUICK]
    with chat_server(answer) as server:
        agent = f"openai:m@{server.url}"
        assert main([*words, "--agent", agent, "--out", str(out)]) == 2
        err = capsys.readouterr().err
        assert "The server has stopped answering" in err and "--resume continues with them" in err
        kept = (out / "episodes.jsonl").read_text().splitlines()
        assert 0 < len(kept) < 12
        state["left"], server.is_gone = 10**6, False
        assert main([*words, "--agent", agent, "--out", str(out), "--resume"]) == 0
    found = json.loads(capsys.readouterr().out)
    [result] = found["environments"].values()
    assert found["complete"] and result["success"]["n_games"] == 12


def test_waiting_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    asked = iter(range(10**6))
    with chat_server(
        lambda body: Reply(status=503) if next(asked) % 3 == 0 else Reply("<action>down</action>")
    ) as server:
        words = ["eval", LAKE, "--agent", f"openai:m@{server.url}", "--episodes", "2", *QUICK[:4], "--json"]
        assert main(words) == 0
    err = capsys.readouterr().err
    assert err.count("server: failed requests so far") == 1 and "http_503" in err


@pytest.mark.parametrize("field", ["", "reasoning"])
def test_an_evaluation_without_an_answer_is_no_score_anywhere(
    field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its folder was accepted as replayed and had a row of 0.0 % on the leaderboard."""
    message = {"content": None, **({field: "I go down."} if field else {})}
    raw = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    out = tmp_path / "out"
    with chat_server(lambda body: Reply(raw=raw)) as server:
        words = ["eval", LAKE, "--agent", f"openai:m@{server.url}", "--episodes", "2", *QUICK, "--out", str(out)]
        assert main([*words, "--option", "max_turns=4"]) == 2
    err = " ".join(capsys.readouterr().err.split())
    reason = "correct the server's reasoning parser." if field else "stop sequences fit the model."
    assert "server: failed requests so far: 1 empty; empty: the" in err
    assert "so there is no score: correct the agent or its server" in err and err.endswith(reason)
    found = verify(out)
    assert not found.is_accepted and [finding.name for finding in found.findings] == ["unanswered"]
    for check in (None, verify):
        entries, left_out = read_entries([out], check)
        assert not entries and "answered no turn" in left_out[0].reason
