"""The worker process: it holds some slots and runs the operations that arrive, one after the other.

It is started as its own interpreter, so that it neither runs the user's script again nor inherits threads, and it
leads its own process group, so that whatever an environment has started ends with it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from turngym.envs.vector.backends.base import Failure
from turngym.envs.vector.backends.channel import Channel, encode
from turngym.envs.vector.slots.boundary import describe, is_for_program
from turngym.envs.vector.slots.slot import Journal, Op, Slot, failed_reset, fault_result
from turngym.errors import TurngymError

IDLE = -1
"""The worker waits for jobs."""
STARTING = -2
"""The worker has not started to take jobs."""
_FLUSH_SECONDS = 0.005
_GRACE_SECONDS = 10.0


Begin: TypeAlias = Callable[[bool], None]
"""Called when a part of a job starts: True for a replay, False for the job itself."""


class Board:
    """Shared memory in which a worker shows its current job and its start; it stays readable when the worker dies.

    Args:
        file: Descriptor of a file of at least :attr:`SIZE` bytes.
    """

    SIZE = 32

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, self.SIZE)
        # Whole numbers, each stored at once. The struct module writes byte by byte, over zeros, and a reader in
        # another process would now and then see a job that seems to have started when the machine did.
        self._numbers = memoryview(self._memory).cast("q")

    def write(self, serial: int) -> None:
        """Show that the job ``serial`` starts now; ``IDLE`` or ``STARTING`` for none."""
        self._numbers[1] = time.monotonic_ns()
        self._numbers[2] = False
        self._numbers[0] = serial

    def begin(self, is_repeating: bool) -> None:
        """Show that a part of the same job starts now: something that is repeated before it, or the job itself."""
        self._numbers[1] = time.monotonic_ns()
        self._numbers[2] = is_repeating

    def recall(self, serial: int) -> None:
        """Tell the worker to leave out what it has not started, up to the job ``serial``."""
        self._numbers[3] = serial

    def is_recalled(self, serial: int) -> bool:
        """Return whether a job that has not started is to be left out."""
        return serial <= self._numbers[3]

    def read(self) -> tuple[int, bool, float]:
        """Return the job, whether something is being repeated for it, and when that or the job itself started.

        Times are those of ``time.monotonic``. They are written first and read last, so none is older than its job.
        """
        while True:
            serial, is_repeating, began = self._numbers[0], self._numbers[2], self._numbers[1]
            if serial == self._numbers[0]:
                return serial, bool(is_repeating), began / 1e9

    def close(self) -> None:
        """Release the memory."""
        self._numbers.release()
        self._memory.close()


def main(channel_file: int, board_file: int) -> None:
    """Serve until the vector closes the channel.

    Args:
        channel_file: Inherited descriptor of the channel's socket.
        board_file: Inherited descriptor of the board's file.
    """
    os.set_inheritable(channel_file, False)  # a process that an environment starts must not hold the channel open
    board = Board(board_file)
    os.close(board_file)
    channel = Channel(socket.socket(fileno=channel_file))
    _be_killed_first()
    threading.Thread(target=_end_with_the_vector, args=(channel_file,), daemon=True).start()
    slots: dict[int, Slot] = {}
    try:
        _serve(channel, board, slots)
    except (EOFError, OSError):
        pass  # the vector has gone or closed: exit quietly
    finally:
        for slot in slots.values():
            slot.close()
    channel.close()


def _end_with_the_vector(channel_file: int) -> None:
    """End this process group if the vector is gone and an environment keeps the main thread from noticing."""
    poll = select.poll()
    poll.register(channel_file, 0)  # reports only that the other end has been closed
    while not any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll()):
        continue
    time.sleep(_GRACE_SECONDS)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _serve(channel: Channel, board: Board, slots: dict[int, Slot]) -> None:
    slow: set[int] = set()
    while True:
        kind, content = channel.receive()
        if kind == "open":
            makers, memory_limit_mib, surroundings = content
            _move(*surroundings)
            if memory_limit_mib is not None:
                _limit_memory(memory_limit_mib)
            try:
                slots.update({index: Slot(maker) for index, maker in pickle.loads(makers).fn.items()})
            except BaseException as error:  # user code: reported here
                text = f"a worker cannot load the environments' makers: {describe(error)}"
                channel.send(encode_refusal(TurngymError(text)))
            board.write(IDLE)
        else:
            _run_jobs(content, channel, board, slots, slow)


def _run_jobs(
    jobs: list[tuple[int, int, Journal | None, Op]],
    channel: Channel,
    board: Board,
    slots: dict[int, Slot],
    slow: set[int],
) -> None:
    """Run the jobs and send the answers in one message, or in several where the jobs take their time.

    Answers never wait for a slot of ``slow``, those whose last job took its time; the set is kept up to date here.
    """
    answers: list[Any] = []
    durations: dict[str, list[float]] = {"step": [], "reset": []}
    began = flushed = time.monotonic()
    for serial, index, journal, op in jobs:
        if answers and (index in slow or began - flushed > _FLUSH_SECONDS):
            board.write(IDLE)
            channel.send(_encode_answers(answers, durations))
            answers, durations = [], {"step": [], "reset": []}
            began = flushed = time.monotonic()
        if board.is_recalled(serial):
            continue
        board.write(serial)
        slot, kind = slots[index], op[0]
        answers.append((serial, run_job(slot, journal, op, board.begin), slot.start if kind == "reset" else None))
        now = time.monotonic()
        if kind in durations:
            durations[kind].append(now - began)
        if now - began > _FLUSH_SECONDS:
            slow.add(index)
        elif slow:
            slow.discard(index)
        began = now
    board.write(IDLE)
    if answers:
        channel.send(_encode_answers(answers, durations))


def run_job(slot: Slot, journal: Journal | None, op: Op, begin: Begin) -> Any:
    """Run one operation on a slot, which is first brought back from its journal if another worker had it.

    Args:
        slot: The slot.
        journal: Operations to replay first; None for none.
        op: The operation.
        begin: Called when a part of the job starts, so that each has its own time limit.
    """
    if journal is not None:
        try:
            slot.rebuild(journal, partial(begin, True))
            begin(False)
        except BaseException as error:  # user code: recorded here
            if is_for_program(error):
                raise
            slot.close()
            return rebuild_failed(error, op)
    try:
        return slot.run(op)
    except BaseException as error:  # raised again where the caller is
        if is_for_program(error):
            raise
        return Failure(portable(error))


def rebuild_failed(error: BaseException, op: Op) -> Any:
    """Return what an operation leads to if the slot could not be brought back before it."""
    fault = f"rebuild failed: {describe(error)}"
    if op[0] == "reset":
        return failed_reset([fault])
    return fault_result(fault) if op[0] == "step" else Failure(TurngymError(fault))


def portable(error: BaseException) -> Exception:
    """Return the exception if it survives pickling, else one that says the same."""
    try:
        if isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except BaseException as other:  # user code: exceptions run it too
        if is_for_program(other):
            raise
    return TurngymError(describe(error))


def for_caller(error: BaseException) -> Exception:
    """Return the exception if it may reach the caller, else one that says the same: none that ends the program."""
    return error if isinstance(error, Exception) else TurngymError(describe(error))


def _encode_answers(answers: list[Any], durations: dict[str, list[float]]) -> bytes:
    """Return the answers as a frame; one that cannot be pickled becomes a fault of its slot.

    Args:
        answers: For each job its serial number, what it led to, and how the episode started if it was a reset.
        durations: Durations of jobs in seconds, by kind.
    """
    try:
        return encode((answers, durations))
    except BaseException:  # some answer cannot be pickled: find out which
        return encode(([_checked(answer) for answer in answers], durations))


def encode_refusal(error: Exception) -> bytes:
    """Return a frame saying that the worker cannot start."""
    return encode(([(IDLE, Failure(portable(error)), None)], {}))


def _checked(answer: tuple[int, Any, Any]) -> tuple[int, Any, Any]:
    serial, content, start = answer
    try:
        pickle.dumps(answer)
    except BaseException as error:  # user code: recorded here
        fault = f"{describe(error)} (an observation or info cannot travel between processes)"
        if start is not None:
            return serial, failed_reset([fault]), None
        is_result = isinstance(content, tuple) and len(content) == 6
        return serial, fault_result(fault) if is_result else Failure(TurngymError(fault)), None
    return answer


def _move(path: list[str], environ: dict[str, str], folder: str) -> None:
    """Adopt the vector's current import path, environment variables and working directory."""
    sys.path[:] = path
    for name in os.environ.keys() - environ.keys():
        del os.environ[name]
    os.environ.update(environ)
    os.chdir(folder)


def _be_killed_first() -> None:
    """Make the OOM killer prefer this process, which can be replaced, over the vector's."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def _limit_memory(limit_mib: int) -> None:
    import resource

    limit = limit_mib * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
