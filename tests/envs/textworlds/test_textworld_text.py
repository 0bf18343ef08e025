"""What TextWorld prints, read and tidied; what a player can know, from facts; requests; stories. Needs no package."""

import importlib.util
import struct
import sys
from pathlib import Path

import pytest

from turngym.envs.textworlds.jericho import Jericho
from turngym.envs.textworlds.story import Damaged, read_story
from turngym.envs.textworlds.textworld import build as textworld_build
from turngym.envs.textworlds.textworld.build import built, folder_of
from turngym.envs.textworlds.textworld.env import TextWorld
from turngym.envs.textworlds.textworld.games import GAMES, as_text, describe, read_params
from turngym.envs.textworlds.textworld.text import Fact, Sight, match_command, tidy
from turngym.errors import ConfigError, MissingExtra, UnknownName

NAMES = {"r_0": "hall", "r_1": "attic", "c_0": "chest", "k_0": "key", "d_0": "door", "s_0": "shelf", "o_0": "vase"}
START: list[Fact] = [
    ("at", "P", "r_0"),
    ("at", "c_0", "r_0"),
    ("locked", "c_0"),
    ("in", "o_0", "c_0"),
    ("in", "k_0", "I"),
    ("at", "s_0", "r_1"),
    ("north_of", "r_1", "r_0"),
    ("south_of", "r_0", "r_1"),
    ("link", "r_0", "d_0", "r_1"),
    ("link", "r_1", "d_0", "r_0"),
    ("locked", "d_0"),
    ("match", "k_0", "c_0"),
]


def changed(facts: list[Fact], without: list[Fact], more: list[Fact]) -> list[Fact]:
    assert set(without) <= set(facts)
    return [fact for fact in facts if fact not in without] + more


def story(version: int = 8, size: int = 640) -> bytes:
    """Return bytes with the header of a story, its length and its sum."""
    content = bytearray(range(256)) * 3
    content = content[:size]
    scale = {4: 4, 5: 4, 8: 8}.get(version, 2)
    content[0] = version
    struct.pack_into(">H", content, 0x1A, size // scale)
    struct.pack_into(">H", content, 0x1C, sum(content[64:]) % 0x10000)
    return bytes(content)


def test_the_prompt_the_status_line_and_the_title_are_left_out() -> None:
    printed = "\n   $$  \\ >$$\n  | $$\n\nFind the coin.\n\n\n\nYou are here.\n\n>      -= Hall =-0/1"
    assert tidy(printed, "Find the coin.") == "Find the coin.\n\nYou are here."
    over = "\n*** The End ***\n\nYou scored 1.\n\n\nWould you like to RESTART, QUIT?\n>    -= Hall =-0/5"
    assert tidy(over) == "*** The End ***\n\nYou scored 1."
    assert tidy("no such beginning", "Find") == "no such beginning"


def test_a_command_may_be_written_with_articles_and_short_forms() -> None:
    commands = (
        "examine old key",
        "go east",
        "inventory",
        "look",
        "put old key on the shelf",
        "take old key from box",
    )
    for text, meant in (
        (" TAKE the old  key from a box\n", commands[5]),
        ("put old key on shelf", commands[4]),
        ("x old key", commands[0]),
        ("east", commands[1]),
        ("i", "inventory"),
        ("l", "look"),
    ):
        assert match_command(text, commands) == meant
    for text in ("", "west", "take key", "look; inventory", "quit", "tw-trace-actions", "漢字"):
        assert match_command(text, commands) is None


def test_what_is_hidden_is_not_told_and_what_was_seen_stays_known() -> None:
    sight = Sight(NAMES)
    sight.look(START)
    first = sight.text()
    assert first == "at hall\ncarrying: key\nhall: chest (closed); exit north by door (closed)"
    hidden_elsewhere = changed(START, [("in", "o_0", "c_0"), ("at", "s_0", "r_1")], [("in", "o_0", "s_0")])
    other = Sight(NAMES)
    other.look(changed(hidden_elsewhere, [("locked", "c_0"), ("match", "k_0", "c_0")], [("closed", "c_0")]))
    assert other.text() == first, "neither locks nor contents nor other rooms show"
    unlocked = changed(START, [("locked", "c_0")], [("open", "c_0")])
    sight.look(unlocked)
    assert "chest (open, unlocked) [vase]" in sight.text()
    upstairs = changed(unlocked, [("at", "P", "r_0"), ("locked", "d_0")], [("at", "P", "r_1"), ("open", "d_0")])
    sight.look(upstairs)
    lines = sight.text().split("\n")
    assert lines[0] == "at attic" and lines[2] == "attic: shelf; exit south to hall by door (open, unlocked)"
    assert lines[3].startswith("hall: chest (open, unlocked) [vase]")


def test_the_order_of_facts_and_the_way_there_do_not_matter() -> None:
    one, other = Sight(NAMES), Sight(NAMES)
    one.look(START)
    other.look(START[::-1])
    other.look(START)
    assert one.text() == other.text()


@pytest.mark.parametrize("game", sorted(GAMES))
def test_every_game_has_defaults_rules_and_one_canonical_form(game: str) -> None:
    params = read_params(game, None)
    assert params.keys() == GAMES[game].parameters.keys()
    assert read_params(game, as_text(params)) == params
    assert all(f"- {form}" in describe(game) for form in GAMES[game].actions)


@pytest.mark.parametrize(
    ("game", "params", "message"),
    [
        ("coin_collector", "levels=3", "no parameter 'levels'. Did you mean 'level'"),
        ("coin_collector", "level=301", "level of the game 'coin_collector' must be 1 to 300, got '301'"),
        ("coin_collector", "level=160", "level 160 of the coin collector has 120 rooms"),
        ("cooking", {"recipe": 1, "take": 2}, "take=2 of the cooking game is more than recipe=1: lower it"),
        ("cooking", {"go": 3}, "go of the game 'cooking' must be 1 or 6 or 9 or 12, got 3"),
        ("simple", "goal=vague", "must be detailed or brief or none, got 'vague'"),
        ("cooking", {"cut": 2}, "must be 0 or 1, got 2"),
    ],
)
def test_wrong_parameters_are_answered_with_the_way_out(game: str, params: dict[str, int], message: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=message):
        read_params(game, params)
    assert read_params("cooking", {"cut": True})["cut"] == 1


@pytest.mark.parametrize("version", [3, 5, 8])
def test_a_story_is_whole_or_refused(tmp_path: Path, version: int) -> None:
    path, whole = tmp_path / "a.z8", story(version)
    path.write_bytes(whole)
    assert read_story(path) == whole
    for damaged, said in (
        (b"", "does not start"),
        (b"PK" + whole[2:], "does not start"),
        (whole[:-8], "should have 640 bytes and has 632"),
        (whole[:100] + b"\xff" + whole[101:], "sum"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(Damaged, match=said):
            read_story(path)
    path.write_bytes(whole + bytes(512))
    assert len(read_story(path)) == 1152, "files are often padded"


def test_a_request_has_one_folder_in_any_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(textworld_build, "_version", lambda: "1")
    one = folder_of({"game": "simple", "seed": 1})
    assert one == folder_of({"seed": 1, "game": "simple"}) != folder_of({"seed": 2, "game": "simple"})
    assert one.is_relative_to(tmp_path / "turngym" / "textworld")


def test_a_build_that_fails_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(textworld_build, "_version", lambda: "1")
    monkeypatch.setattr(textworld_build, "_MAKER", "turngym.no_such_maker")
    with pytest.raises(ConfigError, match=r"cannot make the game 'simple' .* seed 1: .*No module named"):
        built({"game": "simple", "params": {}, "seed": 1, "foods": ""})
    assert list((tmp_path / "turngym" / "textworld").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "turngym").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(textworld_build, "_version", lambda: "1")
    with pytest.raises(ConfigError, match="set XDG_CACHE_HOME"):
        built({"game": "simple", "params": {}, "seed": 1, "foods": ""})


def test_missing_packages_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jericho", None)
    with pytest.raises(MissingExtra, match=r'jericho, which is not installed: pip install "turngym\[jericho\]"'):
        Jericho("any.z5")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'textworld, which is not installed: pip install "turngym\[textworld\]"'):
        TextWorld()
