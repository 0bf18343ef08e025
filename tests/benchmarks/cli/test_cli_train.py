"""``turngym train``: every setting can be written on the command line, and wrong ones are explained."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from turngym.__main__ import main
from turngym.benchmarks.cli.options.quickstart import QUICKSTART
from turngym.benchmarks.cli.train import default_run_dir, parse_train
from turngym.errors import CheckpointError, ConfigError, UnknownName
from turngym.system.locks import FolderLock
from turngym.trainers.algorithms import ALGORITHMS, build, parts
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.presets import with_preset

TINY_WORDS = (
    "--env-options view=coordinates max_turns=4 max_moves=2 --iterations 1 --no-control --embedded.hidden-size 16 "
    "--embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 340 --warmup.demonstrations 4 --warmup.epochs 1 "
    "--rollout.groups 2 --rollout.group-size 2 --evaluation.episodes 2 --evaluation.every 0"
)
TINY = TINY_WORDS.split()


def parsed(*words: str) -> TrainConfig:
    return parse_train(words)[0]


def option_names(value: Any, prefix: str = "--") -> list[str]:
    """Return the options that a configuration object needs, one for each field that is not an object itself."""
    names = []
    for field in dataclasses.fields(value):
        inner, name = getattr(value, field.name), prefix + field.name.replace("_", "-")
        names += option_names(inner, name + ".") if dataclasses.is_dataclass(inner) else [name]
    return names


def other_value(kind: type[Any]) -> tuple[str, Any]:
    """Return a field of a method's settings with an allowed value that is not its default."""
    for field in dataclasses.fields(kind):
        choices = get_args(get_type_hints(kind)[field.name])
        if choices:
            return field.name, next(choice for choice in choices if choice != field.default)
        if type(field.default) is float and field.default > 0:
            return field.name, field.default / 2
        if type(field.default) is int and field.default > 1:
            return field.name, field.default - 1
    raise AssertionError(f"{kind.__name__} has no field that this test can change")


def test_nothing_on_the_command_line_is_the_quickstart() -> None:
    config, folder, _ = parse_train([])
    assert (config, folder) == (parsed(*QUICKSTART), Path("runs/frozenlake-gigpo-seed0"))
    assert config.env == "turngym/FrozenLake-v0" and config.control and config.warmup.demonstrations == 30
    assert parse_train(["--seed", "3", "--iterations=2"])[1] == Path("runs/frozenlake-gigpo-seed3")
    assert parsed("--seed", "3", "--iterations=2") == dataclasses.replace(config, seed=3, iterations=2)


@pytest.mark.parametrize(
    "words", ["--env turngym/Sokoban-v0", "--env-options view=coordinates max_turns=15", "--preset quickstart"]
)
def test_a_task_a_model_or_a_preset_is_not_the_quickstart(words: str) -> None:
    default = with_preset(TrainConfig(), "quickstart")
    assert parse_train(words.split()) == (default, Path("runs/sokoban-gigpo-seed0"), False)


def test_the_run_of_the_quickstart_is_resumed_without_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config, folder, _ = parse_train([])
    RunFolder.create(folder, config)
    assert parse_train(["--resume"]) == (config, folder, True)


def test_help_shows_every_setting_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--algorithm", "grpo+epo", "--help-all"]) == 0
    shown = capsys.readouterr().out
    hidden = ("--algorithm-options", "--wrappers", "--preset-reason", "--envs")
    wanted = [name for name in option_names(TrainConfig()) if name not in hidden]
    for part, kind in parts("grpo+epo"):
        wanted += option_names(kind(), f"--{part}.")
    for name in [*wanted, "--wrapper", "--run-dir", "--resume"]:
        assert f" {name} " in shown or f" {name}," in shown, name
    assert shown.count("(default: ") >= len(wanted) and "--gigpo" not in shown
    flat = " ".join(shown.replace("│", " ").split())
    assert "Size of the embedded model." in flat and "Settings of EPO." in flat, "groups have their sentences"
    assert "which is trained by self-play. (default: turngym/Sokoban-v0)" in flat and "--game" in flat
    assert "Weight of the whole regulariser. (default: 0.001)" in flat
    assert "such as view=grid max_turns=20" in flat and "(default: view=coordinates max_turns=15)" in flat


def test_every_kind_of_field_reaches_the_settings() -> None:
    words = (
        "--preset quickstart --seed 3 --max-seconds 1.5 --no-control --model some/model --rollout.schedule continuous "
        "--rollout.prompt.instructions --rollout.prompt.mode conversation --update.learning-rate 1e-5 "
        "--embedded.layers 2 --warmup.epochs 0 --evaluation.every 0"
    )
    config = parsed(*words.split())
    default = with_preset(TrainConfig(), "quickstart")
    expected = dataclasses.replace(
        default,
        seed=3,
        max_seconds=1.5,
        control=False,
        model="some/model",
        rollout=dataclasses.replace(
            default.rollout,
            schedule="continuous",
            prompt=dataclasses.replace(default.rollout.prompt, instructions=True, mode="conversation"),
        ),
        update=dataclasses.replace(default.update, learning_rate=1e-5),
        embedded=dataclasses.replace(default.embedded, layers=2),
        warmup=dataclasses.replace(default.warmup, epochs=0),
        evaluation=dataclasses.replace(default.evaluation, every=0),
    )
    assert config == expected
    assert type(config.rollout.prompt) is type(default.rollout.prompt), "the real class, not the parser's"
    assert TrainConfig.from_json(json.loads(json.dumps(config.as_json()))) == config


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_can_be_chosen_with_its_settings(name: str) -> None:
    quickstart = with_preset(TrainConfig(algorithm=name), "quickstart").algorithm_options
    for part, kind in parts(name):
        field, value = other_value(kind)
        option = f"--{part}.{field}".replace("_", "-")
        config = parsed("--preset=quickstart", f"--algorithm={name}", option, str(value))
        assert config.algorithm_options == {**quickstart, part: {**quickstart.get(part, {}), field: value}}
        build(config.algorithm, config.algorithm_options)


def test_without_the_quickstart_a_method_has_its_own_defaults() -> None:
    assert parsed("--preset", "small").algorithm_options == {}


def test_a_composition_has_the_settings_of_its_parts_and_only_differences_are_kept() -> None:
    config = parsed(
        "--algorithm",
        "grpo+epo",
        "--epo.alpha",
        "0.3",
        "--grpo.no-scale-by-std",
        "--grpo.clip-low",
        "0.2",
        "--model",
        "m",
    )
    assert config.algorithm_options == {"epo": {"alpha": 0.3}, "grpo": {"scale_by_std": False}}


def test_the_last_algorithm_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed("--algorithm", "gigpo", "--algorithm", "ppo", "--ppo.lam", "0.5").algorithm == "ppo"
    assert main(["train", "--algorithm", "ppo", "--gigpo.gamma", "0.5"]) == 2
    assert "--gigpo.gamma" in capsys.readouterr().err


def test_options_of_the_environment_are_pairs_with_json_values() -> None:
    assert parsed("--env-options", "view=grid", "max_turns=20").env_options == {"view": "grid", "max_turns": 20}
    assert parsed("--env-options").env_options == {}, "they take the place of the default ones"


def test_the_default_options_belong_to_the_default_environment_only() -> None:
    assert parsed("--env", "turngym/TowerOfHanoi-v0").env_options == {}
    assert parsed("--env=turngym/TowerOfHanoi-v0", "--env-options", "discs=2").env_options == {"discs": 2}
    assert parsed("--env", "turngym/Sokoban-v0").env_options == TrainConfig().env_options


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("--env turngym/TowerOfHanoi-v0 --algorithm grpo+epo --seed 7", "runs/towerofhanoi-grpo+epo-seed7"),
        ("--run-dir somewhere/else", "somewhere/else"),
    ],
)
def test_the_run_folder_is_named_after_the_run(words: str, folder: str) -> None:
    assert parse_train(words.split())[1] == Path(folder)


def test_the_default_folder_never_leaves_runs() -> None:
    config = dataclasses.replace(TrainConfig(), env="module.path:Odd Name/../x-v0")
    folder = default_run_dir(config)
    assert folder.parent == Path("runs") and ".." not in folder.name and " " not in folder.name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--algorithm gipgo", "no algorithm named 'gipgo'. Did you mean 'gigpo'?"),
        ("--algorithm grpo+epoo", "no algorithm named 'epoo'. Did you mean 'epo'?"),
        ("--algorithm epo+grpo", "where only modifiers may stand"),
        ("--env turngym/Sokban-v0", "Did you mean 'turngym/Sokoban-v0'?"),
        ("--env-options view", "--env-options takes KEY=VALUE, such as max_turns=20, got 'view'."),
        ("--gigpo.gamma 3", "gamma must be from 0 to 1, got 3.0."),
        ("--rollout.temperature -1", "rollout.temperature of the run must be a number above 0, got -1.0."),
        ("--rollout.prompt.history -2", "rollout.prompt.history of the run must be a whole number of at least 0"),
        ("--embedded.heads 5", "heads must divide hidden_size"),
        ("--iterations -1", "iterations of the run must be a whole number of at least 0, got -1."),
        ("--resume --run-dir no/such/folder", "there is no run in no/such/folder"),
    ],
)
def test_a_wrong_setting_is_explained(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *words.split()]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and message in shown and shown.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--env-options veiw=grid", "turngym/Sokoban-v0 has no option 'veiw'. Did you mean 'view'?"),
        ("--env-options size=400", "size of turngym/Sokoban-v0 must be a whole number in [5, 12], got 400."),
        ("--rollout.group-size 1", "gigpo compares the episodes of a group, got group_size=1."),
        ("--rollout.backend snyc", "Did you mean 'sync'?"),
    ],
)
def test_what_only_the_job_can_see_is_explained_before_a_folder_is_made(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert main(["train", *words.split(), "--run-dir", str(folder)]) == 2
    assert message in capsys.readouterr().err and not folder.exists()


def test_an_unknown_setting_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--rolout.temperature", "1"]) == 2
    shown = capsys.readouterr().err
    assert "--rolout.temperature" in shown and "--rollout.temperature" in shown


def test_a_folder_with_a_run_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunFolder.create(tmp_path / "run", TrainConfig())
    before = (tmp_path / "run" / "config.json").read_bytes()
    assert main(["train", *TINY, "--run-dir", str(tmp_path / "run")]) == 2
    assert (
        "exists already: pass --resume (resume=True in Python) to continue it, or another --run-dir"
        in capsys.readouterr().err
    )
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_resuming_takes_the_settings_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = parsed("--algorithm", "grpo+epo", "--epo.alpha", "0.3", "--env", "turngym/TowerOfHanoi-v0", "--seed", "4")
    RunFolder.create(tmp_path / "run", stored)
    assert parse_train(["--resume", "--run-dir", str(tmp_path / "run")]) == (stored, tmp_path / "run", True)
    assert parse_train(["--resume", f"--run-dir={tmp_path / 'run'}", "--seed", "4"])[0] == stored
    monkeypatch.chdir(tmp_path)
    RunFolder.create(default_run_dir(stored), stored)
    words = ["--algorithm", "grpo+epo", "--env", "turngym/TowerOfHanoi-v0", "--seed", "4", "--resume"]
    assert parse_train(words) == (stored, default_run_dir(stored), True)


def test_resuming_with_another_setting_is_refused(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, TrainConfig(seed=4))
    with pytest.raises(ConfigError, match="settings of the run, whose seed is 4 and not 5: leave that option out"):
        parse_train(["--resume", "--run-dir", str(tmp_path), "--seed", "5"])
    with pytest.raises(ConfigError, match=r"whose algorithm_options is \{\} and not \{'gigpo': \{'gamma': 0\.5\}\}"):
        parse_train(["--resume", "--run-dir", str(tmp_path), "--gigpo.gamma", "0.5"])
    with pytest.raises(ConfigError, match="whose algorithm is 'gigpo' and not 'grpo'"):
        parse_train([f"--resume={tmp_path}", "--algorithm", "grpo"])


def test_resuming_where_there_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="pass the folder of a run, or leave out --resume"):
        parse_train(["--resume", "--run-dir", str(tmp_path)])


def test_an_environment_of_an_absent_module_is_refused() -> None:
    with pytest.raises(UnknownName, match="no module named 'no_such_games'"):
        parse_train(["--env", "no_such_games:Some-v0"])


def test_a_run_from_the_command_line_says_where_its_report_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert main(["train", *TINY, "--run-dir", str(folder)]) == 0
    assert f"report: {folder / 'report.html'}" in capsys.readouterr().out.splitlines()
    assert (folder / "report.html").exists()
    assert RunFolder(folder).config() == parsed(*TINY, "--rollout.sampler", "transformers")  # chosen by ``auto``
    assert main(["train", "--resume", "--run-dir", str(folder)]) == 0, "a finished run finishes again"


def test_a_second_resume_in_a_run_folder_is_turned_away_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that another process writes: exit status 2, one sentence, not a byte changed; after kill -9 it goes."""
    run = tmp_path / "run"
    RunFolder.create(run, parsed(*TINY))
    code = (
        "import pathlib, sys\nfrom turngym.system.locks import FolderLock\n"
        "with FolderLock(pathlib.Path(sys.argv[1]), 'training run'): print(), input()"
    )
    words, pipe = [sys.executable, "-u", "-c", code, str(run)], subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as first:
        assert first.stdout is not None and first.stdout.readline() == b"\n"
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        assert main(["train", "--resume", "--run-dir", str(run)]) == 2
        assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
        first.kill()
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert f"is being written by another training run, process {first.pid} on" in told
    with FolderLock(run, "test"):
        pass
