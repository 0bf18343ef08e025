"""A counter that tells how far the goal is, in a module that worker processes import fast."""

from collections.abc import Mapping
from typing import Any

from toy_envs import Counter


class Telling(Counter):
    """Gives columns about every turn.

    Args:
        more: Further columns of turns, or what stands in place of columns.
    """

    def __init__(self, more: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.more = {} if more is None else more

    def turn_columns(self) -> Mapping[str, float | str]:
        given: dict[str, float | str] = {
            "distance": self.goal - self.count,
            "place": f"at {self.count}",
            "reward/step": 0.25,
        }
        if not self.turn:
            return given
        return {**given, **self.more} if isinstance(self.more, dict) else self.more
