"""Wordle: find a hidden word; every guess is a word too and is marked letter by letter.

The rules of the marks are in :mod:`turngym.envs.textgames.wordle.rules`. The words come from a list of common English
words, :mod:`turngym.envs.textgames.words`.
"""

from __future__ import annotations

from bisect import insort
from functools import cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.textgames.wordle.rules import (
    ALPHABET,
    GREEN,
    GREY,
    YELLOW,
    Row,
    best_guess,
    closeness,
    fits,
    keyboard,
    marks,
)
from turngym.envs.textgames.words import is_finite, words, words_of_split
from turngym.envs.validation import refuse_task, require_running
from turngym.options import between
from turngym.types import JSONValue

_RULES = """I have chosen an English word of {length} letters. Find it in at most {turns} guesses.
I mark every letter of a guess: G the letter is right, Y the word has the letter at another place, X the word has no \
more of this letter."""
_STRICT = "A guess must fit all marks so far."
_NO_GUESS = "no guess yet"
_SIDE = 20
_MOST_ROWS = 10


class Wordle(PictureEnv):
    r"""A hidden word from the list, every word of the split equally likely.

    The episode terminates with the correct word, which is the only success, and is truncated at ``max_turns``. A word
    that earlier marks have ruled out is legal, but wastes a turn, unless ``strict``. Text that is not an allowed guess
    is answered and costs a turn. Legal actions are not listed: they would be the whole word list. The anchor holds the
    guesses with their marks in alphabetical order, so it does not depend on the order of guessing.

    >>> env = Wordle()
    >>> env.reset(seed=0)[0]
    'Guess a word of 5 letters.'
    >>> print(env.step("crane")[0])
    c r a n e
    X Y X X G
    """

    class Options(PictureEnv.Options):
        length: Annotated[int, between(3, 8)] = 5
        """Letters of the word; with 3 there are too few words for splits."""
        guesses: Literal["list", "any"] = "list"
        """``"list"`` to allow the words of the list only, ``"any"`` for any letters."""
        strict: bool = False
        """True if a guess that does not fit all marks so far is refused."""
        view: Literal["row", "board"] = "row"
        """``"row"`` for the marks of the last guess, ``"board"`` for all guesses and the letters known so far."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        solve_reward: Reward = 1.0
        """Reward for the correct word."""
        max_turns: MaxTurns = 6

    options: Options

    file_options = worded("guesses", "view")

    def setup(self) -> None:
        options = self.options
        self.length, self.strict = options.length, options.strict
        self.finite_instances = len(words(options.length)) if is_finite(options.length) else None
        self._shows_board = options.view == "board"
        self._allowed, self._takes_any = _allowed(options.length), options.guesses == "any"
        self._opening = f"Guess a word of {options.length} letters."
        self._answer = f"answer with one word of {options.length} letters" + (" a to z." if self._takes_any else ".")
        rules = _RULES.format(length=options.length, turns=self.max_turns) + (f"\n{_STRICT}" if options.strict else "")
        self.instructions = f"{rules}\nA{self._answer[1:]}"
        self._rows_shown = min(self.max_turns, _MOST_ROWS)
        self.set_frame(self._rows_shown * _SIDE, options.length * _SIDE)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        pool = words_of_split(self.length, self.split)
        self.instance = self._hidden = pool[int(self.np_random.integers(len(pool)))]
        self._rows: list[Row] = []
        self._known: list[str] = []
        self._best = 0.0
        self._text = _NO_GUESS
        return self._opening

    def apply_action(self, action: str) -> Outcome[str]:
        guess = action.strip().lower()
        if guess not in self._allowed and not (self._takes_any and _is_word(guess, self.length)):
            return self._refusal(guess)
        if self.strict and not fits(guess, self._rows):
            note = f"Illegal guess: {guess} does not fit the marks so far."
            return Outcome(note, self.options.step_reward, action_is_valid=False)
        given = self._take(guess)
        observation = self._board() if self._shows_board else f"{' '.join(guess)}\n{' '.join(given)}"
        if guess == self._hidden:
            return Outcome(observation, self.options.step_reward + self.options.solve_reward, True, True)
        return Outcome(observation, self.options.step_reward)

    def _refusal(self, guess: str) -> Outcome[str]:
        is_word = _is_word(guess, self.length)
        note = f"Unknown word: {guess} is not in the list of words." if is_word else f"Unknown action: {self._answer}"
        return Outcome(note, self.options.step_reward, action_is_valid=False)

    def _take(self, guess: str) -> str:
        """Mark a guess and keep what it tells."""
        given = marks(guess, self._hidden)
        row = guess, given
        if row not in self._rows:
            insort(self._known, f"{guess} {given}")
            self._text = "\n".join(self._known)
            near = closeness(given)
            if near > self._best:
                self._best = near
        self._rows.append(row)
        return given

    def _board(self) -> str:
        lines = [line for guess, given in self._rows for line in (" ".join(guess), " ".join(given))]
        present, absent, untried = keyboard(self._rows)
        parts = (("in the word", present), ("not in the word", absent), ("not tried", untried))
        return "\n".join(lines + [f"{name}: {' '.join(some) or 'none'}" for name, some in parts])

    def anchor(self) -> str:
        return self._text

    def progress(self) -> float:
        return self._best

    def render_text(self) -> str:
        return self._board()

    def render_image(self) -> NDArray[np.uint8]:
        shown = [pair for row in self._rows[-self._rows_shown :] for pair in zip(*row, strict=True)]
        cells = [1 + (GREEN + YELLOW + GREY).index(mark) * 26 + ALPHABET.index(letter) for letter, mark in shown]
        cells += [0] * (self._rows_shown * self.length - len(cells))
        return drawing.paint(_tiles(), cells, self.length)

    def save_state(self) -> JSONValue:
        return {"hidden": self._hidden, "guesses": [guess for guess, _ in self._rows]}

    def load_state(self, state: JSONValue) -> None:
        hidden, guesses = state["hidden"], state["guesses"]
        if hidden not in words(self.length) or not all(len(guess) == self.length for guess in guesses):
            raise ValueError(f"the word {hidden!r} with the guesses {guesses!r}")
        self._hidden, self._rows, self._known, self._best, self._text = hidden, [], [], 0.0, _NO_GUESS
        for guess in guesses:
            self._take(guess)

    def resample_hidden(self) -> bool:
        """Hide another word of the list that fits all marks."""
        if not self._running:
            return False
        others = [word for word in words(self.length) if word != self._hidden and fits(word, self._rows)]
        if not others:
            return False
        self.instance = self._hidden = others[int(self.np_random.integers(len(others)))]
        return True

    def expert_action(self) -> str:
        """Return the guess that leaves the fewest words of the list on average; its table is made on first use.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return best_guess(self.length, tuple(sorted(set(self._rows))), self.strict)


def _is_word(text: str, length: int) -> bool:
    return len(text) == length and text.isascii() and text.isalpha()


@cache
def _allowed(length: int) -> frozenset[str]:
    return frozenset(words(length))


@cache
def _tiles() -> drawing.Picture:
    """Return the empty tile, then every letter in green, yellow and grey."""
    tiles = [drawing.tile(_SIDE, drawing.LIGHT, drawing.GREY)]
    for colour in (drawing.GREEN, drawing.ORANGE, drawing.GREY):
        for letter in ALPHABET:
            tiles.append(drawing.tile(_SIDE, colour, drawing.DARK))
            drawing.write(tiles[-1], letter, drawing.WHITE, 2)
    return drawing.stack(tiles)
