"""History of turns in the observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium

from turngym.envs.core import LONGEST_ACTION
from turngym.envs.parsing.calls import cut
from turngym.envs.settings import worded
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper
from turngym.wrappers.observation import text_of, with_text


def history_text(pairs: Sequence[Sequence[str]], now: str, first_turn: int = 1, max_chars: int | None = None) -> str:
    """Return the text that shows earlier turns and the current observation.

    Args:
        pairs: Observation and action of each earlier turn, the oldest first.
        now: The current observation, always shown completely.
        first_turn: Number of the oldest given turn.
        max_chars: Maximum length; the oldest turns are dropped. None for no limit.

    >>> print(history_text([["a box", "up"], ["a wall", "left"]], "a goal", first_turn=4))
    Turn 4:
    a box
    Your action: up
    <BLANKLINE>
    Turn 5:
    a wall
    Your action: left
    <BLANKLINE>
    Now:
    a goal
    """
    turns = [f"Turn {first_turn + i}:\n{seen}\nYour action: {action}\n\n" for i, (seen, action) in enumerate(pairs)]
    end = f"Now:\n{now}"
    if max_chars is not None:
        left, kept = max_chars - len(end), 0
        for turn in reversed(turns):
            left -= len(turn)
            if left < 0:
                break
            kept += 1
        turns = turns[len(turns) - kept :]
    return "".join(turns) + end if turns else now


@WRAPPERS.register("history")
class History(TextWrapper):
    r"""Shows the last ``k`` pairs of observation and action before the current observation.

    Actions are shown as they reach this wrapper: outside ``parse_action`` as whole completions, inside it as actions.
    The first observation, images and the anchor are unchanged.

    Args:
        env: The environment.
        k: Number of earlier turns shown, at least 0; None for all.
        max_chars: Maximum length; the oldest turns are dropped, the current observation is never truncated. None for no
            limit.

    >>> import gymnasium, turngym
    >>> env = History(gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=10), k=1)
    >>> _ = env.reset(seed=0), env.step("1")
    >>> env.step("2")[0]
    'Turn 2:\nhigher\nYour action: 2\n\nNow:\nhigher'
    """

    file_options = worded()

    name: ClassVar[str] = "history"

    def __init__(self, env: gymnasium.Env[Any, str], k: int | None = 3, max_chars: int | None = None) -> None:
        super().__init__(env)
        if k is not None:
            self.require("k", k, 0, 1_000_000, whole=True)
        if max_chars is not None:
            self.require("max_chars", max_chars, 1, 1_000_000_000, whole=True)
        self.k = k
        self.max_chars = max_chars

    def initial_state(self) -> dict[str, Any]:
        return {"pairs": [], "turns": 0, "now": ""}

    def on_reset(self, result: ResetResult) -> None:
        self.state["now"] = text_of(result.observation)

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        pairs = self.state["pairs"]
        pairs.append([self.state["now"], cut(step.action, LONGEST_ACTION)])
        if self.k is not None and len(pairs) > self.k:
            del pairs[0]
        self.state["turns"] += 1
        self.state["now"] = text_of(step.observation)
        return step.reward, False

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        pairs, now = self.state["pairs"], self.state["now"]
        if not pairs:
            return observation
        return with_text(observation, history_text(pairs, now, self.state["turns"] - len(pairs) + 1, self.max_chars))

    def extra_instructions(self) -> str:
        return "" if self.k == 0 else 'Earlier turns are shown first, then what you see now, after "Now:".'
