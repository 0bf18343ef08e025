"""Sides of a comparison as processes of their own, which do as they are told: lines of JSON go there and come back.

A side may run in another interpreter, so this module needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

Results = dict[str, Any]


class Worker:
    """A process that runs a script of this folder on demand.

    Args:
        python: Its interpreter.
        script: Name of the script, which calls :func:`serve`.
        environment: Its environment variables.
    """

    def __init__(self, python: str | Path, script: str, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name(script))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=dict(environment),
        )

    def ask(self, **command: Any) -> Results:
        """Send a command and wait for the answer.

        Raises:
            RuntimeError: The process has ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that was told {command} ended with status {self._process.wait()}")
        answer: Results = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def serve(answer: Callable[[Results], Results], commands: TextIO | None = None, answers: TextIO | None = None) -> None:
    """Answer one command after another until the input ends.

    Args:
        answer: What returns the answer to a command.
        commands: Where commands come from; standard input unless given.
        answers: Where answers go; standard output unless given, and what anybody else prints goes to standard error.
    """
    if answers is None:
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
    for line in commands or sys.stdin:
        command = json.loads(line)
        if command.get("cpus"):
            os.sched_setaffinity(0, command["cpus"])
        answers.write(json.dumps(answer(command)) + "\n")
        answers.flush()
