"""Tower of Hanoi: move a tower of discs to the last of three pegs.

A move takes the top disc of one peg to another. A disc never lies on a smaller one. The tower is done when every
disc lies on peg C.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, Reward, TextEnv
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_running
from turngym.options import OptionError, between
from turngym.types import JSONValue

PEGS = "ABC"
_MOVE = re.compile(r"\s*([ABC])\s+([ABC])\s*", re.IGNORECASE)
_RULES = """There are three pegs, A, B and C, and discs of different sizes. Bring all discs to peg C.
A move takes the top disc of one peg and puts it on another peg. A disc must never lie on a smaller one.
Each line shows a peg and its discs from bottom to top; 1 is the smallest disc.
Answer with two pegs, from and to, for example: A C"""
_UNKNOWN = "Unknown action: answer with two pegs, for example A C."

_EXACT = {f"{a} {b}": (source, target) for source, a in enumerate(PEGS) for target, b in enumerate(PEGS)}

Discs = tuple[int, ...]
"""The peg (0, 1, 2) of each disc, smallest disc first."""


class Placement(NamedTuple):
    """What follows from where the discs are.

    Args:
        text: What the agent sees.
        after: Action -> the discs after it, or one sentence that says why it is not legal.
        legal: The legal actions.
        progress: The share of the longest solution that is not needed any more.
    """

    text: str
    after: Mapping[str, Discs | str]
    legal: tuple[str, ...]
    progress: float


def top(discs: Discs, peg: int) -> int | None:
    """Return the smallest disc on a peg (0 is the smallest of all), None if the peg is empty.

    >>> top((2, 0, 0), 0)
    1
    """
    return discs.index(peg) if peg in discs else None


def transition(discs: Discs, source: int, target: int) -> Discs | str:
    """Return the discs after a move, or one sentence that says why it is not legal.

    >>> transition((0, 0, 0), 0, 2)
    (2, 0, 0)
    >>> transition((2, 0, 0), 0, 2)
    'Illegal move: disc 2 would lie on the smaller disc 1.'
    """
    if source == target:
        return "Illegal move: the two pegs must differ."
    moved, below = top(discs, source), top(discs, target)
    if moved is None:
        return f"Illegal move: peg {PEGS[source]} is empty."
    if below is not None and below < moved:
        return f"Illegal move: disc {moved + 1} would lie on the smaller disc {below + 1}."
    return (*discs[:moved], target, *discs[moved + 1 :])


def solution(discs: Discs) -> tuple[int, tuple[int, int] | None]:
    """Return the fewest moves that bring all discs to the last peg, and the first of them; None when all are there.

    From the largest disc down: a disc that is where it should go costs nothing. Any other disc ``k`` (0 is the
    smallest) costs one move and, once it has moved, ``2**k - 1`` to bring all smaller ones on top of it; before, the
    smaller ones must gather on the third peg, so that peg is where the next disc should go.

    >>> solution((0, 0, 0))
    (7, (0, 2))
    """
    moves, first, wanted = 0, None, 2
    for disc in reversed(range(len(discs))):
        if discs[disc] != wanted:
            moves += 1 << disc
            first = discs[disc], wanted
            wanted = 3 - discs[disc] - wanted
    return moves, first


def pegs_text(discs: Discs) -> str:
    """Return one line a peg, its discs from bottom to top.

    >>> print(pegs_text((2, 0, 0)))
    A: 3 2
    B:
    C: 1
    """
    stacks = [
        "".join([f" {disc + 1}" for disc in reversed(range(len(discs))) if discs[disc] == peg]) for peg in range(3)
    ]
    return f"A:{stacks[0]}\nB:{stacks[1]}\nC:{stacks[2]}"


@lru_cache(maxsize=1 << 13)  # eight discs have 6,561 placements
def placement(discs: Discs) -> Placement:
    """Return what follows from where the discs are.

    >>> placement((0, 0)).legal
    ('A B', 'A C')
    """
    after = {action: transition(discs, *pegs) for action, pegs in _EXACT.items()}
    legal = tuple([action for action, found in after.items() if not isinstance(found, str)])
    return Placement(pegs_text(discs), after, legal, 1 - solution(discs)[0] / ((1 << len(discs)) - 1))


def _exact(action: str) -> str:
    """Return an action as it is shown; empty if it names no pegs."""
    match = _MOVE.fullmatch(action)
    return f"{match[1]} {match[2]}".upper() if match else ""


class TowerOfHanoi(TextEnv[str]):
    r"""Move a tower of discs to the last of three pegs.

    The episode terminates when all discs lie on peg C, which is the only success, and is truncated at ``max_turns``.
    An illegal move changes nothing and is answered with the rule that it breaks.

    >>> env = TowerOfHanoi(discs=2)
    >>> env.reset(seed=0)[0]
    'A: 2 1\nB:\nC:'
    """

    class Options(TextEnv.Options):
        discs: Annotated[int, between(2, 8)] = 3
        """Number of discs."""
        start: Literal["tower", "random"] = "tower"
        """``"tower"`` for all discs on peg A, ``"random"`` for any unsolved placement."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        solve_reward: Reward = 1.0
        """Reward for the finished tower."""
        max_turns: MaxTurns | None = None  # type: ignore[assignment]  # as turn_limit says
        """Turns after which the episode is truncated, at least ``2**discs - 1``; None for twice that."""

        @property
        def turn_limit(self) -> int:
            return self.max_turns or 2 * ((1 << self.discs) - 1)

        def check(self) -> None:
            if self.turn_limit < (longest := (1 << self.discs) - 1):
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but {self.discs} discs can need {longest} moves: "
                    f"pass max_turns={longest} or more, or fewer discs.",
                )

    options: Options

    file_options = worded("start")

    def setup(self) -> None:
        options = self.options
        self.num_discs, self.start = options.discs, options.start
        self._finished = (2,) * options.discs
        self.finite_instances = 1 if options.start == "tower" else 3**options.discs - 1
        self.instructions = _RULES

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._discs = self.draw(self._first, lambda discs: placement(discs).text)
        self._here = placement(self._discs)
        return self._here.text

    def _first(self, generator: np.random.Generator) -> Discs:
        if self.start == "tower":
            return (0,) * self.num_discs
        number = int(generator.integers(3**self.num_discs - 1))  # the last one, all digits 2, is the finished tower
        return tuple(number // 3**disc % 3 for disc in range(self.num_discs))

    def apply_action(self, action: str) -> Outcome[str]:
        after = self._here.after.get(action) or self._here.after.get(_exact(action), _UNKNOWN)
        if isinstance(after, str):
            return Outcome(f"{after}\n{self._here.text}", self.options.step_reward, action_is_valid=False)
        self._discs, self._here = after, placement(after)
        if after == self._finished:
            return Outcome(self._here.text, self.options.step_reward + self.options.solve_reward, True, True)
        return Outcome(self._here.text, self.options.step_reward)

    def anchor(self) -> str:
        return self._here.text

    def legal_actions(self) -> tuple[str, ...]:
        return self._here.legal

    def progress(self) -> float:
        return self._here.progress

    def save_state(self) -> JSONValue:
        return list(self._discs)

    def load_state(self, state: JSONValue) -> None:
        self._discs = tuple(state)
        self._here = placement(self._discs)

    def expert_action(self) -> str:
        """Return the first move of the shortest solution.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        _, first = solution(self._discs)
        assert first is not None, "a running episode has an unfinished tower"
        return f"{PEGS[first[0]]} {PEGS[first[1]]}"
