"""The judge of an exported task, run by its ``tests/test.sh`` in the box: imports only the standard library.

The rules are those of ``judge.py``, whose text stands next to this file there. Probes, which run what the agent made,
find neither the data of the judge nor a process that survives them.

Code of the agent's must not decide the reward. Under root it runs as another user, which can neither end this process
nor write rewards. Without root it can: this file replaces the shell of ``test.sh``, so that ``turngym/Harbor-v0`` sees
that the verifier was killed, and counts 0. This process ends itself in that way after any failure.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import traceback
import types
from pathlib import Path
from typing import Any, NamedTuple

_PROBE_SECONDS = 30.0
_KILLED = 137
_SET_DUMPABLE, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 4, 36, 38
"""Operations of prctl(2)."""
_NOBODY = 65534
_NAMES = "turngym.envs.tools"


class Entry(NamedTuple):
    """A file, folder or link."""

    kind: str
    mode: int = 0o644
    data: bytes = b""


class Ran(NamedTuple):
    """Result of a command."""

    code: int
    output: str
    is_late: bool


class Wanted(NamedTuple):
    """State that a path must have in the end."""

    data: bytes | None
    mode: int | None
    is_folder: bool


class Probe(NamedTuple):
    """A command on inputs that the agent has not seen."""

    keep: tuple[str, ...]
    files: dict[str, Entry]
    command: str
    output: str


class Task(NamedTuple):
    """Data that the judge needs of a task."""

    files: dict[str, Entry]
    wanted: dict[str, Wanted]
    scratch: tuple[str, ...]
    probes: tuple[Probe, ...]


def judge_class(source: str) -> Any:
    """Return the judge of a source that imports the types above by the names of its package."""
    parts = _NAMES.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules[".".join(parts[:end])] = types.ModuleType(parts[end - 1])
    for name, items in {
        "harbor": (),
        "harbor.box": (Ran,),
        "harbor.files": (Entry,),
        "terminal": (),
        "terminal.task": (Probe, Task, Wanted),
    }.items():
        module = sys.modules[f"{_NAMES}.{name}"] = types.ModuleType(name)
        module.__dict__.update({item.__name__: item for item in items})
    space: dict[str, Any] = {"__name__": "judge"}
    exec(source, space)
    return space["Judge"]


def entries(rows: dict[str, list[Any]]) -> dict[str, Entry]:
    """Return path -> entry of JSON."""
    return {path: Entry(kind, mode, base64.b64decode(data)) for path, (kind, mode, data) in rows.items()}


def read_task(content: dict[str, Any]) -> Task:
    """Return a task of JSON."""
    wanted = {
        path: Wanted(None if data is None else base64.b64decode(data), mode, is_folder)
        for path, (data, mode, is_folder) in content["wanted"].items()
    }
    probes = tuple(
        Probe(tuple(each["keep"]), entries(each["files"]), each["command"], each["output"])
        for each in content["probes"]
    )
    return Task(entries(content["files"]), wanted, tuple(content["scratch"]), probes)


def tree(root: Path, prefix: str = "") -> dict[str, Entry]:
    """Return path -> entry of everything below a folder; links are not followed."""
    found: dict[str, Entry] = {}
    for name in sorted(os.listdir(root)):
        path, inner = root / name, f"{prefix}{name}"
        about = path.lstat()
        mode = stat.S_IMODE(about.st_mode)
        if stat.S_ISLNK(about.st_mode):
            found[inner] = Entry("link", mode, os.fsencode(os.readlink(path)))
        elif stat.S_ISREG(about.st_mode):
            path.chmod(mode | 0o400)
            found[inner] = Entry("file", mode, path.read_bytes())
            path.chmod(mode)
        elif stat.S_ISDIR(about.st_mode):
            path.chmod(mode | 0o700)
            found[inner] = Entry("folder", mode)
            found.update(tree(path, f"{inner}/"))
            path.chmod(mode)
        else:
            found[inner] = Entry("special", mode)
    return found


def write(root: Path, files: dict[str, Entry]) -> None:
    """Write files below a new folder."""
    root.mkdir()
    for name, entry in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "folder":
            path.mkdir(exist_ok=True)
        elif entry.kind == "link":
            os.symlink(entry.data, path)
        else:
            path.write_bytes(entry.data)
    for name, entry in reversed(files.items()):
        if entry.kind != "link":
            (root / name).chmod(entry.mode)
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)


def run_probe(root: Path, variables: dict[str, str], files: dict[str, Entry], command: str) -> Ran:
    """Run a probe in a folder in place of the agent's, which comes back afterwards."""
    aside = root.with_name(f".{root.name}-{os.urandom(8).hex()}")
    root.rename(aside)
    try:
        write(root, files)
        child = subprocess.Popen(
            ["bash", "-c", f"cd {root.name}; {command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=root.parent,
            env={**os.environ, **variables},
            preexec_fn=in_child,
        )
        try:
            output, _ = child.communicate(timeout=_PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            return Ran(_KILLED, "", True)
        return Ran(child.returncode, output.decode("utf8", "replace"), False)
    finally:
        end_children()
        shutil.rmtree(root, ignore_errors=True)
        aside.rename(root)


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
        with contextlib.suppress(OSError):
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
    """Judge all tasks, and write the reward."""
    control = ctypes.CDLL(None).prctl
    control(_SET_DUMPABLE, 0, 0, 0, 0)
    control(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    mode = logs.stat().st_mode & 0o7777
    if os.geteuid() == 0:
        logs.chmod(0o700)
    content, source = json.loads((tests / "tasks.json").read_text("utf8")), (tests / "judge.py").read_text("utf8")
    shutil.rmtree(tests, ignore_errors=True)  # what the agent made runs below, and must not find the answers
    judge, top = judge_class(source), Path(content["root"])
    is_solved = sorted(os.listdir(top)) == sorted(content["tasks"])
    for name, each in content["tasks"].items():
        root = top / name
        files = tree(root) if root.is_dir() and not root.is_symlink() else {}
        if not os.path.lexists(root):
            root.mkdir()  # probes are run in its place

        def run(files: dict[str, Entry], command: str, root: Path = root) -> Ran:
            return run_probe(root, content["variables"], files, command)

        is_solved = judge(read_task(each), run).verdict(files).is_success and is_solved
    end_children()
    write_reward(logs, is_solved)
    logs.chmod(mode)


if __name__ == "__main__":
    try:
        main(Path("/tests"), Path("/logs/verifier"))
    except BaseException:
        traceback.print_exc()
        os.kill(os.getpid(), signal.SIGKILL)  # nothing that was written counts
