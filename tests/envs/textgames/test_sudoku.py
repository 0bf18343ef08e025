"""Sudoku: answers, legal moves kept up to date, dead ends, both ways with wrong values, snapshots and pictures."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.instances import split_of
from turngym.envs.textgames.sudoku.env import FEWEST_CLUES, Sudoku, moves
from turngym.envs.textgames.sudoku.rules import free_values, grid_text, parse_grid, solutions

PUZZLE = [2, 0, 1, 0, 1, 0, 3, 2, 0, 1, 0, 3, 0, 0, 4, 0]
SOLUTION = [2, 3, 1, 4, 1, 4, 3, 2, 4, 1, 2, 3, 3, 2, 4, 1]


def starting(env: Sudoku, puzzle: list[int] = PUZZLE, solution: list[int] = SOLUTION) -> Sudoku:
    """Begin with a given puzzle, through the snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    texts = {"puzzle": puzzle, "grid": puzzle, "solution": solution}
    content["state"] = {name: grid_text(grid, env.size) for name, grid in texts.items()}
    content["observation"] = content["instance"] = grid_text(puzzle, env.size)
    env.restore(json.dumps(content).encode())
    return env


def legal_moves(grid: list[int], size: int) -> tuple[str, ...]:
    """Return the legal moves of a grid, worked out anew."""
    return tuple(
        f"{cell // size + 1} {cell % size + 1} {value}"
        for cell, values in enumerate(free_values(grid, size))
        for value in values
        if not grid[cell]
    )


def test_the_puzzle_of_these_tests_has_this_solution() -> None:
    assert solutions(PUZZLE, 4) == [SOLUTION] and PUZZLE.count(0) == 8


def test_answers_and_rewards() -> None:
    env = starting(Sudoku(4, step_reward=-0.5, fill_reward=8, solve_reward=3))
    observation, reward, terminated, _, info = env.step("1 4 4")
    assert observation == info["anchor"] == "2 . 1 4\n1 . 3 2\n. 1 . 3\n. . 4 ."
    assert (reward, terminated, info["progress"]) == (0.5, False, 0.125)
    shares = [info["progress"]]
    while not terminated:
        observation, reward, terminated, _, info = env.step(env.expert_action())
        shares.append(info["progress"])
    assert parse_grid(observation) == SOLUTION and reward == 3.5 and info["success"] == 1
    assert shares == [filled / 8 for filled in range(1, 9)]


@pytest.mark.parametrize("action", ["1 4 4", " 1 4  4\n", "1,4,4", "1, 4, 4", "1\n4\n4"])
def test_moves_may_be_written_with_other_separators(action: str) -> None:
    assert starting(Sudoku(4)).step(action)[4]["action_is_valid"]


TEXT_THAT_IS_NO_MOVE_IS_ANSWERED: list[str] = [
    "",
    "1 4",
    "144",
    "1 4 5",
    "5 1 1",
    "0 1 1",
    "1 4 4 4",
    "a b c",
    "١ ٤ ٤",
    "1 4 4.",
    "9" * 5000,
]


def test_text_that_is_no_move_is_answered() -> None:
    for action in TEXT_THAT_IS_NO_MOVE_IS_ANSWERED:
        env = starting(Sudoku(4))
        observation, _, terminated, _, info = env.step(action)
        note = "Unknown action: answer with row, column and value, each from 1 to 4, for example 1 2 3."
        assert observation == f"{note}\n{grid_text(PUZZLE, 4)}"
        assert not terminated and not info["action_is_valid"] and info["anchor"] == grid_text(PUZZLE, 4)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("1 1 3", "Illegal move: row 1, column 1 is filled."),
        ("1 1 2", "Illegal move: row 1, column 1 is filled."),
        ("1 2 2", "Illegal move: the row and the box of row 1, column 2 already has a 2."),
        ("3 3 4", "Illegal move: the column and the box of row 3, column 3 already has a 4."),
        ("3 1 3", "Illegal move: the row of row 3, column 1 already has a 3."),
    ],
)
def test_moves_against_the_rules_are_answered_with_the_rule(action: str, reason: str) -> None:
    env = starting(Sudoku(4))
    observation, _, terminated, _, info = env.step(action)
    assert observation == f"{reason}\n{grid_text(PUZZLE, 4)}"
    assert not terminated and not info["action_is_valid"] and action not in info["legal_actions"]


def test_a_wrong_value_stays_and_earns_no_progress() -> None:
    env = starting(Sudoku(4, fill_reward=8))
    assert "2 2 4" in env.legal_actions() and "1 2 4" in env.legal_actions()
    _, reward, terminated, _, info = env.step("1 2 4")
    assert (reward, info["progress"], info["action_is_valid"]) == (0, 0, True)
    assert terminated, "row 1, column 4 needs the 4"


def test_a_dead_end_ends_the_episode() -> None:
    env = starting(Sudoku(4))
    observation, _, terminated, truncated, info = env.step("1 2 4")
    assert observation.split("\n")[-1] in (
        "No value fits row 1, column 4 any more.",
        "No value fits row 2, column 2 any more.",
    )
    assert (terminated, truncated, info["success"]) == (True, False, 0)


def test_wrong_values_can_be_refused_instead() -> None:
    env = starting(Sudoku(4, wrong="refuse", step_reward=-1))
    observation, reward, terminated, _, info = env.step("1 2 4")
    assert observation == f"Wrong: row 1, column 2 is not 4.\n{grid_text(PUZZLE, 4)}"
    assert (reward, terminated, info["action_is_valid"], info["progress"]) == (-1, False, True, 0)
    assert info["legal_actions"] == legal_moves(PUZZLE, 4)
    assert env.step("1 2 3")[4]["progress"] == 0.125


@settings(max_examples=40)
@given(st.sampled_from([(4, None), (6, None), (9, 60)]), st.integers(0, 30), st.lists(st.integers(0, 999), max_size=40))
def test_legal_moves_and_dead_ends_equal_those_worked_out_anew(
    options: tuple[int, int | None], seed: int, choices: list[int]
) -> None:
    """Oracle: the list is kept up to date move by move, and must equal that of the grid as it stands."""
    env = Sudoku(*options)
    observation, info = env.reset(seed=seed)
    size, terminated = options[0], False
    for choice in choices:
        grid = parse_grid(observation)
        assert info["legal_actions"] == legal_moves(grid, size) and info["anchor"] == grid_text(grid, size)
        right = sum(value == solved for value, solved in zip(grid, env._solution, strict=True))
        clues = env._puzzle.count(0)
        assert info["progress"] == pytest.approx(1 - (size * size - right) / clues)
        action = info["legal_actions"][choice % len(info["legal_actions"])]
        observation, _, terminated, _, info = env.step(action)
        grid = parse_grid(info["anchor"])
        is_dead = any(not values and not value for value, values in zip(grid, free_values(grid, size), strict=True))
        assert terminated == (is_dead or 0 not in grid) and info["success"] == (
            int(0 not in grid) if terminated else -1
        )
        if terminated:
            assert ("No value fits" in observation) == is_dead
            return


@pytest.mark.parametrize(
    ("options", "tasks"),
    [({"size": 4}, 200), ({"size": 6}, 100), ({}, 30), ({"clues": 32}, 20), ({"size": 4, "wrong": "refuse"}, 50)],
)
def test_expert_solves_every_task_without_a_wasted_turn(options: dict[str, Any], tasks: int) -> None:
    env = Sudoku(**options, split="test")
    for seed in range(tasks):
        observation, _ = env.reset(seed=seed)
        assert split_of(env.instance) == "test" and env.instance == observation
        empty, terminated = observation.count("."), False
        assert env.size**2 - empty == env.clues
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated and info["action_is_valid"]
        assert info["success"] == 1 and env.turn == empty


def test_expert_goes_on_after_a_wrong_value() -> None:
    env = Sudoku(9, 45)
    for seed in range(10):
        _, info = env.reset(seed=seed)
        wrong = [name for name in info["legal_actions"] if env._solution[moves(9).all[name][0]] != int(name[-1])]
        assert wrong, "there is nothing to do wrong"
        _, _, terminated, _, info = env.step(wrong[-1])
        while not terminated:
            _, _, terminated, _, info = env.step(env.expert_action())
            assert info["action_is_valid"]
        assert info["success"] == 0


def test_expert_has_nothing_to_say_where_nothing_is_legal() -> None:
    env = starting(Sudoku(4), SOLUTION)
    with pytest.raises(ValueError, match="no expert action where nothing is legal"):
        env.expert_action()


@pytest.mark.parametrize("size", [4, 6, 9])
def test_the_fewest_clues_are_reached(size: int) -> None:
    env = Sudoku(size, FEWEST_CLUES[size])
    for seed in range(5):
        assert size * size - env.reset(seed=seed)[0].count(".") == FEWEST_CLUES[size]
        assert len(solutions(parse_grid(env.instance), size)) == 1


def test_progress_never_falls() -> None:
    env = Sudoku(6)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        shares, terminated = [info["progress"]], False
        while not terminated:
            _, _, terminated, _, info = env.step(info["legal_actions"][len(info["legal_actions"]) // 2])
            shares.append(info["progress"])
        assert all(later >= earlier for earlier, later in pairwise(shares))
        assert (shares[-1] == 1) == (info["success"] == 1)


def test_picture_tells_clues_from_filled_cells() -> None:
    env = starting(Sudoku(4, image=True))
    observation = env.step("1 4 4")[0]
    picture = observation["image"]
    assert picture.shape == (80, 80, 3) and observation in env.observation_space
    tiles = picture.reshape(4, 20, 4, 20, 3).transpose(0, 2, 1, 3, 4)[:, :, 2:-2, 2:-2]
    assert np.array_equal(tiles[0, 0], tiles[1, 3]), "both are the clue 2"
    assert not np.array_equal(tiles[0, 3], tiles[3, 2]), "the one 4 is filled in, the other a clue"
    assert len({tile.tobytes() for tile in tiles.reshape(16, 16, 16, 3)}) == 6, "four clues, one value, empty cells"


@pytest.mark.parametrize(("size", "across", "down"), [(4, [40], [40]), (6, [60], [40, 80]), (9, [60, 120], [60, 120])])
def test_picture_has_lines_between_boxes(size: int, across: list[int], down: list[int]) -> None:
    env = Sudoku(size)
    env.reset(seed=0)
    picture = env.render_image()
    is_black = (picture == picture[20 * size // 2 if size == 4 else down[0], 5]).all(axis=2)
    assert [line for line in range(20 * size) if is_black[line].all()] == sorted(x + d for x in down for d in (-1, 0))
    assert [line for line in range(20 * size) if is_black[:, line].all()] == sorted(
        x + d for x in across for d in (-1, 0)
    )


def test_instructions_tell_the_boxes_and_what_happens_to_wrong_values() -> None:
    assert "box of 2 x 3 cells" in Sudoku(6).instructions and "cannot take a value back" in Sudoku(6).instructions
    assert "not put in" in Sudoku(wrong="refuse").instructions


def test_turn_limit_is_twice_the_empty_cells_or_what_is_asked_for() -> None:
    assert Sudoku(4).max_turns == 16 and Sudoku(9, 50).max_turns == 62 and Sudoku(4, max_turns=8).max_turns == 8
    env = Sudoku(4, max_turns=8)
    env.reset(seed=0)
    for _ in range(7):
        assert not env.step("pass")[3]
    *_, terminated, truncated, info = env.step("pass")
    assert (terminated, truncated, info["success"]) == (False, True, 0)


OPTION_OUT_OF_RANGE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"size": 5}, r"size of .* must be one of 4, 6, 9, got 5"),
    ({"size": True}, r"must be one of 4, 6, 9, got True"),
    ({"size": 9, "clues": 31}, r"clues of .* must be a whole number in \[32, 80\], got 31"),
    ({"size": 4, "clues": 16}, r"\[5, 15\], got 16"),
    ({"clues": "many"}, r"got 'many'"),
    ({"wrong": "kept"}, r"Did you mean 'keep'\?"),
    ({"max_turns": 35}, r"is 35, but 45 clues leave 36 empty cells: pass max_turns=36 or more, or more clues"),
    ({"fill_reward": float("nan")}, r"fill_reward of .* got nan"),
    ({"image": 1}, r"image of .* must be True or False, got 1"),
]


def test_option_out_of_range_is_refused() -> None:
    for options, message in OPTION_OUT_OF_RANGE_IS_REFUSED:
        with pytest.raises(ValueError, match=message):
            Sudoku(**options)
