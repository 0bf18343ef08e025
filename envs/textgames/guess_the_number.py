"""Guess the Number: find a hidden whole number; every wrong guess is answered with "higher" or "lower"."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_choice, require_running, require_whole
from turngym.errors import ConfigError
from turngym.types import JSONValue

_NUMBER = re.compile(r"\s*([0-9]{1,9})\s*")
_LIST_LIMIT = 100


@lru_cache(maxsize=20_000)
def interval(low: int, high: int, count: int) -> tuple[str, float]:
    """Return the text of an interval of ``count`` numbers at first, and how much of the search is done.

    >>> interval(1, 100, count=100), interval(7, 7, count=100)[0]
    (('from 1 to 100', 0.0), 'from 7 to 7')
    """
    return f"from {low} to {high}", 1 - math.log(high - low + 2) / math.log(count + 1)


@lru_cache(maxsize=100)
def guesses(low: int, high: int) -> dict[str, int]:
    """Return the numbers of a range by their texts, in order; all environments of one range share them.

    >>> guesses(3, 5)
    {'3': 3, '4': 4, '5': 5}
    """
    return {str(number): number for number in range(low, high + 1)}


class GuessTheNumber(TextEnv[str]):
    """A hidden number, every number of the range equally likely.

    The episode terminates with the correct guess, which is the only success, and is truncated at ``max_turns``. A guess
    in the range that earlier answers have ruled out is legal, but wastes a turn. The anchor is the remaining interval.

    Args:
        low: Smallest possible number, at least 0.
        high: Largest possible number, more than ``low`` and at most 1,000,000.
        view: ``"answer"`` for only higher or lower, ``"interval"`` for the remaining interval.
        step_reward: Reward of every turn.
        solve_reward: Reward for the correct guess.
        max_turns: Turns after which the episode is truncated, enough for bisection.
        split: Accepted for consistency; every split samples from the whole range.
        env_id: Registered id.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigError: An option is out of its range, or bisection needs more than ``max_turns`` turns.

    >>> env = GuessTheNumber(1, 10, view="interval")
    >>> env.reset(seed=0)[0], env.expert_action()
    ('from 1 to 10', '5')
    """

    file_options = worded("view")

    def __init__(
        self,
        low: int = 1,
        high: int = 100,
        view: str = "answer",
        step_reward: float = 0.0,
        solve_reward: float = 1.0,
        *,
        max_turns: int = 10,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        require_whole(self.env_id, "low", low, 0, 999_999)
        require_whole(self.env_id, "high", high, low + 1, 1_000_000)
        require_choice(self.env_id, "view", view, ("answer", "interval"))
        for name, reward in (("step", step_reward), ("solve", solve_reward)):
            self.require(f"{name}_reward", reward, -1e6, 1e6)
        count = high - low + 1
        if max_turns < count.bit_length():
            raise ConfigError(
                f"max_turns of {self.env_id} is {max_turns}, but bisection needs {count.bit_length()} turns for the "
                f"numbers {low} to {high}: pass max_turns={count.bit_length()} or a smaller range."
            )
        self.low, self.high = low, high
        self.step_reward, self.solve_reward = step_reward, solve_reward
        self.finite_instances = self._count = count
        self._shows_interval = view == "interval"
        self._guesses = guesses(low, high) if count <= _LIST_LIMIT else {}
        self._choices = tuple(self._guesses)
        self._text = ""
        self._higher, self._lower = Outcome("higher", step_reward), Outcome("lower", step_reward)
        self._correct = Outcome("correct", step_reward + solve_reward, terminated=True, success=True)
        answers = "the interval that is left" if self._shows_interval else '"higher" or "lower"'
        self.instructions = (
            f"I have chosen a whole number from {low} to {high}. Find it in at most {max_turns} guesses.\n"
            f"After a wrong guess I answer with {answers}. Answer with one number only."
        )

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._hide(self.low + int(self.np_random.random() * self._count))
        self._know(self.low, self.high)
        return self._text

    def _hide(self, hidden: int) -> None:
        self._hidden = hidden
        self.instance = f"{hidden} from {self.low} to {self.high}"

    def _know(self, low: int, high: int) -> None:
        """Note the interval that is left."""
        self._low, self._high = low, high
        self._text, self._done = interval(low, high, self._count)

    def apply_action(self, action: str) -> Outcome[str]:
        guess = self._guesses.get(action, -1)
        if guess < 0:
            match = _NUMBER.fullmatch(action)
            guess = int(match[1]) if match else -1
            if not self.low <= guess <= self.high:
                note = f"Unknown action: answer with a number from {self.low} to {self.high}."
                observation = f"{note} {self._text}" if self._shows_interval else note
                return Outcome(observation, self.step_reward, action_is_valid=False)
        hidden = self._hidden
        if guess == hidden:
            self._know(guess, guess)
            self._done = 1.0
            return self._correct
        if guess < hidden:
            answer = self._higher
            if guess >= self._low:
                self._know(guess + 1, self._high)
        else:
            answer = self._lower
            if guess <= self._high:
                self._know(self._low, guess - 1)
        return Outcome(self._text, self.step_reward) if self._shows_interval else answer

    def anchor(self) -> str:
        return self._text

    def legal_actions(self) -> tuple[str, ...]:
        return self._choices

    def progress(self) -> float:
        return self._done

    def save_state(self) -> JSONValue:
        return {"hidden": self._hidden, "known": [self._low, self._high]}

    def load_state(self, state: JSONValue) -> None:
        low, high = state["known"]
        hidden = state["hidden"]
        is_known = all(type(number) is int for number in (low, hidden, high)) and self.low <= low <= high <= self.high
        if not is_known or not low <= hidden <= high:
            raise ValueError(f"the number {hidden!r} between {low!r} and {high!r}")
        self._hidden = hidden
        self._know(low, high)
        if self._success == 1:
            self._done = 1.0

    def resample_hidden(self) -> bool:
        """Hide another number of the interval that is left."""
        if not self._running or self._low == self._high:
            return False
        other = int(self.np_random.integers(self._low, self._high))
        self._hide(other + (other >= self._hidden))
        return True

    def expert_action(self) -> str:
        """Return the middle of the interval that is left.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return str((self._low + self._high) // 2)
