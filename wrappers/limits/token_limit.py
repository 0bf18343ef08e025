"""Token budgets of the agent, per turn and per episode."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError, nearest
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import StepResult, TextWrapper

_WORD = re.compile(r"\S+")

COUNTERS: Mapping[str, Callable[[str], int]] = MappingProxyType(
    {
        "characters": len,
        "estimate": lambda text: -(-len(text) // 4),
        "words": lambda text: len(_WORD.findall(text)),
    }
)
"""Counts without a tokenizer; ``estimate`` assumes four characters per token, rounded up."""


def longest_prefix(text: str, budget: int, count: Callable[[str], int]) -> str:
    """Return the longest prefix within a budget, for a count that never falls with the length.

    >>> longest_prefix("go up and up", 2, COUNTERS["words"])
    'go up '
    """
    if count(text) <= budget:
        return text
    low, high = 0, len(text) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]


@WRAPPERS.register("token_limit")
class TokenLimit(TextWrapper):
    """Truncates the agent's text at a token budget, as a sampler does.

    An action text that exceeds the budget of its turn, or the rest of the episode's, is truncated before it is passed
    on. The episode is truncated when its budget is used up, unless the rules end it in the same turn. Counted is the
    text that reaches this wrapper: outside ``parse_action``, whole completions.

    Args:
        env: The environment.
        per_turn: Budget per turn, at least 1; None for none.
        per_episode: Budget per episode, at least 1; None for none.
        count: ``"estimate"``, ``"words"``, ``"characters"``, or a function from text to a whole number that gives no
            less for a longer text, such as ``lambda text: len(tokenizer.encode(text))``.

    >>> import gymnasium, turngym
    >>> env = TokenLimit(gymnasium.make("turngym/TowerOfHanoi-v0"), per_turn=2, per_episode=5, count="words")
    >>> _ = env.reset(seed=0)
    >>> env.step("A C or not")[4]["action_is_valid"], env.tokens_left
    (True, 3)
    """

    file_options = worded("count")

    name: ClassVar[str] = "token_limit"

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        per_turn: int | None = 1024,
        per_episode: int | None = 16_384,
        count: str | Callable[[str], int] = "estimate",
    ) -> None:
        super().__init__(env)
        for option, budget in (("per_turn", per_turn), ("per_episode", per_episode)):
            if budget is not None:
                self.require(option, budget, 1, 1_000_000_000, whole=True)
        if not callable(count) and count not in COUNTERS:
            raise ConfigError(
                f"token_limit cannot count by {count!r}. {nearest(str(count), COUNTERS)} A function from text to a "
                "whole number works too."
            )
        self.per_turn = per_turn
        self.per_episode = per_episode
        self._count = count if callable(count) else COUNTERS[count]

    def initial_state(self) -> dict[str, Any]:
        return {"used": 0}

    @property
    def tokens_used(self) -> int:
        """Tokens used in this episode; truncated texts count up to the truncation."""
        return int(self.state["used"])

    @property
    def tokens_left(self) -> int | None:
        """Rest of the episode's budget; None without one."""
        return None if self.per_episode is None else max(0, self.per_episode - self.tokens_used)

    def transform_action(self, action: str) -> str:
        budgets = [budget for budget in (self.per_turn, self.tokens_left) if budget is not None]
        needed = int(self._count(action))
        allowed = min(budgets, default=needed)
        self.state["used"] += min(needed, allowed)  # a truncated text uses up the budget that truncates it
        return action if needed <= allowed else longest_prefix(action, allowed, self._count)

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        return step.reward, self.tokens_left == 0

    def extra_instructions(self) -> str:
        turn = "" if self.per_turn is None else f"{self.per_turn} per turn"
        episode = "" if self.per_episode is None else f"{self.per_episode} in all"
        unit = self.options["count"] if self.options["count"] in ("characters", "words") else "tokens"
        limits = " and ".join(filter(None, (turn, episode)))
        return f"You may write at most this many {unit}: {limits}." if limits else ""
