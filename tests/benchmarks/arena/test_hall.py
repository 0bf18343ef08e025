"""Players and rules that hang or end their process: they cost their own game and nothing else."""

import ctypes
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tournament_games import HIGH_DIGITS, Ace, HighDigits, timeless

from turngym.benchmarks.arena.hall import Tables
from turngym.benchmarks.arena.plan import Arena, ArenaPlayer, Change
from turngym.benchmarks.arena.run import play_arena

SECONDS = 10.0


class Hangs(Ace):
    """Never answers, and lets nothing interrupt it."""

    def act(self, view: Any) -> str:
        while True:
            try:
                time.sleep(1)
            except BaseException:
                continue


class Exits(Ace):
    """Ends the process."""

    def act(self, view: Any) -> str:
        os._exit(3)


class Crashes(Ace):
    """Reads memory that is not there before its first answer."""

    def begin(self, view: Any, generator: Any) -> None:
        ctypes.string_at(0)


class Chatters(Ace):
    """Prints what would be a record."""

    def act(self, view: Any) -> str:
        print('{"done": true}', flush=True)
        return super().act(view)


class Stuck(HighDigits):
    """Its rules never end where everybody says 9."""

    name = "stuck"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        while set(actions.values()) == {"9"}:
            time.sleep(1)
        return super().commit(actions)


def players(*names: str) -> dict[str, ArenaPlayer]:
    return {name: ArenaPlayer(f"{__name__}:{name}" if name[0].isupper() else name) for name in names}


def games(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in folder.glob("games/*/episodes.jsonl") for line in path.read_text().splitlines()]
    return sorted(map(json.loads, lines), key=lambda record: record["block_id"])


def here(arena: Arena, tables: int, seconds: float) -> Tables:
    return Tables(arena, tables)


@pytest.mark.integration
def test_a_player_that_ends_its_process_forfeits_and_the_others_play_on(tmp_path: Path) -> None:
    change = Change({"digits": (HIGH_DIGITS, {})}, players("random", "Exits", "Crashes"), (), 3)
    found = play_arena(tmp_path, change, seconds=SECONDS)
    faulty = {name: each["faults"] for name, each in found["players"].items()}
    assert faulty["random"] == 0 < min(faulty["Exits"], faulty["Crashes"])
    for game in games(tmp_path):
        guilty = {"Exits": "exit status 3", "Crashes": "exit status -"}
        there = [name for name in set(game["seat_map"].values()) if name in guilty]
        assert game["status"] == ("agent_error" if there else "ok")
        assert not there or any(guilty[name] in game["fault"] for name in there)
        assert set(game["winners"]).isdisjoint(seat for seat, name in game["seat_map"].items() if name in guilty)


@pytest.mark.integration
def test_a_process_plays_as_its_parent_would(tmp_path: Path) -> None:
    change = Change({"digits": (HIGH_DIGITS, {})}, players("random", "first_legal", "Chatters"), (), 20)
    found = play_arena(tmp_path / "there", change, seconds=SECONDS, tables=3)
    assert found == play_arena(tmp_path / "here", change, tables=16, at=here)
    assert timeless(games(tmp_path / "there")) == timeless(games(tmp_path / "here"))


@pytest.mark.integration
def test_a_player_that_hangs_is_interrupted(tmp_path: Path) -> None:
    found = play_arena(
        tmp_path, Change({"digits": (HIGH_DIGITS, {})}, players("random", "Hangs"), (), 1), seconds=SECONDS
    )
    [game] = games(tmp_path)
    assert game["status"] == "agent_error" and "no answer in 10 seconds" in game["fault"]
    assert found["players"]["Hangs"]["faults"] > 0 == found["players"]["random"]["faults"]


@pytest.mark.integration
def test_rules_that_hang_twice_are_a_draw(tmp_path: Path) -> None:
    change = Change({"stuck": (f"{__name__}:Stuck", {})}, players("ace", "Chatters"), (), 1)
    found = play_arena(tmp_path, change, seconds=SECONDS)
    [game] = games(tmp_path)
    assert (
        game["status"] == "env_error" and "the rules: no answer in 10 seconds" in game["fault"] and not game["winners"]
    )
    assert found["games"]["stuck"]["env_errors"] == 1 and found["ratings"] is None
