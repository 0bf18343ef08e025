"""The package as users get it: what is in sdist and wheel, and that the installed commands work by themselves."""

import json
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import built
import pytest
from built import Built

TRAIN = (
    "train --env turngym/GuessTheNumber-v0 --env-options --no-control --embedded.hidden-size 16 "
    "--embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 300 --warmup.demonstrations 2 "
    "--warmup.epochs 1 --iterations 1 --rollout.groups 1 --rollout.group-size 2 --evaluation.episodes 1 "
    "--evaluation.every 0"
)
EXTRAS: dict[str, str] = {
    "train": TRAIN,
    **{name: TRAIN + f" --track {name}" for name in ("wandb", "mlflow", "trackio")},
    "gguf": "eval turngym/GuessTheNumber-v0 --agent hf:model.gguf --episodes 1",
    "text": "play turngym/TextWorldExpress-v0 --agent random",
    "scienceworld": "play turngym/ScienceWorld-v0 --agent random",
    "textworld": "play turngym/TextWorld-v0 --agent random",
    "jericho": "play turngym/Jericho-v0 --agent random --option story=story.z5",
    "babyai": "play turngym/BabyAI-v0 --agent random",
    "alfworld": "play turngym/ALFWorld-v0 --agent random",
    "webshop": "play turngym/WebShop-v0 --agent random",
    "search": "play turngym/SearchQAEasy-v0 --agent random --option engine=bm25s",
    "dense": "play turngym/SearchQAEasy-v0 --agent random --option engine=dense",
    "qdrant": "play turngym/SearchQAEasy-v0 --agent random --option engine=qdrant",
    "datasets": "play turngym/SearchQA-v0 --agent random --option dataset=hf:somebody/questions",
    "web": "play turngym/MiniWoB-v0 --agent random",
    "desktop": "play turngym/Desktop-v0 --agent random",
    "math": "python: from turngym.envs.tools.math_python.values import library; library()",
    "sandbox": "play turngym/MathPython-v0 --agent random --option sandbox=docker",
    "mcp": "python: from turngym.envs.tools.mcp_tools import McpServer; McpServer(['server'])",
    "serve": "serve-env turngym/Sokoban-v0 --port 0",
    "ray": "eval turngym/GuessTheNumber-v0 --agent random --episodes 1 --backend ray",
    "vllm": "eval turngym/GuessTheNumber-v0 --agent vllm:model --episodes 1",
    "gem": "play turngym/GEM-v0 --agent random --option game=game:Sudoku-v0-easy",
    "textarena": "play turngym/TextArena-v0 --agent random --option game=Wordle-v0",
    "reasoning": "play turngym/ReasoningGym-v0 --agent random",
    "agentdojo": "play turngym/AgentDojo-v0 --agent expert",
    "crafter": "play turngym/Crafter-v0 --agent random",
    "nethack": "play turngym/MiniHack-v0 --agent random",
    "bfcl": "play turngym/BFCL-v0 --agent expert",
    "openspiel": "play turngym/OpenSpielSeat-v0 --agent random",
    "browsergym": "play turngym/BrowserGym-v0 --agent random --option task=miniwob.click-test",
}
"""Extra -> a command, or a line of Python, that needs it."""
NOT_OF_USERS = {"all", "dev"}
STANDS_ON_TRAIN = {"gguf", "mlflow", "trackio", "vllm", "wandb"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build sdist and wheel once."""
    pytest.importorskip("setuptools", "77", reason="the build needs setuptools 77")
    return built.build(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def plain(package: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment of the wheel without any extra."""
    return built.environment(package, tmp_path_factory.mktemp("plain") / "venv")


def names(package: Built) -> tuple[set[str], set[str]]:
    """Return the paths in the sdist, without its own folder, and in the wheel."""
    with tarfile.open(package.sdist) as archive:
        sdist = {name.partition("/")[2] for name in archive.getnames()}
    return sdist - {""}, set(zipfile.ZipFile(package.wheel).namelist())


def test_tests_studies_and_results_are_in_neither(package: Built) -> None:
    sdist, wheel = names(package)
    for paths, benchmarks in ((sdist, "benchmarks/"), (wheel, "turngym/benchmarks/")):
        assert not {path for path in paths if path.startswith(("tests/", "docs/", "shared/", ".ci/"))}
        left_out = tuple(benchmarks + name + "/" for name in ("studies", "results", "learning", "speed", "games"))
        assert not {path for path in paths if path.startswith(left_out)}
        assert not {path for path in paths if path.endswith((".pyc", ".xz"))}


def test_sdist_and_wheel_hold_what_they_must(package: Built) -> None:
    sdist, wheel = names(package)
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md"} <= sdist
    assert {"turngym/py.typed", "turngym/__main__.py", "turngym/envs/core.py", "turngym/wrappers/core.py"} <= wheel
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in wheel)


def test_every_file_beside_the_code_is_in_the_wheel(package: Built) -> None:
    """Word lists, shops, templates: whatever lies in a folder `data` of a package."""
    _, wheel = names(package)
    packages = tomllib.loads((built.ROOT / "pyproject.toml").read_text("utf8"))["tool"]["setuptools"]["packages"]
    for dotted in packages:
        folder = built.ROOT.joinpath(*dotted.split(".")[1:]) if dotted != "turngym" else built.ROOT / "turngym"
        for file in (folder / "data").rglob("*") if (folder / "data").is_dir() else ():
            if file.is_file() and "__pycache__" not in file.parts:
                inside = f"{dotted.replace('.', '/')}/{file.relative_to(folder).as_posix()}"
                assert inside in wheel


def test_the_metadata_says_what_the_project_is(package: Built) -> None:
    wheel = zipfile.ZipFile(package.wheel)
    (place,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
    told = Parser().parsestr(wheel.read(place).decode())
    assert (told["Name"], told["License-Expression"]) == ("turngym", "Apache-2.0")
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11"} <= set(told.get_all("Classifier", []))
    assert set(told.get_all("Provides-Extra", [])) == set(built.extras())
    version = next(
        line.partition(": ")[2]
        for line in (built.ROOT / "CITATION.cff").read_text().splitlines()
        if "version: 0" in line
    )
    assert version == told["Version"] == built.project()["version"]


def test_the_installed_command_works_outside_of_the_checkout(plain: Path, tmp_path: Path) -> None:
    done = built.run(plain, "list", "environments", "--json", cwd=tmp_path)
    assert done.returncode == 0 and len(json.loads(done.stdout)["environments"]) > 80


def test_commands_work_without_any_extra(plain: Path, tmp_path: Path) -> None:
    commands = (
        "play turngym/Sokoban-v0 --agent expert --seed 1",
        "check turngym/GuessTheNumber-v0 --episodes 1",
        "eval turngym/FrozenLake-v0 --agent expert --episodes 3 --out run",
        "verify run",
        "report run",
        "tournament turngym/KuhnPoker-v0 --blocks 1",
        "new-env Stones",
    )
    found = built.attempts(plain, {words: words for words in commands}, tmp_path)
    assert {words: status for words, (status, _) in found.items()} == dict.fromkeys(commands, 0), found


def test_the_package_that_runs_is_the_installed_one(plain: Path, tmp_path: Path) -> None:
    code = "import turngym.envs.core as core, turngym; print(turngym.__file__, core.__file__)"
    assert str(plain) in built.python(plain, code, cwd=tmp_path).stdout
    assert str(built.ROOT) not in built.python(plain, code, cwd=tmp_path).stdout


def test_every_extra_is_tried() -> None:
    assert set(EXTRAS) == set(built.extras()) - NOT_OF_USERS


@pytest.fixture(scope="module")
def refused(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Return what the command of each extra says where no extra is installed."""
    return built.attempts(plain, EXTRAS, tmp_path_factory.mktemp("refused"))


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_without_an_extra_its_command_names_it(refused: dict[str, tuple[int, str]], extra: str) -> None:
    status, told = refused[extra]
    named = "train" if extra in STANDS_ON_TRAIN else extra  # torch is missed first
    assert status != 0 and f"turngym[{named}]" in told, told
    assert "bug in turngym" not in told


@pytest.mark.integration
@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_alone_is_enough_for_its_command(
    package: Built, extra: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A part of the extras is installed here; the others are tried in environments of their own."""
    try:
        folder = built.environment(package, tmp_path / "venv", extra)
    except ImportError as error:
        pytest.skip(str(error))
    [(status, told)] = built.attempts(folder, {extra: EXTRAS[extra]}, tmp_path).values()
    assert "turngym[" not in told and "bug in turngym" not in told and "Traceback" not in told, told
    assert status == 0 or (extra == "gguf" and "model.gguf" in told), told
