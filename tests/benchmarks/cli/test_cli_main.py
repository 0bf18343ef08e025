"""The command line as a whole: help, listing, checking, wrong words, and a machine without the heavy packages."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

import turngym
from turngym.__main__ import COMMANDS, main
from turngym.benchmarks.cli import eval as evaluation
from turngym.benchmarks.cli import train
from turngym.benchmarks.cli.options.help import Groups
from turngym.benchmarks.cli.options.parsing import as_pairs, key_values, relaxed, strict, text_env_ids
from turngym.benchmarks.cli.terminal.components import KINDS, absent_packages
from turngym.envs.checks.table import RULES
from turngym.errors import ConfigError

WITHOUT_TORCH = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root in ("torch", "transformers", "tokenizers"):
            raise ModuleNotFoundError(f"No module named {root!r}", name=root)
sys.meta_path.insert(0, Blocker())
from turngym.__main__ import main
sys.exit(main(sys.argv[1:]))
"""

FORGETFUL = """
import gymnasium
from turngym.envs.textgames.guess_the_number import GuessTheNumber

class Talkative(GuessTheNumber):
    episodes = 0
    def begin(self, task):
        Talkative.episodes += 1
        return f"{super().begin(task)}, episode {Talkative.episodes}"

gymnasium.register("broken/Talkative-v0", Talkative, order_enforce=False, disable_env_checker=True,
                   kwargs={"env_id": "broken/Talkative-v0"})
"""


@pytest.fixture
def broken_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the name of a module that registers an environment which breaks its promises."""
    (tmp_path / "forgetful_games.py").write_text(FORGETFUL)
    monkeypatch.syspath_prepend(tmp_path)
    yield "forgetful_games"
    gymnasium.registry.pop("broken/Talkative-v0", None)
    sys.modules.pop("forgetful_games", None)


def run_without_torch(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_every_command_with_its_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, sentence in COMMANDS.items():
        assert f"{name} {sentence.split()[0]}" in shown
        assert (Path(turngym.__file__).parent.parent / "benchmarks" / "cli" / f"{name.replace('-', '_')}.py").exists()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"usage: turngym {command}" in shown and "``" not in shown


@pytest.mark.parametrize(("command", "groups"), [("train", train.SHOWN), ("eval", evaluation.SHOWN)])
def test_help_shows_the_most_used_options_in_groups(
    command: str, groups: Groups, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [name for line in lines if line.startswith("  -") for name in re.findall(r"--[\w.-]+", line)]
    options = [name for group in groups.values() for name in group]
    assert 20 <= len(options) <= 25 and set(options) <= set(names) and set(groups) <= set(lines)
    assert lines[-1] == f"`turngym {command} --help-all` shows all options."
    assert main([command, "--help-all"]) == 0
    everything = capsys.readouterr().out
    shown = set(re.findall(r"--[\w.-]+", everything))
    assert len(shown) > len(options) and set(options) < shown


def test_the_module_runs_as_a_program_and_says_its_version() -> None:
    found = subprocess.run([sys.executable, "-m", "turngym", "--version"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, f"turngym {turngym.__version__}\n", "")


def test_an_error_of_the_program_is_one_line_on_stderr_and_status_2() -> None:
    words = [sys.executable, "-m", "turngym", "play", "turngym/Sokban-v0"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 2 and not found.stdout
    assert found.stderr == (
        "error: no environment named 'turngym/Sokban-v0'. Did you mean 'turngym/Sokoban-v0'? "
        "`turngym list` shows all.\n"
    )


def test_an_unknown_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    assert "error: no command named 'trian'. Did you mean 'train'?" in capsys.readouterr().err


def test_an_unknown_option_is_answered_with_the_nearest_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "turngym/Sokoban-v0", "--sed", "3"]) == 2
    shown = capsys.readouterr().err
    assert "--sed" in shown and "--seed" in shown


def test_debug_shows_where_an_error_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--debug", "play", "turngym/Nothing-v0"]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown and "UnknownName" in shown
    main(["play", "turngym/Nothing-v0"])
    assert "Traceback" not in capsys.readouterr().err


def test_list_as_json_has_every_environment_and_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == set(KINDS)
    assert [row["name"] for row in found["environments"]] == list(text_env_ids())
    assert {"gigpo", "ppo", "epo"} <= {row["name"] for row in found["algorithms"]}
    assert "textgames" in {row["name"] for row in found["suites"]}
    own = [row["summary"] for rows in found.values() for row in rows if row["origin"] == "turngym"]
    assert len(own) > 150 and all(summary.endswith(".") for summary in own), "one sentence each"
    extras = {row["name"]: row["extra"] for row in found["environments"]}
    assert extras["turngym/TextWorldExpress-v0"] == "text" and extras["turngym/Sokoban-v0"] == ""


def test_list_shows_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "agents"]) == 0
    shown = capsys.readouterr().out
    assert "expert" in shown and "scripted" in shown and "Sokoban" not in shown


def test_an_extra_is_absent_as_long_as_one_of_its_packages_is(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["rich>=13", "pytest>=8 ; extra == 'good'", 'no-such-package>=1; extra == "bad"', "pytest; extra == 'bad'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: wanted)
    assert absent_packages("good") == ()
    assert absent_packages("bad") == ("no-such-package",)


def test_list_works_without_torch_and_says_what_is_missing() -> None:
    found = run_without_torch("list", "--json")
    assert found.returncode == 0, found.stderr
    rows = json.loads(found.stdout)
    gigpo = next(row for row in rows["algorithms"] if row["name"] == "gigpo")
    assert gigpo["absent"] == ["torch"] and gigpo["extra"] == "train" and not gigpo["installed"]
    assert "needs the package torch" in gigpo["summary"]
    installed = {row["name"] for row in rows["agents"] if row["installed"]}
    assert {"random", "expert", "human", "scripted"} <= installed and "hf" not in installed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "training needs the package torch, which is not installed"),
        (["eval", "textgames", "--agent", "hf:model"], "agent 'hf' needs the package torch, which is not installed"),
    ],
)
def test_without_torch_one_sentence_names_the_extra(words: list[str], message: str) -> None:
    found = run_without_torch(*words)
    assert found.returncode == 2 and not found.stdout
    assert found.stderr == f'error: {message}: pip install "turngym[train]".\n'


def test_evaluation_of_simple_agents_works_without_torch() -> None:
    found = run_without_torch("eval", "turngym/GuessTheNumber-v0", "--agent", "expert", "--episodes", "5", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["mean"]["value"] == 1.0


def test_check_accepts_an_environment_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "turngym/TowerOfHanoi-v0", "--json", "--episodes", "1"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["version"] == 1 and not shown["absent"]
    (found,) = shown["environments"]
    assert found["name"] == "turngym/TowerOfHanoi-v0" and found["ok"]
    assert [rule["name"] for rule in found["rules"]] == list(RULES)


def test_check_reports_a_broken_environment_of_another_module(
    broken_module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{broken_module}:broken/Talkative-v0", "--episodes", "1"]) == 1
    shown = capsys.readouterr().out
    assert "FAIL  copies-isolated  Copies share no state" in shown and "ok    any-text-answered" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "turngym/Sokoban"], "Did you mean 'turngym/Sokoban-v0'?"),
        (["check", "no_such_module:Some-v0"], "no module named 'no_such_module', which 'no_such_module:Some-v0' needs"),
        (["check", "turngym/Sokoban-v0", "--episodes", "0"], "--episodes must be at least 1, got 0."),
        (["check", "CartPole-v1"], "got CartPoleEnv"),
    ],
)
def test_check_explains_a_wrong_word(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and message in shown and shown.count("\n") == 1


def test_pairs_are_json_where_they_can_be_and_text_otherwise() -> None:
    pairs = ["size=8", "view=grid", "slippery=true", "limit=null", 'name="8"', "share=0.5", "path=a=b", "bad=NaN"]
    expected = {
        "size": 8,
        "view": "grid",
        "slippery": True,
        "limit": None,
        "name": "8",
        "share": 0.5,
        "path": "a=b",
        "bad": "NaN",
    }
    assert key_values(pairs, "--option") == expected
    assert key_values(as_pairs(expected), "--option") == expected


@pytest.mark.parametrize("pair", ["size", "=8", "", "two words=3", "8=size"])
def test_what_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="--option takes KEY=VALUE, such as max_turns=20, got"):
        key_values([pair], "--option")


def test_a_key_that_occurs_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="--option got 'max_turns' twice"):
        key_values(["max_turns=1", "max-turns=2"], "--option")


def test_a_relaxed_configuration_accepts_anything_and_the_strict_one_refuses_it() -> None:
    from turngym.trainers.settings.config import RolloutConfig

    filled = relaxed(RolloutConfig)(temperature=-1.0)
    assert filled.temperature == -1.0 and isinstance(filled, RolloutConfig)
    with pytest.raises(ConfigError, match=r"temperature must be a number above 0, got -1\.0"):
        strict(filled, RolloutConfig)
    again = strict(relaxed(RolloutConfig)(groups=3, prompt=RolloutConfig().prompt), RolloutConfig)
    assert again == RolloutConfig(groups=3) and type(again) is RolloutConfig


def test_list_shows_the_options_of_a_class_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "door.py"
    file.write_text(
        "from turngym.envs.textgames.guess_the_number import GuessTheNumber\n"
        "class Door(GuessTheNumber):\n    class Options(GuessTheNumber.Options):\n        width: int = 2\n"
    )
    assert main(["list", f"{file}:Door", "--json"]) == 0
    (rows,) = json.loads(capsys.readouterr().out).values()
    assert {"width", "high", "split"} <= {row["name"] for row in rows}


def test_list_shows_the_options_of_an_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "turngym/Sokoban-v0", "--json"]) == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)["turngym/Sokoban-v0"]}
    assert found["size"] == {
        "name": "size",
        "value": "a whole number in [5, 12]",
        "default": "6",
        "meaning": "Cells along one side, outer walls included.",
    }
    assert {"split", "image", "max_turns"} <= found.keys() and "env_id" not in found
    assert main(["list", "turngym/Sokoban-v0"]) == 0 and "outer walls" in capsys.readouterr().out
    assert main(["list", "turngym/WerewolfSeat-v0", "--json"]) == 0 and '"seat"' in capsys.readouterr().out
    assert main(["list", "turngym/ConnectFour-v0"]) == 0 and "longer side" in capsys.readouterr().out
    assert main(["list", "turngym/Sokobn-v0"]) == 2 and "Did you mean" in capsys.readouterr().err
