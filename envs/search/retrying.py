"""Requests to search servers, sent again where they fail."""

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
    """Return what a request returns, sent again after a while where it fails.

    Args:
        once: Sends it.
        retries: How often it is sent again.
        url: Whom it is sent to, for the message.
        passing: Errors that may pass.

    Raises:
        SearchUnavailable: Every try failed.
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
