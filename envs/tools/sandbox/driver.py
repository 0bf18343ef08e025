"""The program inside of a sandbox: it runs code in a child of its own, and tells the host what came of it.

It reads lines of JSON on standard input (``{"code": ..., "seconds": ...}``) and answers each with one on standard
output. It is sent as text to the interpreter inside, imports nothing but the standard library, and trusts nobody: the
code that it runs may kill it, or write in its place. Neither reaches beyond the sandbox; the host takes silence and
nonsense for a session that died.
"""

from __future__ import annotations

import ast
import contextlib
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


def set_limits(limits: dict[str, Any]) -> None:
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


def run_code(code: str, namespace: dict[str, Any]) -> str:
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
            value = run_code(json.loads(line)["code"], namespace)
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
        reports.write(json.dumps({"status": status, "value": value[:10000]}) + "\n")
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
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)
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
                status = "reported" if b"\n" in data else "died" if not data or len(report) > 10**6 else status
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


def answer(worker: Worker, order: dict[str, Any], limits: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Run one order; returns the answer, and whether the worker has to be replaced."""
    start, most = time.monotonic(), int(limits["output_kib"] * 1024)
    try:
        with os.fdopen(os.dup(worker.orders), "wb") as pipe:
            pipe.write(json.dumps(order).encode() + b"\n")
    except OSError:
        return {"status": "died", "stdout": "", "stderr": "", "value": "", "seconds": 0.0}, True
    status, report, out, err = collect(worker, order["seconds"], most)
    value, is_lost = "", status != "reported"
    if not is_lost:
        try:
            told = json.loads(report.split(b"\n")[0])
            status, value = str(told["status"]), str(told["value"])
        except (ValueError, KeyError, TypeError):
            status, is_lost = "died", True
    out, err = out[:most], err[: max(0, most - len(out[:most]))]
    found = {"status": status, "value": value, "seconds": time.monotonic() - start}
    return {**found, "stdout": out.decode("utf8", "replace"), "stderr": err.decode("utf8", "replace")}, is_lost


def main() -> None:
    """Answer orders until there are no more."""
    limits = json.loads(sys.argv[1])
    sys.path[:] = filter(None, sys.path)  # modules come from the system alone, not from the scratch folder
    set_limits(limits)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    worker = Worker(limits)
    print(json.dumps(READY), flush=True)
    for line in sys.stdin:
        found, is_lost = answer(worker, json.loads(line), limits)
        if is_lost:
            worker.close()
            worker = Worker(limits)
        print(json.dumps({**found, "lost_state": is_lost}), flush=True)
    worker.close()


if __name__ == "__main__":
    main()
