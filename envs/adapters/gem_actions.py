"""Properties that GEM's games do not declare: legal actions, and which games have no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import Any

_LIMIT = 400
_MOVES = ("up", "down", "left", "right")

BOARD_GAMES = frozenset({"FifteenPuzzleEnv", "Game2048Env", "MinesweeperEnv", "SokobanEnv", "TowerofHanoiEnv"})
"""Games whose board shows everything the agent can know."""


def boxed(action: object) -> str:
    r"""Return an action in the form that GEM reads.

    >>> boxed("up")
    '\\boxed{up}'
    """
    return f"\\boxed{{{action}}}"


def _guesses(game: Any) -> Iterator[object]:
    numbers = range(max(1, game.min_number), game.max_number + 1)
    return (number for number in numbers if number not in game.previous_guesses)


def _codes(game: Any) -> Iterator[object]:
    numbers, length = range(1, game.num_numbers + 1), game.code_length
    codes = product(numbers, repeat=length) if game.duplicate_numbers else permutations(numbers, length)
    return (" ".join(map(str, code)) for code in codes if code not in game.previous_guesses)


def _cells(game: Any) -> Iterator[object]:
    for row, column in product(range(game.rows), range(game.cols)):
        if not game.revealed[row][column]:
            if not game.flags[row][column]:
                yield f"reveal {row} {column}"
            yield f"flag {row} {column}"


def _letters(game: Any) -> Iterator[object]:
    return (letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in game.guessed_letters)


def _slides(game: Any) -> Iterator[object]:
    row, column = game._get_empty_position()
    last = game.num_rows - 1
    possible = row < last, row > 0, column < last, column > 0
    return (move for move, is_legal in zip(_MOVES, possible, strict=True) if is_legal)


def _discs(game: Any) -> Iterator[object]:
    for source, target in permutations("ABC", 2):
        disc, below = game.board[source][-1:], game.board[target][-1:]
        if disc and (not below or disc < below):
            yield f"{source} {target}"


def _merges(game: Any) -> Iterator[object]:
    return (move for move in _MOVES if game._is_valid_move(move))


def _pushes(game: Any) -> Iterator[object]:
    return (move for move in _MOVES if not game._would_collide_with_wall(move))


LEGAL: dict[str, Callable[[Any], Iterator[object]]] = {
    "FifteenPuzzleEnv": _slides,
    "Game2048Env": _merges,
    "GuessTheNumberEnv": _guesses,
    "HangmanEnv": _letters,
    "MastermindEnv": _codes,
    "MinesweeperEnv": _cells,
    "SokobanEnv": _pushes,
    "TowerofHanoiEnv": _discs,
}
"""Class of a game -> its legal actions, from what the agent can know."""


def legal_actions(game: Any) -> tuple[str, ...]:
    """Return the legal actions of a game of GEM; empty where they are unknown, or more than 400."""
    find = LEGAL.get(type(game).__name__)
    if find is None or (type(game).__name__ == "MastermindEnv" and game.num_numbers**game.code_length > 4096):
        return ()
    found = tuple(map(boxed, find(game)))
    return found if len(found) <= _LIMIT else ()
