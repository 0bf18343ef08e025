"""Limits of judging an answer, counted in steps: the same answer is judged the same on every machine."""

from __future__ import annotations

MOST_STEPS = 25_000
"""Steps that judging one answer may take; one is a few microseconds."""


class TooCostly(ValueError):
    """An answer that takes more steps to judge than are allowed, or holds numbers out of bounds."""


class Steps:
    """Counts down what is left to judge one answer.

    Args:
        most: Steps at the beginning.

    >>> steps = Steps(10)
    >>> steps.take(4)
    >>> steps.left
    6
    """

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.left = most

    def take(self, count: int) -> None:
        """Use steps up.

        Raises:
            TooCostly: None are left.
        """
        self.left -= count
        if self.left < 0:
            raise TooCostly("out of steps")
