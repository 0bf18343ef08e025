"""Tournaments: the result depends on the plan alone, faults are counted, and a kill costs nothing."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tournament_games
from tournament_games import of, plan, same

from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.envs.multiagent import Table
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.records import transcript_sha256
from turngym.errors import ConfigError, UnknownName


@pytest.mark.parametrize("pairing", ["sides", "pairs", "mixed"])
def test_the_number_of_tables_changes_nothing(pairing: str) -> None:
    tournament = plan("random", "ace", "first_legal", "scripted:7,3", pairing=pairing, blocks=4)
    expected = play_tournament(tournament, tables=1)
    assert len({record["match"] for record in expected[1]}) == len(expected[1]) >= 20
    for tables in (3, 500):
        assert same(play_tournament(tournament, tables=tables), expected)


def test_another_seed_plays_other_games() -> None:
    first, second = (play_tournament(plan("random", "ace", seed=seed))[1] for seed in (0, 1))
    assert not {record["seed"] for record in first} & {record["seed"] for record in second}
    assert [record["actions"] for record in first] != [record["actions"] for record in second]


def test_a_record_has_all_fields_and_its_actions_play_the_game_again() -> None:
    _, records = play_tournament(plan("random", "ace", of("Stubborn")))
    fields = (
        "env env_version ruleset_hash seed block_id seat_map roles returns winner length seats transcript_sha256 "
        "status started"
    )
    usage = "tokens_in tokens_out calls parse_failures illegal forfeits latency"
    for record in records:
        assert set(fields.split()) <= record.keys()
        assert all(set(usage.split()) <= seat.keys() for seat in record["seats"].values())
        table = Table(tournament_games.HighDigits())
        begin_game(table, record["seed"])
        assert record["roles"] == {f"player_{seat}": role for seat, role in enumerate(table.game.roles)}  # type: ignore[attr-defined]
        for seat, action in record["actions"]:
            if action is None:
                table.expire(seat)
            else:
                table.answer(seat, action)
        assert table.is_over and transcript_sha256(table) == record["transcript_sha256"]
        assert list(record["returns"].values()) == table.returns
        assert record["winner"] in ("few", "many", None)
        assert record["metrics"]["unknown"] is None, "JSON has no nan"
        assert {record["teams"][seat] for seat in record["winners"]} == ({record["winner"]} - {None})


def test_invalid_answers_are_counted_by_kind() -> None:
    _, records = play_tournament(plan("random", of("Stubborn"), retries=2))
    for record in records:
        for seat, name in record["seat_map"].items():
            counts = record["seats"][seat]
            stubborn = name == "stubborn"
            assert counts["parse_failures"] == counts["calls"] - (not stubborn) == 3 * stubborn
            assert counts["forfeits"] == stubborn and counts["faults"] == 0
        assert record["status"] == "ok"


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.folder import TournamentFolder
players = {{"random": "random", "ace": "ace", "first_legal": "first_legal"}}
plan = TournamentPlan("tournament_games:HighDigits", players, 20)
add = TournamentFolder.add
def counted(self, record):
    add(self, record)
    if len(self.records) == {kill_at}:
        os.kill(os.getpid(), signal.SIGKILL)
TournamentFolder.add = counted
play_tournament(plan, folder=Path(sys.argv[1]), resume=True, tables=16)
"""


def killed(folder: Path, kill_at: int) -> int:
    script = KILLED.format(tests=str(Path(__file__).parents[2] / "support"), kill_at=kill_at)
    return subprocess.run([sys.executable, "-c", script, str(folder)], check=False, timeout=600).returncode


def test_a_killed_tournament_goes_on_without_repeating_or_losing_a_game(tmp_path: Path) -> None:
    tournament = plan("random", "ace", "first_legal", blocks=20)
    expected = play_tournament(tournament, folder=tmp_path / "whole")
    folder = tmp_path / "killed"
    assert killed(folder, 50) == -signal.SIGKILL == killed(folder, 101)
    lines = (folder / "episodes.jsonl").read_bytes().splitlines()
    assert len(lines) == 101 == len({json.loads(line)["match"] for line in lines})
    assert not (folder / "results.json").exists()
    begun = [json.loads(line)["started"] for line in lines]
    calls: list[tuple[int, int]] = []
    found = play_tournament(tournament, folder=folder, resume=True, on_game=lambda *done: calls.append(done))
    assert calls == [(number, 180) for number in range(102, 181)], "the games before are not played again"
    assert same(found, expected)
    stored = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    assert same(stored, expected[1]) and {r["started"] for r in stored} >= set(begun)
    for name in ("config.json", "results.json"):
        contents = [json.loads((tmp_path / which / name).read_text()) for which in ("whole", "killed")]
        assert same(*contents)


def test_a_finished_tournament_can_get_more_blocks(tmp_path: Path) -> None:
    tournament = plan("random", "ace", blocks=4)
    play_tournament(tournament, folder=tmp_path)
    longer = replace(tournament, blocks=7)
    found = play_tournament(longer, folder=tmp_path, resume=True)
    assert same(found, play_tournament(longer))
    again = play_tournament(longer, folder=tmp_path, resume=True, on_game=lambda *_: pytest.fail("nothing is left"))
    assert same(again, found)


def test_an_interrupt_keeps_what_is_over(tmp_path: Path) -> None:
    tournament = plan("random", "ace", blocks=10)

    def interrupt(done: int, total: int) -> None:
        if done == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_tournament(tournament, folder=tmp_path, tables=4, on_game=interrupt)
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 17
    assert same(play_tournament(tournament, folder=tmp_path, resume=True), play_tournament(tournament))


def test_auto_looks_at_the_game() -> None:
    assert (plan("random", "ace").settled().pairing, plan("random", "ace").settled().sides) == ("sides", "apart")
    kuhn = plan("random", "first_legal", game="turngym/KuhnPoker-v0").settled()
    assert (kuhn.pairing, kuhn.sides) == ("sides", "apart")

    assert plan("random", "ace", sides="alike").settled().pairing == "pairs"
    assert plan("random", "ace", pairing="mixed").settled().pairing == "mixed"


def test_a_random_player_that_was_drawn_for_no_game_anchors_nothing() -> None:
    tournament = plan("random", "first_legal", "equilibrium", game="turngym/KuhnPoker-v0", pairing="mixed", blocks=1)
    found, records = play_tournament(tournament)
    assert {name for each in records for name in each["seat_map"].values()} == {"first_legal", "equilibrium"}
    assert found["ratings"]["anchor"] is None and "random" not in found["ratings"]["players"]


def test_a_player_that_cannot_lose_is_rated_above_one_that_cannot_win() -> None:
    found, _ = play_tournament(
        plan("random", "minimax", game="turngym/TicTacToe-v0", blocks=15), anchor="random", anchor_elo=1000
    )
    rated = found["ratings"]["players"]
    assert rated["random"]["elo"]["value"] == 1000 < 1200 < rated["minimax"]["elo"]["ci_low"]
    assert rated["random"]["log"]["value"] == 0
    assert found["players"]["minimax"]["all"]["win"]["value"] > 0.6
    mine = [cell for cell in found["win_matrix"] if cell["player"] == "minimax" and cell["opponent"] == "random"]
    assert sum(cell["losses"] for cell in mine) == 0 and len(mine) == 2


def test_wrong_plans_are_explained(tmp_path: Path) -> None:
    def refused(kind: type[Exception], message: str, tournament: TournamentPlan, **settings: Any) -> None:
        with pytest.raises(kind, match=re.escape(message)):
            play_tournament(tournament, **settings)

    refused(UnknownName, "no player of high_digits named 'aces'. Did you mean 'ace'?", plan("random", "aces"))
    refused(UnknownName, "tournament_games has no 'Aec'. Did you mean 'Ace'?", plan("random", of("Aec")))
    refused(ConfigError, "the players of high_digits are: ace, random", plan("random", "expert:"))
    refused(UnknownName, "no player named 'aec' to anchor", plan("random", "ace"), anchor="aec")
    refused(ConfigError, "two players at least, got 1", plan("random"))
    refused(ConfigError, "one table at least, got 0", plan("random", "ace"), tables=0)
    refused(ConfigError, "pass the folder", plan("random", "ace"), resume=True)
    with pytest.raises(ConfigError, match="needs one block at least, got 0"):
        plan("random", "ace", blocks=0)
    with pytest.raises(UnknownName, match=r"no treatment of sides named 'apar'\. Did you mean 'apart'"):
        plan("random", "ace", sides="apar")
