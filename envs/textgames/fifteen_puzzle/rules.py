"""The rules of the sliding-tile puzzle, as pure functions on tuples.

A board is a tuple of size * size numbers, row by row; 0 is the gap. It is solved when the tiles stand in order and the
gap comes last. A move slides the tile next to the gap into it: ``up`` moves the tile below the gap up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

MOVES = ("up", "down", "left", "right")
Board = tuple[int, ...]

MOST_MOVES = {2: 6, 3: 31, 4: 80, 5: 208}
"""Moves that suffice for every board of a size (exact for 2 to 4, an upper bound for 5; Karlemo and Ostergard 2000)."""

_FEW = 1000


def solved(size: int) -> Board:
    """Return the solved board.

    >>> solved(2)
    (1, 2, 3, 0)
    """
    return (*range(1, size**2), 0)


@lru_cache(maxsize=16)
def slides(size: int) -> tuple[dict[str, int], ...]:
    """Return for each place of the gap the legal moves, with the place that the sliding tile leaves.

    >>> slides(2)[3]
    {'down': 1, 'right': 2}
    """
    found = []
    for gap in range(size**2):
        row, column = divmod(gap, size)
        moves = {}
        if row < size - 1:
            moves["up"] = gap + size
        if row:
            moves["down"] = gap - size
        if column < size - 1:
            moves["left"] = gap + 1
        if column:
            moves["right"] = gap - 1
        found.append(moves)
    return tuple(found)


def slide(board: Board, move: str, size: int) -> Board:
    """Return the board after a legal move.

    >>> slide((1, 2, 3, 0), "down", 2)
    (1, 0, 3, 2)
    """
    gap = board.index(0)
    cells = list(board)
    origin = slides(size)[gap][move]
    cells[gap], cells[origin] = cells[origin], 0
    return tuple(cells)


def is_solvable(board: Sequence[int], size: int) -> bool:
    """Return whether legal moves lead to the solved board (Johnson and Story 1879).

    Each move is a transposition and moves the gap by one place, so the parity of the permutation and that of the gap's
    distance from its corner go together.

    >>> is_solvable((1, 2, 3, 0), 2), is_solvable((2, 1, 3, 0), 2)
    (True, False)
    """
    gap = board.index(0)
    distance = 2 * (size - 1) - gap // size - gap % size
    return (_transpositions(board) + distance) % 2 == 0


def _transpositions(board: Sequence[int]) -> int:
    """Return how many exchanges sort the board: its length less its number of cycles."""
    left = [tile - 1 if tile else len(board) - 1 for tile in board]
    count = 0
    for place in range(len(left)):
        while left[place] != place:
            other = left[place]
            left[place], left[other] = left[other], other
            count += 1
    return count


@lru_cache(maxsize=16)
def tile_distances(size: int) -> tuple[tuple[int, ...], ...]:
    """Return the rows and columns between a tile and its place: entry [tile][place]; 0 for the gap."""
    table = [(0,) * size**2]
    for tile in range(1, size**2):
        row, column = divmod(tile - 1, size)
        table.append(tuple(abs(place // size - row) + abs(place % size - column) for place in range(size**2)))
    return tuple(table)


def total_distance(board: Sequence[int], size: int) -> int:
    """Return the sum of all tiles' distances from their places.

    >>> total_distance((1, 2, 0, 3), 2)
    1
    """
    table = tile_distances(size)
    return sum([table[tile][place] for place, tile in enumerate(board)])


def board_text(board: Sequence[int], size: int) -> str:
    """Return the board as lines of right-aligned numbers, ``_`` for the gap.

    >>> print(board_text((1, 2, 3, 4, 5, 6, 7, 8, 0), 3))
    1 2 3
    4 5 6
    7 8 _
    """
    return _text_template(size) % tuple([tile or "_" for tile in board])


@lru_cache(maxsize=16)
def _text_template(size: int) -> str:
    """Return the lines with a place for each number."""
    field = f"%{len(str(size**2 - 1))}s"
    return "\n".join([" ".join([field] * size)] * size)


def draw_any(generator: np.random.Generator, size: int) -> Board:
    """Return a random board that can be solved and is not, every one equally likely."""
    while True:
        board = generator.permutation(size**2).tolist()
        if not is_solvable(board, size):
            one, other = [place for place in range(3) if board[place]][:2]
            board[one], board[other] = board[other], board[one]
        if tuple(board) != solved(size):
            return tuple(board)


def draw_scrambled(generator: np.random.Generator, size: int, num_moves: int) -> Board:
    """Return the board after random moves from the solved one, none of which takes back the one before it."""
    ways = _onward(size)
    while True:
        cells, gap, before = list(solved(size)), size**2 - 1, -1
        for pick in generator.integers(12, size=num_moves).tolist():
            choice = ways[gap, before]
            origin = choice[pick % len(choice)]
            cells[gap], cells[origin] = cells[origin], 0
            gap, before = origin, gap
        if tuple(cells) != solved(size):
            return tuple(cells)


@lru_cache(maxsize=16)
def _onward(size: int) -> dict[tuple[int, int], list[int]]:
    """Return where the gap can go from each place, given the place where it was before; -1 for none."""
    ways = {}
    for gap, moves in enumerate(slides(size)):
        for before in (-1, *moves.values()):
            ways[gap, before] = [place for place in moves.values() if place != before]
    return ways


@lru_cache(maxsize=64)
def count_boards(size: int, num_moves: int | None) -> int | None:
    """Return the number of boards that can be drawn, None if there are many.

    Args:
        size: Tiles along one side.
        num_moves: Moves of the scramble; None for any board.

    >>> count_boards(2, None), count_boards(3, 1), count_boards(4, 40)
    (11, 2, None)
    """
    if num_moves is None:
        return 11 if size == 2 else None
    ways = _onward(size)
    states = {(solved(size), size**2 - 1, -1)}
    for _ in range(num_moves):
        following = set()
        for board, gap, before in states:
            for origin in ways[gap, before]:
                cells = list(board)
                cells[gap], cells[origin] = cells[origin], 0
                following.add((tuple(cells), origin, gap))
        states = following
        if len(states) > 4 * _FEW:
            return None
    count = len({board for board, _, _ in states} - {solved(size)})
    return count if count <= _FEW else None
