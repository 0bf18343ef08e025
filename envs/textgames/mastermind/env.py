"""Mastermind: find a hidden code of digits; every guess is answered with black and white pegs.

The rules of the pegs are in :mod:`turngym.envs.textgames.mastermind.rules`.
"""

from __future__ import annotations

from bisect import insort
from functools import cache

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import Outcome
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
from turngym.envs.validation import refuse_task, require_choice, require_flag, require_running, require_whole
from turngym.errors import ConfigError
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
    r"""A hidden code, every code of the split equally likely.

    The episode terminates with the correct code, which is the only success, and is truncated at ``max_turns``. A code
    that earlier pegs have ruled out is legal, but wastes a turn. Text that is not a code is answered and costs a turn.
    The legal actions are listed where there are 100 or fewer. The anchor holds the guesses with their pegs in ascending
    order, so it does not depend on the order of guessing.

    Args:
        length: Digits of the code, 2 to 5.
        colours: How many different digits there are, 2 to 9.
        repeats: Whether a digit may occur twice, in the code and in guesses.
        view: ``"row"`` for the pegs of the last guess, ``"board"`` for all guesses.
        step_reward: Reward of every turn.
        solve_reward: Reward for the correct code.
        max_turns: Turns after which the episode is truncated.
        split: Share of the codes to sample from; with fewer than 500 codes every split uses all.
        env_id: Registered id.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        image: Whether the observation holds a picture of the last guesses, 12 at most.

    Raises:
        ConfigError: An option is out of its range.

    >>> env = Mastermind(2, 4)
    >>> env.reset(seed=0)[0]
    'Guess a code of 2 digits from 1 to 4.'
    >>> env.step("1 2")[0]
    '1 2: 1 black, 0 white'
    """

    file_options = worded("view")

    def __init__(
        self,
        length: int = 4,
        colours: int = 6,
        repeats: bool = True,
        view: str = "row",
        step_reward: float = 0.0,
        solve_reward: float = 1.0,
        *,
        max_turns: int = 10,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
        image: bool = False,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode, image=image)
        require_whole(self.env_id, "length", length, 2, 5)
        require_whole(self.env_id, "colours", colours, 2, 9)
        require_flag(self.env_id, "repeats", repeats)
        require_choice(self.env_id, "view", view, ("row", "board"))
        for name, reward in (("step", step_reward), ("solve", solve_reward)):
            self.require(f"{name}_reward", reward, -1e6, 1e6)
        if not repeats and colours < length:
            raise ConfigError(
                f"{self.env_id} has no code of {length} different digits out of {colours}: "
                f"pass colours={length} or more, or repeats=True."
            )
        self.length, self.colours, self.repeats = length, colours, repeats
        self.step_reward, self.solve_reward = step_reward, solve_reward
        self._kind = Kind(length, colours, repeats)
        self._codes, self._all = all_codes(self._kind), code_set(self._kind)
        self.finite_instances = len(self._codes) if len(self._codes) < FEWEST_FOR_SPLITS else None
        are_few = len(self._codes) <= _LIST_LIMIT
        self._choices = tuple([" ".join(code) for code in self._codes]) if are_few else ()
        self._answer = remembered_answer if are_few else answer
        self._shows_board = view == "board"
        self._rows_shown = min(max_turns, _MOST_ROWS)
        self.set_frame(self._rows_shown * _SIDE, (length + 2) * _SIDE)
        self.instructions = _RULES.format(
            length=length,
            colours=colours,
            turns=max_turns,
            repeats="A digit may occur more than once." if repeats else "No digit occurs twice.",
            example=" ".join(self._codes[len(self._codes) // 2]),
        )
        ban = "" if repeats else ", none twice"
        self._unknown = f"Unknown action: answer with {length} digits from 1 to {colours}{ban}."

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
                return Outcome(self._unknown, self.step_reward, action_is_valid=False)
        self._take(guess)
        observation = "\n".join(self._lines) if self._shows_board else self._lines[-1]
        if guess == self._hidden:
            return Outcome(observation, self.step_reward + self.solve_reward, True, True)
        return Outcome(observation, self.step_reward)

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
        """Return the guess whose worst answer leaves the fewest codes; one out of 50 where there are 2,000 or more.

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
