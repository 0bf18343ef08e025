"""TextWorld, played for real: games are generated, compiled and played by the package."""

import importlib.metadata
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.check import check
from turngym.envs.textworlds.textworld import build as textworld_build
from turngym.envs.textworlds.textworld.build import ABOUT, FACTS, STORY, built, folder_of
from turngym.envs.textworlds.textworld.env import TextWorld
from turngym.envs.textworlds.textworld.games import read_params
from turngym.envs.textworlds.textworld_express.env import UNKNOWN_ACTION
from turngym.errors import ConfigError, SnapshotUnsupported, UnknownName

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not list(importlib.metadata.distributions(name="textworld")),
        reason="textworld is not installed: make test-integration",
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of its own parser
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
GAMES = {
    "coin_collector": "level=3",
    "cooking": "recipe=2,take=1,cook=1,cut=1,open=1,drop=1,go=1",
    "custom": "world_size=3,nb_objects=6,quest_length=3",
}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache for these tests alone, which the processes of the check see too."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder / "turngym" / "textworld"
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="module", params=sorted(GAMES))
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[TextWorld, TextWorld]]:
    """Two environments with the one game of a generator."""
    envs = [TextWorld(game=request.param, params=GAMES[request.param], games=1) for _ in range(2)]
    yield envs[0], envs[1]
    for env in envs:
        env.close()


def play(env: TextWorld, seed: int, turns: int = 15) -> list[Any]:
    """Return all that an episode of random commands shows, one of them ill-formed."""
    choice = random.Random(seed)
    seen: list[Any] = [env.reset(seed=seed)]
    for turn in range(turns):
        action = choice.choice(seen[-1][-1]["legal_actions"])
        seen.append((action, *env.step("gibberish" if turn == 3 else action)))
        if seen[-1][3] or seen[-1][4]:
            break
    return seen


def test_the_walkthrough_wins_and_its_rewards_add_up(pair: tuple[TextWorld, TextWorld]) -> None:
    env = pair[0]
    first, info = env.reset(seed=0)
    assert first.startswith(env._told.objective) and "$$" not in first and "-= " in first
    rewards, known = [], ""
    while info["success"] < 0:
        action = env.expert_action()
        assert action in info["legal_actions"]
        text, reward, _, _, info = env.step(action)
        rewards.append(reward)
        assert not text.rstrip().endswith(">") and "RESTART" not in text
        known = info["anchor"]
    assert sum(rewards) == pytest.approx(1.0)
    assert (info["success"], info["score"], info["progress"], info["legal_actions"]) == (1, 1.0, 1.0, ())
    assert known.startswith(env._told.objective)
    assert env.restore(env.snapshot())[1] == info


def test_equal_seeds_give_equal_bytes_with_different_pasts(pair: tuple[TextWorld, TextWorld]) -> None:
    first, second = pair
    play(second, seed=77)
    assert json.dumps(play(first, 1)) == json.dumps(play(second, 1))
    assert json.dumps(play(first, 1)) != json.dumps(play(first, 2))


def test_a_branch_from_a_snapshot_equals_the_original_continuation(pair: tuple[TextWorld, TextWorld]) -> None:
    first, second = pair
    play(first, seed=4, turns=5)
    if not first._running:
        pytest.skip("random play has lost the game")
    saved = first.snapshot()
    assert second.restore(saved) == first.restore(saved)
    for action in (*first._commands[:3], "look"):
        if first._running:
            assert first.step(action) == second.step(action)
    content = json.loads(saved)
    content["state"]["last"] += " And a dragon."
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        first.restore(json.dumps(content).encode())


def test_text_that_is_no_command_changes_nothing(pair: tuple[TextWorld, TextWorld]) -> None:
    env = pair[0]
    _, before = env.reset(seed=3)
    for text in ("", "\ud800", "take\x00", "漢字🙂\n", "quit", "restart", "save", "tw-trace-actions", "go " * 3_000):
        assert env.step(text) == (UNKNOWN_ACTION, 0.0, False, False, {**before, "action_is_valid": False})


def test_the_anchor_names_only_what_the_texts_have_named(pair: tuple[TextWorld, TextWorld]) -> None:
    env, draw = pair[0], random.Random(5)
    text, info = env.reset(seed=5)
    told = text + env.step("inventory")[0]
    names = {each.name for each in env._told["game"].infos.values() if each.name}
    for _ in range(12):
        mentioned = {name for name in names if name in info["anchor"]}
        assert all(name.casefold() in told.casefold() for name in mentioned), mentioned
        looked = env.step("look")[-1]
        assert looked["anchor"] == info["anchor"] or not env._actions
        text, *_, info = env.step(draw.choice(env._commands))
        told += text
        if info["success"] >= 0:
            return


def test_intermediate_rewards_say_which_way_the_end_lies() -> None:
    env = TextWorld(params="level=3", games=1, reward="intermediate")
    _, info = env.reset(seed=0)
    there = env.expert_action()
    assert env.step(there)[1] == 1.0
    opposite = {"north": "south", "south": "north", "east": "west", "west": "east"}
    assert env.step(f"go {opposite[there.removeprefix('go ')]}")[1] == -1.0
    assert env.expert_action() == there, "after a detour, TextWorld's own policy"
    while info["success"] < 0:
        *_, info = env.step(env.expert_action())
    assert info["success"] == 1
    env.close()


def test_a_spoilt_recipe_is_lost_and_leaves_the_expert_without_advice() -> None:
    env = TextWorld(game="cooking", params=GAMES["cooking"], games=1)
    _, info = env.reset(seed=0)
    env.step("examine cookbook")
    while not (food := [each for each in info["legal_actions"] if each.startswith("eat ")]):
        *_, info = env.step(env.expert_action())
    _, _, terminated, truncated, info = env.step(food[0])
    assert (terminated, truncated, info["success"]) == (True, False, 0)
    env.reset(seed=0)
    env.step(next(each for each in env._commands if each.startswith("take ") and each != env.expert_action()))
    with pytest.raises(ConfigError, match="has left the walkthrough"):
        env.expert_action()
    env.close()


def test_another_order_of_hashes_and_a_second_build_give_the_same_game(cache: Path) -> None:
    request = {"game": "coin_collector", "params": read_params("coin_collector", "level=3"), "seed": 0, "foods": ""}
    folder = built(request)
    assert sorted(path.name for path in folder.iterdir()) == sorted([ABOUT, FACTS, STORY])
    content = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / STORY).write_bytes(content[STORY][:1000])  # damaged: it is built anew
    script = (
        "import json, sys; from turngym.envs.textworlds.textworld.build import built; built(json.loads(sys.argv[1]))"
    )
    subprocess.run(
        [sys.executable, "-c", script, json.dumps(request)],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        check=True,
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == content
    assert [path.name for path in cache.iterdir() if path.name.startswith(".part-")] == []


def test_a_build_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(textworld_build, "LIMIT_SECONDS", 1)  # it takes longer than that to import the package
    request = {"game": "treasure_hunter", "params": read_params("treasure_hunter", "level=30"), "seed": 0, "foods": ""}
    with pytest.raises(ConfigError, match=r"has not finished the game 'treasure_hunter'.*choose an easier one"):
        built(request)
    assert not folder_of(request).exists()


def test_a_story_of_ones_own_is_played_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    request = {"game": "coin_collector", "params": read_params("coin_collector", "level=3"), "seed": 0, "foods": ""}
    shutil.copy(built(request) / STORY, tmp_path / "mine.z8")
    with pytest.raises(ConfigError, match=r"cannot play .*mine\.json"):
        TextWorld(story=str(tmp_path / "mine.z8"))
    shutil.copy(built(request) / FACTS, tmp_path / "mine.json")
    env = TextWorld(story=str(tmp_path / "mine.z8"), split="test")
    assert env.tasks() == ("mine.z8",)
    _, info = env.reset(seed=0)
    while info["success"] < 0:
        *_, info = env.step(env.expert_action())
    assert info["success"] == 1
    env.close()
    whole = (tmp_path / "mine.z8").read_bytes()
    for damaged in (b"no story", whole[:50_000], whole[:5000] + b"\xff\xff" + whole[5002:]):
        (tmp_path / "mine.z8").write_bytes(damaged)
        with pytest.raises(ConfigError, match=r"cannot play .*mine\.z8"):
            TextWorld(story=str(tmp_path / "mine.z8"))
    (tmp_path / "mine.z8").write_bytes(whole)
    (tmp_path / "mine.json").write_text('{"version": 1}')
    env = TextWorld(story=str(tmp_path / "mine.z8"))
    with pytest.raises(ConfigError, match=r"cannot play .*mine\.json"):
        env.reset()


def test_options_are_checked_and_tasks_have_names() -> None:
    env = TextWorld(params="level=3", games=1, split="dev")
    assert env.tasks() == ("dev/0",)
    with pytest.raises(UnknownName, match="no task named 'dev/1'"):
        env.reset(options={"task": "dev/1"})
    with pytest.raises(ConfigError, match=r"game of .* must be one of .*, got 'coins'"):
        TextWorld(game="coins")
    with pytest.raises(ConfigError, match=r"games of .* must be a whole number"):
        TextWorld(games=0)
    with pytest.raises(ConfigError, match=r"params of .* must be empty with a story"):
        TextWorld(story="a.z8", params="level=3")
    short = TextWorld(params="level=3", games=1, max_turns=2)
    with pytest.raises(ConfigError, match="takes 3 turns: raise max_turns"):
        short.reset()


def test_the_check_finds_nothing() -> None:
    check("turngym/TextWorld-v0", episodes=1, options={"params": "level=3", "games": 1})
