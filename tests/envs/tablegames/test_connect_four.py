"""Connect Four: bitboards against a plain board, search against brute force, and what theory says of small boards."""

from functools import cache

import pytest
from table_play import at_random, decisions, match, say, started

from turngym.envs.multiagent.players import Player, make_player
from turngym.envs.tablegames.connect_four import rules as rules
from turngym.envs.tablegames.connect_four.game import ConnectFour, MinimaxPlayer, PerfectPlayer, SmallConnectFour, seen
from turngym.envs.tablegames.connect_four.rules import WIN, Grid, Position
from turngym.errors import ConfigError
from turngym.seeding import stream

GRIDS = [Grid(6, 7, 4), Grid(4, 5, 4), Grid(3, 4, 3), Grid(2, 2, 2), Grid(12, 2, 5), Grid(2, 12, 3)]
Columns = tuple[str, ...]


def has_line(columns: Columns, connect: int, mark: str) -> bool:
    """The obvious way: every cell as the start of a line in four directions."""
    stones = {(x, y) for x, column in enumerate(columns) for y, stone in enumerate(column) if stone == mark}
    return any(
        all((x + k * dx, y + k * dy) in stones for k in range(connect))
        for x, y in stones
        for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1))
    )


def after(columns: Columns, column: int, mark: str) -> Columns:
    return (*columns[:column], columns[column] + mark, *columns[column + 1 :])


@cache
def plain_value(columns: Columns, grid: Grid) -> int:
    """Minimax without pruning; the value of a win as the rules give it."""
    count = sum(map(len, columns))
    if has_line(columns, grid.connect, "XO"[(count + 1) % 2]):
        return count - WIN
    free = [column for column in range(grid.columns) if len(columns[column]) < grid.rows]
    return max((-plain_value(after(columns, column, "XO"[count % 2]), grid) for column in free), default=0)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_bitboards_and_a_plain_board_agree_in_random_games(grid: Grid) -> None:
    generator = stream("games", *grid)
    for _ in range(40):
        columns, position = ("",) * grid.columns, Position()
        for count in range(grid.cells):
            free = [column for column in range(grid.columns) if len(columns[column]) < grid.rows]
            assert rules.open_columns(grid, position) == tuple(free)
            column = free[int(generator.integers(len(free)))]
            columns = after(columns, column, "XO"[count % 2])
            position = rules.dropped(grid, position, column)
            assert position == rules.from_columns(columns, grid)
            assert rules.just_won(grid, position) == has_line(columns, grid.connect, "XO"[count % 2])
            assert not rules.has_line(grid, position.own)
            if rules.just_won(grid, position):
                break


def test_lines_do_not_run_around_the_edge_of_the_board() -> None:
    grid = Grid(4, 4, 4)
    for column in range(3):
        top = 0b1100 << column * 5
        assert not rules.has_line(grid, top | 0b11 << (column + 1) * 5)


def test_there_are_69_lines_of_four_on_the_usual_board() -> None:
    grid, starts = Grid(), 0
    for shift, (dx, dy) in {7: (1, 0), 1: (0, 1), 8: (1, 1), 6: (1, -1)}.items():
        for x in range(7):
            for y in range(6):
                if 0 <= x + 3 * dx < 7 and 0 <= y + 3 * dy < 6:
                    starts += 1
                    assert rules.has_line(grid, sum(1 << 7 * x + y + k * shift for k in range(4)))
    assert starts == 69


@pytest.mark.parametrize("grid", [Grid(3, 3, 3), Grid(3, 4, 3), Grid(4, 3, 3), Grid(2, 4, 3), Grid(3, 4, 4)], ids=str)
def test_exact_values_are_those_of_plain_minimax(grid: Grid) -> None:
    generator = stream("positions", *grid)
    assert rules.position_value(grid, Position()) == plain_value(("",) * grid.columns, grid)
    for _ in range(60):
        columns = ("",) * grid.columns
        for count in range(int(generator.integers(grid.cells - 1))):
            free = [column for column in range(grid.columns) if len(columns[column]) < grid.rows]
            moved = after(columns, free[int(generator.integers(len(free)))], "XO"[count % 2])
            if has_line(moved, grid.connect, "XO"[count % 2]):
                break
            columns = moved
        mark = "XO"[sum(map(len, columns)) % 2]
        free = [column for column in range(grid.columns) if len(columns[column]) < grid.rows]
        values = {column: -plain_value(after(columns, column, mark), grid) for column in free}
        best = {column: value for column, value in values.items() if value == max(values.values())}
        position = rules.from_columns(columns, grid)
        assert rules.move_values(grid, position, grid.cells) == best
        assert rules.position_value(grid, position) == max(values.values())


@pytest.mark.parametrize(
    ("grid", "result"),
    [
        (Grid(4, 4, 4), 0),
        (Grid(4, 5, 4), 0),
        (Grid(5, 4, 4), 0),
        (Grid(4, 4, 3), 1),
        (Grid(3, 3, 3), 0),
    ],
    ids=str,
)
def test_small_boards_have_the_known_result(grid: Grid, result: int) -> None:
    """4 x 4, 5 x 4 and 4 x 5 are draws in Tromp's table of solved sizes."""
    value = rules.position_value(grid, Position())
    assert (value > 0) - (value < 0) == result


def test_a_mirrored_position_has_mirrored_values() -> None:
    grid = Grid(5, 6, 4)
    position = rules.from_columns(("X", "OX", "", "XOO", "", ""), grid)
    mirrored = rules.from_columns(("", "", "XOO", "", "OX", "X"), grid)
    values = rules.move_values(grid, position, 6)
    assert {5 - column: value for column, value in values.items()} == rules.move_values(grid, mirrored, 6)


def test_a_search_gives_the_same_answer_whatever_was_searched_before() -> None:
    grid = Grid(6, 7, 4)
    position = rules.from_columns(("", "O", "X", "XO", "", "", ""), grid)
    rules.searcher.cache_clear()
    fresh = [rules.move_values(grid, position, depth) for depth in (1, 3, 5)]
    rules.move_values(grid, Position(), 6)
    assert [rules.move_values(grid, position, depth) for depth in (1, 3, 5)] == fresh


def test_tables_that_are_emptied_again_and_again_change_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid(4, 4, 4)
    boards = (("",) * 4, ("XO", "", "X", ""), ("", "XOX", "", "O"), ("XXO", "O", "", ""))
    positions = [rules.from_columns(columns, grid) for columns in boards]
    rules.searcher.cache_clear()
    kept = [rules.move_values(grid, position, grid.cells) for position in positions]
    monkeypatch.setattr(rules, "_KEPT", 20)
    rules.searcher.cache_clear()
    assert [rules.move_values(grid, position, grid.cells) for position in positions] == kept


def test_the_search_takes_a_win_and_stops_one() -> None:
    grid = Grid()
    three = rules.from_columns(("XXX", "OO", "O", "", "", "", ""), grid)
    assert rules.move_values(grid, three, 1) == {0: WIN - 7}
    assert list(rules.move_values(grid, rules.from_columns(("XXX", "OO", "", "", "", "", ""), grid), 4)) == [0]


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize(("other", "columns"), [("random", 5), ("random", 4), ("first_legal", 4), ("minimax", 4)])
def test_the_perfect_player_never_loses_where_theory_gives_a_draw(seat: int, other: str, columns: int) -> None:
    for seed in range(1 if columns == 5 else 2):
        players: list[str | Player] = [other, other]
        players[seat] = "perfect"
        table = match(SmallConnectFour(4, columns), players, seed)
        assert table.returns[seat] >= 0
        assert not any(counts.illegal or counts.unreadable for counts in table.counts)


def test_the_perfect_player_wins_as_first_seat_where_theory_gives_a_win() -> None:
    for seed in range(5):
        table = match(SmallConnectFour(4, 4, 3), ["perfect", "random" if seed % 2 else "perfect"], seed)
        assert table.returns == [1.0, -1.0]


def test_looking_ahead_beats_random_play_on_the_usual_board() -> None:
    for seed in range(4):
        seat = seed % 2
        table = match(ConnectFour(), [MinimaxPlayer(4), "random"] if seat == 0 else ["random", MinimaxPlayer(4)], seed)
        assert table.returns[seat] == 1.0


def test_looking_further_ahead_is_no_worse() -> None:
    points = 0.0
    for seed in range(4):
        players = [MinimaxPlayer(5), MinimaxPlayer(1)]
        table = match(ConnectFour(), players if seed % 2 else players[::-1], seed)
        points += table.returns[0 if seed % 2 else 1]
    assert points > 0


@pytest.mark.parametrize(("moves", "column"), [([3, 0, 3, 0, 3, 0], "3"), ([0, 6, 0, 6, 0], "0")])
def test_the_attentive_player_completes_a_line_else_blocks_one(moves: list[int], column: str) -> None:
    table = started(ConnectFour(), 0, {"moves": moves})
    view = table.views[table.pending[0]]
    player = make_player("attentive", table.game)
    player.begin(view, stream("attentive"))
    assert player.act(view) == column


def test_the_same_seed_gives_the_same_game_and_another_one_another() -> None:
    games = [match(ConnectFour(), ["minimax", "random"], seed).actions for seed in (0, 0, 1)]
    assert games[0] == games[1] != games[2]


def test_the_perfect_player_is_only_for_small_boards() -> None:
    game = ConnectFour()
    table = started(game)
    with pytest.raises(ConfigError, match="of up to 20 cells, got 42: use minimax"):
        PerfectPlayer().begin(table.views[0], stream("x"))
    with pytest.raises(ConfigError, match="at most 20 cells, got 5 rows and 5 columns: use ConnectFour"):
        SmallConnectFour(5, 5)
    assert make_player("perfect", SmallConnectFour()).name == "perfect"


def test_an_anchor_tells_size_and_position() -> None:
    for grid in GRIDS:
        table = started(ConnectFour(*grid))
        for _ in decisions(table, at_random(stream("anchor"))):
            found, position = seen(table.game.anchor(0))
            assert found == grid
            assert position == rules.from_columns(tuple(table.game._columns), grid)  # type: ignore[attr-defined]


def test_a_win_pays_one_and_shows_the_board() -> None:
    table = started(ConnectFour())
    assert say(table, *"3434343")[-1] == (1.0, -1.0)
    assert table.game.winners() == (0,) and table.game.metrics() == {"stones": 7.0, "drawn": 0.0}
    board = [". . . . . . .", ". . . . . . .", ". . . X . . .", *[". . . X O . ."] * 3, "0 1 2 3 4 5 6"]
    assert table.views[1].lines[-1].split("\n") == [*board, "player_0 wins."]


def test_a_full_board_is_a_draw() -> None:
    table = started(ConnectFour(2, 2, 2), options={"moves": []})
    assert say(table, "0", "1", "0")[-1] == (1.0, -1.0)
    table = started(ConnectFour(2, 3, 3))
    assert say(table, *"021120")[-1] == (0.0, 0.0)
    assert table.is_over and table.game.score(1) == 0.5


def test_a_full_column_is_illegal() -> None:
    table = started(ConnectFour(2, 4, 3), options={"moves": [1, 1]})
    assert sorted(table.views[0].legal_actions) == ["0", "2", "3"]
    assert table.answer(0, "[1]").reason == "Column 1 is full: choose one of 0, 2, 3."
    assert table.answer(0, "[7]").rewards == (-1.0, 1.0)
    assert (table.counts[0].illegal, table.counts[0].unreadable) == (1, 1)


MOVES_OF_NO_RUNNING_GAME_ARE_REFUSED: list[object] = [
    5,
    "33",
    [7],
    [-1],
    ["0"],
    [[0]],
    [0] * 7,
    [0, 1, 0, 1, 0, 1, 0],
    [0, 1, 0, 1, 0, 1, 0, 1],
]


def test_moves_of_no_running_game_are_refused() -> None:
    for moves in MOVES_OF_NO_RUNNING_GAME_ARE_REFUSED:
        with pytest.raises(ConfigError, match="game that goes on"):
            started(ConnectFour(), options={"moves": moves})


@pytest.mark.parametrize("size", [(1, 7, 4), (6, 13, 4), (6, 7, 8), (6, 7, 1), (6.0, 7, 4)])
def test_sizes_out_of_range_are_refused(size: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match="must be a whole number"):
        ConnectFour(*size)
