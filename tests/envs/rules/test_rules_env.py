"""Rules: solvable games, exact snapshots, nothing to learn by heart, nothing for players without skill."""

import json
from typing import Any

import numpy as np
import pytest

from turngym.envs.rules.env import RESTART, RulesGame
from turngym.envs.rules.game import draw_rules
from turngym.envs.rules.layout import draw_level
from turngym.envs.rules.mechanics import ARROW, DOOR, PORTAL, WALL
from turngym.envs.rules.view import SYMBOLS
from turngym.envs.tools.tool_schema import write_call
from turngym.envs.website.draw import Dice
from turngym.errors import ConfigError
from turngym.seeding import restart, stream

EASY: dict[str, Any] = {"difficulty": 1, "max_turns": 100}
HARD: dict[str, Any] = {"difficulty": 3, "max_turns": 240}


def played(env: RulesGame, seed: int) -> dict[str, Any]:
    _, info = env.reset(seed=seed)
    while info["success"] < 0:
        info = env.step(env.expert_action())[4]
    return info


@pytest.mark.parametrize("options", [EASY, {}, HARD])
def test_expert_solves_every_level_with_the_fewest_actions(options: dict[str, Any]) -> None:
    env = RulesGame(**options)
    for seed in range(15):
        info = played(env, seed)
        assert info["success"] == 1 and info["progress"] == info["score"] == 1.0
        assert info["columns"] == {"levels": 2.0 + env.options.difficulty, "efficiency": 1.0}


def test_dense_rewards_add_up_to_one_and_sparse_ones_come_at_the_end() -> None:
    for reward in ("dense", "sparse"):
        env = RulesGame(reward=reward)
        for seed in range(10):
            _, info = env.reset(seed=seed)
            rewards = [env.step(info["legal_actions"][0])[1]]
            while info["success"] < 0:
                _, gained, _, _, info = env.step(env.expert_action())
                rewards.append(gained)
            assert sum(rewards) == pytest.approx(1.0)
            assert any(rewards[:-1]) == (reward == "dense")


def test_expert_finds_a_way_after_random_actions() -> None:
    env = RulesGame(max_turns=400)
    for seed in range(15):
        generator = stream("rules detour", seed)
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            legal = info["legal_actions"]
            action = legal[int(generator.integers(len(legal)))] if generator.random() < 0.1 else env.expert_action()
            info = env.step(action)[4]
        assert info["success"] == 1 and 0 < info["score"] <= 1.0


def test_score_falls_with_the_square_of_the_actions() -> None:
    env = RulesGame(max_turns=500)
    env.reset(seed=0)
    for _ in range(100):
        env.step(RESTART)
    fewest = len(env._plan)
    while not env._solved:
        env.step(env.expert_action())
    assert env.score() == pytest.approx(0.1 * ((2 * fewest + 6) / (100 + fewest)) ** 2)


@pytest.mark.parametrize("options", [EASY, {}, HARD])
def test_random_play_succeeds_seldom(options: dict[str, Any]) -> None:
    env, won, count = RulesGame(**options), 0, 25
    for seed in range(count):
        _, info = env.reset(seed=seed)
        generator = stream("rules random", seed)
        while info["success"] < 0:
            legal = info["legal_actions"]
            info = env.step(legal[int(generator.integers(len(legal)))])[4]
        won += info["success"]
    assert won <= 1


def test_snapshots_continue_equally_from_every_turn() -> None:
    for options in (EASY, {}, HARD):
        env, twin = RulesGame(**options), RulesGame(**options)
        for seed in range(2):
            actions, snapshots, seen = list[str](), list[bytes](), list[Any]()
            _, info = env.reset(seed=seed)
            while info["success"] < 0:
                snapshots.append(env.snapshot())
                actions.append(info["legal_actions"][0] if len(actions) % 4 == 1 else env.expert_action())
                seen.append(env.step(actions[-1]))
                info = seen[-1][4]
            for turn, snapshot in enumerate(snapshots):
                twin.restore(snapshot)
                assert twin.snapshot() == snapshot
                assert turn % 7 or [twin.step(action) for action in actions[turn:]] == seen[turn:]
            last = env.snapshot()
            twin.restore(last)
            assert twin.snapshot() == last and twin.score() == env.score()


@pytest.mark.parametrize(
    "damage",
    [
        *({"number": -1}, {"number": 0}, {"solved": [[0, 0]]}, {"solved": 3}, {"solved": [[1, 1]] * 9}),
        *(
            {"actions": -1},
            {"actions": 2**70},
            {"actions": "1"},
            {"state": [0, 0, 0]},
            {"state": [10**9, 0, 0, 0]},
            {"state": 0},
        ),
        *({"state": [0, 1, 0, 0]}, {"state": [0, 0, 2**60, 0]}, {"state": [0, 0, 0, 9]}, {"state": [True, 0, 0, 0]}),
    ],
)
def test_damaged_snapshots_are_refused(damage: dict[str, Any]) -> None:
    env = RulesGame()
    env.reset(seed=0)
    saved = env.snapshot()
    content = json.loads(saved)
    content["state"] |= damage
    with pytest.raises(ConfigError, match="damaged"):
        env.restore(json.dumps(content).encode())
    assert env.snapshot() == saved


def test_a_snapshot_with_forged_actions_leaves_snapshots_that_restore() -> None:
    env = RulesGame(difficulty=1)
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.expert_action())
    content = json.loads(env.snapshot())
    content["state"]["actions"] = 0
    env.restore(json.dumps(content).encode())
    while not json.loads(env.snapshot())["state"]["solved"]:
        env.step(env.expert_action())
    saved = env.snapshot()
    env.restore(saved)
    assert env.snapshot() == saved


@pytest.mark.parametrize("text", ["", "up", "restart restart", "success", "press g", "a" * 50_000, "<tool_call>{}"])
def test_other_texts_are_answered_and_change_nothing(text: str) -> None:
    env = RulesGame()
    _, before = env.reset(seed=0)
    observation, reward, _, _, info = env.step(text)
    assert observation.startswith("That is no action: ") and not info["action_is_valid"] and reward == 0
    assert info["anchor"] == before["anchor"] and info["columns"] == before["columns"]


def test_native_calls_are_the_same_actions() -> None:
    env, other = RulesGame(), RulesGame()
    env.reset(seed=0)
    other.reset(seed=0)
    action = env.expert_action()
    assert env.step(write_call("press", {"button": action})) == other.step(f" {action.upper()}\n")


def test_looks_say_nothing_about_the_rules() -> None:
    """Symbols of the wall and the meaning of the first button are about equally frequent."""
    env, walls, meanings = RulesGame(), dict.fromkeys(SYMBOLS, 0), dict[int, int]()
    count = 320
    for seed in range(count):
        env.reset(seed=seed)
        walls[env._look.symbols["wall"]] += 1
        if env._rules.move != "fall" and len(env._legal) == 5:
            first = next(iter(env._look.buttons.values()))
            meanings[first] = meanings.get(first, 0) + 1
    assert max(walls.values()) < 3 * count / len(SYMBOLS) and min(walls.values()) > 0
    assert len(meanings) == 4 and max(meanings.values()) < 2 * min(meanings.values())


def test_every_split_has_instances_whose_first_levels_differ() -> None:
    found = set[Any]()
    count = 100
    for split in ("train", "dev", "test"):
        env = RulesGame(split=split)
        for seed in range(count):
            env.reset(seed=seed)
            level = env._level
            found.add((env._rules, level.height, tuple(level.kinds), level.start, tuple(level.numbers)))
    assert len(found) >= 3 * count - 1


def test_all_symbols_fit_and_boards_show_the_whole_state() -> None:
    """Two different states of a level look different."""
    for seed in range(10):
        env = RulesGame(difficulty=3)
        _, info = env.reset(seed=seed)
        seen = dict[tuple[int, str], set[Any]]()
        while info["success"] < 0:
            seen.setdefault((len(env._solved), info["anchor"]), set()).add(env._state)
            info = env.step(env.expert_action())[4]
        assert all(len(states) == 1 for states in seen.values())
        assert len(env._look.symbols) <= len(SYMBOLS)
        assert not np.isnan(info["progress"])


def test_walls_stand_in_whole_columns_and_things_in_cells_without_wall() -> None:
    generator = np.random.default_rng(0)
    for seed in range(60):
        rules = draw_rules(Dice(restart(generator, "rules", seed)), 3)
        for number in range(rules.levels):
            level, plan = draw_level(rules, number, Dice(restart(generator, "level", seed, number)))
            height, kinds = level.height, level.kinds
            assert all(kinds[state[0]] != WALL for state in plan)
            portals = [cell for cell, kind in enumerate(kinds) if kind == PORTAL]
            assert all(kinds[level.numbers[cell]] == PORTAL for cell in portals)
            columns = [kinds[left : left + height] for left in range(0, len(kinds), height)]
            between = sum(column.count(WALL) >= height - 1 for column in columns)
            assert between >= level.kinds.count(DOOR) + level.kinds.count(ARROW) + len(portals) // 2
