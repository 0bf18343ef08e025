"""Minesweeper: no guess is ever needed, flags protect, and what is hidden stays hidden."""

import json
from typing import Any

import pytest

from turngym.envs.textgames.minesweeper.env import Minesweeper
from turngym.envs.textgames.minesweeper.rules import Grid

SMALL: dict[str, Any] = {"rows": 5, "columns": 5, "mines": 3, "max_turns": 30}
# * . . . .     cells with mines: 0 0, 2 4 and 3 4; opened at the start: 4 0
# . . . . .
# . . . . *
# . . . . *
# . . . . .
MINES = ((0, 0), (2, 4), (3, 4))
START = """\
  0 1 2 3 4
0 . 1 0 0 0
1 1 1 0 1 1
2 0 0 0 2 .
3 0 0 0 2 .
4 0 0 0 1 ."""


def cell(row: int, column: int, columns: int = 5) -> int:
    return Grid(9, columns).cells[row * columns + column]


def placed(env: Minesweeper, *mines: tuple[int, int], first: tuple[int, int] = (4, 0)) -> Minesweeper:
    """Put the environment onto a given board as if it had just been drawn, through its snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    bits = sum(1 << cell(*place) for place in mines)
    content["state"] = {"start": cell(*first), "mines": f"{bits:x}", "open": [], "flags": [], "hit": -1}
    env.restore(json.dumps(content).encode())
    env.step(f"reveal {first[0]} {first[1]}")
    return env


def solve(env: Minesweeper) -> dict[str, Any]:
    over, info = False, dict[str, Any]()
    while not over:
        _, _, terminated, truncated, info = env.step(env.expert_action())
        over = terminated or truncated
    return info


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rows": 6, "columns": 6, "mines": 5, "max_turns": 40},
        {"rows": 9, "columns": 14, "mines": 20, "max_turns": 120},
    ],
)
def test_expert_opens_every_board(options: dict[str, Any]) -> None:
    env = Minesweeper(**options)
    for seed in range(150):
        env.reset(seed=seed)
        info = solve(env)
        assert info["success"] == 1 and info["progress"] == 1.0


def test_expert_decides_by_the_numbers_alone() -> None:
    """Other mines that fit the numbers lead to the same advice."""
    env = Minesweeper()
    swapped = 0
    for seed in range(20):
        env.reset(seed=seed)
        over = False
        while not over:
            advice = env.expert_action()
            snapshot = env.snapshot()
            swapped += env.resample_hidden()
            assert env.expert_action() == advice
            env.restore(snapshot)
            _, _, terminated, truncated, _ = env.step(advice)
            over = terminated or truncated
    assert swapped > 50


def test_first_cell_is_open_and_has_no_mine_near_it() -> None:
    env = Minesweeper()
    for seed in range(100):
        observation, info = env.reset(seed=seed)
        assert " 0" in observation.split("\n", 1)[1][2:] and "." in observation
        assert info["progress"] == 0.0 and env._numbers[env._start] == 0
        assert 0 < len(env._numbers) < 54


def test_board_is_drawn_with_numbers_of_rows_and_columns() -> None:
    env = placed(Minesweeper(**SMALL), *MINES)
    assert env._observation == START
    env = Minesweeper(5, 12, 6, max_turns=60)
    env.reset(seed=0)
    lines = env._text.split("\n")
    assert lines[0] == "   0  1  2  3  4  5  6  7  8  9 10 11" and len(lines) == 6
    assert len({len(line) for line in lines}) == 1
    for name, number in env._numbers.items():
        row, column = divmod(env._grid.cells.index(name), 12)
        assert lines[row + 1].split()[column + 1] == str(number)


def test_a_mine_ends_the_episode_without_success() -> None:
    env = placed(Minesweeper(**SMALL, mine_reward=-1.0, step_reward=-0.5), *MINES)
    observation, reward, terminated, _, info = env.step("reveal 0 0")
    assert observation == START.replace("0 . 1", "0 * 1")
    assert (reward, terminated, info["success"], info["legal_actions"]) == (-1.5, True, 0, ())
    with pytest.raises(ValueError, match="no expert action after the episode has ended"):
        env.expert_action()


def test_the_last_safe_cell_ends_it_with_success() -> None:
    env = placed(Minesweeper(**SMALL, solve_reward=2.0, step_reward=-0.5), *MINES)
    observation, reward, terminated, _, info = env.step("reveal 4 4")
    assert observation == START.replace("1 .", "1 1") and (reward, terminated, info["success"]) == (1.5, True, 1)


def test_share_of_opened_cells_is_paid() -> None:
    env = Minesweeper(open_reward=1.0, solve_reward=0.0)
    for seed in range(10):
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            before = env._info()["progress"]
            _, reward, terminated, truncated, info = env.step(env.expert_action())
            assert reward == pytest.approx(info["progress"] - before)
            total += reward
            over = terminated or truncated
        assert total == pytest.approx(1.0)


def test_a_flag_protects_its_cell_until_it_is_taken_back() -> None:
    env = placed(Minesweeper(**SMALL), *MINES)
    observation, _, _, _, info = env.step("flag 0 0")
    assert observation == START.replace("0 . 1", "0 F 1") == info["anchor"]
    assert "reveal 0 0" not in info["legal_actions"] and "flag 0 0" in info["legal_actions"]
    observation, _, terminated, _, info = env.step("reveal 0 0")
    assert observation.startswith("That cell carries a flag: take it back first.\n") and not terminated
    assert not info["action_is_valid"]
    assert env.step("flag 0 0")[0] == START
    assert env.step("reveal 0 0")[2]


def test_expert_takes_a_wrong_flag_back() -> None:
    env = placed(Minesweeper(**SMALL), *MINES)
    assert env.expert_action() == "reveal 4 4"
    env.step("flag 4 4")
    assert env.expert_action() == "flag 4 4"
    env.step("flag 4 4")
    assert env.expert_action() == "reveal 4 4"


def test_a_flood_under_a_flag_removes_the_flag() -> None:
    """A wall of mines in the middle row: the lower half is one flood, which a mark does not stop."""
    env = Minesweeper(5, 5, 5, max_turns=30)
    placed(env, *[(2, column) for column in range(5)], first=(0, 0))
    assert "F" in env.step("flag 4 0")[0]
    observation, _, terminated, _, _ = env.step("reveal 4 4")
    assert "F" not in observation and terminated and env._flagged == 0


def test_open_cells_can_be_neither_opened_nor_flagged() -> None:
    env = placed(Minesweeper(**SMALL), *MINES)
    for action in ("reveal 2 2", "flag 2 2"):
        observation, _, _, _, info = env.step(action)
        assert observation == f"That cell is open already.\n{START}" and not info["action_is_valid"]


@pytest.mark.parametrize("action", ["reveal 0 1", "Reveal (0, 1)", " REVEAL 0,1 ", "reveal 00 01", "reveal: 0 1"])
def test_loosely_written_actions_are_understood(action: str) -> None:
    assert Minesweeper(**SMALL)._read(action) == (False, 1)


def test_what_names_no_cell_is_answered() -> None:
    for action in ["", "reveal", "reveal 5 0", "reveal 0 5", "reveal -1 0", "open 0 1", "flag 1", "0 1"]:
        env = placed(Minesweeper(**SMALL), *MINES)
        observation, _, _, _, info = env.step(action)
        assert observation == f"Unknown action: answer with reveal ROW COLUMN or flag ROW COLUMN.\n{START}"
        assert not info["action_is_valid"]


def test_legal_actions_are_listed_in_one_order_whatever_was_flagged() -> None:
    """A restored copy builds the list anew; it must be the same list."""
    env = Minesweeper(**SMALL)
    copy = Minesweeper(**SMALL)
    for seed in range(5):
        env.reset(seed=seed)
        for index in (0, -1, 0, -1, 3, -2, -2):
            legal = env.legal_actions()
            env.step([action for action in legal if action.startswith("flag")][index])
            assert env.legal_actions() == tuple(env._listed()) == copy.restore(env.snapshot())[1]["legal_actions"]
        assert len(env.legal_actions()) == 2 * (25 - len(env._numbers)) - env._flagged.bit_count()


def test_hidden_mines_move_and_every_number_stays() -> None:
    env = Minesweeper()
    for seed in range(20):
        env.reset(seed=seed)
        before, instance, info = env._mines, env.instance, env._info()
        if env.resample_hidden():
            assert env._mines != before and env.instance != instance and env._info() == info
            assert all((env._grid.near[name] & env._mines).bit_count() == n for name, n in env._numbers.items())
            assert env._mines.bit_count() == 10


def test_nothing_is_hidden_where_the_numbers_leave_one_layout() -> None:
    env = placed(Minesweeper(**SMALL), *MINES)
    assert not env.resample_hidden()


def test_expert_guesses_when_nothing_is_certain() -> None:
    """A layout swapped in by resample_hidden may need a guess; the advice is then still a legal action."""
    env = placed(Minesweeper(**SMALL), (0, 4), (1, 0), (3, 2), first=(4, 4))
    over = False
    while not over:
        advice = env.expert_action()
        assert advice in env.legal_actions()
        _, _, terminated, truncated, _ = env.step(advice)
        over = terminated or truncated


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 4}, r"rows of .* must be a whole number in \[5, 20\], got 4"),
        ({"columns": 21}, "columns of .* got 21"),
        ({"mines": 2}, r"mines of .* \[3, 16\], got 2"),
        ({"mines": 17}, "got 17"),
        ({"max_turns": 49}, r"opening 8 x 8 cells with 10 mines can take 50 turns: pass max_turns=50"),
        ({"mine_reward": True}, "mine_reward of .* got True"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Minesweeper(**options)
