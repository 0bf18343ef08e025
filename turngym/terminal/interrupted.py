"""Ctrl-C before a command has begun: one word instead of a traceback from the middle of an import."""

from __future__ import annotations

import os
import sys
from types import TracebackType

INTERRUPTED = 130
"""The exit status of an interrupted command."""


def be_quiet() -> None:
    """End this process with one word and its exit status on an interrupt that nothing catches."""
    show = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            show(kind, error, trace)
            return
        os.write(2, b"interrupted\n")
        os._exit(INTERRUPTED)

    sys.excepthook = hook
