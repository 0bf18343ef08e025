"""``turngym arena``: start, continue, page, verification, and words that are wrong."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.benchmarks.verification.verify import verify

KUHN = "turngym/KuhnPoker-v0"


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arenas") / "arena"
    words = [
        "--games",
        f"kuhn={KUHN}",
        "TicTac=turngym/TicTacToe-v0",
        "--players",
        "random",
        "<b>=first_legal",
        "equilibrium",
    ]
    assert main(["arena", str(folder), *words, "--matches", "20"]) == 0
    words = ["--retire", "random", "--players", "bets=scripted:bet", "--matches", "30"]
    assert main(["arena", str(folder), *words]) == 0
    return folder


def test_the_page_shows_players_games_and_changes(arena: Path) -> None:
    page = (arena / "page.html").read_text("utf8")
    assert "&lt;b&gt;" in page and "<b>=" not in page and "3 players" not in page
    assert "4 players, 2 games, 30 matches" in page
    assert "Before match 21: bets came, random left." in page and "retired" in page
    assert 'href="games/kuhn/page.html"' in page and (arena / "games" / "kuhn" / "page.html").is_file()


def test_a_call_without_changes_plays_nothing_and_prints_the_same(
    arena: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (arena / "results.json").read_bytes()
    assert main(["arena", str(arena), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(before)
    assert (arena / "results.json").read_bytes() == before
    assert main(["report", str(arena)]) == 0 and str(arena / "page.html") in capsys.readouterr().out


def test_a_sound_arena_is_verified(arena: Path) -> None:
    found = verify(arena, seed=1)
    assert found.is_accepted and found.label == "replayed" and found.episodes == 30, found.findings
    inner = verify(arena / "games" / "kuhn", seed=1)
    assert not inner.is_accepted and "verify the folder of that" in inner.findings[0].message


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf8")


def test_a_forged_arena_is_found_out(arena: Path, tmp_path: Path) -> None:
    def findings(number: int, file: str, old: str, new: str) -> set[str]:
        folder = shutil.copytree(arena, tmp_path / str(number))
        changed(folder / file, old, new)
        return {finding.name for finding in verify(folder, seed=1).findings}

    lines = (arena / "games" / "kuhn" / "episodes.jsonl").read_text("utf8").splitlines(keepends=True)
    assert "missing-game" in findings(0, "games/kuhn/episodes.jsonl", lines[3], "")
    assert findings(2, "results.json", '"n_matches": 30', '"n_matches": 31') == {"aggregate"}
    assert "plan" in findings(4, "config.json", '"turngym/TicTacToe-v0"', '"os:path"')
    broken = json.loads(lines[3]) | {"status": "env_error", "winners": [], "metrics": {}}
    broken |= {name: dict.fromkeys(broken[name], 0.0) for name in ("returns", "scores")}
    assert "env-errors" in findings(5, "games/kuhn/episodes.jsonl", lines[3], json.dumps(broken) + "\n")
    swapped = lines[3].replace("random", "equilibrium")
    assert {"seats", "aggregate"} & findings(6, "games/kuhn/episodes.jsonl", lines[3], swapped)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--players", "random", "first_legal"], "needs a game that two players can play: games none"),
        (["--games", KUHN, "--players", "random"], "needs a game that two players can play"),
        (["--games", KUHN, "--players", "random", "equilibium"], "Did you mean 'equilibrium'?"),
        (["--games", "turngym/KhnPoker-v0"], "no game named 'turngym/KhnPoker-v0'. Did you mean"),
        (["--games", "my_module:Game"], "a game needs a name of letters, digits"),
        (["--games", KUHN, "--option", "hnds=4"], "has no option 'hnds'. Did you mean 'hands'?"),
        (["--games", KUHN, "--players", "a=random", "a=first_legal"], "--players has 'a' twice"),
        (["--games", KUHN, "--players", "random", "first_legal", "--matches", "0"], "matches of an arena must be"),
        (
            ["--games", KUHN, "--players", "random", "first_legal", "--round", "200000"],
            "round of an arena must be 1 to 100,000, got 200000",
        ),
        (["--games", KUHN, "--players", "random", "first_legal", "--tables", "0"], "needs one table at least"),
        (["--games", KUHN, "--players", "random", "first_legal", "--answer-seconds", "nan"], "the time for an answer"),
        (["--retire", "random"], "no player named 'random' to retire"),
    ],
)
def test_a_wrong_word_is_explained(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[Any]
) -> None:
    assert main(["arena", str(tmp_path / "arena"), *words]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and message in shown and shown.count("\n") == 1
    assert not (tmp_path / "arena" / "config.json").exists()
