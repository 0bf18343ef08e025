"""Promises that all text games keep in the same way; the rest of the contract is ``turngym check``'s."""

import json
from typing import Any

import gymnasium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core import TextEnv
from turngym.envs.instances import split_of
from turngym.envs.registration import specs

IDS = sorted((name for name, spec in specs().items() if ".textgames." in spec.entry_point), reverse=True)
NAMES = sorted({specs()[name].entry_point: name for name in IDS}.values())
"""The first id of each class."""
MOVES = ("up", "down", "left", "right")


def made(name: str, **options: Any) -> TextEnv[str]:
    env = gymnasium.make(name if "/" in name else f"turngym/{name}-v0", **options).unwrapped
    assert isinstance(env, TextEnv)
    return env


@pytest.mark.parametrize("name", NAMES)
def test_splits_share_no_instance(name: str) -> None:
    if made(name).finite_instances is not None:
        pytest.skip("too few instances for splits")
    seen: dict[str, set[str]] = {}
    for split in ("train", "dev", "test"):
        env, seen[split] = made(name, split=split), set()
        for seed in range(60):
            env.reset(seed=seed)
            assert split_of(env.instance) == split
            seen[split].add(env.instance)
    assert not seen["train"] & seen["dev"] and not seen["train"] & seen["test"] and not seen["dev"] & seen["test"]
    assert min(map(len, seen.values())) > 40, "instances repeat too often to speak of a distribution"


BRANCHED: list[tuple[str, dict[str, Any]]] = [
    ("FrozenLake", {"size": 8, "hole_share": 0.0, "slippery": True, "max_turns": 50}),
    ("FrozenLake", {"size": 8, "hole_share": 0.0, "max_turns": 50}),
    ("Game2048", {}),
    ("Maze", {}),
    ("Maze", {"view": "seen"}),
    ("Mastermind", {"view": "board"}),
    ("Minesweeper", {}),
    ("Sokoban", {"boxes": 2, "max_turns": 12}),
    ("Sudoku", {"wrong": "keep"}),
    ("Sudoku", {"wrong": "refuse"}),
    ("TowerOfHanoi", {"discs": 4, "start": "random"}),
    ("Wordle", {"view": "board"}),
]


@pytest.mark.parametrize(("name", "options"), BRANCHED, ids=str)
def test_a_branch_from_a_snapshot_equals_the_original(name: str, options: dict[str, Any]) -> None:
    """Generators, and facts that were drawn again, are part of the snapshot."""
    for seed in range(3):
        env, branch = made(name, **options), made(name, **options)
        env.reset(seed=seed)
        env.step("what?")
        *_, is_over, _, info = env.step(env.expert_action())
        env.resample_hidden()
        branch.restore(env.snapshot())
        for turn in range(0 if is_over else 10):
            legal = info["legal_actions"]
            action = "what?" if turn % 3 == 2 else legal[turn % len(legal)] if legal else env.expert_action()
            step = env.step(action)
            assert branch.step(action) == step
            *_, terminated, truncated, info = step
            if terminated or truncated:
                break
        assert env.snapshot() == branch.snapshot()


DAMAGED: dict[str, list[dict[str, Any]]] = {
    "BernoulliBandit": [{"pulled": [9]}, {"pulled": [1]}, {"hidden": [0.5]}, {"keys": [1]}],
    "Blackjack": [
        {"deal": [1, 2, 3]},
        {"deal": [14] * 40},
        {"hits": 99},
        {"hits": "one"},
        {"has_stood": 1},
    ],
    "ContextualBandit": [{"hidden": [[0, 1]]}, {"hidden": [[0, 9]] * 10}, {"pulled": [99], "received": [1]}],
    "EZPoints": [
        {"ranks": [4]},
        {"ranks": [4, 14]},
        {"tokens": None},
        {"ranks": [4, 8], "tokens": ["9"]},
    ],
    "FifteenPuzzle": [
        {"board": board}
        for board in (
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14, 0],
            [1, 2, 3],
            [1, 1, *range(3, 16), 0],
            "board",
            None,
            [0.5] * 16,
        )
    ],
    "Game2048": [
        {"board": [0] * 15},
        {"board": [9] + [0] * 15},
        {"board": [-1] + [0] * 15},
        {"board": "board"},
        {"board": [1.5] * 16},
        {"keys": []},
        {"keys": [[0, "key"]]},
        {"num_tiles": None},
        {"points": "many"},
    ],
    "Hangman": [{"hidden": "zzzzz"}, {"guessed": "1"}, {"wrong": ["1"]}, {"wrong": 3}],
    "Mastermind": [{"hidden": "1217"}, {"guesses": ["12"]}, {"guesses": [5]}, {"guesses": None}],
    "Minesweeper": [
        {"mines": "1"},
        {"mines": "f" * 40},
        {"mines": "z"},
        {"mines": "7000"},
        {"open": [999]},
        {"flags": None},
        {"start": 999},
    ],
    "Sudoku": [{"puzzle": "1 2"}, {"grid": "a"}, {"solution": "9 " * 16}, {"grid": 3}],
    "Wordle": [{"hidden": "zzzzz"}, {"guesses": ["toolong"]}, {"guesses": [5]}, {"guesses": None}],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(name: str) -> None:
    env = made(name)
    env.reset(seed=0)
    before = env.snapshot()
    for change in DAMAGED[name]:
        content = json.loads(before)
        content["state"] |= change
        with pytest.raises(ValueError, match="damaged snapshot"):
            env.restore(json.dumps(content).encode())
        assert env.snapshot() == before, change


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Blackjack", {}),
        ("GuessTheNumber", {"low": 1, "high": 3}),
        ("Hangman", {}),
        ("Mastermind", {}),
        ("NumberLine", {"highest": 2}),
        ("Wordle", {}),
    ],
    ids=str,
)
def test_turn_limit_truncates(name: str, options: dict[str, Any]) -> None:
    env = made(name, max_turns=2, **options)
    env.reset(seed=0)
    assert env.step("what?")[2:4] == (False, False)
    *_, terminated, truncated, info = env.step("what?")
    assert (terminated, truncated, info["success"]) == (False, True, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_named_task_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="pick an instance by seed"):
        made(name).reset(options={"task": "7"})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("FifteenPuzzle", {}),
        ("FrozenLake", {"max_turns": 100, "view": "coordinates"}),
        ("FrozenLake", {"max_turns": 100, "view": "coordinates", "slippery": True}),
        ("Game2048", {}),
        ("Maze", {"max_turns": 100, "view": "map"}),
        ("Maze", {"max_turns": 100, "view": "near"}),
        ("Sokoban", {"max_turns": 100}),
    ],
)
@settings(max_examples=30)
@given(st.lists(st.text() | st.sampled_from(MOVES), max_size=20))
def test_exactly_the_four_moves_are_understood(name: str, options: dict[str, Any], actions: list[str]) -> None:
    env = made(name, **options)
    env.reset(seed=1)
    for action in actions:
        anchor, known = env.anchor(), action.strip().lower() in MOVES
        _, _, terminated, _, info = env.step(action)
        assert info["action_is_valid"] == known and 0 <= info["progress"] <= 1
        assert known or info["anchor"] == anchor
        if terminated:
            break
