"""Files of others: what they name is refused unless its class declares it, and nothing of theirs is ever run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from submissions import changed, play

from turngym.envs.multiagent.registration import game_refusal
from turngym.envs.registration import env_refusal, games, specs
from turngym.envs.settings import Declared
from turngym.wrappers import WRAPPERS
from turngym.wrappers.wrapping import Wrapping, wrapper_refusal

EVIL = "import pathlib; pathlib.Path('MARK').touch()\ndef run() -> str: ...\n"
SHADOWED = ("__future__", "typing", "json", "gymnasium", "numpy", "rich", "tyro", "evil", "contextlib")


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("foreign") / "true", "random", "--seed", "3")


def hostile_folder(true: Path, path: Path) -> tuple[Path, Path]:
    """Give a submission whose wrapper names its own module, and the file that shows whether any of its code ran."""

    def name_tool(config: Any) -> None:
        config["environments"][0]["wrappers"] = ['tools:tools=["bad.evil"]', 'tools:tools=["evil:run"]']

    folder, mark = changed(true, path / "hostile", config=name_tool), path / "ran"
    (folder / "bad").mkdir()
    for file in ("bad/__init__", "bad/evil", *SHADOWED):
        (folder / f"{file}.py").write_text(EVIL.replace("MARK", str(mark)))
    return folder, mark


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "."],
        ["leaderboard", ".", "--out", "page.html"],
        ["compare", ".", "."],
        ["export", ".", "--format", "lm-eval", "--out", "exported"],
        ["report", "."],
        ["view", ".", "--out", "view.html"],
        ["label-progress", ".", "--out", "labels"],
    ],
    ids=lambda words: words[0],
)
def test_no_code_of_a_submission_runs(words: list[str], true: Path, tmp_path: Path) -> None:
    folder, mark = hostile_folder(true, tmp_path)
    source = str(Path(sys.modules["turngym"].__file__ or "").parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "turngym", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert not mark.exists(), done.stderr
    assert "Traceback" not in done.stderr


def test_commands_with_own_modules_find_them_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "own_game.py").write_text("raise ImportError('found it')")
    words = [sys.executable, "-m", "turngym", "play", "own_game:Own-v0"]
    env = {**os.environ, "PYTHONPATH": str(Path(sys.modules["turngym"].__file__ or "").parent.parent)}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert "found it" in done.stdout + done.stderr


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("turngym/Jericho-v0", {"story": "zork1.z5"}),
    ("turngym/OpenEnv-v0", {"url": "http://127.0.0.1:1"}),
    ("turngym/BrowserGym-v0", {}),
    ("turngym/Gymnasium-v0", {"inner": "evil:Evil-v0"}),
    ("turngym/Gymnasium-v0", {"inner": "CartPole-v1"}),
    ("turngym/GEM-v0", {"game": "math:GSM8K"}),
    ("turngym/TextArena-v0", {"game_options": {"a": 1}}),
    ("turngym/SearchQA-v0", {"folder": "data"}),
    ("turngym/SearchQA-v0", {"url": "localhost"}),
    ("turngym/SearchQA-v0", {"engine": "dense"}),
    ("turngym/MathPython-v0", {"sandbox": "none"}),
    ("turngym/CodeRepair-v0", {"dataset": "folder", "folder": "tasks"}),
    ("turngym/ALFWorld-v0", {"data": "games"}),
    ("turngym/TextWorld-v0", {"story": "game.z8"}),
    ("turngym/WebShop-v0", {"catalogue": "items.json"}),
    ("turngym/TicTacToeSeat-v0", {"opponents": "evil:Player"}),
    ("turngym/TicTacToeSeat-v0", {"opponents": {"player_1": "evil:Player"}}),
    ("turngym/TicTacToeSeat-v0", {"game": "turngym/ConnectFour-v0"}),
    ("turngym/KuhnPokerSeat-v0", {"reward": "../x"}),
    ("turngym/Sokoban-v0", {"size": 10**400}),
    ("turngym/Sokoban-v0", {"step_reward": float("inf")}),
    ("turngym/Sokoban-v0", {"size": "6"}),
    ("turngym/Sokoban-v0", {"size": True}),
    ("turngym/Sokoban-v0", {"view": ["grid"]}),
    ("turngym/Sokoban-v0", {"view": "grid.text"}),
    ("turngym/Sokoban-v0", {"split": "test.x"}),
    ("turngym/Sokoban-v0", {"render_mode": "rgb_array"}),
    ("turngym/Sokoban-v0", {"env_id": "another"}),
    ("turngym/Sokoban-v0", {"max_episode_steps": 3}),
    ("CartPole-v1", {}),
    ("evil:Evil-v0", {}),
]


def test_what_is_not_declared_is_refused() -> None:
    for env, options in REFUSED:
        assert env_refusal(env, options)


@pytest.mark.parametrize("name", ["tools", "mcp_tools", "core", "os", "evil.module", "evil:module", "../x"])
def test_a_wrapper_that_is_not_declared_is_refused(name: str) -> None:
    assert wrapper_refusal(Wrapping(name, {"tools": ["evil:run"]}))


def test_every_environment_may_be_asked_for_as_it_is_or_not_at_all() -> None:
    never = {"turngym/Jericho-v0", "turngym/OpenEnv-v0", "turngym/BrowserGym-v0"}
    for env_id in specs():
        if env_id.startswith("turngym/"):
            assert bool(env_refusal(env_id, {"split": "test"})) == (env_id in never), env_id
    assert not any(game_refusal(game, {}) for game in games() if game.startswith("turngym/"))


def test_what_was_recorded_of_an_environment_may_be_asked_for_again() -> None:
    for env_id in ("turngym/Sokoban-v0", "turngym/WerewolfSeat-v0", "turngym/EZPoints-v0", "turngym/Bargaining-v0"):
        if env_id in gymnasium.registry:
            env = gymnasium.make(env_id)
            settings = json.loads(json.dumps(env.get_wrapper_attr("settings")))
            assert env_refusal(env_id, settings) == ""


def test_text_options_of_wrappers_name_no_file_and_no_module() -> None:
    for name in WRAPPERS:
        kind = WRAPPERS[name]
        if issubclass(kind, Declared) and kind.file_options is not None:
            for pattern in kind.file_options.values():
                assert not any(map(pattern.fullmatch, ("os:path", "os.path", "/etc/passwd", "http://x", "a\\b")))
