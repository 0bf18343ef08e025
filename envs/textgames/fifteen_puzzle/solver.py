"""A solver for the sliding-tile puzzle: shortest ways where the search is short, else row by row.

The shortest way is found by iterative deepening A* (Korf 1985). Its estimate is the sum of the tiles' distances from
their places, plus two for each tile that must leave its line to let another one pass (linear conflict: Hansson, Mayer
and Yung 1992). Where that needs too many steps, tiles are put into place two at a time, the outermost row or column
first, each pair by a shortest way that leaves what is done alone, until three rows and columns are left; those are
solved by the first method again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from turngym.envs.textgames.fifteen_puzzle.rules import Board, slide, slides, tile_distances

_MOST_STEPS = {2: 10_000, 3: 10_000_000, 4: 20_000, 5: 5_000}
"""Boards that the search for a shortest way may look at, by size; with three a side it always ends."""
_MORE_STEPS = 150_000
"""The same where a short way is known to exist: of 3,000 boards of size 4, 30 moves away, the hardest took 83,112."""

_MOST_LINES = 100_000


def _conflicts(line: tuple[int, ...]) -> int:
    """Return the fewest tiles that must leave a line, given the goal positions of those whose goal is in that line.

    The others are -1. What can stay is a longest increasing run of goals.
    """
    best: list[int] = []
    goals = [goal for goal in line if goal >= 0]
    for index, goal in enumerate(goals):
        best.append(1 + max([best[before] for before in range(index) if goals[before] < goal], default=0))
    return len(goals) - max(best, default=0)


@lru_cache(maxsize=16)
def _line_goals(size: int) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Return for each row, and for each column, each tile's goal position in it; -1 where its goal is elsewhere."""
    tiles = range(size**2)
    rows = tuple(tuple((t - 1) % size if t and (t - 1) // size == r else -1 for t in tiles) for r in range(size))
    columns = tuple(tuple((t - 1) // size if t and (t - 1) % size == c else -1 for t in tiles) for c in range(size))
    return rows, columns


class _Line(dict[tuple[int, ...], int]):
    """The conflicts of one line by the tiles in it; forgets them all when they are too many."""

    def __init__(self, goals: tuple[int, ...]) -> None:
        super().__init__()
        self._goals = goals

    def __missing__(self, tiles: tuple[int, ...]) -> int:
        if len(self) >= _MOST_LINES:
            self.clear()
        self[tiles] = found = _conflicts(tuple([self._goals[tile] for tile in tiles]))
        return found


@lru_cache(maxsize=16)
def _lines(size: int) -> tuple[tuple[_Line, ...], tuple[_Line, ...]]:
    """Return what is known of each row, and of each column."""
    rows, columns = _line_goals(size)
    return tuple(map(_Line, rows)), tuple(map(_Line, columns))


def line_conflicts(board: Sequence[int], size: int, line: int, is_row: bool) -> int:
    """Return the fewest tiles of a row or column that must leave it to let others pass."""
    tiles = board[line * size : (line + 1) * size] if is_row else board[line::size]
    return _lines(size)[0 if is_row else 1][line][tuple(tiles)]


def estimate(board: Sequence[int], size: int) -> int:
    """Return a lower bound of the moves to the solved board.

    >>> estimate((2, 1, 3, 4, 5, 6, 7, 8, 0), 3)
    4
    """
    table = tile_distances(size)
    total = sum([table[tile][place] for place, tile in enumerate(board)])
    lines = range(size)
    return total + 2 * sum(
        [line_conflicts(board, size, line, True) + line_conflicts(board, size, line, False) for line in lines]
    )


class _OutOfSteps(Exception):
    pass


class _Deepening:
    """The search for a shortest way; it changes one board back and forth."""

    def __init__(self, board: Board, size: int, most_steps: int) -> None:
        self._cells = list(board)
        self._size = size
        self._slides, self._distances = slides(size), tile_distances(size)
        self._rows, self._columns = _lines(size)
        self._steps_left = most_steps
        self._path: list[str] = []

    def run(self) -> list[str]:
        """Return the moves.

        Raises:
            _OutOfSteps: It would take more steps than allowed.
        """
        gap, left = self._cells.index(0), estimate(self._cells, self._size)
        bound = left
        while not self._reaches(gap, -1, left, bound):
            bound += 2  # the parity of the length is fixed
        return self._path

    def _reaches(self, gap: int, before: int, left: int, spare: int) -> bool:
        """Return whether ``spare`` moves suffice from here; then the path holds them."""
        if not left:
            return True
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _OutOfSteps
        cells = self._cells
        for move, origin in self._slides[gap].items():
            if origin == before:
                continue
            after = self._moved(gap, origin, left)
            if after < spare:
                self._path.append(move)
                if self._reaches(origin, gap, after, spare - 1):
                    return True
                self._path.pop()
            cells[origin], cells[gap] = cells[gap], 0
        return False

    def _moved(self, gap: int, origin: int, left: int) -> int:
        """Slide the tile and return the new estimate, of which only what the move touches is computed again."""
        cells, size = self._cells, self._size
        tile = cells[origin]
        if abs(gap - origin) == size:  # a tile that moves up or down changes two rows and no column
            one, other = gap - gap % size, origin - origin % size
            table = self._rows[one // size], self._rows[other // size]
            here, there = slice(one, one + size), slice(other, other + size)
        else:
            one, other = gap % size, origin % size
            table = self._columns[one], self._columns[other]
            here, there = slice(one, None, size), slice(other, None, size)
        before = table[0][tuple(cells[here])] + table[1][tuple(cells[there])]
        cells[gap], cells[origin] = tile, 0
        after = table[0][tuple(cells[here])] + table[1][tuple(cells[there])]
        distances = self._distances[tile]
        return left + distances[gap] - distances[origin] + 2 * (after - before)


def shortest(board: Board, size: int, most_steps: int) -> list[str] | None:
    """Return the moves of a shortest way to the solved board, None if that takes more steps than allowed.

    >>> shortest((1, 2, 3, 4, 5, 6, 0, 7, 8), 3, 100)
    ['left', 'left']
    """
    try:
        return _Deepening(board, size, most_steps).run()
    except _OutOfSteps:
        return None


def solve(board: Board, size: int, is_near: bool = False) -> list[str]:
    """Return moves that solve a board that can be solved.

    Args:
        board: The board.
        size: Tiles along one side.
        is_near: Whether a short way is known to exist, so that a longer search for it pays.
    """
    path = shortest(board, size, max(_MOST_STEPS[size], _MORE_STEPS if is_near else 0))
    return _by_lines(board, size) if path is None else path


def _by_lines(board: Board, size: int) -> list[str]:
    """Return moves that solve the board line by line."""
    path: list[str] = []
    fixed: set[int] = set()
    for done in range(size - 3):
        row = [done * size + column for column in range(done, size)]
        column = [line * size + done for line in range(done + 1, size)]
        for places in (row, column):
            for goals in _pairs(places):
                moves = _place(board, size, goals, fixed)
                for move in moves:
                    board = slide(board, move, size)
                path += moves
                fixed |= set(goals)
    corner = [line * size + column for line in range(size - 3, size) for column in range(size - 3, size)]
    renamed = {0: 0, **{place + 1: index + 1 for index, place in enumerate(corner)}}
    small = tuple(renamed[board[place]] for place in corner)
    return path + (shortest(small, 3, _MOST_STEPS[3]) or [])


def _pairs(places: list[int]) -> list[tuple[int, ...]]:
    """Return the places in groups of two, a single one first where their number is odd."""
    odd = len(places) % 2
    return [tuple(places[:odd])] * odd + [tuple(places[i : i + 2]) for i in range(odd, len(places), 2)]


def _place(board: Board, size: int, goals: tuple[int, ...], fixed: set[int]) -> list[str]:
    """Return the moves of a shortest way that brings tiles to their goals and keeps the fixed cells as they are.

    Only the gap and those tiles matter, so the search is over their places alone.
    """
    start = (board.index(0), *(board.index(goal + 1) for goal in goals))
    came_from: dict[tuple[int, ...], tuple[tuple[int, ...], str]] = {start: (start, "")}
    queue = [start]
    for state in queue:
        if state[1:] == goals:
            path = []
            while state != start:
                state, move = came_from[state]
                path.append(move)
            return path[::-1]
        gap = state[0]
        for move, origin in slides(size)[gap].items():
            after = (origin, *(gap if place == origin else place for place in state[1:]))
            if origin not in fixed and after not in came_from:
                came_from[after] = state, move
                queue.append(after)
    raise AssertionError(f"no way for {goals} on {board}: every solvable board has one")  # pragma: no cover
