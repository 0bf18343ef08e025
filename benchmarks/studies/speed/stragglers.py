"""Slow environments: how close first-ready stepping comes to the ideal rate, beside lock-step.

64 slots whose step sleeps for a time drawn from Exp(50 ms), so that the ideal rate is 64 / 50 ms. Then the same with
2 % of steps that never return and a limit of 0.3 s, where a slot's turn takes 0.98 * 50 ms + 0.02 * 300 ms on average.
Interleaved repeats, medians; every rate is counted over a window that begins when all slots are under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from gymnasium.error import NoAsyncCallError

from turngym.benchmarks.studies.harness import arguments, interleaved, medians, write_result
from turngym.envs.core import Outcome, TextEnv
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.types import JSONValue

SLOTS, MEAN_SECONDS, LIMIT_SECONDS, HANGING_SHARE = 64, 0.05, 0.3, 0.02
TARGETS = {"no hangs": 0.95, "2 % hang": 0.85}


class Sleeper(TextEnv[str]):
    """Every step takes a random time, and some never end.

    Args:
        mean_seconds: Mean of the exponential distribution of a step's time.
        hanging_share: Share of the steps that never return.
        max_turns: Turns of an episode.
        split: Ignored.
        env_id: Registered id.
        render_mode: Ignored.
    """

    def __init__(
        self,
        mean_seconds: float = MEAN_SECONDS,
        hanging_share: float = 0.0,
        *,
        max_turns: int = 100_000,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self.mean_seconds, self.hanging_share = mean_seconds, hanging_share

    def begin(self, task: str | int | None) -> str:
        return "asleep"

    def seconds(self) -> float:
        """Draw how long the next step takes."""
        if self.np_random.random() < self.hanging_share:
            return 3600.0
        return float(self.np_random.exponential(self.mean_seconds))

    def apply_action(self, action: str) -> Outcome[str]:
        time.sleep(self.seconds())
        return Outcome("awake")

    def anchor(self) -> str:
        return "asleep"

    def save_state(self) -> JSONValue:
        return None

    def load_state(self, state: JSONValue) -> None:
        return None


class AsyncSleeper(Sleeper):
    """The same in coroutines."""

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        return self.reset(seed=seed, options=options)

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Wait, then take the turn."""
        await asyncio.sleep(self._drawn())
        return self.step(action)

    def _drawn(self) -> float:
        return super().seconds()

    def seconds(self) -> float:
        """Return 0: the coroutine has waited already."""
        return 0.0


def make(backend: str, hanging_share: float) -> TextVectorEnv:
    """Return a vector of sleepers, all of which can sleep at once."""
    kind = AsyncSleeper if backend == "asyncio" else Sleeper
    return make_vec(
        env_fns=[lambda: kind(hanging_share=hanging_share)] * SLOTS,
        backend=backend,
        num_workers=SLOTS if backend == "process" else None,
        step_timeout_seconds=LIMIT_SECONDS if hanging_share else 60.0,
    )


def first_ready(vector: TextVectorEnv, seed: int, seconds: float) -> float:
    """Return turns per second if every slot is sent on as soon as it is ready.

    A turn that was given up counts, since its time is part of the ideal; the reset that follows does not.
    """
    vector.reset(seed=[seed * SLOTS + slot for slot in range(SLOTS)])
    vector.send(["on"] * SLOTS)
    began, turns = time.perf_counter(), 0
    has_ended = [False] * SLOTS
    while (now := time.perf_counter()) < began + seconds:
        slots, _, _, _, truncations, _ = vector.recv(timeout_seconds=began + seconds - now)
        for slot, truncated in zip(slots, truncations, strict=True):
            turns += not has_ended[slot]
            has_ended[slot] = bool(truncated)
        vector.send(["on"] * len(slots), slots)
    elapsed = time.perf_counter() - began
    with contextlib.suppress(NoAsyncCallError):
        while True:  # the next window begins with nothing under way
            vector.recv(SLOTS)
    return turns / elapsed


def lockstep(vector: TextVectorEnv, seed: int, seconds: float) -> float:
    """Return turns per second if every step waits for the slowest slot."""
    vector.reset(seed=[seed * SLOTS + slot for slot in range(SLOTS)])
    began, turns = time.perf_counter(), 0
    has_ended = np.zeros(SLOTS, dtype=np.bool_)
    while time.perf_counter() < began + seconds:
        truncations = vector.step(["on"] * SLOTS)[3]
        turns += SLOTS - int(has_ended.sum())
        has_ended = truncations
    return turns / (time.perf_counter() - began)


def _both_rates(vector: TextVectorEnv, seconds: float, repeat: int) -> dict[str, float]:
    """Return the turns per second of both schedules in a window each."""
    return {
        "first_ready": first_ready(vector, repeat, seconds),
        "lockstep": lockstep(vector, repeat, seconds),
    }


def ideal(hanging_share: float) -> float:
    """Return the turns per second of slots that never wait.

    >>> round(ideal(0.0)), round(ideal(0.02))
    (1280, 1164)
    """
    return SLOTS / ((1 - hanging_share) * MEAN_SECONDS + hanging_share * LIMIT_SECONDS)


def measure(hanging_share: float, repeats: int, seconds: float) -> dict[str, dict[str, Any]]:
    """Return the median rates of both schedules on each backend, and their share of the ideal."""
    vectors = {backend: make(backend, hanging_share) for backend in ("thread", "asyncio", "process")}
    rates = interleaved({name: partial(_both_rates, vector, seconds) for name, vector in vectors.items()}, repeats)
    found = {}
    for backend, vector in vectors.items():
        middle = medians(rates[backend])
        shares = {f"{name}_share": rate / ideal(hanging_share) for name, rate in middle.items()}
        stats = vector.stats()
        counts = {name: stats[name] for name in ("faults", "workers_replaced", "abandoned", "step_seconds")}
        found[backend] = {**middle, **shares, **counts}
        vector.close()
    return found


def main() -> int:
    """Measure, print, and write ``benchmarks/results/stragglers.json``."""
    parser = arguments(__doc__, "stragglers.json", repeats=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each window")
    given = parser.parse_args()
    settings = {
        "slots": SLOTS,
        "mean_seconds": MEAN_SECONDS,
        "limit_seconds": LIMIT_SECONDS,
        "repeats": given.repeats,
        "window_seconds": given.seconds,
        "turns": "turns per second, medians; a share is of the ideal rate",
    }
    result: dict[str, Any] = {"settings": settings}
    for name, share in (("no hangs", 0.0), ("2 % hang", HANGING_SHARE)):
        rows = measure(share, given.repeats, given.seconds)
        result[name] = {"ideal": ideal(share), "target_share": TARGETS[name], "backends": rows}
        for backend, row in rows.items():
            print(
                f"{name:9} {backend:8} ideal {ideal(share):6.0f}  first-ready {row['first_ready']:6.0f} "
                f"({row['first_ready_share']:.1%}, target {TARGETS[name]:.0%})  "
                f"lock-step {row['lockstep']:6.0f} ({row['lockstep_share']:.1%})"
            )
    write_result(given.out, result, "gymnasium", "numpy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
