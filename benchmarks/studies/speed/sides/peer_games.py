"""The games that ``env_vs_peers.py`` compares: equal settings as far as each side allows, and random actions for each.

Actions are random in the format that each side reads, whatever the state: a move against a wall, a cell that is open
already or a letter that was guessed before are answered by each side in its own way. An action that a side could not
even read would end GEM's episodes and measure resets, so each side proves first that it has no such action.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Side = Literal["turngym", "gem", "textarena"]
SIDES: tuple[Side, ...] = ("turngym", "gem", "textarena")
_MOVES = ("up", "down", "left", "right")
_BUTTONS = ("red", "blue", "green", "yellow", "purple")


class Made(NamedTuple):
    """What one side plays: an id of its registry and options."""

    env_id: str
    options: Mapping[str, Any] = {}


class Row(NamedTuple):
    """One game.

    Args:
        name: Name in the table.
        draw: From a generator, the side and the words that may be guessed to an action, without its wrapping.
        turngym: Our side.
        gem: GEM's, None where it has no such game.
        textarena: TextArena's, None where it has no such game.
        note: Where the settings cannot be made equal.
    """

    name: str
    draw: Callable[[random.Random, Side, Sequence[str]], str]
    turngym: Made
    gem: Made | None = None
    textarena: Made | None = None
    note: str = ""


def _number(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return str(rng.randint(1, 10))


def _code(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return " ".join(map(str, rng.sample(range(1, 9), 4)))


def _cell(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    cell = f"{rng.randrange(5)} {rng.randrange(5)}"
    return cell if side == "textarena" else f"reveal {cell}"


def _word(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return rng.choice(words)


def _letter(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return rng.choice("abcdefghijklmnopqrstuvwxyz")


def _move(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return rng.choice(_MOVES)


def _placement(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return " ".join(str(rng.randint(1, 9)) for _ in range(3))


def _disc(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return " ".join(rng.sample("ABC", 2))


def _card(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return rng.choice(("hit", "stand"))


def _button(rng: random.Random, side: Side, words: Sequence[str]) -> str:
    return rng.choice(_BUTTONS)


_WORD_LENGTH = 5
ROWS = (
    Row(
        "GuessTheNumber",
        _number,
        Made("turngym/GuessTheNumber-v0", {"low": 1, "high": 10, "max_turns": 4}),
        Made("game:GuessTheNumber-v0-easy"),
        Made("GuessTheNumber-v0", {"min_number": 1, "max_number": 10, "max_turns": 4}),
    ),
    Row(
        "Mastermind",
        _code,
        Made("turngym/Mastermind-v0", {"length": 4, "colours": 8, "repeats": False, "max_turns": 30}),
        Made("game:Mastermind-v0-hard"),
        Made("Mastermind-v0-hard"),
    ),
    Row(
        "Minesweeper",
        _cell,
        Made("turngym/Minesweeper-v0", {"rows": 5, "columns": 5, "mines": 5, "max_turns": 25}),
        Made("game:Minesweeper-v0-easy"),
        Made("Minesweeper-v0-small", {"max_turns": 25}),
        "our boards can be solved without guessing; in TextArena a mine is an illegal move, forgiven once",
    ),
    Row(
        "Wordle",
        _word,
        Made("turngym/Wordle-v0", {"length": _WORD_LENGTH, "max_turns": 6}),
        Made("game:Wordle-v0-hard", {"word_length": _WORD_LENGTH, "max_turns": 6}),
        Made("Wordle-v0", {"word_length": _WORD_LENGTH, "num_guesses": 6}),
        "GEM takes any letters, TextArena and we words of a list only",
    ),
    Row(
        "FifteenPuzzle",
        _move,
        Made("turngym/FifteenPuzzle-v0", {"size": 4, "scramble": 30, "max_turns": 50}),
        Made("game:FifteenPuzzle-v0-hard"),
        Made("FifteenPuzzle-v0", {"max_turns": 50}),
        "our boards can be solved in time; half of GEM's and of TextArena's cannot be solved at all",
    ),
    Row(
        "Hangman",
        _letter,
        Made("turngym/Hangman-v0", {"shortest": 7, "longest": 7, "lives": 26, "max_turns": 20}),
        Made("game:Hangman-v0-hard"),
        Made("Hangman-v0"),
        "GEM has no lives; TextArena has 6 and words of all lengths",
    ),
    Row(
        "Sudoku",
        _placement,
        Made("turngym/Sudoku-v0", {"size": 9, "clues": 50, "wrong": "refuse", "max_turns": 50}),
        Made("game:Sudoku-v0-hard"),
        Made("Sudoku-v0", {"clues": 50, "max_turns": 50}),
    ),
    Row(
        "TowerOfHanoi",
        _disc,
        Made("turngym/TowerOfHanoi-v0", {"discs": 3, "max_turns": 10}),
        Made("game:TowerofHanoi-v0-easy"),
        Made("TowerOfHanoi-v0", {"max_turns": 10}),
    ),
    Row(
        "Game2048",
        _move,
        Made("turngym/Game2048-v0", {"size": 4, "target": 64, "max_turns": 50}),
        Made("game:Game2048-v0-easy"),
        Made("2048-v0-mega-easy"),
        "TextArena has no turn limit, but a second move in a row without effect ends its game",
    ),
    Row(
        "Sokoban",
        _move,
        Made("turngym/Sokoban-v0", {"size": 6, "boxes": 2, "max_turns": 20}),
        Made("game:Sokoban-v0-easy"),
        Made("Sokoban-v0", {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 20}),
    ),
    Row(
        "FrozenLake",
        _move,
        Made("turngym/FrozenLake-v0", {"size": 4, "hole_share": 0.2, "max_turns": 100}),
        None,
        Made("FrozenLake-v0", {"size": 4, "num_holes": 3}),
        "our start and goal are drawn too",
    ),
    Row(
        "Blackjack",
        _card,
        Made("turngym/Blackjack-v0", {"winnable": False}),
        None,
        Made("Blackjack-v0", {"num_hands": 1}),
    ),
    Row(
        "Bandit",
        _button,
        Made("turngym/BernoulliBandit-v0", {"arms": 5, "gap": 0.1, "horizon": 20}),
        None,
        Made("Bandit-v0", {"p_gap": 0.1, "num_turns": 20}),
        "TextArena asks for the best button in a last turn",
    ),
)


def formatted(side: Side, action: str) -> str:
    r"""Return an action in the wrapping that a side reads.

    >>> formatted("gem", "up"), formatted("textarena", "up")
    ('\\boxed{up}', '[up]')
    """
    return {"turngym": action, "gem": f"\\boxed{{{action}}}", "textarena": f"[{action}]"}[side]


def actions(row: Row, side: Side, count: int, words: Sequence[str], seed: int = 0) -> list[str]:
    """Return random actions of a game in the format of one side; equal seeds draw the same moves for every side."""
    rng = random.Random(seed)
    return [formatted(side, row.draw(rng, side, words)) for _ in range(count)]


def row_of(name: str) -> Row:
    """Return the row of a game by name.

    Raises:
        ValueError: There is none.
    """
    for row in ROWS:
        if row.name == name:
            return row
    raise ValueError(f"no game named {name!r}: {', '.join(row.name for row in ROWS)}")
