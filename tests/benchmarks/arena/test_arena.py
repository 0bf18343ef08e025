"""Arenas: matches chosen by uncertainty, a population that changes, and results that no kill changes."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tournament_games import HIGH_DIGITS, HighDigits, of, timeless

from turngym.benchmarks.arena.hall import Tables
from turngym.benchmarks.arena.plan import Arena, ArenaPlayer, Change
from turngym.benchmarks.arena.run import play_arena
from turngym.benchmarks.tournaments.pairings import Match
from turngym.errors import CheckpointError, ConfigError, UnknownName

GAMES: dict[str, tuple[str, dict[str, Any]]] = {"kuhn": ("turngym/KuhnPoker-v0", {}), "digits": (HIGH_DIGITS, {})}
PLAYERS = {"random": "random", "first": "first_legal", "ace": "ace", "equilibrium": "equilibrium"}


class Kill(BaseException):
    """Ends a process at once, as far as a test in one process can."""


class Here(Tables):
    """Plays in this process, and dies after some matches."""

    left = 10**9

    def __init__(self, arena: Arena, tables: int, seconds: float) -> None:
        super().__init__(arena, tables)

    def play(self, game: str, matches: Sequence[Match], out: Any = None) -> Iterator[dict[str, Any]]:
        for record in super().play(game, matches, out):
            if type(self).left == 0:
                raise Kill
            type(self).left -= 1
            yield record


def change(matches: int, *players: str, retire: Sequence[str] = ()) -> Change:
    return Change(GAMES, {name: ArenaPlayer(PLAYERS[name]) for name in players or PLAYERS}, retire, matches)


def play(folder: Path, given: Change, kill_after: int | None = None, **settings: Any) -> dict[str, Any]:
    Here.left = 10**9 if kill_after is None else kill_after
    return play_arena(folder, given, at=Here, **settings)


def stored(folder: Path) -> dict[str, Any]:
    """Return everything in a folder but times."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.json*")):
        text = path.read_text()
        lines = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
        found[str(path.relative_to(folder))] = timeless(lines)
    return {name: content for name, content in found.items() if name != "costs.json"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty matches, then thirty more with another player and without one of the first."""
    folder = tmp_path_factory.mktemp("whole") / "arena"
    play(folder, change(40, "random", "first", "ace"))
    play(folder, change(70, "equilibrium", retire=["first"]))
    return folder


def records(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in folder.glob("games/*/episodes.jsonl") for line in path.read_text().splitlines()]
    return sorted(map(json.loads, lines), key=lambda record: record["block_id"])


def test_players_meet_in_the_games_that_they_can_play(whole: Path) -> None:
    played = records(whole)
    assert [record["block_id"] for record in played] == list(range(70))
    met: dict[str, set[str]] = {}
    for record in played:
        met.setdefault(record["env"], set()).update(record["seat_map"].values())
    assert met == {GAMES["kuhn"][0]: {"random", "first", "equilibrium"}, HIGH_DIGITS: {"random", "first", "ace"}}
    assert not any(len(set(record["seat_map"].values())) == 1 for record in played)
    assert not any("first" in record["seat_map"].values() for record in played[40:]), "it retired"
    found = json.loads((whole / "results.json").read_text())
    assert found["players"]["first"]["retired"] and "first" in found["ratings"]["players"]


def test_sides_are_balanced(whole: Path) -> None:
    for env, _ in GAMES.values():
        held = Counter(
            (name, team)
            for record in records(whole)
            if record["env"] == env
            for team, name in {record["teams"][seat]: name for seat, name in record["seat_map"].items()}.items()
        )
        teams = {team for _, team in held}
        for name in {name for name, _ in held}:
            counts = [held[name, team] for team in teams]
            assert max(counts) - min(counts) <= 2


@pytest.mark.parametrize("kills", [[0], [7, 13, 1], [16, 23]])
def test_kills_change_nothing(whole: Path, kills: list[int], tmp_path: Path) -> None:
    folder = tmp_path / "arena"
    for number in kills:
        with pytest.raises(Kill):
            play(folder, change(40, "random", "first", "ace"), number, tables=3)
    with (folder / "games" / "kuhn" / "episodes.jsonl").open("ab") as file:
        file.write(b'{"half of a li')
    play(folder, change(40, "random", "first", "ace"))
    with pytest.raises(Kill):
        play(folder, change(70, "equilibrium", retire=["first"]), 11)
    play(folder, Change())
    assert stored(folder) == stored(whole)


def test_a_population_may_change_in_the_middle_of_a_round(tmp_path: Path) -> None:
    with pytest.raises(Kill):
        play(tmp_path, change(40, "random", "first", "ace"), 11)
    before = records(tmp_path)
    play(tmp_path, change(60, "equilibrium"))
    after = records(tmp_path)
    assert [timeless(r) for r in after if r["block_id"] in {b["block_id"] for b in before}] == timeless(before)
    assert [record["block_id"] for record in after] == list(range(60))
    stages = json.loads((tmp_path / "config.json").read_text())["stages"]
    assert len(stages) == 2 and stages[1]["start"] + len(stages[1]["held"]) == 11
    assert stages[1]["held"], "else this says nothing: matches of a round end game by game"


def test_what_cannot_be_is_refused_and_changes_nothing(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "arena")
    before = stored(folder)
    wrong: list[tuple[Change, dict[str, Any], str]] = [
        (Change(players={"ace": ArenaPlayer("random")}), {}, "the arena has a player 'ace' already"),
        (Change(players={"first": ArenaPlayer("first_legal")}), {}, "'first' is retired: .* such as other=first_legal"),
        (Change(players={"other": ArenaPlayer("nobody")}), {}, "can play no game of the arena: no player of kuhn"),
        (Change(games={"kuhn": ("turngym/KuhnPoker-v0", {"hands": 4})}), {}, "the arena has a game 'kuhn' already"),
        (Change(games={"hanabi": ("turngym/HanabiSmall-v0", {})}), {}, "is cooperative"),
        (Change(matches=69), {}, "the arena has 70 matches, more than 69"),
        (Change(retire=["random", "equilibrium"]), {}, "needs a game that two players can play"),
        (Change(), {"fixed": {"seed": 1}}, "the arena has seed 0, not 1"),
        (Change(matches=99_999_999_999), {}, r"matches of an arena must be 1 to 100,000, got 99999999999"),
    ]
    for given, settings, message in wrong:
        with pytest.raises(ConfigError, match=message):
            play(folder, given, **settings)
    with pytest.raises(UnknownName, match=r"no player named 'aec' to retire\. Did you mean 'ace'"):
        play(folder, Change(retire=["aec"]))
    assert stored(folder) == before


@pytest.mark.parametrize(
    "wrong", ['"winners": 5', '"winners": NaN', '"status": "lost"', '"seat_map": [["random"], "ace"]']
)
def test_damaged_records_are_named(wrong: str, whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "arena")
    games = folder / "games" / "kuhn" / "episodes.jsonl"
    first, *rest = games.read_text().splitlines()
    games.write_text("\n".join([f"{first[:-1]}, {wrong}}}", *rest, ""]))  # the last of equal names counts
    with pytest.raises(CheckpointError, match=r"^line 1 of .*kuhn/episodes\.jsonl.*the file is damaged"):
        play(folder, change(71))


def test_a_pipe_and_a_text_that_no_file_holds_are_named(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "arena")
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"ace"', '"\\ud800"'))
    with pytest.raises(ConfigError, match="characters that no file can hold"):
        play(folder, change(71))
    (folder / "config.json").write_text(config)
    games = folder / "games" / "kuhn" / "episodes.jsonl"
    games.unlink()
    os.mkfifo(games)
    with pytest.raises(CheckpointError, match="is not a file: the folder is damaged"):
        play(folder, change(71))


class ThreeTeams(HighDigits):
    """Five seats of three teams, of which the one that names the highest digit wins."""

    name = "three_teams"

    def team(self, seat: int) -> str:
        return "abc"[seat % 3]

    def winners(self) -> tuple[int, ...]:
        best = max(self.said, default="")
        teams = {self.team(seat) for seat, digit in enumerate(self.said) if digit == best}
        return tuple(seat for seat in self.everyone if self.team(seat) in teams)


def test_more_than_two_sides_and_equal_sides_have_their_own_lineups(tmp_path: Path) -> None:
    games: dict[str, tuple[str, dict[str, Any]]] = {
        "goods": ("turngym/PublicGoods-v0", {}),
        "teams": (f"{__name__}:ThreeTeams", {}),
    }
    players = {f"{name}{number}": ArenaPlayer(name) for name in ("random", "first_legal") for number in range(2)}
    play(tmp_path, Change(games, players, (), 24))
    sides = {json.loads(path.read_text())["sides"] for path in tmp_path.glob("games/*/config.json")}
    assert sides == {"alike", "apart"}, "else this says nothing"
    for env, _ in games.values():
        played = [record for record in records(tmp_path) if record["env"] == env]
        held: Counter[tuple[str, str]] = Counter()
        for record in played:
            lineup = {team: record["seat_map"][seat] for seat, team in record["teams"].items()}
            assert len(set(lineup.values())) == min(4, len(lineup)) > 2
            held.update((name, team) for team, name in lineup.items())
        counts = [held[name, team] for name in players for team in set(played[0]["teams"].values())]
        assert max(counts) - min(counts) <= 3


OPEN: set[int] = set()


class ClosesBadly(HighDigits):
    """Fails to close, after it has let go."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        OPEN.add(id(self))

    def close(self) -> None:
        OPEN.discard(id(self))
        raise RuntimeError("the browser is gone")


def test_faults_are_counted_the_others_go_on_and_all_games_are_closed(tmp_path: Path) -> None:
    names = "random", "Broken", "Absent", "Flaky"
    players = {name: ArenaPlayer(name if name == "random" else of(name)) for name in names}
    with pytest.raises(ConfigError, match="'ace2' can play no game of the arena"):
        play(tmp_path, Change({"digits": (f"{__name__}:ClosesBadly", {})}, {"ace2": ArenaPlayer("knight")}))
    found = play(tmp_path, Change({"digits": (f"{__name__}:ClosesBadly", {})}, players, (), 12))
    assert not OPEN
    digits = found["games"]["digits"]
    assert digits["retried"] > 0 == digits["env_errors"]
    assert re.fullmatch(r"Flaky at seat \d: OSError: only once \(.*, line \d+\)", digits["first_retried"])
    faulty = [record for record in records(tmp_path) if {"Broken", "Absent"} & set(record["seat_map"].values())]
    assert digits["agent_errors"] == len(faulty) >= 6
    assert found["players"]["random"]["faults"] == 0 < found["players"]["Broken"]["faults"]
    assert found["ratings"]["players"]["Absent"]["elo"]["value"] < 0
