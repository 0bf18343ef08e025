"""The folder of a tournament: whole lines, no mix-ups, and messages that say what to do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from turngym.benchmarks.tournaments.folder import TournamentFolder
from turngym.errors import CheckpointError, ConfigError, RunFolderExists

PLAN: dict[str, Any] = {"game": "a", "players": {"x": "random"}, "blocks": 3, "ruleset_hash": "1"}


def record(key: str, text: str = "") -> dict[str, Any]:
    return {"match": key, "text": text}


def stored(path: Path) -> list[str]:
    return [json.loads(line)["match"] for line in (path / "episodes.jsonl").read_bytes().splitlines()]


def with_games(path: Path, *keys: str) -> Path:
    folder = TournamentFolder(path, PLAN, resume=False)
    for key in keys:
        folder.add(record(key))
    folder.close()
    return path


def test_a_game_is_in_the_file_as_soon_as_it_is_added(tmp_path: Path) -> None:
    folder = TournamentFolder(tmp_path, PLAN, resume=False)
    for count, key in enumerate("abc", start=1):
        folder.add(record(key))
        assert stored(tmp_path) == list("abc"[:count])
    folder.close()
    folder.close()


@pytest.mark.parametrize("cut", range(1, 25))
def test_a_line_that_a_kill_cut_short_is_played_again(tmp_path: Path, cut: int) -> None:
    games = with_games(tmp_path, "a", "b") / "episodes.jsonl"
    data = games.read_bytes()
    assert len(data) == 2 * 27
    games.write_bytes(data[:-cut])
    folder = TournamentFolder(tmp_path, PLAN, resume=True)
    assert list(folder.records) == ["a"]
    folder.add(record("b"))
    folder.close()
    assert games.read_bytes() == data


def test_text_of_any_kind_stays_in_its_line(tmp_path: Path) -> None:
    strange = 'a\nb\r\u2028\u0085\x0b\x00 "}\ud800 é'
    folder = TournamentFolder(tmp_path, PLAN, resume=False)
    folder.add(record("a", strange))
    folder.close()
    again = TournamentFolder(tmp_path, PLAN, resume=True)
    again.close()
    assert again.records["a"]["text"] == strange


def test_the_end_puts_games_in_order_and_the_results_last(tmp_path: Path) -> None:
    folder = TournamentFolder(tmp_path, PLAN, resume=False)
    for key in "cab":
        folder.add(record(key))
    folder.close()
    folder.finish([folder.records[key] for key in "abc"], {"n": 3})
    assert stored(tmp_path) == ["a", "b", "c"]
    assert json.loads((tmp_path / "results.json").read_text()) == {"n": 3}
    assert {file.name for file in tmp_path.iterdir()} == {"config.json", "episodes.jsonl", "results.json"}


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = TournamentFolder(None, PLAN, resume=False)
    folder.add(record("a"))
    folder.close()
    folder.finish([record("a")], {})
    assert list(folder.records) == ["a"] and not list(tmp_path.iterdir())


def refusal(kind: type[Exception], path: Path, plan: dict[str, Any], resume: bool = True) -> str:
    before = {file: file.read_bytes() for file in path.iterdir()} if path.is_dir() else {}
    with pytest.raises(kind) as caught:
        TournamentFolder(path, plan, resume)
    assert all(file.read_bytes() == content for file, content in before.items()), "nothing was touched"
    return str(caught.value)


def test_a_folder_with_something_in_it_needs_resume(tmp_path: Path) -> None:
    found = refusal(RunFolderExists, with_games(tmp_path, "a"), PLAN, resume=False)
    assert "not empty: --resume (resume=True in Python) continues with the tournament in it" in found


def test_resume_begins_where_there_is_nothing_yet(tmp_path: Path) -> None:
    TournamentFolder(tmp_path / "new" / "er", PLAN, resume=True).close()
    assert json.loads((tmp_path / "new" / "er" / "config.json").read_text()) == PLAN


def test_another_tournament_is_not_continued(tmp_path: Path) -> None:
    with_games(tmp_path, "a")
    found = refusal(ConfigError, tmp_path, {**PLAN, "ruleset_hash": "2"})
    assert "has ruleset_hash '1', not '2': only the number of blocks may change" in found
    assert "has players.x 'random', not 'ace'" in refusal(ConfigError, tmp_path, {**PLAN, "players": {"x": "ace"}})
    more = {**PLAN, "players": {"x": "random", "y": "ace"}}
    assert "has players.y None, not 'ace'" in refusal(ConfigError, tmp_path, more)
    assert "has 3 blocks, more than 2: blocks can only be added" in refusal(
        ConfigError, tmp_path, {**PLAN, "blocks": 2}
    )
    TournamentFolder(tmp_path, {**PLAN, "blocks": 9}, resume=True).close()
    assert json.loads((tmp_path / "config.json").read_text())["blocks"] == 9


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"suite": 1}'])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    assert re.search(r"holds no tournament to resume.*pass another folder", refusal(ConfigError, tmp_path, PLAN))


@pytest.mark.parametrize("line", ["{", "[]", "{}", "\xff"])
def test_a_damaged_line_that_is_not_the_last_is_told(tmp_path: Path, line: str) -> None:
    games = with_games(tmp_path, "a", "b") / "episodes.jsonl"
    games.write_bytes(games.read_bytes().replace(b"\n", b"\n" + line.encode("latin1") + b"\n", 1))
    assert "line 2 of" in refusal(CheckpointError, tmp_path, PLAN)
