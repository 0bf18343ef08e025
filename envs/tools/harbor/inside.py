"""The program inside of a box: it runs commands and moves files, for a host that sends it as text with each order.

It imports nothing but the standard library. An order is a JSON object with ``do``; the answer is a line of JSON after
the order's token.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
import zlib
from typing import Any

KEPT = 512 * 1024
"""Bytes kept of the beginning and of the end of a command's output."""
_SYSTEM = ("proc", "dev", "sys", "bin", "sbin", "lib", "lib32", "lib64")
_SYSTEM_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "share", "include")
_HOST_FILES = ("/etc/alternatives", "/etc/ld.so.cache")
_SHARED = "/dev/shm"
_SET_DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run a command in a shell, and end what it leaves behind unless that is to stay."""
    if not order["stay"]:
        with contextlib.suppress(OSError):  # without permissions of /, the shell says so
            empty_shared()  # a command that ended the process which follows orders has left its files there
    folder = order["folder"] if os.path.isdir(order["folder"]) else "/"
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    deadline = time.monotonic() + order["seconds"]
    try:
        child = subprocess.Popen(
            [shell, "-c", order["command"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=order["env"],
            start_new_session=True,
        )
    except OSError as error:
        told = f"the shell does not start: {error.strerror}\n"
        return {"code": 126, "head": told, "tail": "", "left_out": 0, "late": False}
    head, tail, left_out, is_late = follow(child, deadline)
    if is_late or not order["stay"]:
        end_others()
        with contextlib.suppress(OSError):  # what the command printed counts all the same
            empty_shared()
    return {"code": child.returncode, "head": text(head), "tail": text(tail), "left_out": left_out, "late": is_late}


def follow(child: Any, deadline: float) -> tuple[bytes, bytes, int, bool]:
    """Return beginning and end of a child's output, the bytes between them, and whether it was out of time."""
    output, ended = child.stdout.fileno(), os.pidfd_open(child.pid)
    head, tail, total, is_late = bytearray(), bytearray(), 0, False
    waiting = [output, ended]
    while ended in waiting and not is_late:
        left = deadline - time.monotonic()
        ready = select.select(waiting, [], [], max(0.0, left))[0] if left > 0 else []
        is_late = not ready
        if output in ready:
            data = os.read(output, 65536)
            total += len(data)
            add(head, tail, data)
            if not data:
                waiting.remove(output)
        elif ended in ready:
            waiting.remove(ended)
    if is_late:
        kill(child.pid)
    child.wait()
    os.close(ended)
    child.stdout.close()
    return bytes(head), bytes(tail), total - len(head) - len(tail), is_late


def add(head: bytearray, tail: bytearray, data: bytes) -> None:
    """Keep data at the end of the beginning, or else as the end."""
    free = KEPT - len(head)
    head += data[:free]
    tail += data[max(0, free) :]
    del tail[:-KEPT]


def kill(pid: int) -> None:
    """End a group of processes."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def end_others() -> None:
    """End every process in the box but this one and process 1."""
    with contextlib.suppress(OSError):  # there may be none
        os.kill(-1, signal.SIGKILL)


def others(order: dict[str, Any]) -> dict[str, Any]:
    """Count the processes in the box other than this one and process 1."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return {"count": sum(pid not in (1, os.getpid()) for pid in pids)}


def text(data: bytes) -> str:
    """Return bytes as text that JSON can hold."""
    return data.decode("utf8", "replace")


def remove(path: str) -> None:
    """Remove a path, whatever it is, however deep and however it is protected."""
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
        return
    os.chmod(path, 0o700)
    left = [path]
    while left:
        folder = left.pop()
        for name in os.listdir(folder):
            below = os.path.join(folder, name)
            if os.path.islink(below) or not os.path.isdir(below):
                os.unlink(below)
                continue
            os.chmod(below, 0o700)
            left.append(os.path.join(path, os.urandom(16).hex()))  # no path gets too long
            os.rename(below, left[-1])
        if folder != path:
            os.rmdir(folder)
    os.rmdir(path)


def empty_shared() -> None:
    """Remove the shared memory, which is not part of a snapshot."""
    reset(_SHARED)
    for name in os.listdir(_SHARED):
        remove(os.path.join(_SHARED, name))


def reset(folder: str) -> None:
    """Undo what a command has done to a folder that stays: its permissions, and the attributes that it may set."""
    os.chmod(folder, 0o755)
    for name in os.listxattr(folder):
        if name.startswith("user."):
            os.removexattr(folder, name)


def put(order: dict[str, Any]) -> dict[str, Any]:
    """Write a packed tree below a folder, which is emptied first if so wished."""
    root = order["root"]
    rows = json.loads(zlib.decompress(base64.b64decode(order["tree"]))) if order["tree"] else []
    if order["empty"]:
        if root == "/":
            empty_root()
            empty_shared()
        else:
            remove(root)
    os.makedirs(root, exist_ok=True)
    for name, kind, _, _, data in rows:
        path = os.path.join(root, name)
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        if not (kind == "folder" and is_folder):
            remove(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if kind == "folder":
            os.makedirs(path, exist_ok=True)
        elif kind == "link":
            os.symlink(base64.b64decode(data), path)
        elif kind == "special":
            os.mknod(path, int(base64.b64decode(data)))
        else:
            with open(path, "wb") as file:
                file.write(base64.b64decode(data))
    for name, kind, mode, stamp, _ in reversed(rows):
        path = os.path.join(root, name)
        if kind != "link":
            os.chmod(path, mode)
        if stamp:
            os.utime(path, ns=(stamp, stamp), follow_symlinks=False)
    return {}


def empty_root() -> None:
    """Remove everything that a command may have written."""
    for path in ("/", "/etc", "/usr"):
        reset(path)
    for name, path in inner("/"):
        if name == "usr":
            for _, below in inner("/usr"):
                remove(below)
        elif path == "/etc":
            for _, below in inner("/etc"):
                remove(below)
        else:
            remove(path)


def inner(folder: str) -> list[tuple[str, str]]:
    """Return name and path of what a folder holds and commands may have written.

    The order is the reverse of the system's: files in memory are listed newest first, so that those which are written
    in this order are listed as before.
    """
    system = {"/": _SYSTEM, "/usr": _SYSTEM_USR}.get(folder, ())
    paths = [(name, os.path.join(folder, name)) for name in reversed(os.listdir(folder)) if name not in system]
    return [(name, path) for name, path in paths if path not in _HOST_FILES]


def get(order: dict[str, Any]) -> dict[str, Any]:
    """Return the packed tree of some paths, of at most so many bytes.

    With ``stamps``, what is newer than the first of these times gets the second; what is older than 1970 gets that.
    """
    rows: list[list[Any]] = []
    left, stamps = [order["most"]], order.get("stamps") or [2**63, 0]
    for path in order["paths"]:
        if os.path.lexists(path):
            collect(path, rows, left, stamps)
    if left[0] < 0:
        return {"large": True}
    return {"tree": base64.b64encode(zlib.compress(json.dumps(rows).encode(), 1)).decode()}


def collect(path: str, rows: list[list[Any]], left: list[int], stamps: list[int]) -> None:
    """Add a path and what is below it."""
    about = os.lstat(path)
    name, mode = path.lstrip("/"), stat.S_IMODE(about.st_mode)
    stamp = stamps[1] if about.st_mtime_ns > stamps[0] else max(1, about.st_mtime_ns)  # 0 in a tree is not a time
    if stamp != about.st_mtime_ns:
        os.utime(path, ns=(stamp, stamp), follow_symlinks=False)
    left[0] -= 200 + (about.st_size if stat.S_ISREG(about.st_mode) else 0)
    if left[0] < 0:
        return
    if stat.S_ISLNK(about.st_mode):
        rows.append([name, "link", mode, stamp, base64.b64encode(os.readlink(os.fsencode(path))).decode()])
    elif stat.S_ISREG(about.st_mode):
        os.chmod(path, mode | 0o400)
        with open(path, "rb") as file:
            data = file.read()
        os.chmod(path, mode)
        rows.append([name, "file", mode, stamp, base64.b64encode(data).decode()])
    elif stat.S_ISDIR(about.st_mode):
        os.chmod(path, mode | 0o700)
        rows.append([name, "folder", mode, stamp if name else 0, ""])  # writing what is in / changes its time
        for _, below in inner(path):
            collect(below, rows, left, stamps)
        os.chmod(path, mode)
    else:
        rows.append([name, "special", mode, stamp, base64.b64encode(b"%d" % stat.S_IFMT(about.st_mode)).decode()])


def rewards(order: dict[str, Any]) -> dict[str, Any]:
    """Return kind and text of the reward files; links are not followed."""
    found: dict[str, Any] = {}
    for name in ("reward.json", "reward.txt"):
        path = os.path.join(order["folder"], name)
        if not os.path.lexists(path):
            continue
        if not stat.S_ISREG(os.lstat(path).st_mode):
            found[name] = None
            continue
        with open(path, "rb") as file:
            found[name] = text(file.read(order["most"] + 1))
    return found


def main(order: dict[str, Any]) -> None:
    """Follow an order, and print what came of it; no command can look into this process or write to its pipes."""
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    order["env"] = order.get("env", {})
    try:
        found = {"run": run, "put": put, "get": get, "rewards": rewards, "others": others}[order["do"]](order)
    except Exception as error:  # a full disk, an odd name: the host says it
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    sys.stdout.write(f"\n{order['token']} {json.dumps(found)}\n")
    sys.stdout.flush()
