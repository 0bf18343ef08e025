"""The judge of an exported program task, run by its ``tests/test.sh`` in the box: imports only the standard library.

As in the environment, the program runs in processes that get inputs and return values; expected values stay here, and
are removed from the disk before the program starts. ``values.py``, ``returned.py`` and ``call.py`` next to this file
are the environment's own.

Code of the agent's must not decide the reward. Under root it runs as another user, which can neither end this process
nor write rewards. Without root it can: this file replaces the shell of ``test.sh``, so that ``turngym/Harbor-v0`` sees
that the verifier was killed, and counts 0. This process ends itself in that way after any failure.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any

_MOST_LOSSES = 2
_LOAD_SECONDS = 10.0
_LONGEST = 2**20
_SET_DUMPABLE, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 4, 36, 38
"""Operations of prctl(2)."""
_NOBODY = 65534
_VALUES = "turngym.envs.tools.code_repair.values"
_CHILD = """
import json, os, resource, sys
sys.set_int_max_str_digits(4300)
requests, replies, memory = open(int(sys.argv[1]), 'rb'), int(sys.argv[2]), int(sys.argv[3]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
tools, names = {'__name__': 'turngym_values'}, {}
for line in requests:
    order = json.loads(line)
    try:
        if 'tools' in order:
            exec(order['tools'], tools)
            tools['install'](names)
            exec(order['program'], names)
            reply = 'loaded'
        else:
            reply = str(tools['call'](names[order['name']], order['arguments']))
        reply = {'value': reply}
    except BaseException as error:
        reply = {'problem': type(error).__name__}
    os.write(replies, json.dumps(reply).encode() + b'\\n')
"""


class Program:
    """A process that runs a program.

    Args:
        tools: Source of the functions that encode values and call the program.
        source: The program.
        memory: Address space in MiB.
    """

    def __init__(self, tools: str, source: str, memory: int) -> None:
        requests, self._to = os.pipe()
        self._from, replies = os.pipe()
        words = [sys.executable, "-I", "-c", _CHILD, str(requests), str(replies), str(memory)]
        self._child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(requests, replies),
            cwd="/tmp",
            preexec_fn=in_child,
        )
        os.close(requests)
        os.close(replies)
        self.is_loaded = self.ask({"tools": tools, "program": source}, _LOAD_SECONDS) is not None

    def ask(self, order: dict[str, Any], seconds: float) -> str | None:
        """Return the text that an order gives; None, and the end of the process, if there is none in time."""
        deadline, data = time.monotonic() + seconds, bytearray()
        try:
            os.write(self._to, json.dumps(order).encode() + b"\n")
            while not data.endswith(b"\n") and len(data) < _LONGEST:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([self._from], [], [], left)[0]:
                    break
                read = os.read(self._from, 65536)
                if not read:
                    break
                data += read
            reply = json.loads(data)
        except (OSError, ValueError):
            self.close()
            return None
        value = reply.get("value") if isinstance(reply, dict) else None
        return value if isinstance(value, str) else None

    @property
    def is_alive(self) -> bool:
        """True while it runs."""
        return self._child.poll() is None

    def close(self) -> None:
        """End it."""
        self._child.kill()
        self._child.wait()


def module(name: str, source: str) -> types.ModuleType:
    """Return a module of a source, which others import by that name."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(parts[end - 1]))
    found = sys.modules[name] = types.ModuleType(name)
    exec(source, found.__dict__)
    return found


def judged(content: dict[str, Any], source: str, sources: dict[str, str]) -> bool:
    """Return whether a program passes all tests."""
    values = module(_VALUES, sources["values"])
    returned = module("turngym_returned", sources["returned"])
    tools = sources["values"] + sources["call"]
    program, losses, count = Program(tools, source, content["memory_mib"]), 0, 0
    for arguments, output in zip(content["inputs"], content["outputs"], strict=True):
        if not program.is_alive:
            losses += 1
            if losses > _MOST_LOSSES:
                return False
            program = Program(tools, source, content["memory_mib"])
        if not program.is_loaded:
            return False
        text = program.ask({"name": content["name"], "arguments": json.dumps(arguments)}, content["seconds"])
        with contextlib.suppress(ValueError, RecursionError, OverflowError, TypeError):
            count += text is not None and bool(returned.matches(returned.read(text), values.decode(output)))
    program.close()
    return count == len(content["inputs"])


def in_child() -> None:
    """Make a new process one whose programs get no privileges and, under root, a user that can signal no other's."""
    ctypes.CDLL(None).prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def end_children() -> None:
    """End every process that this one, or one of those, has started."""
    while True:
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError, IndexError):
                if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                    os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def write_reward(logs: Path, is_solved: bool) -> None:
    """Write the reward in place of what is there."""
    for name in ("reward.json", "reward.txt"):
        with contextlib.suppress(FileNotFoundError):
            (logs / name).unlink()
    (logs / "reward.txt").write_text(f"{int(is_solved)}\n")


def main(tests: Path, logs: Path) -> None:
    """Judge the program, and write the reward."""
    control = ctypes.CDLL(None).prctl
    control(_SET_DUMPABLE, 0, 0, 0, 0)
    control(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    mode = logs.stat().st_mode & 0o7777
    if os.geteuid() == 0:
        logs.chmod(0o700)
    content = json.loads((tests / "cases.json").read_text("utf8"))
    sources = {name: (tests / f"{name}.py").read_text("utf8") for name in ("values", "returned", "call")}
    shutil.rmtree(tests, ignore_errors=True)  # the program must not find the answers
    try:
        with open(content["file"], encoding="utf8") as file:
            source = file.read(_LONGEST)
    except (OSError, ValueError):
        source = ""
    is_solved = judged(content, source, sources)
    end_children()
    write_reward(logs, is_solved)
    logs.chmod(mode)


if __name__ == "__main__":
    try:
        main(Path("/tests"), Path("/logs/verifier"))
    except BaseException:
        traceback.print_exc()
        os.kill(os.getpid(), signal.SIGKILL)  # nothing that was written counts
