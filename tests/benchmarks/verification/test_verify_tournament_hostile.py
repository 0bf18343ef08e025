"""Hostile tournaments: sizes and names are bounded before work begins, and invented or edited games are found."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.benchmarks.pages.tournament import sound_tournament, tournament_page
from turngym.benchmarks.tournaments.results import results
from turngym.benchmarks.verification.verify import verify
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.records import transcript_sha256
from turngym.envs.multiagent.registration import make_game
from turngym.envs.multiagent.table import Table

Change = Callable[[Any], object]


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tournaments") / "true"
    words = ["tournament", "turngym/KuhnPoker-v0", "--players", "random", "first_legal", "equilibrium", "--blocks", "2"]
    assert main([*words, "--out", str(path)]) == 0
    return path


def put(**values: Any) -> Change:
    return lambda table: table.update(values)


def many_players(plan: Any) -> None:
    plan["players"] = dict.fromkeys((f"p{number}" for number in range(10_000)), "random")
    plan["player_order"] = list(plan["players"])


def break_game(game: Any, **claims: Any) -> None:
    """Turn a game into one that broke, as a forger would."""
    zeros = dict.fromkeys(game["seat_map"], 0.0)
    broken = {"status": "env_error", "fault": "it broke", "actions": [], "length": 0, "winners": [], "metrics": {}}
    game |= {**broken, "returns": zeros, "scores": zeros, **claims}


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


def rated(path: Path, games: list[Any], **scale: Any) -> None:
    """Write the results that follow from games, with the scale that a forger likes."""
    plan = json.loads((path / "config.json").read_text("utf8"))
    plan["players"] = {name: plan["players"][name] for name in plan["player_order"]}
    (path / "results.json").write_text(json.dumps(results(plan, games, **{"anchor": "random", **scale})), "utf8")


@pytest.mark.parametrize(
    ("scale", "told"),
    [
        ({}, {}),
        ({"anchor_elo": 3000.0}, {"anchor_elo": "its author chose 3000.0 for the ratings, where 0.0 is usual"}),
        ({"prior": 1e-6}, {"prior": "its author chose 1e-06 for the ratings, where 1.0 is usual"}),
        ({"anchor": "first_legal"}, {"anchor": "its author chose first_legal for the ratings, where random is usual"}),
    ],
    ids=["usual", "anchor_elo", "prior", "anchor"],
)
def test_a_scale_that_results_alone_hold_is_named(
    scale: dict[str, Any], told: dict[str, str], true: Path, tmp_path: Path
) -> None:
    """Ratings were thousands of Elo higher, and every game came out the same."""
    path = Path(shutil.copytree(true, tmp_path / "shifted"))
    rated(path, [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()], **scale)
    found = verify(path, replay=1)
    assert found.label == "replayed" and found.findings == ()
    assert {name: reason for name, reason in found.not_recomputed.items() if name != "usage"} == told
    shown = tournament_page(sound_tournament(path))
    assert ("where 1 is usual" in shown) == ("prior" in scale)
    assert f"fixed at {scale.get('anchor_elo', 0):,.0f}" in shown


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
        (lambda games: games[0]["seats"]["player_0"].update(tokens_in=-5), "schema"),
        (lambda games: games[0]["seats"]["player_0"].update(latency=-1.0), "schema"),
        (lambda games: games[0]["seats"]["player_0"].update(defaults=-1), "schema"),
        (lambda games: break_game(games[0], returns={"player_0": 1e6, "player_1": 0.0}), "schema"),
        (lambda games: break_game(games[0], scores={"player_0": 1e6, "player_1": 0.0}), "schema"),
        (lambda games: break_game(games[0], metrics={"chips_per_hand": 1e6}), "schema"),
        (lambda games: break_game(games[0], winners=["player_0"]), "schema"),
    ],
)
def test_hostile_games_are_findings(change: Change, finding: str, true: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(true, tmp_path / "hostile"))
    games = [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()]
    change(games)
    (path / "episodes.jsonl").write_text("".join(json.dumps(game) + "\n" for game in games), "utf8")
    assert finding in {each.name for each in verify(path).findings}


@pytest.mark.parametrize("is_told", [False, True])
def test_a_built_in_opponent_cannot_forfeit(is_told: bool, true: Path, tmp_path: Path) -> None:
    """A forger lets the opponent forfeit at once, makes the game and the ratings fit, and hides it or not."""
    path = Path(shutil.copytree(true, tmp_path / "forged"))
    games = [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()]
    game = games[0]
    table = Table(make_game("turngym/KuhnPoker-v0"), retries=0)
    begin_game(table, game["seed"])
    seat = table.pending[0]
    table.expire(seat)
    assert table.is_over
    names = table.game.seats
    game |= {"actions": [[seat, None]], "length": 1, "winners": [names[each] for each in table.winners()]}
    game |= {"returns": dict(zip(names, table.returns, strict=True)), "transcript_sha256": transcript_sha256(table)}
    game |= {"scores": {name: float(table.game.score(each)) for each, name in enumerate(names)}}
    game |= {"metrics": {key: float(value) for key, value in table.game.metrics().items()}}
    game["seats"][names[seat]]["forfeits"] = int(is_told)
    (path / "episodes.jsonl").write_text("".join(json.dumps(each) + "\n" for each in games), "utf8")
    rated(path, games)
    found = verify(path, replay=1)
    assert {each.name for each in found.findings} == {"forfeits"}, found
    assert any("1 games a seat forfeited" in note for note in found.notes)


def test_a_game_that_broke_weakens_the_label(true: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forger turns a lost game into a draw, which no replay shows."""
    monkeypatch.setattr("turngym.benchmarks.verification.tournaments._MOST_ERRORS", 1.0)
    assert verify(true).label == "replayed" and "usage" in verify(true).not_recomputed
    path = Path(shutil.copytree(true, tmp_path / "forged"))
    games = [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()]
    break_game(games[0])
    (path / "episodes.jsonl").write_text("".join(json.dumps(game) + "\n" for game in games), "utf8")
    rated(path, games)
    found = verify(path)
    assert found.label == "partly replayed" and "ratings" in found.not_recomputed, found
    assert any("1 games broke" in note for note in found.notes)
