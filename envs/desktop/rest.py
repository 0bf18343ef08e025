"""Waiting until programs are idle: all asleep, no timer about to wake one, the image stable.

There are no fixed delays. A process that is short of processor time is runnable, not asleep; and for one that sleeps,
the kernel reports what it waits for and how long. Only where it does not, a stable third of a second must suffice.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_PAUSE_SECONDS = 0.004
_ALIKE, _ALIKE_BLIND = 3, 90
"""Number of consecutive equal samples required, with and without knowledge of timers."""
SOON_MS = 300
"""Longer timers are not caused by an action."""
_PATIENCE_MS = 1000.0
"""How much expired timer time may delay a turn: some programs have a timer that never ends, such as for a blinking
cursor. It is counted in timer time, not by the clock, and so is the same on a slow machine.
"""
_ASLEEP = frozenset("SI")
_X86, _ARM = "x86_64", "aarch64"
_MILLISECONDS = {(_X86, 7): 2, (_X86, 232): 3, (_X86, 281): 3, (_ARM, 22): 3}
"""Machine and number of poll, epoll_wait and epoll_pwait -> which argument is the timeout in milliseconds."""
_TIMESPEC = {(_X86, 271): 2, (_ARM, 73): 2}
"""The same for ppoll, whose argument is the address of two numbers."""
_MACHINE = os.uname().machine


class Sample(NamedTuple):
    """Activity of some processes at a moment at which all were asleep.

    Args:
        runs: Number of runs of each thread so far.
        timer: Milliseconds of the timer that will soon wake one, 0 if there is none.
        is_blind: Whether the timers are unknown.
    """

    runs: tuple[tuple[str, str], ...]
    timer: float
    is_blind: bool


def sample(processes: list[int]) -> Sample | None:
    """Return what processes are doing; None while one is awake."""
    found = []
    soonest, is_blind = 0.0, False
    for process in processes:
        try:
            threads = os.listdir(f"/proc/{process}/task")
        except OSError:
            continue  # it has ended in the meantime
        for thread in threads:
            try:
                text = Path(f"/proc/{process}/task/{thread}/status").read_text()
            except OSError:
                continue
            facts = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
            if facts["State"][0] == "Z":
                continue
            if facts["State"][0] not in _ASLEEP:
                return None
            found.append((thread, facts["voluntary_ctxt_switches"] + " " + facts["nonvoluntary_ctxt_switches"]))
        try:
            timer = timer_ms(process)
        except (OSError, ValueError, IndexError):
            is_blind = True
        else:
            if timer is not None and timer <= SOON_MS:
                soonest = min(soonest or SOON_MS, max(timer, 1.0))
    return Sample(tuple(found), soonest, is_blind)


def timer_ms(process: int) -> float | None:
    """Return how long the first thread of a process sleeps at most, None if until something happens.

    Raises:
        OSError: The kernel does not report it.
    """
    words = Path(f"/proc/{process}/syscall").read_text().split()
    if words[0] in ("running", "-1"):
        return None if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z" else 0.0
    call = _MACHINE, int(words[0])
    if call in _MILLISECONDS:
        value = int(words[1 + _MILLISECONDS[call]], 16) & 0xFFFFFFFF
        return None if value >= 0x80000000 else float(value)
    if call in _TIMESPEC:
        address = int(words[1 + _TIMESPEC[call]], 16)
        if not address:
            return None
        with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            seconds, nanoseconds = struct.unpack("qq", memory.read(16))
        return float(seconds * 1000 + nanoseconds / 1e6)
    return None


def others() -> list[int]:
    """Return all visible processes except this one and the first."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid()))


def wait_for_rest(
    picture: Callable[[], int], limit_seconds: float, processes: Callable[[], list[int]] = others
) -> bool:
    """Wait until the processes sleep, no timer is about to wake one and the image is stable.

    Args:
        picture: Returns a checksum of the screen.
        limit_seconds: Waiting time.
        processes: Returns the processes to look at.

    Returns:
        Whether they came to rest in time.
    """
    began = time.monotonic()
    last: tuple[Sample, int] | None = None
    asleep = Sample((), 0.0, False)
    alike, wanted, patience_ms = 0, _ALIKE, _PATIENCE_MS
    while alike < wanted:
        found = sample(processes())
        now = None if found is None else (found, picture())
        alike = alike + 1 if now is not None and now == last else 0
        last = now
        if time.monotonic() - began > limit_seconds:
            return False
        if found is not None:
            wanted = _ALIKE_BLIND if found.is_blind else _ALIKE
            if found.runs != asleep.runs:
                patience_ms -= asleep.timer
            asleep = found
            if found.timer and patience_ms > 0:
                alike = 0
        time.sleep(_PAUSE_SECONDS)
    return True
