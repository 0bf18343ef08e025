"""Tools for the tests of the wrapper ``tools``."""

import asyncio
import threading
from typing import Literal

started = threading.Event()


def add(a: int, b: int = 1) -> int:
    """Return the sum of two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


def join(words: list[str], sign: Literal["-", "+"] = "-") -> str:
    """Return words with a sign between them."""
    return sign.join(words)


def fail(reason: str) -> str:
    """Fail with a reason."""
    raise ValueError(reason)


def say(text: str) -> str:
    """Return the text."""
    return text


def hang() -> None:
    """Never come back."""
    threading.Event().wait(600)


async def wait_for_all(number: int) -> str:
    """Come back when the others have come too."""
    _here.append(number)
    while len(_here) < 4:
        await asyncio.sleep(0.001)
    return f"all {len(_here)}"


async def sleep_on() -> None:
    """Never come back either."""
    await asyncio.sleep(600)


_here: list[int] = []
