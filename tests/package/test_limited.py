"""Calls in a process of their own: what hangs, eats memory or dies there is an error with a plain sentence."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from turngym.errors import ConfigError
from turngym.system.limited import CallLimits, LimitedProcess, LimitReached

PATIENT = CallLimits(seconds=300.0, memory_mib=512, answer_mib=1)
"""Its time includes the start of a process, which is slow on a busy machine."""


@pytest.fixture(scope="module")
def process() -> Iterator[LimitedProcess]:
    with LimitedProcess(PATIENT) as found:
        yield found


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("sleep", "ended after 4 seconds"),
        ("spin", "ended after 4 seconds"),
        ("eat", "more than 512 MiB of memory"),
        ("write", "more than 1 MiB"),
        ("die", "exit status 3"),
        ("none", "AttributeError"),
    ],
)
def test_a_limit_ends_the_call_and_not_the_caller(function: str, reason: str, process: LimitedProcess) -> None:
    process.limits = dataclasses.replace(PATIENT, seconds=4.0) if "4 seconds" in reason else PATIENT
    with pytest.raises(LimitReached, match=reason):
        process.call(f"limited_calls:{function}", {})
    process.limits = PATIENT
    assert process.call("turngym.system.limited:echo", {"value": 3}) == 3, "the next call has a process again"


def test_what_is_printed_is_no_answer(process: LimitedProcess) -> None:
    assert process.call("limited_calls:chatter", {}) == "true"


def test_errors_of_turngym_come_back_as_such(process: LimitedProcess) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        process.call("turngym.benchmarks.verification.verify:verify_as_json", {"path": "/nowhere"})


def test_one_that_nobody_closed_is_ended_and_waited_for_at_the_exit() -> None:
    """A dropped one ends too; Python warns of processes that were not waited for, and of open pipes."""
    code = """
from turngym.system.limited import LimitedProcess
kept, dropped = LimitedProcess(), LimitedProcess()
print(*[each.call("os:getpid", {}) for each in (kept, dropped)])
del dropped
"""
    ended = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0 and ended.stderr == ""
    for pid in ended.stdout.split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
