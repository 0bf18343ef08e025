"""BabyAI in words: the package's own levels, rules, rewards and bot; what is not in view is not told."""

import json
import random
import sys
from typing import Any

import numpy as np
import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.instances import split_of
from turngym.envs.textworlds.babyai import levels as babyai_levels
from turngym.envs.textworlds.babyai.env import ACTIONS, NOTHING_HAPPENS, UNKNOWN_ACTION, BabyAI
from turngym.envs.textworlds.babyai.levels import levels, make_level, own_limit, parts_done
from turngym.envs.textworlds.babyai.view import FACING, Seen, cell_of, describe, look, map_text, name_of, remember
from turngym.errors import ConfigError, ExpertLost, MissingExtra, SnapshotUnsupported, UnknownName

pytest.importorskip("minigrid", reason="needs the optional package minigrid")

SOLVED = ("GoToLocal", "OpenDoorsOrderN2", "PickupLoc", "PutNextLocal", "UnlockPickup", "GoToSeqS5R2", "MiniBossLevel")


def finish(env: BabyAI, info: dict[str, Any]) -> dict[str, Any]:
    while info["success"] < 0:
        *_, info = env.step(env.expert_action())
    return info


@pytest.mark.parametrize("level", SOLVED)
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_bot_carries_out_missions_for_the_reward_that_babyai_pays(level: str, split: str) -> None:
    env = BabyAI(level, split=split)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        assert observation.startswith(f"Your mission: {env._level.mission}.\n\nYou face ")
        assert split_of(env.instance) == split
        steps, total, reward = 0, 0.0, 0.0
        while info["success"] < 0:
            _, reward, _, _, info = env.step(env.expert_action())
            steps, total = steps + 1, total + reward
        assert (info["success"], info["progress"], info["score"]) == (1, 1.0, 1.0)
        assert total == reward == pytest.approx(1 - 0.9 * steps / env.max_turns)


def test_every_level_of_the_package_can_be_made_and_shown() -> None:
    names = levels()
    assert len(names) > 80 and {"GoToLocal", "BossLevel", "KeyInBox"} <= set(names)
    for name in names[::9]:
        env = BabyAI(name, max_turns=5)
        observation, info = env.reset(seed=0)
        assert "Your mission: " in observation and info["legal_actions"] == ACTIONS


def test_the_limit_is_the_levels_own_unless_given() -> None:
    assert BabyAI().max_turns == own_limit("GoToLocal") == 64
    assert BabyAI("GoToSeqS5R2").max_turns == own_limit("GoToSeqS5R2") > own_limit("GoToLocal")
    env = BabyAI(max_turns=3)
    _, info = env.reset(seed=0)
    for turn in range(3):
        *_, terminated, truncated, info = env.step("turn left")
        assert (terminated, truncated) == (False, turn == 2)
    assert info["success"] == 0


def test_the_words_say_what_the_packages_observation_holds() -> None:
    """Each thing in the encoded view is named once, with its place, and nothing else is."""
    draw = random.Random(0)
    for level in ("GoToLocal", "Open", "UnlockPickup", "BossLevel"):
        env = BabyAI(level)
        for seed in range(3):
            env.reset(seed=seed)
            for _ in range(15):
                image = type(env._level).gen_obs(env._level)["image"]  # [column, row, (type, colour, state)]
                things = {
                    (6 - row, column - 3)
                    for column in range(7)
                    for row in range(7)
                    if image[column, row, 0] not in (0, 1, 2, 3)  # unseen, empty, wall, floor
                    and (column, row) != (3, 6)
                }
                seen = look(env._level)
                assert {(each.ahead, each.right) for each in seen if each.name not in ("", "wall")} == things
                sentence = env._text.split("\n")[-1]
                assert sentence.count(" door") + sentence.count(" ball") + sentence.count(" key") + sentence.count(
                    " box"
                ) == len(things)
                if not env._running:
                    break
                env.step(draw.choice(ACTIONS))


def test_what_is_not_in_view_changes_no_word() -> None:
    """Negative oracle: turn every cell that is out of view into something else, and look again."""
    for seed in range(6):
        env = BabyAI("BossLevel")
        _, info = env.reset(seed=seed)
        text, level = env._text, env._level
        kept = {cell_of(each, env._at(), level.agent_dir) for each in look(level)} | {env._at()}
        swap = make_level("BossLevel")
        swap.reset(seed=seed + 100)
        for column in range(level.grid.width):
            for row in range(level.grid.height):
                if (column, row) not in kept:
                    level.grid.set(column, row, swap.grid.get(column, row))
        env._known.clear()
        env._see()
        assert env._text == text and env.anchor() == info["anchor"]


def test_the_map_of_the_anchor_is_right_wherever_the_agent_went() -> None:
    env, draw = BabyAI("Open"), random.Random(1)
    env.reset(seed=2)
    for _ in range(60):
        if not env._running:
            break
        env.step(draw.choice(ACTIONS[:3]))
        for (east, south), name in env._known.items():
            column, row = env._start[0] + east, env._start[1] + south
            assert name_of(env._level.grid.get(column, row)) == name
    assert len(env._known) >= 3


def test_ways_to_one_place_have_one_anchor() -> None:
    env = BabyAI("GoToObj")
    anchors = []
    for turn in ("turn left", "turn right"):
        env.reset(seed=0)
        for _ in range(4):
            *_, info = env.step(turn)
            if info["success"] >= 0:
                return
        anchors.append(info["anchor"])
    assert anchors[0] == anchors[1]


def test_progress_counts_the_parts_of_a_mission_in_their_order() -> None:
    env, seen = BabyAI("GoToSeqS5R2"), set()
    for seed in range(8):
        _, info = env.reset(seed=seed)
        shares = [info["progress"]]
        while info["success"] < 0:
            *_, info = env.step(env.expert_action())
            shares.append(info["progress"])
        assert shares == sorted(shares) and shares[0] == 0.0 and shares[-1] == 1.0
        seen.update(shares)
    assert seen & {1 / 2, 1 / 3, 1 / 4}, "parts pay before the end"


def test_parts_are_counted_by_hand() -> None:
    from minigrid.envs.babyai.core.verifier import AfterInstr, AndInstr, BeforeInstr, GoToInstr, ObjDesc

    def both(first: Any, second: Any, kind: Any, a: Any = False, b: Any = False) -> Any:
        made = kind(first, second)
        made.a_done, made.b_done = a, b
        return made

    part = GoToInstr(ObjDesc("ball"))
    pair = both(part, part, AndInstr, "success")
    assert parts_done(part) == (0, 1) and parts_done(pair) == (1, 2)
    assert parts_done(both(part, part, AndInstr, False, "success")) == (1, 2)
    assert parts_done(both(pair, part, BeforeInstr)) == (1, 3)
    assert parts_done(both(pair, part, BeforeInstr, "success")) == (2, 3)
    assert parts_done(both(pair, part, AfterInstr, False, "success")) == (2, 3)
    assert parts_done(both(part, pair, AfterInstr)) == (1, 3)


def test_actions_are_read_whatever_their_case_and_other_text_changes_nothing() -> None:
    env = BabyAI()
    _, before = env.reset(seed=0)
    for text in ("", "go", "done", "turn left.", "\ud800", "漢字", "turn " * 4000):
        assert env.step(text) == (UNKNOWN_ACTION, 0.0, False, False, {**before, "action_is_valid": False})
    *_, info = env.step("  Turn \n LEFT ")
    assert info["action_is_valid"] and info["anchor"] != before["anchor"]
    assert env.step("drop")[0].startswith(f"{NOTHING_HAPPENS}\nYou face ")


def test_the_bot_advises_after_any_detour_and_from_any_snapshot() -> None:
    draw = random.Random(3)
    for seed in range(4):
        env, other = BabyAI("PutNextLocal", max_turns=200), BabyAI("PutNextLocal", max_turns=200)
        _, info = env.reset(seed=seed)
        for _ in range(20):
            if info["success"] < 0:
                *_, info = env.step(draw.choice(ACTIONS[:5]))
        if info["success"] >= 0:
            continue
        advice = env.expert_action()
        assert other.restore(env.snapshot()) == (env._observation, info)
        assert other.expert_action() == advice == env.expert_action()
        assert finish(env, info)["success"] == finish(other, info)["success"] == 1


def test_a_snapshot_that_replays_differently_is_refused() -> None:
    env = BabyAI()
    env.reset(seed=0)
    env.step("turn left")
    content = json.loads(env.snapshot())
    content["state"]["last"] += "?"
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        env.restore(json.dumps(content).encode())


def test_a_bot_that_is_lost_says_so() -> None:
    env = BabyAI("KeyInBox")
    env.reset(seed=0)
    with pytest.raises(ExpertLost, match="bot knows no way on"):
        for _ in range(10):
            env.step(env.expert_action())


def test_unknown_levels_and_a_missing_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match=r"no level 'GoToLocl'\. Did you mean 'GoToLocal'"):
        BabyAI("GoToLocl")
    with pytest.raises(ConfigError, match="no named tasks"):
        BabyAI().reset(options={"task": 3})
    babyai_levels._ids.cache_clear()
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(MissingExtra, match=r'minigrid, which is not installed: pip install "turngym\[babyai\]"'):
        levels()


def test_directions_and_places_agree_with_the_grid() -> None:
    level = make_level("GoToLocal")
    level.reset(seed=4)
    for facing in range(4):
        level.agent_dir = facing
        at = tuple(map(int, level.agent_pos))
        known: dict[tuple[int, int], str] = {}
        remember(known, look(level), (at[0], at[1]), facing)
        assert all(name_of(level.grid.get(*cell)) == name for cell, name in known.items())
        assert map_text(known).count(" at ") == len(known)
        assert describe(look(level), facing, "").startswith(f"You face {FACING[facing]} and carry nothing.")
        assert np.array_equal(level.dir_vec, cell_of(Seen(1, 0, ""), (0, 0), facing))


@pytest.mark.parametrize("name", ["GoToLocal", "MiniBossLevel", "UnlockPickup"])
def test_the_view_is_the_one_of_the_package(name: str) -> None:
    level, rng = make_level(name), np.random.default_rng(0)
    for seed in range(4):
        level.reset(seed=seed)
        for action in rng.choice(6, size=60, p=[0.15, 0.15, 0.4, 0.1, 0.1, 0.1]):
            level.step(int(action))
            grid, visible = level.gen_obs_grid()
            expected = {
                Seen(6 - row, column - 3, name_of(grid.get(column, row)))
                for row in range(7)
                for column in range(7)
                if visible[column, row] and (column, row) != (3, 6)
            }
            seen = look(level)
            assert set(seen) == expected and len(seen) == len(expected)
            assert [(each.ahead, each.right) for each in seen] == sorted((each.ahead, each.right) for each in seen)
