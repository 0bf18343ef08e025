"""Requests to search servers, with retries."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from turngym.errors import TurngymError

T = TypeVar("T")


class SearchUnavailable(TurngymError, RuntimeError):
    """The search server gave no usable answer."""


def tried(once: Callable[[], T], retries: int, url: str, passing: tuple[type[Exception], ...]) -> T:
    """Return the result of a request, retrying with delays.

    Args:
        once: Sends it.
        retries: Number of retries.
        url: Its address, for the message.
        passing: Transient errors.

    Raises:
        SearchUnavailable: Every attempt failed.
    """
    problem = ""
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(random.uniform(0.5, 1.0) * 0.1 * 2**attempt)
        try:
            return once()
        except passing as error:
            problem = f"{type(error).__name__}: {error}"
    raise SearchUnavailable(f"{url} gave no usable answer in {retries + 1} tries ({problem}).")
