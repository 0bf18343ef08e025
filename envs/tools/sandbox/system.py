"""Files of the host visible to a sandbox: interpreter, shell, standard library, and their shared libraries.

This is an allow-list. It contains no packages, wherever they are installed, so that turngym's own solutions cannot be
read where it is installed next to the standard library; nor other programs, caches or documentation.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from turngym.errors import MissingExtra
from turngym.text import printable

SYSTEM_PYTHON = "/usr/bin/python3"
_ASK_SECONDS = 60.0
_ASK = """
import ctypes, glob, json, os, sys, sysconfig

class Info(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]

names = []
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
remember = Callback(lambda info, size, data: names.append(os.fsdecode(info.contents.name or b"")) or 0)
folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
wanted = [path for folder in folders for path in glob.glob(folder + "/lib-dynload/*.so")]
for library in [*wanted, "libgcc_s.so.1"]:  # which threads load at their end
    try:
        ctypes.CDLL(library, os.RTLD_LAZY)
    except OSError:
        pass
ctypes.CDLL(None).dl_iterate_phdr(remember, None)
print(json.dumps({"libraries": [name for name in names if name.startswith("/") and name not in wanted],
    "folders": sorted(folders), "modules": sorted(sys.stdlib_module_names)}))
"""
"""Asks the interpreter where its standard library is and which libraries its modules need; none of them is imported."""
_SHELL = "/bin/sh"
"""Shell started by ``os.system`` and ``subprocess`` with ``shell=True``."""
_ALWAYS = frozenset({"lib-dynload", "__pycache__"})
_DATA = ("/usr/share/zoneinfo", "/usr/lib/locale/C.utf8")
"""Other files read by the standard library: time zones, and the locale of the environment inside."""


class View(NamedTuple):
    """The visible files.

    Args:
        program: The interpreter.
        binds: Files and folders of the host, and where they are seen.
        folders: Those among them that hold the standard library.
        modules: Names of the modules in those.
    """

    program: str
    binds: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    modules: frozenset[str]

    def hidden(self) -> list[Path]:
        """Return what is in the folders of the standard library now and is no part of it, such as dist-packages."""
        found = [path for folder in self.folders for path in sorted(Path(folder).iterdir())]
        # where a link leads is seen only if that is let in
        return [path for path in found if not path.is_symlink() and not _is_standard(path, self.modules)]

    def arguments(self) -> list[str]:
        """Return the arguments for Bubblewrap; what is hidden appears empty."""
        words = [word for source, target in self.binds for word in ("--ro-bind", source, target)]
        for path in map(str, self.hidden()):
            is_folder = os.path.isdir(path)
            words += ["--tmpfs", path, "--remount-ro", path] if is_folder else ["--ro-bind", os.devnull, path]
        return words


@cache
def view(python: str = SYSTEM_PYTHON) -> View:
    """Return what a sandbox with this interpreter sees.

    Raises:
        MissingExtra: The interpreter is missing, or does not have the whole standard library.
    """
    if not os.path.exists(python):
        raise MissingExtra(f"the sandbox bubblewrap needs {python}: apt-get install python3.")
    program = os.path.realpath(python)
    told = _asked(program)
    folders = [os.path.realpath(folder) for folder in told["folders"]]
    folders = sorted({folder for folder in folders if os.path.isdir(folder)})
    binds = {program: program, **{folder: folder for folder in folders}}
    binds |= {path: path for path in map(os.path.realpath, _DATA) if os.path.exists(path)}
    if os.path.exists(_SHELL):
        binds[f"{os.path.realpath(os.path.dirname(_SHELL))}/{os.path.basename(_SHELL)}"] = os.path.realpath(_SHELL)
    binds |= _libraries(told["libraries"], folders)
    sources = tuple((source, target) for target, source in binds.items())
    return View(program, sources, tuple(folders), frozenset(told["modules"]))


def _asked(program: str) -> dict[str, list[str]]:
    try:
        done = subprocess.run(
            [program, "-I", "-S", "-c", _ASK],
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=True,
            cwd="/",
            env={"LANG": "C.UTF-8"},
        )
        told: dict[str, list[str]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", b"") or str(error).encode()
        last = printable(reason.decode("utf8", "replace"), keep="\n").strip().splitlines()[-1:]
        raise MissingExtra(f"the sandbox bubblewrap needs {program} with its whole library: {last}.") from error
    return told


def _libraries(names: list[str], folders: list[str]) -> dict[str, str]:
    """Return where each library is seen -> the file; all next to libc, where the loader looks without its cache."""
    places = {os.path.basename(name): os.path.realpath(os.path.dirname(name)) for name in names}
    home = next((place for name, place in places.items() if name.startswith("libc.")), "/usr/lib")
    found = {}
    for name in names:
        base = os.path.basename(name)
        place = places[base] if base.startswith("ld-") else home
        if not any(os.path.realpath(name).startswith(f"{folder}/") for folder in folders):
            found[f"{place}/{base}"] = os.path.realpath(name)
    return found


def _is_standard(path: Path, modules: frozenset[str]) -> bool:
    if path.is_dir():
        return path.name in _ALWAYS | modules
    is_code = path.suffix in (".py", ".so", ".pth", ".zip")
    return not is_code or path.name.partition(".")[0] in modules or path.name.startswith("_sysconfigdata_")


_T = TypeVar("_T")
_STARTS = 4
_STEPS = ("mkdir", "find source path", "create file at", "bind mount", "mount tmpfs on", "remount readonly on")
_GONE = tuple(f"bwrap: Can't {step}" for step in _STEPS)
"""Starts of bwrap's messages about a path that is gone by one of its steps."""


def started(start: Callable[[], _T], error: type[Exception]) -> _T:
    """Return the result of a start of Bubblewrap, repeated where a path of its arguments is gone by then.

    That happens where packages are removed from the host between the making of the arguments and the start.

    Args:
        start: Makes the arguments and starts it.
        error: Raised by it, with bwrap's message in its own.
    """
    for _ in range(_STARTS - 1):
        try:
            return start()
        except error as raised:
            if not any(words in str(raised) for words in _GONE):
                raise
    return start()


_REFUSED = ("new namespace", "mount proc", "overflowuid", "user namespace", "uid map")
"""Parts of bwrap's message where it may not create namespaces."""


def with_way_out(told: str) -> str:
    """Return bwrap's message, with the fix where the system refuses it namespaces, as containers do.

    >>> with_way_out("bwrap: Can't mount proc on /newroot/proc")[:60]
    "bwrap: Can't mount proc on /newroot/proc. Bubblewrap may cre"
    """
    if not told.startswith("bwrap:") or not any(part in told for part in _REFUSED):
        return told
    return (
        f"{told.rstrip('.')}. Bubblewrap may create no namespaces here: start a Docker container with --security-opt "
        "seccomp=unconfined --security-opt systempaths=unconfined; outside of containers, allow unprivileged user "
        "namespaces. It does not run within gVisor."
    )
