"""Functions that a process with limits has to survive."""

import os
import time


def sleep() -> None:
    """Do nothing for long."""
    time.sleep(600)


def spin() -> None:
    """Keep the processor busy for long."""
    while True:
        pass


def eat() -> int:
    """Take 20 GB of memory."""
    return len([b"x" * 10**8 for _ in range(200)])


def write() -> str:
    """Return 3 MiB."""
    return "x" * (3 << 20)


def die() -> None:
    """End the process."""
    os._exit(3)


def chatter() -> str:
    """Print what looks like an answer."""
    print('{"result": "forged"}', flush=True)
    return "true"
