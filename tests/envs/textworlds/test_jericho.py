"""Interactive fiction: a story that TextWorld writes, as a file that jericho does not know."""

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.check import check
from turngym.envs.textworlds.jericho import NOT_FOR_PLAY, Jericho
from turngym.envs.textworlds.textworld.build import ABOUT, STORY, built
from turngym.envs.textworlds.textworld.games import read_params
from turngym.errors import ConfigError, MissingExtra, SnapshotUnsupported, UnknownName

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("textworld", "jericho")),
        reason="textworld and jericho are not installed: make test-integration",
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a story file and what wins it."""
    folder = tmp_path_factory.mktemp("story")
    before, os.environ["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME"), str(folder / "cache")
    try:
        made = built({"game": "simple", "params": read_params("simple", None), "seed": 0, "foods": ""})
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before
    shutil.copy(made / STORY, folder / "house.z8")
    return folder / "house.z8", json.loads((made / ABOUT).read_bytes())["walkthrough"]


@pytest.fixture
def env(written: tuple[Path, list[str]]) -> Iterator[Jericho]:
    made = Jericho(str(written[0]))
    yield made
    made.close()


def test_a_story_is_played_to_its_end_for_its_points(env: Jericho, written: tuple[Path, list[str]]) -> None:
    _, info = env.reset(seed=0)
    assert (info["score"], info["progress"], info["legal_actions"]) == (0.0, 0.0, ())
    assert "-= Bedroom =-" in info["anchor"] and "You are carrying nothing." in info["anchor"]
    total = 0.0
    told: list[float] = []
    for command in written[1]:
        text, reward, terminated, _, info = env.step(command)
        total, told = total + reward, [*told, info["progress"]]
        assert info["action_is_valid"] and terminated == (command == written[1][-1])
    assert (info["success"], info["score"], total, info["progress"]) == (1, 7.0, 7.0, 1.0)
    assert told == sorted(told) and "The End" in text
    assert env.restore(env.snapshot())[1] == info


def test_looking_for_the_anchor_leaves_the_story_as_it_is(written: tuple[Path, list[str]]) -> None:
    class Blind(Jericho):
        def _look(self) -> None:
            self._seen = ""

    one, other = Jericho(str(written[0])), Blind(str(written[0]))
    assert one.reset()[0] == other.reset()[0]
    for command in ("look", "open trunk", "undress", *written[1][:-1], "examine stove"):
        assert one.step(command)[0] == other.step(command)[0]


def test_what_is_not_understood_is_answered_and_told(env: Jericho) -> None:
    _, before = env.reset(seed=0)
    for text in ("xyzzy", "fly to the moon", "take elephant", "漢字 look at nothing", "a" * 1000):
        _, reward, terminated, _, info = env.step(text)
        assert (reward, terminated, info["action_is_valid"]) == (0.0, False, False), text
        assert info["anchor"] == before["anchor"]
    for text in ("", "\n\t ", "漢字🙂", "\x00"):
        assert env.step(text)[0] == "Write a command."


@pytest.mark.parametrize("text", ["quit", "SAVE", "restore now", "look. quit", "n then restart", "tw-trace-actions"])
def test_commands_about_the_program_do_not_reach_it(env: Jericho, text: str) -> None:
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step(text)
    assert (observation, terminated, info["action_is_valid"], env._actions) == (NOT_FOR_PLAY, False, False, [])


def test_a_snapshot_goes_on_where_it_was_taken(env: Jericho, written: tuple[Path, list[str]]) -> None:
    env.reset(seed=0)
    for command in written[1][:3]:
        env.step(command)
    saved, other = env.snapshot(), Jericho(str(written[0]))
    assert other.restore(saved) == env.restore(saved)
    for command in written[1][3:]:
        assert env.step(command) == other.step(command)
    content = json.loads(saved)
    content["state"]["points"] = 99
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        env.restore(json.dumps(content).encode())


def test_there_is_no_expert_for_an_unknown_story_and_one_task(env: Jericho) -> None:
    env.reset(options={"task": "house.z8"})
    with pytest.raises(ConfigError, match=r"house\.z8 has no walkthrough that jericho knows"):
        env.expert_action()
    with pytest.raises(UnknownName, match=r"There is one: 'house\.z8'"):
        env.reset(options={"task": "zork"})


def test_missing_and_damaged_stories_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JERICHO_STORY", raising=False)
    with pytest.raises(MissingExtra, match=r"neither story=\.\.\. nor JERICHO_STORY names one"):
        Jericho()
    monkeypatch.setenv("JERICHO_STORY", str(tmp_path / "nowhere.z5"))
    with pytest.raises(MissingExtra, match=r"nowhere\.z5' is not a file"):
        Jericho()
    (tmp_path / "broken.z5").write_bytes(b"not a story at all" * 10)
    with pytest.raises(ConfigError, match=r"cannot play .*broken\.z5: it does not start like a story"):
        Jericho(str(tmp_path / "broken.z5"))


def test_the_check_finds_nothing(written: tuple[Path, list[str]]) -> None:
    check("turngym/Jericho-v0", episodes=1, options={"story": str(written[0])})
