"""What the tests of the desktop share: whether it can run here, and how its processes are found."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from turngym.envs.desktop.env import Desktop
from turngym.envs.desktop.sandbox import require_programs
from turngym.envs.desktop.slot import DesktopSlot
from turngym.errors import MissingExtra
from turngym.system.processes import descendants


def skip_without_programs() -> None:
    """Skip the module that calls this where something is not installed."""
    try:
        require_programs("the desktop")
    except MissingExtra as error:
        pytest.skip(str(error), allow_module_level=True)


def process_named(env: Desktop, name: str) -> int:
    """Return the process of that name on the desktop of an environment, as the host numbers it."""
    return process_of(env.slot, name)


def process_of(slot: DesktopSlot, name: str) -> int:
    """Return the process of that name on a desktop, as the host numbers it."""
    assert slot.session is not None
    for process in descendants(slot.session.pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{process}/comm").read_text().strip() == name:
                return process
    raise AssertionError(f"there is no {name}")


def send(env: Desktop, name: str, number: signal.Signals) -> None:
    """Send a signal to a process of the desktop."""
    os.kill(process_named(env, name), number)


def comes_true(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Wait until something holds; returns whether it did in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
