"""Processor time of a call on texts of two sizes, so that what is quadratic shows whatever else the machine does."""

import gc
import time
from collections.abc import Callable

SMALL, LARGE = 10_000, 100_000
MOST = 25.0
"""Linear costs ten to twelve times as much for the larger text (seventeen where it becomes a list of words that no
longer fits the processor's cache), quadratic a hundred times."""
NOTICED = 0.02
"""Seconds below which a large text costs too little to be measured, and to matter."""
HOPELESS = 5.0


def repeated(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def seconds(call: Callable[[str], object], text: str) -> float:
    """Return the processor time of a call without the garbage collector, whose time grows with the whole process."""
    gc.collect(0)
    gc.disable()
    try:
        begin = time.process_time()
        call(text)
        return time.process_time() - begin
    finally:
        gc.enable()


def growth(call: Callable[[str], object], piece: str, prefix: str = "") -> float:
    """Return how much more 100 kB cost than 10 kB, the best of a few tries each; 0 where it costs next to nothing."""
    small, large = (prefix + repeated(piece, size) for size in (SMALL, LARGE))
    least = seconds(call, small)
    if least * MOST > HOPELESS:
        return float("inf")
    most = seconds(call, large)
    for _ in range(6):
        if most < NOTICED or most <= MOST * least:
            break
        least, most = min(least, seconds(call, small)), min(most, seconds(call, large))
    return 0.0 if most < NOTICED else most / least
