"""ALFWorld's games: both layouts, lazily, with their walkthroughs; what is missing or damaged is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from household_games import REAL, generated, needs_real, write_compact, write_official

from turngym.envs.household import alfworld_games
from turngym.envs.household.alfworld import ALFWorld
from turngym.envs.household.alfworld_games import FOLDS, find_data, open_games, read_game
from turngym.envs.household.goals import is_reached
from turngym.envs.household.pddl import read_goal, read_problem
from turngym.envs.household.rules import House
from turngym.envs.household.world import KINDS, LOOK, PLACE, TWO, Goal, World
from turngym.errors import ConfigError, MissingExtra, UnknownName

GAMES = generated(12)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "real" not in request.node.name:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.delenv("ALFWORLD_DATA", raising=False)


@pytest.fixture(params=["compact", "official"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write = write_compact if request.param == "compact" else write_official
    for fold in FOLDS.values():
        write(tmp_path / "data", GAMES, fold)
    return tmp_path / "data"


def finish(env: ALFWorld, info: dict[str, Any]) -> dict[str, Any]:
    while info["success"] < 0:
        *_, info = env.step(env.expert_action())
    return info


def test_both_layouts_play_the_same_games(folder: Path) -> None:
    env = ALFWorld(str(folder))
    assert env.tasks() == tuple(sorted(game["id"] for game in GAMES))
    for game in GAMES:
        observation, info = env.reset(seed=0, options={"task": game["id"]})
        assert observation.startswith("Hello.\n\nYou are in the middle of a room.")
        assert observation.endswith(f"\n\nYour task is to: {game['goal_text']}.")
        for command in game["walkthrough"]:
            assert info["success"] == -1 and env.expert_action() == command
            *_, info = env.step(command)
        assert info["success"] == info["score"] == 1
        assert env.instance == game["id"]
    env.reset(seed=1)
    assert env.step("help")[0] == "Write a command.\n"


def test_the_walkthrough_is_left_for_the_planner_after_a_detour(folder: Path) -> None:
    env = ALFWorld(str(folder), expert="planner")
    for game in GAMES:
        _, info = env.reset(options={"task": game["id"]})
        env.step(game["walkthrough"][0].upper())
        assert env.expert_action() == game["walkthrough"][1]
        env.step("inventory")
        snapshot, action = env.snapshot(), env.expert_action()
        assert finish(env, info)["success"] == 1
        env.restore(snapshot)
        assert env.expert_action() == action


def test_the_explorer_knows_no_walkthrough(folder: Path) -> None:
    env = ALFWorld(str(folder), expert="explorer", split="test")
    turns = []
    for number in range(len(GAMES)):
        _, info = env.reset(options={"task": number})
        assert finish(env, info)["success"] == 1
        turns.append(env.turn)
    assert sum(turns) > sum(len(game["walkthrough"]) for game in GAMES)


def test_a_kind_of_task_and_alfworlds_names_of_the_folds_are_understood(folder: Path) -> None:
    env = ALFWorld(str(folder), kind=TWO, split="valid_unseen")
    assert env.split == "test" and all(name.startswith(TWO) for name in env.tasks()) and len(env.tasks()) == 2
    assert ALFWorld(str(folder), split="valid_seen").split == "dev"
    with pytest.raises(ConfigError, match="no split 'valid'"):
        ALFWorld(str(folder), split="valid")
    with pytest.raises(ConfigError, match=r"kind of .* got 'cook'"):
        ALFWorld(str(folder), kind="cook")
    with pytest.raises(UnknownName, match="no task named 'x'"):
        env.reset(options={"task": "x"})
    with pytest.raises(ConfigError, match=r"the task .* in \[0, 1\], got 2"):
        env.reset(options={"task": 2})


def test_only_the_game_that_is_played_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str, task: str) -> World:
        read.append(task)
        return read_problem(text, task)

    monkeypatch.setattr(alfworld_games, "read_problem", counted)
    read_game.cache_clear()
    env = ALFWorld(str(folder), split="dev")
    assert read == []
    for _ in range(3):
        env.reset(options={"task": 4})
    assert len(read) == 1


def test_the_second_opening_uses_what_the_first_has_worked_out(folder: Path, tmp_path: Path) -> None:
    first = open_games(folder, "train").kinds
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}
    alfworld_games._open_compact.cache_clear()
    alfworld_games._open_official.cache_clear()
    assert open_games(folder, "train").kinds == first and len(kept) >= 3
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")} == kept


def test_games_that_cannot_be_solved_or_are_not_supported_are_left_out(tmp_path: Path) -> None:
    write_official(tmp_path / "data", GAMES[:3], "train")
    base = tmp_path / "data" / "json_2.1.1" / "train"
    unsolvable = base / GAMES[0]["id"] / "game.tw-pddl"
    unsolvable.write_text(json.dumps({**json.loads(unsolvable.read_bytes()), "solvable": False}))
    for name in (f"{PLACE}-AppleSliced-9", f"{PLACE}-movable-9", "notes-9"):
        (base / name / "trial").mkdir(parents=True)
        (base / name / "trial" / "game.tw-pddl").write_bytes(unsolvable.read_bytes())
    (base / GAMES[1]["id"] / ".." / "trial_without_game").mkdir()
    assert ALFWorld(str(tmp_path / "data")).tasks() == tuple(sorted(game["id"] for game in GAMES[1:3]))


def test_missing_games_are_named_with_the_way_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtra, match=r"neither data=\.\.\. nor ALFWORLD_DATA .* alfworld-download"):
        ALFWorld()
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(MissingExtra, match="nowhere' is not a folder"):
        ALFWorld()
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert find_data("") == tmp_path
    with pytest.raises(MissingExtra, match="no games of ALFWorld's fold 'valid_unseen'"):
        ALFWorld(split="test")


def test_a_damaged_compact_file_is_named_and_leaves_nothing_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_compact(data, GAMES, "train")
    packed = data / "games.train.jsonl.xz"
    whole = packed.read_bytes()
    for content in (b"no archive", whole[: len(whole) // 2]):
        packed.write_bytes(content)
        with pytest.raises(ConfigError, match=r"games\.train\.jsonl\.xz has no games of ALFWorld"):
            ALFWorld(str(data))
    assert list((tmp_path / "cache" / "turngym" / "alfworld").iterdir()) == []
    (data / "alfred.twl2").unlink()
    with pytest.raises(ConfigError, match=r"alfred\.twl2"):
        ALFWorld(str(data))


@pytest.mark.parametrize("damage", ["not json", '{"pddl_problem": "(:init (:goal"}', "[]"])
def test_a_damaged_official_game_is_named_when_it_is_played(tmp_path: Path, damage: str) -> None:
    data = tmp_path / "data"
    write_official(data, GAMES[:2], "train")
    path = data / "json_2.1.1" / "train" / GAMES[0]["id"] / "game.tw-pddl"
    path.write_text(damage + ' "solvable": true')
    env = ALFWorld(str(data))
    env.reset(options={"task": GAMES[1]["id"]})
    with pytest.raises(ConfigError, match=r"game\.tw-pddl has no games"):
        env.reset(options={"task": GAMES[0]["id"]})


@pytest.mark.parametrize("text", ["", "(:goal", "(define (:init ) (:goal (and (loved ?x))))", "(:goal) (:init)"])
def test_a_problem_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="household game"):
        read_problem(text, "Do it.")


def test_a_goal_about_two_kinds_of_things_is_refused() -> None:
    text = read_problem(GAMES[5]["pddl_problem"], "").goals[0]
    goal = GAMES[5]["pddl_problem"].partition("(:goal")[2].replace(f"?o2 {text.thing}type", "?o2 othertype")
    assert text.kind == TWO
    with pytest.raises(ConfigError, match="several kinds"):
        read_goal(goal)


@needs_real
@pytest.mark.parametrize(("fold", "count"), [("valid_unseen", 134), ("valid_seen", 140)])
def test_every_walkthrough_of_the_real_games_wins(fold: str, count: int) -> None:
    games = open_games(REAL, fold)
    lost, kinds = [], set()
    for name in games.kinds:
        game = games.read(name)
        house, goal = House(game.world, game.help_text, relists=False), game.world.goals[0]
        reached = [is_reached(house, goal)]
        for command in game.walkthrough:
            if house.act(command) is None:
                break
            reached.append(is_reached(house, goal))
        if reached != [False] * len(game.walkthrough) + [True]:
            lost.append(name)
        kinds.add(goal.kind)
        assert goal.kind == games.kinds[name]
    assert lost == [] and len(games.kinds) == count and kinds == set(KINDS)


@needs_real
def test_a_real_game_shows_what_alfworld_shows() -> None:
    env = ALFWorld(str(REAL), split="test", kind=LOOK)
    observation, info = env.reset(options={"task": 0})
    assert observation.startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.")
    assert env.house.world.goals == (Goal(LOOK, "alarmclock", "desklamp"),)
    assert len(info["legal_actions"]) == 21 and info["legal_actions"][-3:] == ("help", "inventory", "look")
    assert env.step("look")[0].endswith("you see nothing.")
