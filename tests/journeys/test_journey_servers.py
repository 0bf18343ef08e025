"""Journeys: a model's server that is down, wrong, or slow; what is told, and a folder that continues."""

import os
import socket
from pathlib import Path

import pytest
from chat_servers import Reply, chat_server
from journey import fails, works

LAKE = "turngym/FrozenLake-v0"
QUICK = ("--server", "wait=0.001", "--server", "longest_wait=0.002", "--server", "retries=1")


def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def command(kind: str, agent: str) -> tuple[str, ...]:
    if kind == "eval":
        return ("eval", LAKE, "--agent", agent, "--episodes", "2", "--option", "max_turns=3", "--out", "out", *QUICK)
    players = (f"mine={agent}", "random")
    return ("tournament", "turngym/TicTacToe-v0", "--players", *players, "--blocks", "1", "--out", "out", *QUICK)


@pytest.mark.parametrize("kind", ["eval", "tournament"])
def test_a_server_that_is_down_is_told_at_once(kind: str, tmp_path: Path) -> None:
    agent = f"openai:m@http://127.0.0.1:{closed_port()}/v1"
    fails(tmp_path, *command(kind, agent), says=("nothing can be reached", "start the server"))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(status=401, raw=b"who are you"), ("refuses the key", "TURNGYM_API_KEY")),
        (Reply(raw=b"<html>hello</html>"), ("no usable answer", "look into its log")),
        (Reply(status=404, raw=b"no such model"), ("no model 'm' or no chat", "correct the model or the URL")),
    ],
)
def test_a_server_that_answers_wrongly_is_told(reply: Reply, says: tuple[str, ...], tmp_path: Path) -> None:
    with chat_server(lambda body: reply) as server:
        server.models = ()
        fails(tmp_path, *command("eval", f"openai:m@{server.url}"), says=says)
    assert not os.listdir(tmp_path)


def test_empty_answers_are_no_score_and_another_folder_works(tmp_path: Path) -> None:
    with chat_server(lambda body: Reply(text="")) as server:
        words = command("eval", f"openai:m@{server.url}")
        fails(tmp_path, *words, says=("was answered by the model", "no score"))
        server.answer = lambda body: Reply("<action>right</action>")
        assert works(tmp_path, *words[:-8], "--out", "new", *QUICK, "--json").result["complete"]


def test_a_slow_server_is_given_up_in_time(tmp_path: Path) -> None:
    with chat_server(lambda body: Reply(delay=600)) as server:
        words = command("eval", f"openai:m@{server.url}")
        fails(tmp_path, *words, "--server", "timeout=0.2", "--server", "deadline=0.5", says=("timeout",))
