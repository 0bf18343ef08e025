"""``turngym serve-env`` before it serves: what it refuses, and what it passes on."""

from typing import Any

import pytest

from turngym.__main__ import main
from turngym.benchmarks.cli import serve_env
from turngym.envs.servers.openenv import server
from turngym.envs.servers.openenv.sessions import Limits

GAME = "turngym/GuessTheNumber-v0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["turngym/GuesTheNumber-v0"], "Did you mean 'turngym/GuessTheNumber-v0'?"),
        ([GAME, "--port", "70000"], "--port must be between 0 and 65535"),
        ([GAME, "--host", "0.0.0.0"], "pass a token that clients have to send"),
        ([GAME, "--max-sessions", "0"], "max_sessions of a server must be greater than 0"),
        ([GAME, "--idle-seconds", "-1"], "idle_seconds of a server must be greater than 0"),
        ([GAME, "--max-sessions", "100000000"], "serve at most"),
        ([GAME, "--option", "hgih=3"], "hgih"),
        ([GAME, "--option", "high"], "--option takes KEY=VALUE"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(serve_env.TOKEN_VARIABLE, raising=False)
    assert main(["serve-env", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_options_become_limits_and_the_token_may_come_from_a_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def serve(make: Any, name: str, **options: Any) -> None:
        seen.update(options, env=make(), name=name)
        options["on_start"]("http://127.0.0.1:1")

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setenv(serve_env.TOKEN_VARIABLE, "secret")
    words = [GAME, "--option", "high=9", "--max-sessions", "7", "--seed", "3", "--port", "0", "--threads", "2"]
    assert main(["serve-env", *words, "--wrapper", "history:k=2"]) == 0
    assert seen["limits"] == Limits(max_sessions=7, seed=3, threads=2)
    assert (seen["token"], seen["port"], seen["host"], seen["name"]) == ("secret", 0, "127.0.0.1", GAME)
    assert "from 1 to 9" in seen["env"].get_wrapper_attr("instructions") and "History" in str(seen["env"])
    shown = capsys.readouterr().out
    assert f"serving {GAME} at http://127.0.0.1:1 (a token is needed, at most 7 sessions)" in shown
    assert "secret" not in shown
