"""A trained model is played as it was trained: the printed command finds the number of the training itself."""

import contextlib
import io
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from test_cli_train import TINY_WORDS

from turngym.__main__ import main
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import load_model
from turngym.agents.models.settings import MODEL_FILE, ModelSettings, model_settings
from turngym.agents.players import AgentSettings, make_agent, settings_for
from turngym.benchmarks.cli.options.trained_models import environment_as_trained
from turngym.errors import ConfigError, ModelError

ENV, OPTIONS = "turngym/Sokoban-v0", {"view": "coordinates", "max_turns": 5, "max_moves": 2}
WORDS = (
    f"{TINY_WORDS} --env-options view=coordinates max_turns=5 max_moves=2 --warmup.demonstrations 60 "
    "--warmup.epochs 15 --evaluation.episodes 20 --iterations 2 --checkpoint-every 1 --rollout.prompt.history 1 "
    "--seed 5 --wrapper invalid_action:penalty=0.1"
).split()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return the folder of a finished run, with a space in its name, and the last lines that were printed."""
    folder, out = tmp_path_factory.mktemp("runs") / "my run", io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["train", *WORDS, "--run-dir", str(folder)]) == 0
    return folder, out.getvalue().splitlines()[-2:]


@pytest.fixture
def model(trained: tuple[Path, list[str]], tmp_path: Path) -> Path:
    """Return a copy of the trained model that lies in no run folder."""
    return Path(shutil.copytree(trained[0] / "model", tmp_path / "model"))


def evaluated(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    """Return the only environment's results, and what went to the error stream."""
    capsys.readouterr()
    assert main(["eval", *words, "--json"]) == 0
    found = capsys.readouterr()
    [result] = json.loads(found.out)["environments"].values()
    return result, found.err


def own_figures(folder: Path, mode: str) -> tuple[float, float, float]:
    own = json.loads((folder / "evaluations" / f"final-{mode}.json").read_text())
    return own["success"]["value"], own["reward_sum"]["value"], own["invalid_actions"]


def figures(result: dict[str, Any]) -> tuple[float, ...]:
    return tuple(result[name]["value"] for name in ("success", "return", "invalid_actions"))


def test_the_printed_command_finds_the_number_of_the_training(
    trained: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, (sentence, command) = trained
    words = shlex.split(command)
    assert words[:2] == ["turngym", "eval"] and words[4] == f"hf:{folder / 'model'}"
    result, told = evaluated(capsys, *words[2:])
    found = figures(result)
    assert found == own_figures(folder, "sampled")
    before = json.loads((folder / "evaluations" / "warmup-sampled.json").read_text())["success"]["value"]
    assert f"on 20 test tasks: {100 * before:.1f} % before training, {100 * found[0]:.1f} % after (95 %" in sentence
    assert "it plays in the same way here" in told and len(told.splitlines()) == 1
    place = words.index("--temperature")
    greedy = figures(evaluated(capsys, *words[2:place], *words[place + 2 :])[0])
    assert greedy == own_figures(folder, "greedy") and greedy[0] > 0


def test_the_command_of_the_readme_plays_as_trained_and_options_override(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = "--episodes", "3"
    result, told = evaluated(capsys, ENV, "--agent", f"hf:{model}", *few)
    assert result["invalid_actions"]["value"] < 0.5 and told.startswith("note: ")
    _, told = evaluated(capsys, ENV, "--agent", f"hf:{model}", *few, "--option", "max_turns=7", "--max-new-tokens", "9")
    assert told.startswith("WARNING: ") and len(told.splitlines()) == 1
    assert "max_turns=7 instead of 5" in told and "max_new_tokens=9 instead of 8" in told
    _, told = evaluated(capsys, ENV, "--agent", f"hf:{model}", *few, "--prompt", "history=0")
    assert "history=0 instead of 1" in told
    _, told = evaluated(capsys, "turngym/FrozenLake-v0", "--agent", f"hf:{model}", *few)
    assert f"was trained on {ENV} in another way: here it plays turngym/FrozenLake-v0" in told


@pytest.mark.parametrize(
    ("place", "stage"),
    [("model", "trained"), ("warmup", "warm-up"), ("checkpoints/000002", "checkpoint")],
)
def test_models_of_a_run_are_known_without_the_file(
    place: str, stage: str, trained: tuple[Path, list[str]], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(trained[0], tmp_path / "run"))
    (run / place / MODEL_FILE).unlink(missing_ok=True)
    found = model_settings(str(run / place))
    assert found is not None and found.stage == stage and found.env_options == OPTIONS
    settings = settings_for(f"hf:{run / place}", seed=2, prompt={"mode": "conversation"})
    assert (settings.max_new_tokens, settings.seed, settings.prompt["instructions"]) == (8, 2, False)
    assert settings.prompt["mode"] == "conversation" and settings.prompt["history"] == 1
    assert environment_as_trained(f"hf:{run / place}", ENV, {}, ()) == (OPTIONS, ("invalid_action:penalty=0.1",))


def test_a_checkpoint_is_a_model_inside_of_its_run(trained: tuple[Path, list[str]], tmp_path: Path) -> None:
    last, whole = load_model(str(trained[0] / "checkpoints" / "000002")), load_model(str(trained[0] / "model"))
    theirs = whole.network.state_dict()
    assert all((tensor == theirs[name]).all() for name, tensor in last.network.state_dict().items())
    alone = shutil.copytree(trained[0] / "checkpoints" / "000002", tmp_path / "000002")
    with pytest.raises(ModelError, match="is a checkpoint outside of its run"):
        load_model(str(alone))


def test_every_agent_around_a_model_knows_how_it_was_trained(model: Path) -> None:
    for name in ("hf", "transformers"):
        agent = make_agent(f"{name}:{model}")
        assert isinstance(agent, ModelAgent)
        assert agent.sampling.max_new_tokens == 8 and agent.prompt.history == 1 and not agent.prompt.instructions
    assert settings_for("random") == AgentSettings()
    assert settings_for("openai:m@http://localhost:1/v1") == AgentSettings(prompt={"mode": "conversation"})


def test_nothing_known_is_said(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / MODEL_FILE).unlink()
    _, told = evaluated(capsys, ENV, "--agent", f"hf:{model}", "--episodes", "1", "--max-new-tokens", "8")
    assert told == f"note: {model} does not say how it was trained: it plays with the options given.\n"


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"version": None},
        {"env": "evil\x1b[2J"},
        {"env": 3},
        {"max_new_tokens": 10**400},
        {"max_new_tokens": True},
        {"temperature": "1"},
        {"format": "module:evil"},
        {"style": "module:evil.Style"},
        {"prompt": {"mode": "evil"}},
        {"prompt": {"history": "1"}},
        {"prompt": {"never_heard": 1}},
        {"prompt": [1]},
        {"wrappers": 7},
        {"wrappers": [["a"]]},
        {"env_options": {"a b": 1}},
        {"env_options": []},
        {"others": 7},
        {"others": [{}]},
        {"others": [{"env": ENV, "max_new_tokens": 0}]},
        "[]",
        "{",
        "",
        "[" * 100_000,
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    change: Any, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = model / MODEL_FILE
    content = change if isinstance(change, str) else json.dumps({**json.loads(file.read_text()), **change})
    file.write_text(content)
    assert main(["eval", ENV, "--agent", f"hf:{model}", "--episodes", "1"]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1 and f"{file} does not say in a usable way" in told and "\x1b" not in told


def test_nothing_that_a_file_names_is_run(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "evil_module.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    known = model_settings(str(model))
    assert known is not None
    evil = {"view": "coordinates", "data": "/etc/passwd", "url": "http://evil", "kind": "a.b:E", "deep": ["x"]}
    wrappers = ('tools:tools=["evil_module.evil"]', "evil_module.py:Evil", "evil_module:Evil", "record:path=ran")
    for wrapper in wrappers:
        ModelSettings(ENV, evil, (wrapper,), max_new_tokens=8).write(model)
        assert environment_as_trained(f"hf:{model}", ENV, {}, ()) == ({"view": "coordinates"}, ())
        _, told = evaluated(capsys, ENV, "--agent", f"hf:{model}", "--episodes", "1")
        assert "data, deep, kind, url" in told and "may name code or paths" in told
    ModelSettings("evil_module:Env-v0", evil, max_new_tokens=8).write(model)
    evaluated(capsys, ENV, "--agent", f"hf:{model}", "--episodes", "1")
    assert not (tmp_path / "ran").exists() and "evil_module" not in sys.modules


def test_a_file_of_any_size_is_no_burden(model: Path) -> None:
    (model / MODEL_FILE).write_bytes(b" " * (257 * 1024))
    with pytest.raises(ConfigError, match="larger than 256 KiB"):
        model_settings(str(model))


def test_players_of_a_tournament_play_as_each_was_trained(model: Path, tmp_path: Path) -> None:
    words = ["tournament", "turngym/TicTacToe-v0", "--players", f"mine=hf:{model}", "random", "--blocks", "1"]
    assert main([*words, "--out", str(tmp_path / "out"), "--json"]) == 0
    plan = json.loads((tmp_path / "out" / "config.json").read_text())
    assert plan["trained"]["mine"]["max_new_tokens"] == 8 and "random" not in plan["trained"]
    assert plan["agents"]["max_new_tokens"] == 256
    assert main([*words, "--out", str(tmp_path / "out"), "--resume", "--json"]) == 0


def test_a_trained_model_can_be_watched(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", ENV, "--agent", f"hf:{model}", "--seed", "3"]) == 0
    out, err = capsys.readouterr()
    assert "it plays in the same way here" in err and "player" in out and "#" not in out
    assert main(["play", ENV, "--agent", "nobody"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
