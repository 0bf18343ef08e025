"""``--json`` keeps standard output for the result, whatever environments and libraries print."""

import json
import os
from pathlib import Path

import pytest
import warm

from turngym.__main__ import main
from turngym.terminal.output import print_json, reserved_stdout

TALKATIVE = """
import os, subprocess
import gymnasium
from turngym.envs.textgames.guess_the_number import GuessTheNumber

class Talkative(GuessTheNumber):
    def __init__(self, **options):
        print("made by Python")
        super().__init__(**options)
    def apply_action(self, action):
        print("stepped by Python")
        os.write(1, b"stepped by compiled code\\n")
        subprocess.run(["echo", "stepped by a child"])
        return super().apply_action(action)

gymnasium.register("talkative/Guess-v0", entry_point=Talkative, order_enforce=False, disable_env_checker=True)
"""
SAID = ("made by Python", "stepped by Python", "stepped by compiled code", "stepped by a child")


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_an_environment_that_prints_leaves_the_json_whole(backend: str, tmp_path: Path) -> None:
    (tmp_path / "talkative_env.py").write_text(TALKATIVE)
    words = ["eval", "talkative_env:talkative/Guess-v0", "--agent", "random", "--episodes", "2"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(tmp_path)])}
    done = warm.run("-m", "turngym", *words, "--backend", backend, "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["environments"].keys() == {"talkative/Guess-v0"}
    assert all(text in done.stderr for text in SAID)


def test_the_stream_is_given_back_after_a_command(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["list", "wrappers", "--json"]) == 0
        print("printed afterwards")
        found = capfd.readouterr()
        result, _, rest = found.out.rpartition("printed afterwards")
        assert isinstance(json.loads(result), dict | list) and rest == "\n"


def test_a_failed_command_prints_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "turngym/Nothing-v0", "--agent", "random", "--json"]) == 2
    found = capfd.readouterr()
    assert not found.out and found.err.startswith("error: no suite or environment named")
    os.write(1, b"the descriptor is back\n")
    assert capfd.readouterr().out == "the descriptor is back\n"


def test_results_are_ascii_so_that_every_locale_can_print_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with reserved_stdout():
        print("noise")
        print_json({"name": "caf\u00e9 \ud800"})
    found = capfd.readouterr()
    assert found.out.isascii() and json.loads(found.out) == {"name": "caf\u00e9 \ud800"} and found.err == "noise\n"
