"""Plug-ins in: what a package of a third party registers is native everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from outside import SAMPLE, build_and_install, python, turngym

ORIGIN = "turngym-sample-plugin 1.2"
TINY_WORDS = (
    "--no-control --embedded.hidden-size 16 --embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 340 "
    "--warmup.demonstrations 4 --warmup.epochs 1 --rollout.groups 2 --rollout.group-size 2 --evaluation.episodes 2 "
    "--evaluation.every 0 --iterations 2 --threads 1"
)
TINY = TINY_WORDS.split()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder in which the sample plug-in is installed, from a wheel."""
    return build_and_install(SAMPLE, tmp_path_factory.mktemp("plugin"))


def test_importing_turngym_imports_no_plugin_and_gymnasium_makes_what_it_declares(site: Path) -> None:
    code = (
        "import sys, gymnasium, turngym\n"
        "print([name for name in sys.modules if 'sample' in name or name == 'importlib.metadata'])\n"
        "print(gymnasium.make('sample/Doors-v0'), 'sample_plugin.listing' in sys.modules)\n"
        "print([each.error for each in turngym.load_plugins()], gymnasium.make('sample/ManyDoors-v0'))"
    )
    words = [sys.executable, "-c", code]  # a fresh process: what it has not imported is the subject
    found = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True)
    assert found.stdout.splitlines() == [
        "[]",
        "<Doors<sample/Doors-v0>> False",
        "['', '', '', '', ''] <Doors<sample/ManyDoors-v0>>",
    ], found.stderr


ODD_DECLARATIONS = """[turngym.environments]
turngym/Sokoban-v0 = odd:Sokoban
turngym/New-v0 = odd:New
odd/No-Class-v0 = odd
odd/Twice-v0 = odd:First
odd/Twice-v0 = odd:Second
# odd/Comment-v0 = odd:Comment
odd/Fine-v0 = odd:Fine
"""


def test_odd_declarations_are_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "odd-1.dist-info").mkdir()
    (tmp_path / "odd-1.dist-info" / "entry_points.txt").write_text(ODD_DECLARATIONS)
    (tmp_path / "bad-1.dist-info").mkdir()
    (tmp_path / "bad-1.dist-info" / "entry_points.txt").write_bytes(b"\xff[turngym.environments]\n\xff/A-v0 = \xff:A\n")
    code = (
        "import gymnasium, turngym; print([n for n in gymnasium.registry if n.startswith('odd')], "
        "gymnasium.spec('turngym/Sokoban-v0').entry_point)"
    )
    words = [sys.executable, "-c", code]
    found = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert found.stdout == "['odd/Fine-v0'] turngym.envs.textgames.sokoban:Sokoban\n", found.stderr
    assert found.stderr.count("PluginWarning: an installed package declares no environment") >= 3


def test_everything_is_listed_with_its_origin(site: Path) -> None:
    found = turngym("list", "--json", site=site)
    assert found.returncode == 0 and not found.stderr, found.stderr
    told = json.loads(found.stdout)
    foreign = {
        kind: {row["name"]: row["summary"] for row in rows if row["origin"] == ORIGIN} for kind, rows in told.items()
    }
    assert foreign["environments"] == {
        "sample/Doors-v0": "Find the door that opens.",
        "sample/ManyDoors-v0": "Nine doors.",
        "sample/MisereSeat-v0": "One seat of: Three in a row lose.",
    }
    assert foreign["games"] == {"sample/Misere-v0": "Three in a row lose."}
    assert foreign["algorithms"] == {"sample_plain": "Discounted returns without a baseline."}
    assert foreign["suites"] == {"sample-suite": "Doors, and a game of turngym."}
    assert foreign["agents"] == {"sample_last": "An agent that takes the last legal action."}
    assert set(foreign["wrappers"]) == {"sample_loud"} and set(foreign["players"]) == {"sample_last"}
    assert foreign["plugins"]["games"] == "Registers 1 environment, 1 game."
    assert foreign["plugins"]["more"] == "Registers 1 agent, 1 player, 1 wrapper."
    origins = {row["origin"] for kind, rows in told.items() if kind != "plugins" for row in rows}
    assert origins == {ORIGIN, "turngym"}


def test_origins_are_shown_only_where_they_are_not_turngym(site: Path, tmp_path: Path) -> None:
    shown = turngym("list", "suites", site=site).stdout
    alone = turngym("list", "suites", site=tmp_path).stdout
    assert f"(from {ORIGIN})" in " ".join(shown.split()) and "(from" not in alone
    assert shown.count("(from") == 1


def test_its_environments_are_listed_under_its_package(site: Path) -> None:
    lines = turngym("list", site=site).stdout.splitlines()
    heading = lines.index(f"{ORIGIN} (NAMESeat-v0 is one seat of NAME-v0)")
    assert [line.split()[0] for line in lines[heading + 1 : heading + 4]] == [
        "sample/Doors-v0",
        "sample/ManyDoors-v0",
        "sample/Misere-v0",
    ]
    page = turngym("list", "sample/Doors-v0", site=site).stdout
    assert "Find the door that opens." in page and "Options" in page and "[observation]" in page


@pytest.mark.parametrize("env_id", ["sample/Doors-v0", "sample/MisereSeat-v0"])
def test_its_environments_can_be_checked_by_their_ids(env_id: str, site: Path) -> None:
    found = turngym("check", env_id, "--episodes", "1", "--in-process", "--json", site=site)
    (report,) = json.loads(found.stdout)["environments"]
    assert found.returncode == 0 and report["ok"]


def test_its_environment_can_be_played(site: Path) -> None:
    found = turngym("play", "sample/ManyDoors-v0", "--agent", "expert", "--seed", "1", site=site)
    assert found.returncode == 0 and "solved after" in found.stdout


def test_its_suite_is_evaluated_and_the_submission_verified(site: Path, tmp_path: Path) -> None:
    words = ["sample-suite", "--agent", "random", "--out", "run", "--json"]
    found = turngym("eval", *words, site=site, cwd=tmp_path)
    assert found.returncode == 0 and not found.stderr, found.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text("utf8"))
    assert config["suite"]["name"] == "sample-suite" and len(config["environments"]) == 3
    checked = turngym("verify", "run", site=site, cwd=tmp_path)
    assert checked.returncode == 0 and "is accepted, label: replayed" in checked.stdout, checked.stdout
    shown = turngym("view", "run", "--out", "page.html", site=site, cwd=tmp_path)
    assert shown.returncode == 0 and "sample/Doors-v0" in (tmp_path / "page.html").read_text("utf8"), shown.stderr
    elsewhere = turngym("verify", "run", site=tmp_path, cwd=tmp_path)
    assert elsewhere.returncode == 1 and "sample-suite" in elsewhere.stdout, "where the plug-in is not installed"


@pytest.mark.parametrize("env_id", ["sample/MisereSeat-v0", "turngym/TicTacToeSeat-v0"])
def test_its_agent_wrapper_and_player_work_on_games_of_both(env_id: str, site: Path, tmp_path: Path) -> None:
    words = ["--agent", "sample_last", "--wrapper", "sample_loud", "--episodes", "2", "--json"]
    found = turngym("eval", env_id, *words, "--option", "opponents=sample_last", site=site, cwd=tmp_path)
    assert found.returncode == 0 and not found.stderr, found.stderr


def test_its_game_and_player_meet_in_a_tournament(site: Path, tmp_path: Path) -> None:
    words = ["sample/Misere-v0", "--players", "random", "sample_last", "--blocks", "2"]
    found = turngym("tournament", *words, site=site, cwd=tmp_path)
    assert found.returncode == 0 and "sample_last" in found.stdout, found.stderr


@pytest.mark.integration  # slow, like the next one
def test_its_algorithm_trains_on_its_environment_in_workers(site: Path, tmp_path: Path) -> None:
    own = ["--env", "sample/Doors-v0", "--algorithm", "sample_plain", "--sample_plain.gamma", "0.25"]
    workers = ["--rollout.backend", "process", "--rollout.num-workers", "1", "--wrapper", "sample_loud"]
    found = turngym("train", *own, *workers, *TINY, "--run-dir", "run", site=site, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text("utf8"))
    assert config["algorithm_options"]["sample_plain"]["gamma"] == 0.25
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.integration  # slow, and the tests around it reach its parts one by one
def test_its_game_is_learnt_by_self_play_against_its_player(site: Path, tmp_path: Path) -> None:
    words = ["--game", "sample/Misere-v0", "--self-play.evaluation-opponents", "sample_last", "--run-dir", "run"]
    found = turngym("train", *words, *TINY, site=site, cwd=tmp_path)
    assert found.returncode == 0 and (tmp_path / "run" / "report.html").is_file(), found.stderr


def test_its_environment_fills_a_vector_without_an_import(site: Path) -> None:
    code = (
        "import sys, turngym\n"
        "with turngym.make_vec('sample/Doors-v0', 3, doors=2, split='test') as vector:\n"
        "    print(vector.reset(seed=0)[0], 'torch' in sys.modules)\n"
    )
    found = python("-c", code, site=site)
    assert found.stdout == f"{('There are 2 doors.',) * 3} False\n", "looking for it imported no algorithm"


def test_a_new_package_works_at_once(tmp_path: Path) -> None:
    """What ``turngym new-env --package`` writes is built, installed, checked, evaluated; its own test passes."""
    words = ["new-env", "LockPicker", "--package", "--folder", str(tmp_path)]
    found = turngym(*words, site=tmp_path)
    assert found.returncode == 0 and "turngym-lock-picker" in found.stdout, found.stderr
    again = turngym(*words, site=tmp_path)
    assert again.returncode == 2 and "exists already" in again.stderr
    source = tmp_path / "turngym-lock-picker"
    site = build_and_install(source, tmp_path / "built")
    checked = turngym("check", "lock_picker/LockPicker-v0", "--in-process", "--episodes", "1", "--json", site=site)
    assert checked.returncode == 0 and json.loads(checked.stdout)["environments"][0]["ok"]
    evaluated = turngym("eval", "lock_picker", "--agent", "expert", "--json", site=site, cwd=tmp_path)
    assert evaluated.returncode == 0 and not evaluated.stderr, evaluated.stderr
    tested = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", site=site, cwd=source)
    assert tested.returncode == 0 and "6 passed" in tested.stdout, tested.stdout
    tidy = ["-m", "ruff", "check", "--isolated", "--line-length", "120", "--select", "E,F,I,UP,B,SIM,RUF", "."]
    assert not python(*tidy, site=site, cwd=source).returncode
    assert not python(
        "-m", "ruff", "format", "--isolated", "--line-length", "120", "--check", ".", site=site, cwd=source
    ).returncode
