"""The program inside of a sandbox: it runs code in its own child, and tells the host what came of it.

It reads lines of JSON on standard input (``{"code": ..., "seconds": ...}``) and answers each with one on standard
output. It is sent as text to the interpreter inside and imports nothing but the standard library.

It is process 1 inside, to which code can send no signal that ends or stops it, and it is not dumpable, so that code
can neither change its memory nor open its pipes in ``/proc``. The child that runs code has neither of the host's pipes;
what it reports is a status and a text, both checked here. Each order comes with a token that the answer repeats.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from typing import Any, TextIO

READY = {"ready": True}
LONGEST_VALUE = 10_000
_LONGEST_REPORT = 8 * LONGEST_VALUE + 100  # two digits for each byte, four bytes for each character
_SET_DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)


def _set_dumpable(value: int) -> None:
    """Say whether processes of the same user may look into this one: its memory, its open files."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def _set_limits(limits: dict[str, Any]) -> None:
    """Take on the limits, for this process and all that come from it."""
    mib = 1024 * 1024
    wanted = {
        resource.RLIMIT_AS: limits["memory_mib"] * mib,
        resource.RLIMIT_FSIZE: limits["file_mib"] * mib,
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_NPROC: limits["processes"],
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        resource.setrlimit(kind, (int(value), int(value)))


def _reset_signals() -> None:
    """Take back what the host's process ignores or blocks, such as SIGHUP under nohup: programs inside inherit it."""
    python_ignores = {signal.SIGPIPE, signal.SIGXFSZ}
    for number in signal.valid_signals() - python_ignores - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _run_code(code: str, namespace: dict[str, Any]) -> str:
    """Run code and return the repr of its last line, if that is an expression."""
    tree = ast.parse(code, "<code>")
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "<code>", "exec"), namespace)
        return ""
    tree.body.pop()
    exec(compile(tree, "<code>", "exec"), namespace)
    value = eval(compile(ast.Expression(last.value), "<code>", "eval"), namespace)
    return "" if value is None else repr(value)


def work(orders: TextIO, reports: TextIO, limits: dict[str, Any]) -> None:
    """Run one piece of code after the other; the variables stay."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limits["cpu_seconds"]), int(limits["cpu_seconds"]) + 1))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line in orders:
        status, value = "ok", ""
        try:
            value = _run_code(json.loads(line)["code"], namespace)
        except SystemExit as end:
            status = "ok" if end.code in (None, 0) else "error"
        except BaseException:
            status = "error"
            kind, error, trace = sys.exc_info()
            while trace and trace.tb_frame.f_code.co_filename != "<code>":
                trace = trace.tb_next
            traceback.print_exception(kind, error, trace)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        reports.write(f"{status} {value[:LONGEST_VALUE].encode('utf8', 'replace').hex()}\n")
        reports.flush()


class Worker:
    """The child that runs code, with its pipes."""

    def __init__(self, limits: dict[str, Any]) -> None:
        order_read, self.orders = os.pipe()
        self.reports, report_write = os.pipe()
        self.out, out_write = os.pipe()
        self.err, err_write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            for end in (order_read, report_write, out_write, err_write):
                os.close(end)
            return
        for end in (self.orders, self.reports, self.out, self.err):
            os.close(end)
        _set_dumpable(1)
        _reset_signals()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out_write, 1), (err_write, 2)):
            os.dup2(source, target)
        os.close(null)
        sys.stdin = os.fdopen(0, encoding="utf8", errors="replace")
        sys.stdout = os.fdopen(1, "w", encoding="utf8", errors="replace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf8", errors="replace", closefd=False, buffering=1)
        work(os.fdopen(order_read, encoding="utf8"), os.fdopen(report_write, "w", encoding="utf8"), limits)
        os._exit(0)

    def close(self) -> None:
        """End every process but this one."""
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # which says that none is left
            while True:
                os.waitpid(-1, 0)
        for end in (self.orders, self.reports, self.out, self.err):
            os.close(end)


def collect(worker: Worker, seconds: float, most: int) -> tuple[str, bytes, bytes, bytes]:
    """Return status, value and output of the order that the worker has got."""
    deadline = time.monotonic() + seconds
    output = {worker.out: bytearray(), worker.err: bytearray()}
    report, waiting = bytearray(), [worker.reports, worker.out, worker.err]
    status = ""
    while not status:
        left = deadline - time.monotonic()
        ready = select.select(waiting, [], [], max(0.0, left))[0] if left > 0 else []
        if not ready:
            status = "timeout"
        for end in ready:
            data = os.read(end, 65536)
            if end == worker.reports:
                report += data
                is_wrong = not data or len(report) > _LONGEST_REPORT
                status = "died" if is_wrong else "reported" if b"\n" in data else status
            elif not data:
                waiting.remove(end)
            else:
                output[end] += data
        if not status and sum(map(len, output.values())) > most:
            status = "output"
    for end in (worker.out, worker.err):  # what was written before the report
        while end in waiting and select.select([end], [], [], 0)[0] and sum(map(len, output.values())) <= most:
            data = os.read(end, 65536)
            if not data:
                break
            output[end] += data
    return status, bytes(report), bytes(output[worker.out]), bytes(output[worker.err])


def _read_report(report: bytes) -> tuple[str, str]:
    """Return the status and the value in what the code's own process wrote; it died if that is no report."""
    status, _, value = report.partition(b"\n")[0].partition(b" ")
    try:
        text = bytes.fromhex(value.decode("ascii")).decode("utf8")
    except ValueError:
        return "died", ""
    return (status.decode(), text[:LONGEST_VALUE]) if status in (b"ok", b"error") else ("died", "")


def answer(worker: Worker, order: dict[str, Any], limits: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Run one order; returns the answer, and whether the worker has to be replaced."""
    most = int(limits["output_kib"] * 1024)
    while select.select([worker.reports], [], [], 0)[0] and os.read(worker.reports, 65536):
        pass  # written since the last report, by what code has left behind
    try:
        with os.fdopen(os.dup(worker.orders), "wb") as pipe:
            pipe.write(json.dumps(order).encode() + b"\n")
    except OSError:
        return {"status": "died", "stdout": "", "stderr": "", "value": ""}, True
    status, report, out, err = collect(worker, order["seconds"], most)
    value = ""
    if status == "reported":
        status, value = _read_report(report)
    out, err = out[:most], err[: max(0, most - len(out[:most]))]
    texts = {"stdout": out.decode("utf8", "replace"), "stderr": err.decode("utf8", "replace")}
    return {"status": status, "value": value, **texts}, status not in ("ok", "error")


def main() -> None:
    """Answer orders until there are no more."""
    if os.getpid() != 1:  # it ends every process that it can see
        sys.exit("the driver of a sandbox has to be process 1 of a namespace of its own")
    limits = json.loads(sys.argv[1])
    sys.path[:] = filter(None, sys.path)  # modules come from the system alone, not from the scratch folder
    _set_limits(limits)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what code leaves behind ends without a trace
    _set_dumpable(0)
    worker = Worker(limits)
    print(json.dumps(READY), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        token = order.pop("token")
        found, is_lost = answer(worker, order, limits)
        if is_lost:
            worker.close()
            worker = Worker(limits)
        print(json.dumps({**found, "lost_state": is_lost, "token": token}), flush=True)
    worker.close()


if __name__ == "__main__":
    main()
