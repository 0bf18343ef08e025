"""Work of large requests in threads, so that the event loop answers everyone else meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from turngym.agents.gateway.episode import GatewayEpisode
from turngym.agents.gateway.refusal import Refusal, wrong
from turngym.agents.prompting.chat_template import RenderLimit

_Found = TypeVar("_Found")
_THREADS = 2
_SMALL = 2**15
"""Weight up to which work is done at once: a few milliseconds."""
_deadline = threading.local()


class Offload:
    """Runs work in threads; an episode has one piece of large work at a time.

    Args:
        seconds: Time for one piece of work, which is looked at between its steps.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._threads = ThreadPoolExecutor(_THREADS, "turngym-gateway-work")

    async def run(self, episode: GatewayEpisode, weight: int, work: Callable[[], _Found]) -> _Found:
        """Return the result of some work.

        Args:
            episode: For whom it is.
            weight: About how many characters it reads.
            work: The work.

        Raises:
            Refusal: It took too long.
        """
        try:
            if weight <= _SMALL:
                return work()
            async with episode.working:
                return await asyncio.get_running_loop().run_in_executor(self._threads, self._limited, work)
        except RenderLimit as error:
            raise wrong(f"the model's chat template takes too much for these messages ({error})") from error

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _limited(self, work: Callable[[], _Found]) -> _Found:
        _deadline.end = time.monotonic() + self.seconds
        try:
            return work()
        finally:
            _deadline.end = float("inf")


def check_time() -> None:
    """Raise if the work in this thread has taken too long.

    Raises:
        Refusal: It has.
    """
    if time.monotonic() > getattr(_deadline, "end", float("inf")):
        raise Refusal(400, "the request takes too long to prepare: send fewer messages, or shorter ones.")
