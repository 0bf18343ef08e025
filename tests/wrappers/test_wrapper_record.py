"""Recorded episodes: complete, safe against a kill, and replayed to the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from wrapped_envs import NAMES, made, policy

from turngym.envs.transcript import transcript
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.wrappers import Wrapping, wrap
from turngym.wrappers.recording.episode_log import read_episodes
from turngym.wrappers.recording.replay import rebuild, replay_episode, replay_jsonl

INNER = tuple(name for name in NAMES if name != "record")


def recorded(folder: Path, env_id: str = "toy/Counter-v0", *names: str, **options: Any) -> Any:
    return wrap(made(env_id, *names, **options), "record", folder=str(folder))


def play(env: Any, seed: int | None, actions: int | None = None) -> None:
    """Play an episode, or a part of one."""
    observation, info = env.reset(seed=seed)
    act, is_over = policy(seed or 0), False
    while not is_over and actions != 0:
        observation, _, terminated, truncated, info = env.step(act(observation, info))
        is_over = terminated or truncated
        actions = None if actions is None else actions - 1


@pytest.mark.parametrize("env_id", ["turngym/Sokoban-v0", "turngym/GuessTheNumber-v0", "turngym/FrozenLakeSlippery-v0"])
def test_a_file_replays_to_the_same_bytes(tmp_path: Path, env_id: str) -> None:
    """With a seed, without one, and an episode that was interrupted."""
    env = recorded(tmp_path, env_id)
    play(env, 3)
    play(env, None)
    play(env, None, actions=2)
    env.close()
    text = (tmp_path / "0000.jsonl").read_text("utf8")
    assert replay_jsonl(tmp_path / "0000.jsonl", is_trusted=True) == text
    episodes = read_episodes(tmp_path / "0000.jsonl")
    assert [episode.is_complete for episode in episodes] == [True, True, False]
    assert episodes[0].header["seed"] == 3 and episodes[0].header["snapshot"] is None
    assert episodes[1].header["seed"] is None and episodes[1].header["snapshot"] is not None


@pytest.mark.parametrize("name", INNER)
def test_every_wrapper_inside_replays_with_what_it_kept_over_resets(tmp_path: Path, name: str) -> None:
    env = wrap(wrap(gymnasium.make("turngym/Sokoban-v0"), name), "record", folder=str(tmp_path))
    for seed in (1, None, 2):
        play(env, seed)
    env.close()
    assert replay_jsonl(tmp_path / "0000.jsonl", is_trusted=True) == (tmp_path / "0000.jsonl").read_text("utf8")


def test_all_wrappers_together_replay(tmp_path: Path) -> None:
    env = recorded(tmp_path, "turngym/TowerOfHanoi-v0", *INNER)
    for seed in (1, None):
        play(env, seed)
    env.close()
    assert replay_jsonl(tmp_path / "0000.jsonl", is_trusted=True) == (tmp_path / "0000.jsonl").read_text("utf8")


def test_levels_are_rebuilt_from_what_the_curriculum_was_made_of(tmp_path: Path) -> None:
    levels = [{"discs": 2}, {"discs": 3}]
    inner = wrap(gymnasium.make("turngym/TowerOfHanoi-v0"), Wrapping("curriculum", {"levels": levels, "start": 1}))
    env = wrap(inner, "record", folder=str(tmp_path))
    play(env, 1)
    env.close()
    (episode,) = read_episodes(tmp_path / "0000.jsonl")
    assert replay_episode(episode, is_trusted=True) == episode.text and "A: 3 2 1" in episode.observations[0]


def test_any_action_text_survives(tmp_path: Path) -> None:
    env = recorded(tmp_path)
    env.reset(seed=0)
    for action in ("\ud800", "\x00\n\u2028", "🙂" * 50, '"}'):
        env.step(action)
    env.close()
    (episode,) = read_episodes(tmp_path / "0000.jsonl")
    assert episode.actions[0] == "\ud800" and replay_episode(episode, is_trusted=True) == episode.text
    assert all(json.loads(line) for line in episode.text.splitlines())
    assert "NaN" not in episode.text


def test_what_is_recorded_is_what_the_agent_got(tmp_path: Path) -> None:
    env = recorded(tmp_path, "toy/Counter-v0", "history", "format_reward")
    first, _ = env.reset(seed=0)
    shown, reward, *_ = env.step("up")
    env.close()
    (episode,) = read_episodes(tmp_path / "0000.jsonl")
    assert episode.observations == (first, shown) and episode.rewards == (reward,) == (-0.1,)
    assert [each["name"] for each in episode.header["wrappers"]] == ["history", "format_reward"]


def test_what_stands_outside_changes_no_record(tmp_path: Path) -> None:
    """Outer wrappers change the info that they get; the lines were written before."""
    for folder, outer in ((tmp_path / "a", ()), (tmp_path / "b", ("anchor", "parse_action"))):
        env = wrap(recorded(folder), *outer)
        env.reset(seed=0)
        env.step("<action>up</action>")
        env.close()
    plain = (tmp_path / "a" / "0000.jsonl").read_text("utf8")
    under = (tmp_path / "b" / "0000.jsonl").read_text("utf8")
    assert under != plain
    assert under.replace('"action": "up"', '"action": "<action>up</action>"').splitlines()[:2] == plain.splitlines()[:2]


def test_recording_changes_no_transcript_and_no_snapshot(tmp_path: Path) -> None:
    env, plain = recorded(tmp_path, "toy/Counter-v0", "history"), made("toy/Counter-v0", "history")
    assert transcript(env, 4, policy(4)) == transcript(plain, 4, policy(4))
    env.reset(seed=1)
    plain.reset(seed=1)
    assert env.snapshot() == plain.get_wrapper_attr("snapshot")()


def test_a_branch_from_a_snapshot_is_an_episode_of_its_own(tmp_path: Path) -> None:
    env = recorded(tmp_path, "toy/Counter-v0", "history")
    env.reset(seed=1)
    env.step("down")
    snapshot = env.snapshot()
    env.step("down")
    env.restore(snapshot)
    for _ in range(4):
        env.step("up")
    path = tmp_path / "0000.jsonl"
    assert [(len(e.actions), e.is_complete) for e in read_episodes(path)] == [(2, False), (4, True)]
    assert replay_jsonl(path, is_trusted=True) == path.read_text("utf8")


def test_an_episode_without_a_turn_makes_no_file(tmp_path: Path) -> None:
    env = recorded(tmp_path / "made later")
    env.reset(seed=0)
    env.reset(seed=1)
    env.close()
    env.close()
    assert not (tmp_path / "made later").exists()


def test_every_slot_of_every_worker_has_a_file_of_its_own(tmp_path: Path) -> None:
    wrappers = [Wrapping("record", {"folder": str(tmp_path)})]
    with make_vec("toy/Counter-v0", 4, wrappers=wrappers, backend="process", num_workers=2, goal=1) as vector:
        vector.reset(seed=[1, 2, 3, 4])
        vector.step(["up"] * 4)
    paths = sorted(tmp_path.glob("*.jsonl"))
    assert [path.name for path in paths] == [f"{number:04}.jsonl" for number in range(4)]
    assert sorted(e.header["seed"] for path in paths for e in read_episodes(path)) == [1, 2, 3, 4]


def test_a_kill_loses_no_finished_episode(tmp_path: Path) -> None:
    """A player counts its finished episodes in another file; after the kill all of them are there."""
    program = (
        "import sys, toy_envs, gymnasium\n"
        "from pathlib import Path\n"
        "from turngym.wrappers import wrap\n"
        "env = wrap(gymnasium.make('toy/Counter-v0', goal=1), 'record', folder=sys.argv[1])\n"
        "for seed in range(10**9):\n"
        "    env.reset(seed=seed)\n"
        "    env.step('up')\n"
        "    with open(sys.argv[2], 'a') as file:\n"
        "        file.write('.')\n"
    )
    count = tmp_path / "count"
    here = os.pathsep.join([str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")])
    player = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "files"), str(count)], env={**os.environ, "PYTHONPATH": here}
    )
    while not count.exists() or count.stat().st_size < 50:
        assert player.poll() is None
        time.sleep(0.01)
    player.send_signal(signal.SIGKILL)
    player.wait()
    episodes = read_episodes(tmp_path / "files" / "0000.jsonl")
    assert len(episodes) - count.stat().st_size in (0, 1)
    assert [e.header["seed"] for e in episodes] == list(range(len(episodes))) and all(e.is_complete for e in episodes)


def test_an_episode_that_was_cut_short_is_left_out_and_damage_is_named(tmp_path: Path) -> None:
    env = recorded(tmp_path)
    play(env, 1)
    play(env, 2)
    path = tmp_path / "0000.jsonl"
    whole, text = read_episodes(path), path.read_text("utf8")
    for cut in (len(text) - 1, len(text) - 100, len(whole[0].text) + 5, len(whole[0].text)):
        path.write_text(text[:cut], "utf8")
        assert read_episodes(path) == whole[:1]
    path.write_text(text[:20] + "\n" + text[20:], "utf8")
    with pytest.raises(ConfigError, match=r"line 1 of .*0000\.jsonl is not a line"):
        read_episodes(path)
    path.write_text(text.replace("turngym episodes 1", "turngym episodes 9"), "utf8")
    with pytest.raises(ConfigError, match="format 'turngym episodes 9'"):
        read_episodes(path)
    path.write_text('{"kind": "end"}\n', "utf8")
    with pytest.raises(ConfigError, match="format None"):
        read_episodes(path)


def test_a_replay_under_other_rules_shows(tmp_path: Path) -> None:
    env = recorded(tmp_path)
    play(env, 1)
    (episode,) = read_episodes(tmp_path / "0000.jsonl")
    changed = {**episode.header, "settings": {**episode.header["settings"], "max_turns": 1}}
    assert replay_episode(type(episode)(changed, (), episode.actions, (), True, ""), is_trusted=True) != episode.text


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"env_id": "os:Nothing-v0"}, ConfigError, "not registered"),
        ({"wrappers": [{"name": "os.system", "options": {}}]}, ConfigError, "no wrapper named"),
        ({"wrappers": [{"name": "history", "options": {"path": "x"}}]}, ConfigError, "no option 'path'"),
        (
            {"wrappers": [{"name": "token_limit", "options": {"count": "os:system"}}]},
            ConfigError,
            "that a file may ask for",
        ),
        ({"wrappers": [{"name": "curriculum", "options": {"levels": ["os:X-v0"]}}]}, ConfigError, "may ask for"),
        ({"wrappers": ["history"]}, ConfigError, "no wrapper of a header"),
        ({"settings": 3}, ConfigError, "no header"),
    ],
)
def test_nothing_that_a_file_names_is_imported(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    header = {"env_id": "toy/Counter-v0", "settings": {}, "wrappers": []}
    assert rebuild(header).get_wrapper_attr("env_id") == "toy/Counter-v0"
    with pytest.raises(error, match=message):
        rebuild({**header, **change})


def test_a_header_makes_no_files(tmp_path: Path) -> None:
    header = {"env_id": "toy/Counter-v0", "settings": {}, "wrappers": [{"name": "record", "options": {"folder": "x"}}]}
    assert not isinstance(rebuild(header), gymnasium.Wrapper)


def test_wrappers_of_others_cannot_be_put_on_again(tmp_path: Path) -> None:
    other = gymnasium.wrappers.TransformReward(made("toy/Counter-v0"), float)
    env = wrap(other, "record", folder=str(tmp_path))
    play(env, 1)
    with pytest.raises(ConfigError, match=r"over \['TransformReward'\]"):
        replay_jsonl(tmp_path / "0000.jsonl", is_trusted=True)
