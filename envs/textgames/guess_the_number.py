"""Guess the Number: find a hidden whole number; every wrong guess is answered with "higher" or "lower"."""

from __future__ import annotations

import math
import re

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.textgames.procedural import refuse_task, require_choice, require_whole
from turngym.errors import ConfigError
from turngym.types import JSONValue

_NUMBER = re.compile(r"\s*([0-9]{1,9})\s*")
_LIST_LIMIT = 100


def narrowed(low: int, high: int, guess: int, hidden: int) -> tuple[int, int]:
    """Return the interval that is left of ``[low, high]`` after a wrong guess.

    >>> narrowed(1, 100, guess=50, hidden=70)
    (51, 100)
    """
    return (max(low, guess + 1), high) if hidden > guess else (low, min(high, guess - 1))


class GuessTheNumber(TextEnv[str]):
    """A hidden number, every number of the range equally likely.

    The episode terminates with the right guess, which is the only success, and is truncated at ``max_turns``. A guess
    of the range that earlier answers have ruled out is legal and a wasted turn. The anchor is the interval that the
    answers have left.

    Args:
        low: Smallest possible number, at least 0.
        high: Largest possible number, more than ``low`` and at most 1,000,000.
        view: ``"answer"`` for higher or lower alone, ``"interval"`` for the interval that is left.
        step_reward: Reward of every turn.
        solve_reward: Reward for the right guess.
        max_turns: Turns after which the episode is truncated, enough for bisection.
        split: Accepted as everywhere; every split draws from the whole range.
        env_id: Registered id.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigError: An option is out of its range, or bisection needs more than ``max_turns`` turns.

    >>> env = GuessTheNumber(1, 10, view="interval")
    >>> env.reset(seed=0)[0], env.expert_action()
    ('from 1 to 10', '5')
    """

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
            self._require(f"{name}_reward", reward, -1e6, 1e6)
        count = high - low + 1
        if max_turns < count.bit_length():
            raise ConfigError(
                f"max_turns of {self.env_id} is {max_turns}, but bisection needs {count.bit_length()} turns for the "
                f"numbers {low} to {high}: pass max_turns={count.bit_length()} or a smaller range."
            )
        self.low, self.high = low, high
        self.step_reward, self.solve_reward = step_reward, solve_reward
        self._log_width = math.log(count + 1)
        self.finite_instances = count
        self._shows_interval = view == "interval"
        self._choices = tuple(map(str, range(low, high + 1))) if count <= _LIST_LIMIT else ()
        answers = "the interval that is left" if self._shows_interval else '"higher" or "lower"'
        self.instructions = (
            f"I have chosen a whole number from {low} to {high}. Find it in at most {max_turns} guesses.\n"
            f"After a wrong guess I answer with {answers}. Answer with one number only."
        )

    def _begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._hidden = self._draw(lambda generator: int(generator.integers(self.low, self.high + 1)), self._name)
        self._known = self.low, self.high
        return self._interval()

    def _name(self, hidden: int) -> str:
        return f"{hidden} from {self.low} to {self.high}"

    def _interval(self) -> str:
        return f"from {self._known[0]} to {self._known[1]}"

    def _advance(self, action: str) -> Outcome[str]:
        match = _NUMBER.fullmatch(action)
        guess = int(match[1]) if match else -1
        if not self.low <= guess <= self.high:
            note = f"Unknown action: answer with a number from {self.low} to {self.high}."
            observation = f"{note} {self._interval()}" if self._shows_interval else note
            return Outcome(observation, self.step_reward, action_is_valid=False)
        if guess == self._hidden:
            self._known = guess, guess
            return Outcome("correct", self.step_reward + self.solve_reward, terminated=True, success=True)
        self._known = narrowed(*self._known, guess, self._hidden)
        answer = "higher" if self._hidden > guess else "lower"
        return Outcome(self._interval() if self._shows_interval else answer, self.step_reward)

    def _anchor(self) -> str:
        return self._interval()

    def _legal_actions(self) -> tuple[str, ...]:
        return self._choices

    def _progress(self) -> float:
        if self._success == 1:
            return 1.0
        low, high = self._known
        return 1 - math.log(high - low + 2) / self._log_width

    def _state(self) -> JSONValue:
        return {"hidden": self._hidden, "known": list(self._known)}

    def _load(self, state: JSONValue) -> None:
        low, high = state["known"]
        self._hidden, self._known = state["hidden"], (low, high)

    def resample_hidden(self) -> bool:
        """Hide another number of the interval that is left."""
        low, high = self._known
        if low == high:
            return False
        other = int(self.np_random.integers(low, high))
        self._hidden = other + (other >= self._hidden)
        self.instance = self._name(self._hidden)
        return True

    def expert_action(self) -> str:
        """Return the middle of the interval that is left."""
        return str(sum(self._known) // 2)
