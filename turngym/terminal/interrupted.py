"""Ctrl-C before a command has begun: one word in place of a traceback from the middle of an import."""

from __future__ import annotations

import os
import sys
from types import TracebackType

INTERRUPTED = 130
"""The exit status of an interrupted command."""


def be_quiet() -> None:
    """Let an interrupt that nothing catches end this process with a word and its exit status."""
    show = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            show(kind, error, trace)
            return
        os.write(2, b"interrupted\n")
        os._exit(INTERRUPTED)

    sys.excepthook = hook
