"""Properties that TextArena's games do not declare: legal actions, and which games have no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import Any

_LIMIT = 400
_STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

BOARD_GAMES = frozenset({"FifteenPuzzleEnv", "FrozenLakeEnv", "Game2048Env", "SokobanEnv", "TowerOfHanoiEnv"})
"""Games whose board shows everything the agent can know."""


def bracketed(action: object) -> str:
    """Return an action in the form that TextArena reads.

    >>> bracketed("up")
    '[up]'
    """
    return f"[{action}]"


def _arms(game: Any) -> Iterator[object]:
    return iter(game.buttons)


def _cards(game: Any) -> Iterator[object]:
    return iter(("Hit", "Stand"))


def _slides(game: Any) -> Iterator[object]:
    row, column = game._get_empty_position()
    possible = row < 3, row > 0, column < 3, column > 0
    return (move for move, is_legal in zip(_STEPS, possible, strict=True) if is_legal)


def _walks(game: Any) -> Iterator[object]:
    row, column = game.state.game_state["player_pos"]
    for move, (down, right) in _STEPS.items():
        if 0 <= row + down < game.size and 0 <= column + right < game.size:
            yield move


def _merges(game: Any) -> Iterator[object]:
    board = game.state.game_state["board"]
    size = range(len(board))
    for move, (down, right) in _STEPS.items():
        for row, column in product(size, size):
            there = row + down, column + right
            if board[row][column] and there[0] in size and there[1] in size:
                neighbour = board[there[0]][there[1]]
                if neighbour in (0, board[row][column]):
                    yield move
                    break


def _guesses(game: Any) -> Iterator[object]:
    return (n for n in range(game.min_number, game.max_number + 1) if n not in game.guessed_numbers)


def _letters(game: Any) -> Iterator[object]:
    guessed = game.state.game_state["guessed_letters"]
    return (letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in guessed)


def _codes(game: Any) -> Iterator[object]:
    numbers, length = range(1, game.num_numbers + 1), game.code_length
    codes = product(numbers, repeat=length) if game.duplicate_numbers else permutations(numbers, length)
    tried = {tuple(entry["guess"]) for entry in game.state.game_state["history"]}
    return (" ".join(map(str, code)) for code in codes if code not in tried)


def _pushes(game: Any) -> Iterator[object]:
    return (move for move in _STEPS if not game._would_collide_with_wall(move))


def _discs(game: Any) -> Iterator[object]:
    towers = game.state.game_state["towers"]
    for source, target in permutations("ABC", 2):
        disc, below = towers[source][-1:], towers[target][-1:]
        if disc and (not below or disc < below):
            yield f"{source} {target}"


LEGAL: dict[str, Callable[[Any], Iterator[object]]] = {
    "BanditEnv": _arms,
    "BlackjackEnv": _cards,
    "FifteenPuzzleEnv": _slides,
    "FrozenLakeEnv": _walks,
    "Game2048Env": _merges,
    "GuessTheNumberEnv": _guesses,
    "HangmanEnv": _letters,
    "MastermindEnv": _codes,
    "SokobanEnv": _pushes,
    "TowerOfHanoiEnv": _discs,
}
"""Class of a game -> its legal actions, from what the agent can know. Minesweeper has none: there a mine is illegal."""


def legal_actions(game: Any) -> tuple[str, ...]:
    """Return the legal actions of a game of TextArena; empty where they are unknown, or more than 400."""
    find = LEGAL.get(type(game).__name__)
    if find is None or (type(game).__name__ == "MastermindEnv" and game.num_numbers**game.code_length > 4096):
        return ()
    found = tuple(map(bracketed, find(game)))
    return found if len(found) <= _LIMIT else ()
