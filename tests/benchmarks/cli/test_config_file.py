"""``--config``: options from YAML, TOML and JSON files, and from the folders of earlier runs."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from test_cli_train import TINY, other_value

from turngym.__main__ import main
from turngym.benchmarks.cli import eval as evaluation
from turngym.benchmarks.cli import tournament
from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.cli.train import parse_train
from turngym.errors import ConfigError, MissingExtra
from turngym.trainers.algorithms import ALGORITHMS, parts
from turngym.trainers.records.run_folder import RunFolder

RUN = {
    "json": '{"env": "turngym/Sokoban-v0", "rollout": {"group_size": 4}, "update.learning_rate": 1e-3, '
    '"control": false}',
    "toml": 'env = "turngym/Sokoban-v0"\nupdate.learning_rate = 1e-3\ncontrol = false\n[rollout]\ngroup_size = 4\n',
    "yaml": "env: turngym/Sokoban-v0\ncontrol: false\nupdate: {learning-rate: 1e-3}\nrollout.group-size: 4\n",
}


def file_with(folder: Path, content: Any, name: str = "run.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


@pytest.mark.parametrize("kind", RUN)
def test_a_file_gives_the_options_of_a_training(tmp_path: Path, kind: str) -> None:
    file = file_with(tmp_path, RUN[kind], f"run.{kind}")
    words = "--env turngym/Sokoban-v0 --rollout.group-size 4 --update.learning-rate 1e-3 --no-control"
    assert parse_train(["--config", file]) == parse_train(words.split())
    config, *_ = parse_train([f"--config={file}", "--rollout.group-size", "2", "--control"])
    assert (config.rollout.group_size, config.control, config.update.learning_rate) == (2, True, 1e-3)


def test_the_settings_that_a_run_keeps_start_an_equal_run(tmp_path: Path) -> None:
    method = sorted(ALGORITHMS)[0]
    name, value = other_value(parts("gigpo")[0][1])
    base = parse_train(["--env", "turngym/FrozenLake-v0", "--wrapper", "history:k=4", *TINY, "--env-options"])[0]
    configs = (
        base,
        dataclasses.replace(base, env_options={"view": "grid", "hole_share": 0.1}, seed=3, lora_rank=2),
        dataclasses.replace(base, algorithm_options={"gigpo": {name: value}}, lora_targets=("all-linear",)),
        dataclasses.replace(
            base, algorithm=method, algorithm_options={}, model="a model", preset="small", max_seconds=0.1 + 0.2
        ),
    )
    for number, config in enumerate(configs):
        folder = RunFolder.create(tmp_path / str(number), config).path
        assert parse_train(["--config", str(folder)])[0] == config
        assert parse_train(["--config", str(folder / "config.json"), "--seed", "9"])[0].seed == 9


def test_another_method_or_environment_takes_none_of_the_options_of_the_first(tmp_path: Path) -> None:
    name, value = other_value(parts("gigpo")[0][1])
    content = {"env": "turngym/FrozenLake-v0", "env_options": {"view": "grid"}, "gigpo": {name: value}}
    file = file_with(tmp_path, content)
    assert parse_train(["--config", file])[0].algorithm_options["gigpo"][name] == value
    words = ["--algorithm", "grpo", "--env", "turngym/GuessTheNumber-v0"]
    assert parse_train(["--config", file, *words]) == parse_train(words)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"itrations": 3}, "{file} has no option 'itrations'. Did you mean 'iterations'?"),
        ({"lr": 3}, "{file} has no option 'lr'. Did you mean 'update.learning_rate'?"),
        ({"rollout": {"gruops": 3}}, "{file} has no option 'rollout.gruops'. Did you mean 'rollout.groups'?"),
        ({"zzz": 3}, "{file} has no option 'zzz'. `turngym train --help-all` shows all options."),
        ({"rollout": {"groups": "many"}}, "rollout.groups of {file} must be a whole number of at least 1, got 'many'."),
        ({"seed": [1, 2]}, "seed of {file} must be a whole number, got [1, 2]."),
        ({"rollout": 3}, "rollout of {file} must be a table of options, got 3."),
        (
            {"rollout": {"prompt": {"_kinds": 3}}},
            "{file} has no option 'rollout.prompt._kinds'. Did you mean 'rollout.prompt.fit'?",
        ),
        ({"env_options": "low=3"}, "env_options of {file} must be a table of options, got 'low=3'."),
        ({"model": "a\0b"}, "model of {file} must be text without NUL and lone surrogates, got 'a\\x00b'."),
        ({"model": "a\ud800"}, "model of {file} must be text without NUL and lone surrogates, got 'a\\ud800'."),
        (
            {"algorithm_options": {"grpo": 3}},
            "algorithm_options of {file} must be a table with a table of options for "
            "each algorithm, got {{'grpo': 3}}.",
        ),
        ({"seed": 1, "SEED": 2}, "{file} has no option 'SEED'. `turngym train --help-all` shows all options."),
        ({"rollout": {"group_size": 1, "group-size": 2}}, "rollout.group_size of {file} is given twice."),
        ({"resume": True}, "{file} has no option 'resume'. `turngym train --help-all` shows all options."),
    ],
)
def test_a_wrong_option_is_named_with_its_file(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    file = file_with(tmp_path, content)
    with pytest.raises(ConfigError) as error:
        parse_train(["--config", file])
    assert str(error.value) == message.format(file=file)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.ini", "", "--config takes a file that ends with .json, .toml, .yaml, .yml, got"),
        ("run.json", "{", "run.json is not valid JSON: "),
        ("run.toml", "a = ", "run.toml is not valid TOML: "),
        ("run.yaml", "a: [", "run.yaml is not valid YAML: "),
        ("run.yaml", "- 3", "run.yaml must hold a table of options"),
        ("run.yaml", "a: &x [1]\nb: *x", "aliases (*name) are not supported"),
        ("run.yaml", "env: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("run.json", "[" * 100_000, "run.json is not valid JSON: "),
        ("run.yaml", "seed: 0x" + "f" * 20_000, "must be a number below 2**1024, got one of 80000 bits"),
        ("run.json", '{"seed": 1, "seed": 2}', "the key 'seed' is given twice"),
        ("run.yaml", "rollout: {groups: 1, groups: 2}", "the key 'groups' is given twice"),
        ("run.yaml", "seed: 010", "010 is another number in YAML 1.1 than in 1.2"),
        ("run.yaml", "max_seconds: 1:30", "1:30 is another number in YAML 1.1 than in 1.2"),
        ("run.yaml", "seed: " + "[" * 200_000, "tables and lists are nested more than 32 deep"),
        ("run.yaml", "- " * 50_000, "tables and lists are nested more than 32 deep"),
        ("run.yaml", "seed: " + "3" * 2**18, "bytes, more than the 262,144 that are read"),
        ("run.yaml", "env: turngym/Sokoban-v0\ngame: turngym/TicTacToe-v0", "and game are the same option: leave one"),
        ("run.toml", "env_options = {low = 2024-01-01}", "env_options.low of"),
        ("run.yaml", "env_options: {low: !!set {a}}", "must be text, a number, true, false, a list or a table"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_train(["--config", file_with(tmp_path, content, name)])
    assert message in str(error.value)


@pytest.mark.parametrize("kind", RUN)
def test_a_byte_order_mark_and_upper_case_do_not_matter(tmp_path: Path, kind: str) -> None:
    file = file_with(tmp_path, f"\ufeff{RUN[kind]}", f"run.{kind.upper()}")
    assert parse_train(["--config", file]) == parse_train(["--config", file_with(tmp_path, RUN[kind], f"run.{kind}")])


def test_there_is_one_file(tmp_path: Path) -> None:
    for words in (["--config"], ["--config", "a.json", "--config", "b.json"]):
        with pytest.raises(ConfigError, match="--config takes one file"):
            parse_train(words)
    with pytest.raises(ConfigError, match=r"none\.json cannot be read"):
        parse_train(["--config", str(tmp_path / "none.json")])
    with pytest.raises(ConfigError, match=r"holds neither options\.json nor config\.json"):
        parse_train(["--config", str(tmp_path)])


def test_yaml_without_its_package_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra, match="pip install pyyaml, or write TOML or JSON"):
        parse_train(["--config", file_with(tmp_path, "seed: 3", "run.yaml")])


def test_an_evaluation_is_repeated_from_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = {"target": "turngym/FrozenLake-v0", "agent": "random", "episodes": 3, "option": {"view": "grid"}}
    file = file_with(tmp_path, {**content, "wrapper": ["history:k=2"], "out": str(tmp_path / "first")})
    assert main(["eval", "--config", file, "--seed", "5"]) == 0
    assert main(["eval", "--config", str(tmp_path / "first"), "--out", str(tmp_path / "second")]) == 0
    first, second = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("first", "second"))
    assert first == second and first["environments"][0]["options"]["view"] == "grid"
    assert first["environments"][0]["wrappers"] == ["history:k=2"] and first["sampling"]["seed"] == 5
    actions = [
        [json.loads(line)["actions"] for line in (tmp_path / name / "episodes.jsonl").read_text().splitlines()]
        for name in ("first", "second")
    ]
    assert actions[0] == actions[1] and len(actions[0]) == 3
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "second")]) == 0


def test_the_folder_of_another_command_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "evaluation"
    assert main(["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "1", "--out", str(folder)]) == 0
    for command in ("train", "tournament"):
        capsys.readouterr()
        assert main([command, "--config", str(folder)]) == 2
        assert f"{folder} is the folder of an evaluation, not of a t" in capsys.readouterr().err


def test_options_of_an_evaluation_override_those_of_its_file(tmp_path: Path) -> None:
    content = {"agent": "random", "prompt": {"history": 3}, "option": {"view": "grid"}, "baselines": True}
    file = file_with(tmp_path, content)
    words = ["--config", file, "turngym/FrozenLake-v0", "--option", "view=text", "--no-baselines"]
    found = parse(evaluation.Arguments, words, "eval")
    assert dataclasses.astuple(found) == dataclasses.astuple(
        evaluation.Arguments("turngym/FrozenLake-v0", "random", prompt=("history=3",), option=("view=text",))
    )
    with pytest.raises(ConfigError, match="missing: TARGET"):
        parse(evaluation.Arguments, ["--config", file], "eval")
    with pytest.raises(ConfigError, match=r"has no option 'agnet'\. Did you mean 'agent'\?"):
        parse(evaluation.Arguments, ["--config", file_with(tmp_path, {"agnet": "random"})], "eval")


def test_a_tournament_is_repeated_from_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_with(tmp_path, {"game": "turngym/KuhnPoker-v0", "blocks": 2, "option": {"hands": 2}})
    assert main(["tournament", "--config", file, "--seed", "4", "--out", str(tmp_path / "first")]) == 0
    assert main(["tournament", "--config", str(tmp_path / "first"), "--out", str(tmp_path / "second")]) == 0
    first, second = ((tmp_path / name / "options.json").read_text() for name in ("first", "second"))
    assert first == second and json.loads(first)["seed"] == 4
    found = parse(tournament.Arguments, ["--config", str(tmp_path / "first"), "turngym/TicTacToe-v0"], "tournament")
    assert (found.game, found.blocks, found.option) == ("turngym/TicTacToe-v0", 2, ("hands=2",))


def test_questions_come_from_a_file_as_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = file_with(tmp_path, '{"question": "1 + 1?", "answer": "2"}\n' * 3, "mine.jsonl")
    other = file_with(tmp_path, '{"question": "2 + 2?", "answer": "4"}\n' * 3, "other.jsonl")
    file = file_with(tmp_path, {"data": data, "reward": "exact", "tools": ["python"]}, "train.json")
    assert parse_train(["--config", file]) == parse_train(["--data", data, "--reward", "exact", "--tools", "python"])
    others = ["--data", other, "--reward", "exact", "--tools", "python"]
    assert parse_train(["--config", file, "--data", other]) == parse_train(others)
    folder = RunFolder.create(tmp_path / "run", parse_train(["--config", file])[0]).path
    assert parse_train(["--config", str(folder), "--data", other])[0] == parse_train(others)[0]
    words = ["--env", "turngym/FrozenLake-v0"]
    assert parse_train(["--config", file, *words]) == parse_train(words)
    content = {"data": data, "option": {"max_turns": 2}, "split": "train", "agent": "random", "episodes": 1}
    file = file_with(tmp_path, content)
    for name, source in {"first": file, "second": str(tmp_path / "first")}.items():
        assert main(["eval", "--config", source, "--out", str(tmp_path / name)]) == 0
        options = json.loads((tmp_path / name / "config.json").read_text())["environments"][0]["options"]
        assert (options["data"], options["max_turns"], options["split"]) == (data, 2, "train")
    words = ["--config", str(tmp_path / "first"), "--data", other, "--out", str(tmp_path / "third")]
    assert main(["eval", *words]) == 0
    options = json.loads((tmp_path / "third" / "config.json").read_text())["environments"][0]["options"]
    assert (options["data"], options["max_turns"]) == (other, 2)
    file = file_with(tmp_path, {"reward": "contains", "agent": "expert", "episodes": 1})
    assert main(["eval", "--config", file, "--data", data, "--out", str(tmp_path / "fourth")]) == 0
    options = json.loads((tmp_path / "fourth" / "config.json").read_text())["environments"][0]["options"]
    assert (options["data"], options["reward"]) == (data, "contains")
    capsys.readouterr()
    assert main(["eval", "--config", file, "turngym/FrozenLake-v0"]) == 2
    assert "--reward is for questions of your own: pass --data FILE" in capsys.readouterr().err
    assert main(["eval", "--config", file_with(tmp_path, {**content, "target": "turngym/FrozenLake-v0"})]) == 2
    assert "has data and a target, which are two environments: leave one out." in capsys.readouterr().err


def test_defaults_of_the_training_stay_where_a_file_says_nothing(tmp_path: Path) -> None:
    assert parse_train(["--config", file_with(tmp_path, {"seed": 1})]) == parse_train(["--seed", "1"])
    assert parse_train(["--config", file_with(tmp_path, {"preset": "small"})])[0].preset == "small"
