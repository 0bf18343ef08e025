"""Handling of exceptions of environments: faults of a slot, or errors of the program."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Protocol, TypeVar

from turngym.errors import error_text


def describe(error: BaseException) -> str:
    """Return the fault text of an exception, on one line.

    >>> describe(ValueError("no such door"))
    'exception: ValueError: no such door'
    """
    return f"exception: {error_text(error)}"


def is_for_program(error: BaseException) -> bool:
    """Return whether an exception must pass the slot in which it came up.

    Everything that an environment raises is a fault of its slot, ``SystemExit``, ``GeneratorExit`` and
    ``CancelledError`` included. An interrupt from the keyboard is not, nor is an exception raised by a signal handler
    of the program, as many do at ``SIGTERM``.

    >>> is_for_program(SystemExit(3)), is_for_program(KeyboardInterrupt())
    (False, True)
    """
    if isinstance(error, Exception):
        return False
    return isinstance(error, KeyboardInterrupt) or not _handlers().isdisjoint(_passed(error))


class Closable(Protocol):
    """Holds something until it is closed: an environment, a game, a table."""

    def close(self) -> None:
        """Release what it holds."""


ClosableT = TypeVar("ClosableT", bound=Closable)


def close_quietly(*held: Closable) -> None:
    """Close each of these, whatever the others raise: what has been played must not be lost to code that fails at last.

    Args:
        held: User code, such as environments and games, which may fail to close.
    """
    for each in held:
        try:
            each.close()
        except BaseException as error:  # user code: a broken environment may fail to close
            if is_for_program(error):
                raise


@contextmanager
def closing_quietly(held: ClosableT) -> Iterator[ClosableT]:
    """Yield an environment, a game or a table, and close it in the end as :func:`close_quietly` does.

    >>> from turngym.envs.multiagent import make_game
    >>> with closing_quietly(make_game("turngym/KuhnPoker-v0")) as game:
    ...     game.num_seats
    2
    """
    try:
        yield held
    finally:
        close_quietly(held)


def _handlers() -> set[CodeType]:
    """Return the code of the signal handlers that are in force."""
    found = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        for candidate in (handler, vars(type(handler)).get("__call__")):
            code = getattr(candidate, "__code__", None)
            if isinstance(code, CodeType):
                found.add(code)
    return found


def _passed(error: BaseException) -> Iterator[CodeType]:
    """Yield the code that an exception has come through."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next
