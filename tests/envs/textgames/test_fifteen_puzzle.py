"""Fifteen Puzzle: text that follows the board, an expert that arrives in time, rewards for tiles that come nearer."""

import json
from typing import Any

import pytest

from turngym.envs.textgames.fifteen_puzzle.env import FifteenPuzzle
from turngym.envs.textgames.fifteen_puzzle.rules import MOVES, board_text, is_solvable, solved, total_distance

EIGHT: dict[str, Any] = {"size": 3, "scramble": None, "max_turns": 50}


def placed(env: FifteenPuzzle, *board: int) -> FifteenPuzzle:
    """Put the environment onto a given board, through its snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"] = {"board": list(board), "first_distance": total_distance(board, env.size)}
    env.restore(json.dumps(content).encode())
    return env


def turns_of_expert(env: FifteenPuzzle, seed: int) -> int:
    env.reset(seed=seed)
    terminated = truncated = False
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(env.expert_action())
    assert terminated and info["success"] == 1 and reward == 1.0 and info["progress"] == 1.0
    return env.turn


@pytest.mark.parametrize(
    ("options", "count", "most"),
    [(EIGHT, 60, 31), ({}, 60, 30), ({"size": 2, "scramble": None, "max_turns": 6}, 11, 6)],
)
def test_expert_takes_a_shortest_way(options: dict[str, Any], count: int, most: int) -> None:
    """The length of the scramble is an upper bound."""
    env = FifteenPuzzle(**options)
    assert max(turns_of_expert(env, seed) for seed in range(count)) <= most


def test_expert_solves_any_board_of_fifteen_in_time() -> None:
    env = FifteenPuzzle(scramble=None, max_turns=200)
    turns = [turns_of_expert(env, seed) for seed in range(6)]
    assert max(turns) < 150


@pytest.mark.parametrize("seed", [1964, 1519])
def test_expert_takes_a_shortest_way_on_the_hardest_boards_of_3000(seed: int) -> None:
    """They take more steps than a search on any board may, and going row by row would not end in time."""
    assert turns_of_expert(FifteenPuzzle(), seed) <= 30


def test_expert_finds_back_when_the_agent_leaves_its_way() -> None:
    env = FifteenPuzzle(scramble=8, max_turns=40)
    env.reset(seed=1)
    for _ in range(4):
        wrong = [move for move in env.legal_actions() if move != env.expert_action()]
        env.step(wrong[0])
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(env.expert_action())
        over = terminated or truncated
    assert info["success"] == 1


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_text_and_distance_follow_the_board(size: int) -> None:
    """Both are kept up to date move by move; here they are made anew each time."""
    env = FifteenPuzzle(size=size, scramble=6, max_turns=80)
    env.reset(seed=3)
    for turn in range(60):
        legal = env.legal_actions()
        observation, _, terminated, _, info = env.step(legal[turn % len(legal)])
        assert observation == board_text(env._board, size) == info["anchor"]
        assert env._distance == total_distance(env._board, size) and env._board.index(0) == env._gap
        if terminated:
            env.reset()


def test_moves_name_the_direction_of_the_tile() -> None:
    env = placed(FifteenPuzzle(**EIGHT), 1, 2, 3, 4, 0, 6, 7, 5, 8)
    assert env.step("up")[0] == "1 2 3\n4 5 6\n7 _ 8"
    assert env.step("left")[0] == "1 2 3\n4 5 6\n7 8 _"


def test_a_move_without_a_tile_changes_nothing_and_is_understood() -> None:
    env = placed(FifteenPuzzle(**EIGHT, step_reward=-0.5), 1, 2, 3, 4, 5, 6, 7, 0, 8)
    before = env._text
    assert "up" not in env.legal_actions()
    observation, reward, terminated, _, info = env.step("up")
    assert (observation, reward, terminated) == (before, -0.5, False) and info["action_is_valid"]


@pytest.mark.parametrize("first_distance", [0, -1, None, "far"])
def test_damaged_first_distance_is_refused(first_distance: object) -> None:
    env = placed(FifteenPuzzle(**EIGHT), 1, 2, 3, 4, 5, 6, 7, 0, 8)
    content = json.loads(env.snapshot())
    content["state"]["first_distance"] = first_distance
    with pytest.raises(ValueError, match="damaged snapshot"):
        env.restore(json.dumps(content).encode())


def test_unknown_action_is_answered_with_the_board() -> None:
    env = placed(FifteenPuzzle(**EIGHT), 1, 2, 3, 4, 5, 6, 7, 0, 8)
    observation, _, _, _, info = env.step("8")
    assert observation == "Unknown action: answer with up, down, left or right.\n1 2 3\n4 5 6\n7 _ 8"
    assert not info["action_is_valid"] and info["anchor"] == "1 2 3\n4 5 6\n7 _ 8"


def test_rewards_follow_the_distance_and_the_solution() -> None:
    env = placed(
        FifteenPuzzle(**EIGHT, step_reward=-0.1, nearer_reward=0.5, solve_reward=3.0), 1, 2, 3, 4, 0, 6, 7, 5, 8
    )
    rewards = [env.step(move)[1] for move in ("up", "down", "up", "left")]
    assert rewards == pytest.approx([0.4, -0.6, 0.4, 3.4])
    assert not env._running


def test_progress_is_the_share_of_the_distance_that_has_gone() -> None:
    env = placed(FifteenPuzzle(**EIGHT), 1, 2, 3, 4, 0, 6, 7, 5, 8)
    assert [env.step(move)[4]["progress"] for move in ("right", "left", "up", "left")] == [0.0, 0.0, 0.5, 1.0]


def test_legal_actions_are_the_moves_that_slide_a_tile() -> None:
    env = FifteenPuzzle(**EIGHT)
    for seed in range(20):
        env.reset(seed=seed)
        for move in MOVES:
            board, legal = list(env._board), env.legal_actions()
            env.step(move)
            assert (env._board != board) == (move in legal)


def test_drawn_boards_can_be_solved_and_are_not() -> None:
    env = FifteenPuzzle(scramble=None, max_turns=80)
    for seed in range(200):
        env.reset(seed=seed)
        assert is_solvable(env._board, 4) and tuple(env._board) != solved(4)


def test_few_boards_are_declared() -> None:
    assert FifteenPuzzle(size=2, scramble=None, max_turns=6).finite_instances == 11
    assert FifteenPuzzle(size=3, scramble=2).finite_instances == 4
    assert FifteenPuzzle().finite_instances is None and FifteenPuzzle(**EIGHT).finite_instances is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1}, r"size of .* must be a whole number in \[2, 5\], got 1"),
        ({"scramble": 0}, r"scramble of .* \[1, 60\], got 0"),
        ({"scramble": 61}, r"\[1, 60\], got 61"),
        (
            {"scramble": None},
            r"max_turns of .* is 60, but some boards of size 4 need up to 80 moves: pass max_turns=80",
        ),
        ({"size": 3, "scramble": None, "max_turns": 30}, "need up to 31 moves"),
        ({"nearer_reward": None}, "nearer_reward of .* got None"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FifteenPuzzle(**options)


def test_a_named_task_and_an_ended_episode_are_refused() -> None:
    env = FifteenPuzzle(size=3, scramble=1)
    with pytest.raises(ValueError, match="pick an instance by seed"):
        env.reset(options={"task": 3})
    env.reset(seed=0)
    env.step(env.expert_action())
    with pytest.raises(ValueError, match="no expert action after the episode has ended"):
        env.expert_action()
