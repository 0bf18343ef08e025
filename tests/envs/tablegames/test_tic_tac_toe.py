"""Tic-Tac-Toe: every game by brute force, the perfect player, the game at a table."""

from collections import Counter
from functools import cache
from itertools import product

import pytest
from table_play import match, say, started

from turngym.envs.tablegames import tic_tac_toe as rules
from turngym.envs.tablegames.tic_tac_toe import EMPTY_BOARD, AttentivePlayer, PerfectPlayer, TicTacToe
from turngym.errors import ConfigError
from turngym.seeding import stream


@cache
def ends(board: str) -> Counter[str]:
    """How many games from here end with each result, with the test's own rules for lines."""
    cells = [[board[3 * row + column] for column in range(3)] for row in range(3)]
    lines = [*cells, *map(list, zip(*cells, strict=True))]
    lines += [[cells[i][i] for i in range(3)], [cells[i][2 - i] for i in range(3)]]
    for mark in "XO":
        if [mark] * 3 in lines:
            return Counter({mark: 1})
    if "." not in board:
        return Counter({"draw": 1})
    mark = "X" if board.count("X") == board.count("O") else "O"
    total: Counter[str] = Counter()
    for cell in range(9):
        if board[cell] == ".":
            total += ends(board[:cell] + mark + board[cell + 1 :])
    return total


def reachable(board: str = EMPTY_BOARD) -> set[str]:
    found, ahead = {board}, [board]
    while ahead:
        board = ahead.pop()
        if not rules.is_over(board):
            new = {rules.after(board, cell) for cell in rules.free_cells(board)} - found
            found |= new
            ahead += new
    return found


def test_all_games_are_counted_as_known() -> None:
    """255,168 games: 131,184 won by X, 77,904 by O, 46,080 drawn."""
    assert ends(EMPTY_BOARD) == {"X": 131184, "O": 77904, "draw": 46080}


def test_the_rules_agree_with_the_count_on_every_reachable_board() -> None:
    boards = reachable()
    assert len(boards) == 5478
    for board in boards:
        result = rules.winner(board) or ("draw" if "." not in board else "")
        assert rules.is_over(board) == bool(result)
        if result:
            assert ends(board) == {result: 1}


@pytest.mark.parametrize("side", [0, 1])
def test_the_perfect_player_loses_to_no_sequence_of_moves(side: int) -> None:
    """Whatever it may choose and whatever the other does: no end that it loses."""
    ahead, checked = [EMPTY_BOARD], 0
    while ahead:
        board = ahead.pop()
        if rules.is_over(board):
            checked += 1
            assert rules.winner(board) != "XO"[1 - side]
            continue
        is_own = rules.mark_to_move(board) == "XO"[side]
        cells = rules.best_cells(board) if is_own else rules.free_cells(board)
        ahead += [rules.after(board, cell) for cell in cells]
    assert checked > 100


def test_perfect_play_is_a_draw_and_every_opening_draws() -> None:
    assert rules.board_value(EMPTY_BOARD) == 0
    assert rules.best_cells(EMPTY_BOARD) == tuple(range(9))


@cache
def outcome(board: str) -> tuple[int, int]:
    """Result for the seat to move (1, 0, -1) and the moves until the end: quick wins, slow losses."""
    if rules.is_over(board):
        return (-1 if rules.winner(board) else 0), 0
    after = [outcome(rules.after(board, cell)) for cell in rules.free_cells(board)]
    own = [(-result, moves + 1) for result, moves in after]
    return max(own, key=lambda end: (end[0], -end[0] * end[1]))


def test_wins_come_as_soon_and_losses_as_late_as_possible() -> None:
    slower = 0
    for board in reachable():
        if rules.is_over(board):
            continue
        result, moves = outcome(board)
        made = 9 - board.count(".")
        assert rules.board_value(board) == result * (10 - made - moves)
        ends = {cell: outcome(rules.after(board, cell)) for cell in rules.free_cells(board)}
        if result:
            best = {cell for cell, end in ends.items() if end == (-result, moves - 1)}
        else:
            best = {cell for cell, end in ends.items() if end[0] == 0}
        assert set(rules.best_cells(board)) == best
        slower += len(best) < sum(end[0] == -result for end in ends.values())
    assert slower > 100  # boards on which the number of moves decides


def test_the_perfect_player_beats_random_play_and_never_loses_at_a_table() -> None:
    results: Counter[float] = Counter()
    for seed, seat in product(range(60), (0, 1)):
        players = ["minimax", "random"] if seat == 0 else ["random", "minimax"]
        table = match(TicTacToe(), players, seed)
        results[table.returns[seat]] += 1
    assert results[-1.0] == 0 and results[1.0] > 80


@pytest.mark.parametrize(
    ("board", "cells"),
    [("XX.OO....", {2}), ("XX..O....", {2}), ("X.O.X.O..", {8}), ("X...O....", {1, 2, 3, 5, 6, 7, 8})],
)
def test_the_attentive_player_completes_a_row_else_blocks_one(board: str, cells: set[int]) -> None:
    def cell(seed: int) -> int:
        table = started(TicTacToe(), seed, {"board": board})
        player = AttentivePlayer()
        player.begin(table.views[table.pending[0]], stream("attentive", seed))
        return int(player.act(table.views[table.pending[0]]))

    assert {cell(seed) for seed in range(60)} == cells


def test_perfect_players_always_draw_but_not_always_the_same_game() -> None:
    games = [match(TicTacToe(), [PerfectPlayer(), "minimax"], seed) for seed in range(20)]
    assert all(table.returns == [0.0, 0.0] and table.game.winners() == () for table in games)
    assert len({tuple(table.actions) for table in games}) > 10
    assert games[3].actions == match(TicTacToe(), ["minimax", "minimax"], 3).actions


def test_a_win_pays_one_and_tells_everybody() -> None:
    table = started(TicTacToe())
    rewards = say(table, "0", "3", "1", "4", "2")
    assert rewards[-1] == (1.0, -1.0) and table.game.winners() == (0,)
    assert table.views[0].lines == table.views[1].lines
    assert table.views[1].lines[-1] == "X X X\nO O 5\n6 7 8\nplayer_0 wins."
    assert [table.game.score(seat) for seat in (0, 1)] == [1.0, 0.0]
    assert table.game.metrics() == {"marks": 5.0, "drawn": 0.0}


def test_a_full_board_is_a_draw() -> None:
    table = started(TicTacToe())
    assert say(table, *"012435768")[-1] == (0.0, 0.0)
    assert table.is_over and table.game.score(0) == 0.5 and table.game.metrics()["drawn"] == 1.0


def test_the_view_shows_the_board_and_the_free_cells() -> None:
    table = started(TicTacToe())
    say(table, "[4]")
    assert table.views[1].observation == "player_0 sets X on 4.\n0 1 2\n3 X 5\n6 7 8\nYou are O. Which cell?"
    assert sorted(table.views[1].legal_actions) == list("01235678")
    assert table.views[0].legal_actions == ()
    assert (table.views[0].anchor, table.views[1].anchor) == (".../.X./...; you are X", ".../.X./...; you are O")


@pytest.mark.parametrize("text", ["4", "[4]", "cell 4", '{"move": 4}', '{"action": "[4]"}', "the middle: [4]", "**4**"])
def test_many_ways_to_name_a_cell(text: str) -> None:
    assert started(TicTacToe()).answer(0, text).action == "4"


def test_what_is_no_cell_is_unreadable() -> None:
    for text in ["", "9", "-1", "[4] or [5]", "４４", "4 5", '{"move": null}', "{" * 500, "[" * 5000]:
        table = started(TicTacToe())
        assert table.answer(0, text).action is None
        assert table.counts[0].unreadable == 1


def test_a_taken_cell_is_illegal_and_at_last_a_forfeit() -> None:
    table = started(TicTacToe())
    say(table, "0")
    answer = table.answer(1, "0")
    assert answer.reason == "Cell 0 is taken: choose one of 1, 2, 3, 4, 5, 6, 7, 8."
    assert table.answer(1, "0").rewards == (1.0, -1.0) and table.counts[1].illegal == 2


@pytest.mark.parametrize("board", ["X", "XX.......", "O........", "XXXOO....", "XOXXOXOXO", "abcdefghi", 4])
def test_a_board_of_no_running_game_is_refused(board: object) -> None:
    with pytest.raises(ConfigError, match="board must be nine"):
        started(TicTacToe(), options={"board": board})


def test_a_given_board_is_played_on() -> None:
    game = TicTacToe()
    game.begin(stream("x"), {"board": "X...O...."})
    assert game.asked() == (0,) and game.progress(0) == pytest.approx(2 / 9)
