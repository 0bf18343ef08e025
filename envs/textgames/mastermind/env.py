"""Mastermind: find a hidden code of digits; every guess is answered with black and white pegs.

The rules of the pegs are in :mod:`turngym.envs.textgames.mastermind.rules`.
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
from turngym.envs.textgames.mastermind.rules import (
    DIGITS,
    Kind,
    Row,
    all_codes,
    answer,
    best_guess,
    code_set,
    fits,
    remembered_answer,
)
from turngym.envs.textgames.words import FEWEST_FOR_SPLITS
from turngym.envs.validation import refuse_task, require_running
from turngym.options import OptionError, between
from turngym.types import JSONValue

_RULES = """I have chosen a code of {length} digits from 1 to {colours}. {repeats} Find it in at most {turns} guesses.
I answer each guess with pegs: black for every digit at its right place, white for every other digit of the guess that \
the code has at another place. Each digit counts at most once.
Answer with {length} digits, for example: {example}"""
_NO_GUESS = "no guess yet"
_SEPARATORS = str.maketrans("", "", ",\t\n\r")
_LIST_LIMIT = 100
_SIDE = 20
_MOST_ROWS = 12


class Mastermind(PictureEnv):
    r"""Find a hidden code, uniform over the codes of the split.

    The episode terminates with the correct code, which is the only success, and is truncated at ``max_turns``. A code
    that earlier pegs have ruled out is legal, but wastes a turn. Text that is not a code is answered and costs a turn.
    The legal actions are listed if there are 100 or fewer. The anchor holds the guesses with their pegs in ascending
    order, so it does not depend on the order of guessing.

    >>> env = Mastermind(2, 4)
    >>> env.reset(seed=0)[0]
    'Guess a code of 2 digits from 1 to 4.'
    >>> env.step("1 2")[0]
    '1 2: 1 black, 0 white'
    """

    class Options(PictureEnv.Options):
        length: Annotated[int, between(2, 5)] = 4
        """Digits of the code."""
        colours: Annotated[int, between(2, 9)] = 6
        """Number of different digits."""
        repeats: bool = True
        """True if a digit may occur twice, in the code and in guesses."""
        view: Literal["row", "board"] = "row"
        """``"row"`` for the pegs of the last guess, ``"board"`` for all guesses."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        solve_reward: Reward = 1.0
        """Reward for the correct code."""
        max_turns: MaxTurns = 10

        def check(self) -> None:
            if not self.repeats and self.colours < self.length:
                raise OptionError(
                    "colours",
                    f"is {self.colours}, but a code has {self.length} different digits: "
                    f"pass colours={self.length} or more, or repeats=True.",
                )

    options: Options

    file_options = worded("view")

    def setup(self) -> None:
        options = self.options
        self.length, self.colours, self.repeats = options.length, options.colours, options.repeats
        self._kind = Kind(options.length, options.colours, options.repeats)
        self._codes, self._all = all_codes(self._kind), code_set(self._kind)
        self.finite_instances = len(self._codes) if len(self._codes) < FEWEST_FOR_SPLITS else None
        are_few = len(self._codes) <= _LIST_LIMIT
        self._choices = tuple([" ".join(code) for code in self._codes]) if are_few else ()
        self._answer = remembered_answer if are_few else answer
        self._shows_board = options.view == "board"
        self._rows_shown = min(self.max_turns, _MOST_ROWS)
        self.set_frame(self._rows_shown * _SIDE, (options.length + 2) * _SIDE)
        self.instructions = _RULES.format(
            length=options.length,
            colours=options.colours,
            turns=self.max_turns,
            repeats="A digit may occur more than once." if options.repeats else "No digit occurs twice.",
            example=" ".join(self._codes[len(self._codes) // 2]),
        )
        ban = "" if options.repeats else ", none twice"
        self._unknown = f"Unknown action: answer with {options.length} digits from 1 to {options.colours}{ban}."

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        codes = self._codes
        self._hidden = self.draw(lambda generator: codes[int(generator.integers(len(codes)))], self._name)
        self._clear()
        return f"Guess a code of {self.length} digits from 1 to {self.colours}."

    def _name(self, code: str) -> str:
        return f"{code} from 1 to {self.colours}"

    def _clear(self) -> None:
        self._rows: list[Row] = []
        self._lines: list[str] = []
        self._known: list[str] = []
        self._text, self._best = _NO_GUESS, 0.0

    def apply_action(self, action: str) -> Outcome[str]:
        guess = action.replace(" ", "")
        if guess not in self._all:
            guess = guess.translate(_SEPARATORS)
            if guess not in self._all:
                return Outcome(self._unknown, self.options.step_reward, action_is_valid=False)
        self._take(guess)
        observation = "\n".join(self._lines) if self._shows_board else self._lines[-1]
        if guess == self._hidden:
            return Outcome(observation, self.options.step_reward + self.options.solve_reward, True, True)
        return Outcome(observation, self.options.step_reward)

    def _take(self, guess: str) -> None:
        """Answer a guess and keep what the answer tells."""
        row, line = self._answer(guess, self._hidden)
        if line not in self._lines:
            insort(self._known, line)
            self._text = "\n".join(self._known)
            near = (2 * row[1] + row[2]) / (2 * self.length)
            if near > self._best:
                self._best = near
        self._lines.append(line)
        self._rows.append(row)

    def anchor(self) -> str:
        return self._text

    def legal_actions(self) -> tuple[str, ...]:
        return self._choices

    def progress(self) -> float:
        return self._best

    def render_text(self) -> str:
        return "\n".join(self._lines) or _NO_GUESS

    def render_image(self) -> NDArray[np.uint8]:
        cells: list[int] = []
        for guess, black, white in self._rows[-self._rows_shown :]:
            cells += [*map(int, guess), 10 + black, 16 + white]
        cells += [0] * (self._rows_shown * (self.length + 2) - len(cells))
        return drawing.paint(_tiles(), cells, self.length + 2)

    def save_state(self) -> JSONValue:
        return {"hidden": self._hidden, "guesses": [guess for guess, _, _ in self._rows]}

    def load_state(self, state: JSONValue) -> None:
        hidden, guesses = state["hidden"], state["guesses"]
        if not self._all.issuperset([hidden, *guesses]):
            raise ValueError(f"the code {hidden!r} with the guesses {guesses!r}")
        self._hidden = hidden
        self._clear()
        for guess in guesses:
            self._take(guess)

    def resample_hidden(self) -> bool:
        """Hide another code that fits all pegs."""
        if not self._running:
            return False
        rows = set(self._rows)
        others = [code for code in self._codes if code != self._hidden and fits(code, rows)]
        if not others:
            return False
        self._hidden = others[int(self.np_random.integers(len(others)))]
        self.instance = self._name(self._hidden)
        return True

    def expert_action(self) -> str:
        """Return the guess whose worst answer leaves the fewest codes; one out of 50 if there are 2,000 or more.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return " ".join(best_guess(self._kind, tuple(sorted(set(self._rows)))))


@cache
def _tiles() -> drawing.Picture:
    """Return the empty tile, the digits 1 to 9, then 0 to 5 black and 0 to 5 white pegs as a number."""
    tiles = [drawing.tile(_SIDE, drawing.LIGHT, drawing.GREY)]
    colours = (
        drawing.RED,
        drawing.GREEN,
        drawing.BLUE,
        drawing.YELLOW,
        drawing.ORANGE,
        drawing.PURPLE,
        drawing.CYAN,
        drawing.BROWN,
        drawing.DARK,
    )
    marks = [(digit, colour, drawing.WHITE) for digit, colour in zip(DIGITS, colours, strict=True)]
    marks += [(str(count), drawing.BLACK, drawing.WHITE) for count in range(6)]
    marks += [(str(count), drawing.WHITE, drawing.BLACK) for count in range(6)]
    for text, ground, ink in marks:
        tiles.append(drawing.tile(_SIDE, ground, drawing.DARK))
        drawing.write(tiles[-1], text, ink, 2)
    return drawing.stack(tiles)
