"""Hostile tournaments: sizes and names are bounded before work begins, and invented or edited games are found."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.benchmarks.verification.verify import verify

Change = Callable[[Any], object]


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tournaments") / "true"
    words = ["tournament", "turngym/KuhnPoker-v0", "--players", "random,first_legal,equilibrium", "--blocks", "2"]
    assert main([*words, "--out", str(path)]) == 0
    return path


def put(**values: Any) -> Change:
    return lambda table: table.update(values)


def many_players(plan: Any) -> None:
    plan["players"] = dict.fromkeys((f"p{number}" for number in range(10_000)), "random")
    plan["player_order"] = list(plan["players"])


HOSTILE: dict[str, tuple[str, Change, str]] = {
    "players": ("config", many_players, "schema"),
    "retries": ("config", put(retries=10**9), "schema"),
    "blocks": ("config", put(blocks=10**9), "missing-game"),
    "an option's size": ("config", put(options={"hands": 10**9}), "plan"),
    "an option that names a module": ("config", put(options={"reward": "os:path"}), "plan"),
    "another prior": ("results", lambda results: results["ratings"].update(prior=1e-300), "results"),
    "an anchor": ("results", lambda results: results["ratings"].update(anchor="nobody"), "results"),
    "an edited rating": (
        "results",
        lambda results: results["ratings"]["players"]["random"]["elo"].update(value=9999.0),
        "aggregate",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_plans_and_ratings_are_findings_at_once(name: str, true: Path, tmp_path: Path) -> None:
    file, change, finding = HOSTILE[name]
    path = Path(shutil.copytree(true, tmp_path / "hostile"))
    content = json.loads((path / f"{file}.json").read_text("utf8"))
    change(content)
    (path / f"{file}.json").write_text(json.dumps(content), "utf8")
    began = time.process_time()
    found = verify(path)
    assert finding in {each.name for each in found.findings} and found.replayed == 0
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda games: games.append({**games[0], "match": "invented"}), "foreign-game"),
        (lambda games: games.append(games[0]), "duplicate-game"),
        (lambda games: games[0].update(actions=games[0]["actions"] * 10_000), "replay-game"),
        (lambda games: games[0].update(seat_map={"player_0": ["a"], "player_1": None}), "schema"),
        (lambda games: games[0].update(seat_map={f"player_{n}": "random" for n in range(500)}), "schema"),
        (lambda games: games[0].update(winners=[["player_0"]]), "schema"),
        (lambda games: games[0]["returns"].update(player_0=True), "schema"),
    ],
)
def test_hostile_games_are_findings(change: Change, finding: str, true: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(true, tmp_path / "hostile"))
    games = [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()]
    change(games)
    (path / "episodes.jsonl").write_text("".join(json.dumps(game) + "\n" for game in games), "utf8")
    assert finding in {each.name for each in verify(path).findings}
