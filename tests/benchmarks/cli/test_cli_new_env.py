"""``turngym new-env``: what it writes works at once, and nothing of the user's is overwritten or hidden."""

import importlib.metadata
import inspect
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import warm
from gymnasium.envs.registration import load_env_creator

from turngym.__main__ import main
from turngym.benchmarks.cli.new_env import camel_case, module_name, write_files
from turngym.benchmarks.cli.options.parsing import find_env
from turngym.benchmarks.template import test_game

ROOT = Path(__file__).parents[3]
RULES = "E,F,I,UP,B,SIM,RUF,D"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a new environment, made by the command."""
    path = tmp_path_factory.mktemp("project") / "games"
    found = warm.run("-m", "turngym", "new-env", "LockPicker", "--folder", str(path))
    assert found.returncode == 0 and not found.stderr
    for text in ("lock_picker.py:LockPicker", "test_lock_picker.py", "my/LockPicker-v0", "turngym.plugins"):
        assert text in found.stdout
    return path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a tool of Python in the folder."""
    paths = os.environ | {"MYPYPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return warm.run("-m", *words, cwd=folder, env=paths)


def test_its_own_test_passes_at_once(folder: Path) -> None:
    found = run(folder, "pytest", "-q", "-p", "no:cacheprovider", "test_lock_picker.py")
    assert found.returncode == 0 and "6 passed" in found.stdout, found.stdout


def test_the_checker_passes_at_once(folder: Path) -> None:
    found = run(folder, "turngym", "check", "lock_picker.py:LockPicker", "--json", "--episodes", "1")
    assert found.returncode == 0, found.stderr
    (report,) = json.loads(found.stdout)["environments"]
    skipped = {rule["name"] for rule in report["rules"] if rule["status"] == "skipped"}
    assert report["ok"] and skipped == {"tasks-bind"}, "it shows all that an environment can have"


def test_it_can_be_played_at_once(folder: Path) -> None:
    found = run(folder, "turngym", "play", "lock_picker.py:LockPicker", "--agent", "expert", "--seed", "1")
    assert found.returncode == 0 and "solved after" in found.stdout


def untidy(folder: Path) -> str:
    """Return what the linter and the formatter have to say."""
    isolated = ["--isolated", "--line-length", "120"]
    google = ["--config", 'lint.pydocstyle.convention="google"', "--ignore", "D107"]
    checked = run(folder, "ruff", "check", *isolated, *google, "--select", RULES, ".")
    formatted = run(folder, "ruff", "format", *isolated, "--check", ".")
    return (checked.stdout if checked.returncode else "") + (formatted.stdout if formatted.returncode else "")


@pytest.mark.integration
def test_it_is_typed(folder: Path) -> None:
    """With the settings, and so the cache, of ``make lint``: turngym is looked through too."""
    found = run(ROOT, "mypy", str(folder / "lock_picker.py"), str(folder / "test_lock_picker.py"))
    assert found.returncode == 0, found.stdout


def test_it_is_tidy(folder: Path) -> None:
    assert not untidy(folder)


def test_it_has_a_name_of_its_own_everywhere(folder: Path) -> None:
    for path in folder.glob("*.py"):
        text = path.read_text("utf8")
        assert "reasure" not in text.replace("treasure", "").replace("The Treasure", "") and "template" not in text
    assert '"""Lock Picker: dig for' in (folder / "lock_picker.py").read_text("utf8")


@pytest.mark.parametrize("name", ["A", "AVeryLongNameForALittleGame", "EZGame2", "Zzz"])
def test_any_name_gives_tidy_files(name: str, tmp_path: Path) -> None:
    game, test = write_files(name, tmp_path)
    assert f"class {name}(TextEnv[str])" in game.read_text("utf8")
    assert test.name == f"test_{game.name}" and not untidy(tmp_path)


@pytest.mark.parametrize("existing", ["lock_picker.py", "test_lock_picker.py"])
def test_nothing_is_overwritten(existing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / existing).write_text("mine")
    assert main(["new-env", "LockPicker", "--folder", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"error: {tmp_path / existing} exists already: pass another name, or another --folder.\n"
    assert [path.name for path in tmp_path.iterdir()] == [existing] and not shown.out
    assert (tmp_path / existing).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lock_picker", "got 'lock_picker'. Did you mean 'LockPicker'?"),
        ("lock picker", "Did you mean 'LockPicker'?"),
        ("2048", "Did you mean 'Game2048'?"),
        ("../Escape", "Did you mean 'Escape'?"),
        ("Lock\nPicker", "Did you mean 'LockPicker'?"),
        ("", "Did you mean 'MyGame'?"),
        ("TextEnv", "Did you mean 'TextEnvGame'?"),
        ("random", "Did you mean 'RandomGame'?"),
        ("Random", "the file random.py would hide the module 'random' from other code. Did you mean 'RandomGame'?"),
        ("Numpy", "would hide the module 'numpy'"),
        ("A" + "Game" * 20, "has at most 36 characters"),
        ("Class", "would hide the module 'class'"),
    ],
)
def test_a_name_that_cannot_be_is_answered_with_one_that_can(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-env", "--folder", str(tmp_path), "--", name] if not name else ["new-env", name]) == 2
    shown = capsys.readouterr().err
    assert message in shown and shown.startswith("error: ") and not list(tmp_path.iterdir())
    if "Did you mean" in message:
        assert module_name(camel_case(name)).isidentifier(), "what is suggested is accepted"


def test_a_plugin_is_found_by_its_id_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files("PluggedGame", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    plugin = importlib.metadata.EntryPoint("games", "plugged_game", "turngym.plugins")
    broken = importlib.metadata.EntryPoint("broken", "no_such_module", "turngym.plugins")
    original = importlib.metadata.entry_points

    def entry_points(**wanted: str) -> object:
        return [plugin] if wanted == {"group": "turngym.plugins"} else original(**wanted)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setattr("turngym.plugins._loaded", {})
    try:
        assert find_env("my/PluggedGame-v0") == "my/PluggedGame-v0"
        assert main(["check", "my/PluggedGame-v0", "--episodes", "1", "--in-process"]) == 0
        capsys.readouterr()
        assert main(["play", "my/PluggedGam", "--seed", "1"]) == 2
        assert "Did you mean 'my/PluggedGame-v0'?" in capsys.readouterr().err
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda **wanted: [broken])
        monkeypatch.syspath_prepend(tmp_path / "elsewhere")  # entry points are read again when sys.path changes
        with pytest.warns(UserWarning, match=r"1 of 2 plug-ins could not be loaded; .* \(no_such_module\): ModuleNot"):
            assert main(["play", "my/Nothing-v0"]) == 2
    finally:
        gymnasium.registry.pop("my/PluggedGame-v0", None)
        sys.modules.pop("plugged_game", None)


@pytest.mark.parametrize(("option", "second"), [("--package", {"size": 16}), ("--tools", {"image": True})])
def test_both_environments_of_a_package_are_declared_for_gymnasium(
    option: str, second: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"Declared{option.strip('-').title()}"
    assert main(["new-env", name, option, "--folder", str(tmp_path)]) == 0
    (package,) = tmp_path.iterdir()
    declared = tomllib.loads((package / "pyproject.toml").read_text())["project"]["entry-points"][
        "turngym.environments"
    ]
    monkeypatch.syspath_prepend(package)
    made: list[Any] = [load_env_creator(place)() for place in declared.values()]
    first, other = made
    assert [place.split(":")[1] for place in declared.values()] == [type(first).__name__, type(other).__name__]
    assert {key: getattr(other.options, key) for key in second} == second
    assert {key: getattr(first.options, key) for key in second} != second
    assert dict(other.recorded({"image": False})) == {"image": False}, "a snapshot names what is not the default"


@pytest.mark.parametrize("name", [name for name in vars(test_game) if name.startswith("test_")])
def test_the_template_passes_the_test_that_is_copied_with_it(name: str) -> None:
    test = getattr(test_game, name)
    assert inspect.getdoc(test)
    test()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_harbor_task_is_worth_nothing_to_the_idle_and_all_to_its_solution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["new-env", "SortWords", "--harbor", "--folder", str(tmp_path)]
    assert main(words) == 0
    assert f"turngym eval harbor:{tmp_path}/sort-words --agent expert" in capsys.readouterr().out
    env = gymnasium.make("turngym/Harbor-v0", path=str(tmp_path / "sort-words"))
    env.reset(seed=0)
    assert env.step("<submit></submit>")[1] == 0.0
    env.reset(seed=0)
    env.step(env.get_wrapper_attr("expert_action")())
    assert env.step("<submit></submit>")[1] == 1.0
    for linked in ("ln -s /tests/repeated.txt /app/repeated.txt", "rm -r /app; ln -s /tests /app"):
        env.reset(seed=0)
        env.step(f"<bash>{linked}</bash>")
        assert env.step("<submit></submit>")[1] == 0.0
    env.close()
    assert main(words) == 2 and main([*words, "--package"]) == 2
    assert "sort-words exists already" in "".join(capsys.readouterr().err.split("\n"))
