"""Every data set of the package reasoning-gym (Stojanovski et al. 2025) as a :class:`TextEnv`.

What the adapter fixes: nine scorers evaluate the answer as Python, so that a model could run code; numbers such as
``1e999999999`` stop a scorer for hours; some scorers raise; five data sets depend on Python's order of hashes. All code
of the package runs in a process with limits and a fixed order of hashes (``reasoning_gym_process``).
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task
from turngym.errors import ConfigError, UnknownName, missing_extra, nearest
from turngym.options import OptionError
from turngym.system.limited import CallLimits, LimitedProcess, LimitReached
from turngym.types import JSONValue

_PROCESS = "turngym.envs.adapters.reasoning_gym_process"
_OPEN, _CLOSE = "<answer>", "</answer>"
_RULES = (
    "Answer the question. You may think first; then write <answer>...</answer> with nothing but the answer in it, in "
    "the form that the question asks for."
)
UNUSABLE: Mapping[str, str] = MappingProxyType(
    {
        "codeio": "its questions differ from one call to the next",
        "composite": "it mixes other data sets: name one of them, and train on several environments",
    }
)
"""Data sets that are refused, and why."""
UNSOLVED = frozenset({"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"})
"""Data sets whose entries hold no solution: they are scored, and have no expert."""


@lru_cache(maxsize=1)
def _process(_pid: int) -> LimitedProcess:
    """Return the process for this one; a fork must not share it."""
    return LimitedProcess(CallLimits(seconds=60.0, answer_mib=4))


def _call(function: str, **arguments: Any) -> Any:
    return _process(os.getpid()).call(f"{_PROCESS}:{function}", arguments)


class ReasoningGym(TextEnv[str]):
    """Adapter of the data sets of reasoning-gym.

    A question is generated from the seed of the episode, and its text decides its split. The answer is the text in the
    last ``<answer>...</answer>``; the reward is the score that the package gives it, from 0 to 1, and 0 where the
    scorer raises or takes more than 5 seconds of the processor. The episode ends with the first answer and is solved
    with a score of 1. An action without an answer is invalid, and asked for again. The expert gives the package's own
    answer.

    Names of data sets are the keys of ``reasoning_gym.factory.DATASETS``. The agent ``random`` never writes an
    ``<answer>``, so its score of 0 is not a baseline.

    Two data sets are refused: ``codeio``, whose questions do not repeat, and ``composite``, which mixes others.
    ``boxnet``, ``graph_color``, ``propositional_logic``, ``rubiks_cube`` and ``rush_hour`` have no expert, because
    their entries hold no solution. Some scorers give points for nonsense: ``game_of_life_halting`` up to 1,
    ``figlet_font`` 0.2, ``spell_backward`` 0.125, ``acre`` 0.083, others 0.01 to 0.05; twelve do for an empty answer.
    Where a scorer evaluates an answer as Python, only literals are evaluated here, or arithmetic with the usual
    functions; anything else scores as an answer that cannot be read.
    """

    class Options(TextEnv.Options):
        data: str = "leg_counting"
        """Name of the data set, e.g. ``"countdown"``."""
        data_options: Mapping[str, Any] | None = None
        """Options of the data set that override its defaults, JSON values only, e.g. ``{"min_numbers": 3}``."""
        max_turns: MaxTurns = 3
        """Turns after which an episode without an answer is truncated."""

    options: Options

    file_options = worded("data")
    finds_action = True
    instructions = _RULES

    def setup(self) -> None:
        """Generate one question, so that a wrong option is an error now."""
        if importlib.util.find_spec("reasoning_gym") is None:
            raise missing_extra(self.env_id, "reasoning-gym", "reasoning")
        data = self.options.data
        names = _call("names")
        if data not in names:
            raise UnknownName(f"reasoning-gym has no data set named {data!r}. {nearest(data, names)[:300]}")
        if data in UNUSABLE:
            raise ConfigError(f"the data set {data} of reasoning-gym cannot be played: {UNUSABLE[data]}.")
        options = dict(self.options.data_options or {})
        try:
            json.dumps(options, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise OptionError("data_options", f"must hold JSON values only: {error}.", self.env_id) from error
        self._source = {"data": data, "options": options}
        self._task(0)

    def _task(self, seed: int) -> dict[str, Any]:
        """Return question and answer of a seed."""
        try:
            found: dict[str, Any] = _call("task", **self._source, seed=seed)
        except LimitReached as error:
            raise ConfigError(f"reasoning-gym makes no question of {self._source}: {error}.") from error
        return found

    def initial_state(self, generator: np.random.Generator) -> JSONValue:
        """Generate a question."""
        seed = int(generator.integers(2**31))
        return {"seed": seed, "reward": 0.0, **self._task(seed)}

    def begin(self, task: str | int | None) -> str:
        """Draw a question of the split; there are no named tasks."""
        refuse_task(self.env_id, task)
        self.state = self.draw(self.initial_state, lambda state: f"{self.options.data}\n{state['question']}")
        return self.anchor()

    def apply_action(self, action: str) -> Outcome[str]:
        """Score the last answer in a text."""
        before, closed, _ = action.rpartition(_CLOSE)
        _, opened, answer = before.rpartition(_OPEN)
        if not (opened and closed):
            return Outcome(f"No answer was found: write {_OPEN}...{_CLOSE}.", action_is_valid=False)
        try:
            reward = float(_call("score", **self._source, seed=self.state["seed"], answer=answer.strip()))
        except LimitReached:
            reward = 0.0
        self.state["reward"] = reward
        return Outcome("Your answer is taken.", reward, terminated=True, success=reward >= 1)

    def anchor(self) -> str:
        return str(self.state["question"])

    def observation(self) -> str:
        return self.anchor()

    def score(self) -> float:
        return float(self.state["reward"])

    def expert_action(self) -> str:
        """Return the package's own answer.

        Raises:
            ConfigError: Entries of the data set hold none.
        """
        answer = self.state["answer"]
        if self.options.data in UNSOLVED or answer is None:
            raise ConfigError(f"{self.options.data} of {self.env_id} has no solver: its entries hold no solution.")
        return f"{_OPEN}{answer}{_CLOSE}"
