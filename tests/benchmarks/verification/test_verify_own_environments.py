"""``turngym verify`` on environments that were a file or class of their author: accepted, and nothing is imported."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from turngym.__main__ import main
from turngym.benchmarks.leaderboard.entries import read_entries
from turngym.benchmarks.leaderboard.table import build_leaderboard
from turngym.benchmarks.pages.leaderboard import leaderboard_page
from turngym.benchmarks.verification.verify import verify

LAKE = "turngym/FrozenLake-v0"
VAULT = """
from pathlib import Path

from turngym.envs import Outcome, TextEnv

with Path(__file__).with_name("imported").open("a") as file:
    file.write("x")


class Vault(TextEnv[str]):
    instructions = "Turn the dial to 0. Answer with left or right."

    def initial_state(self, generator):
        return int(generator.integers(1, 2000))

    def observation(self):
        return f"The dial shows {self.state}."

    def apply_action(self, action):
        self.state += {"left": -1, "right": 1}.get(action, 0)
        return Outcome(self.observation(), 0.0, False, False, action in ("left", "right"))
"""
TASKS = "".join(json.dumps({"question": f"{n}+1?", "answer": n + 1}) + "\n" for n in range(30))
TARGETS = {
    "file": ["vault.py:Vault", "--episodes", "2"],
    "module": ["vault_module:Vault", "--episodes", "2"],
    "task file": ["turngym/Questions-v0", "--option", "data=tasks.jsonl"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a working directory with an environment and tasks; what is registered in it is forgotten."""
    for name in ("vault.py", "vault_module.py"):
        (tmp_path / name).write_text(VAULT)
    (tmp_path / "tasks.jsonl").write_text(TASKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    forget()


def forget() -> None:
    """Forget environments of users, as another process never knew them."""
    for env_id in [each for each in gymnasium.registry if each.startswith(("vault", "turngym-envs"))]:
        del gymnasium.registry[env_id]
    for name in [each for each in sys.modules if each.startswith(("turngym_file_", "vault_module"))]:
        del sys.modules[name]


def evaluated(folder: Path, *words: str) -> Path:
    assert main(["eval", *words, "--agent", "random", "--out", str(folder / "out")]) == 0
    forget()
    (folder / "imported").unlink(missing_ok=True)
    return folder / "out"


def edit(path: Path, change: Callable[[Any], object]) -> Path:
    content = json.loads((path / "config.json").read_text("utf8"))
    change(content)
    (path / "config.json").write_text(json.dumps(content), "utf8")
    return path


@pytest.mark.parametrize("name", TARGETS)
def test_an_honest_folder_is_self_reported_with_the_reason(name: str, folder: Path) -> None:
    """It was rejected: no suite of that name, and its transcripts name the class and not the id."""
    found = verify(evaluated(folder, *TARGETS[name]), replay=1, baselines=True)
    assert found.findings == () and found.label == "self-reported" and found.replayed == 0
    assert not (folder / "imported").exists(), "no file that a submission names is imported"
    (reason,) = [note for note in found.notes if "was not played again" in note]
    told = (
        "data='tasks.jsonl' is not one that a file may ask for" if name == "task file" else "register it in a package"
    )
    assert told in reason
    assert any("may have been chosen" in note for note in found.notes)
    assert {"success", "score", "return"} <= found.not_recomputed.keys()


def test_the_leaderboard_shows_it_with_the_reason(folder: Path) -> None:
    entries, left_out = read_entries([evaluated(folder, *TARGETS["file"])], verify)
    assert not left_out and [entry.status for entry in entries] == ["self-reported"]
    page = leaderboard_page(build_leaderboard(entries))
    assert "to have it replayed, register it in a package" in page and "may have been chosen" in page


@pytest.mark.parametrize(
    "env_id",
    [
        *("turngym/Vault-v0", "vault.py:Vault", "vault/Vault", "os:system", "../vault/Vault-v0"),
        *("Turngym/FrozenLake-v0", "TURNGYM/FrozenLake-v0", "turngym:x/FrozenLake-v0", "turn_gym/FrozenLake-v0"),
        *("turng\u0443m/FrozenLake-v0", "\uff54urngym/FrozenLake-v0", "vault/V\u0430ult-v0"),
    ],
)
def test_only_an_id_of_others_is_an_environment_elsewhere(env_id: str, folder: Path) -> None:
    path = evaluated(folder, *TARGETS["file"])

    def rename(config: Any) -> None:
        config["suite"]["name"] = config["environments"][0]["env"] = config["environments"][0]["label"] = env_id

    found = verify(edit(path, rename))
    assert found.label == "rejected" and "suite" in {finding.name for finding in found.findings}
    assert not (folder / "imported").exists()


def test_what_can_be_checked_still_is(folder: Path) -> None:
    path = evaluated(folder, *TARGETS["file"])
    forged = Path(shutil.copytree(path, folder / "forged"))
    rows = [json.loads(line) for line in (forged / "episodes.jsonl").read_text("utf8").splitlines()]
    rows[0]["success"] = 1
    (forged / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    assert {"success", "aggregate"} <= {finding.name for finding in verify(forged).findings}
    for key, value in (("version", 3), ("metric", "score"), ("protocol", "Ten attempts.")):
        other = edit(Path(shutil.copytree(path, folder / key)), lambda config: config["suite"].update({key: value}))  # noqa: B023
        assert "suite" in {finding.name for finding in verify(other).findings}


def test_a_wrapper_of_ones_own_does_not_keep_the_tasks_from_being_checked(folder: Path) -> None:
    """A forger named a wrapper that nobody has and chose the tasks: nothing looked at them."""
    (folder / "own.py").write_text(
        "from turngym.wrappers.core import TextWrapper\n\n\nclass Own(TextWrapper):\n    pass\n"
    )
    path = evaluated(folder, LAKE, "--wrapper", "own.py:Own", "--episodes", "2")
    assert verify(path).label == "self-reported"
    forged = edit(path, lambda config: config["environments"][0]["seeds"].reverse())
    assert "seeds" in {finding.name for finding in verify(forged).findings}
