"""Boxes in Bubblewrap: the host's programs, files in memory."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from turngym.envs.tools.harbor.box import (
    LARGEST_REWARD,
    LARGEST_SNAPSHOT,
    VARIABLES,
    Box,
    BoxError,
    BoxLost,
    BoxSpoiled,
    Ran,
)
from turngym.envs.tools.harbor.dockerfile import Recipe
from turngym.envs.tools.harbor.files import Entry, packed
from turngym.envs.tools.harbor.settings import BoxSettings
from turngym.envs.tools.sandbox import Limits
from turngym.envs.tools.sandbox.host import SHARED_BYTES, ProcessSession, driver_arguments
from turngym.envs.tools.sandbox.launcher import (
    NOBODY,
    Launch,
    if_present,
    isolation,
    launch,
    require_bubblewrap,
    variables,
)
from turngym.envs.tools.sandbox.programs import system_programs
from turngym.envs.tools.sandbox.system import view

_LARGEST_STORAGE, _LARGEST_MEMORY = 1024, 16384
"""Mebibytes of the files, which are in memory, and of the processes."""
_FOLDERS = ("tmp", "root", "app", "logs", "logs/agent", "logs/verifier", "logs/artifacts", "etc", "var", "var/tmp")
_USERS = f"root:x:0:0:root:/root:/bin/bash\nuser:x:{NOBODY}:{NOBODY}:user:/root:/bin/bash\n"


def require_boxes() -> None:
    """Raise unless boxes can be made here.

    Raises:
        MissingExtra: Bubblewrap or the system's Python is missing.
    """
    require_bubblewrap("turngym/Harbor-v0", _limits(BoxSettings()), "run as root, or use docker")


def base_files() -> dict[str, Entry]:
    """Return the folders and files of every box, besides the programs of the host."""
    base = {name: Entry("folder", 0o777 if name.endswith("tmp") else 0o755) for name in _FOLDERS}
    return {**base, "etc/passwd": Entry("file", 0o644, _USERS.encode())}


class BubblewrapBox(Box):
    """A box in namespaces: the host's programs, read-only, and files in memory; no network, no packages of Python.

    Args:
        recipe: Its files, variables and working directory.
        settings: Memory and disk.
        env: Variables of every command.
        patience: Seconds after which an order, not counting the time of its command, is given up.

    Raises:
        SandboxError: It does not start.
    """

    def __init__(self, recipe: Recipe, settings: BoxSettings, env: Mapping[str, str], patience: float = 120.0) -> None:
        super().__init__({**VARIABLES, **recipe.env, **env}, settings.workdir or recipe.workdir)
        self._limits, self._patience = _limits(settings), patience
        self._session = ProcessSession(self._launch, self._limits)
        self._has_program = False
        try:
            self.put(packed({**base_files(), **recipe.files}), "/")
        except BaseException:
            self.close()
            raise

    def _launch(self) -> Launch:
        scratch = str(int(self._limits.scratch_mib * 2**20))
        arguments = [
            *(*isolation(NOBODY, "box"), "--die-with-parent", "--size", scratch, "--tmpfs", "/"),
            *(*system_programs(), *if_present(("/etc/alternatives", "/etc/ld.so.cache"))),
            *("--proc", "/proc", "--dev", "/dev", "--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm"),
            *("--remount-ro", "/dev", "--chdir", "/", *variables(VARIABLES), "--"),
            *(view().program, *driver_arguments(self._limits)),
        ]
        return launch(arguments, self._limits)

    def run(self, command: str, env: Mapping[str, str], seconds: float, *, stay: bool = False, user: str = "") -> Ran:
        """Run a command in a new shell; there is one user only."""
        order = {"command": command, "env": {**self.env, **env}, "folder": self.workdir, "seconds": seconds}
        try:
            found = self._ask({"do": "run", **order, "stay": stay}, seconds + self._patience)
        except BoxLost:
            raise
        except BoxError:  # a command can end every process, that which follows orders too
            return Ran(137, "All processes were ended.", False)
        left_out = found["left_out"]
        between = f"\n... {left_out} bytes left out ...\n" if left_out > 0 else ""
        output = f"{found['head']}{between}{found['tail']}"
        return Ran(found["code"], output, found["late"])

    def put(self, tree: str, root: str, *, empty: bool = False) -> None:
        """Write a packed tree below a folder."""
        try:
            self._ask({"do": "put", "tree": tree, "root": root, "empty": empty})
        except BoxLost:
            raise
        except BoxError as error:
            raise BoxSpoiled(str(error)) from error

    def get(self, paths: Sequence[str], most: int, stamps: tuple[int, int] | None = None) -> str | None:
        """Return a packed tree of paths; None if it is too large.

        Args:
            paths: The paths.
            most: Bytes that it may have.
            stamps: What was modified after the first of these times (nanoseconds) gets the second, in the box too.
        """
        found = self._ask({"do": "get", "paths": list(paths), "most": most, "stamps": stamps})
        return found.get("tree")

    def rewards(self, folder: str) -> dict[str, str | None]:
        """Return name -> text of the files of rewards."""
        return self._ask({"do": "rewards", "folder": folder, "most": LARGEST_REWARD})

    def end_processes(self) -> None:
        """End every process but the driver, with the interpreter that follows orders: a command may have changed it."""
        self._session.run("import os\nos._exit(0)", self._patience)
        self._has_program = False
        if not self._session.is_alive:
            raise BoxLost("the box has ended.")

    def has_processes(self) -> bool:
        """Return whether processes of earlier commands run."""
        return bool(self._ask({"do": "others"})["count"])

    def close(self) -> None:
        """Remove the box; calling it again has no effect."""
        self._session.close()

    def _ask(self, order: Mapping[str, Any], seconds: float = 0.0) -> dict[str, Any]:
        """Return the answer to an order.

        Raises:
            BoxError: The order cannot be followed.
            BoxLost: The box has ended, before or now, or its answer is none of the program that follows orders.
        """
        if not self._session.is_alive:
            raise BoxLost("the box has ended.")
        token = secrets.token_hex(16)
        text = json.dumps({**order, "token": token})
        program = "" if self._has_program else _program()
        result = self._session.run(f"{program}\nmain(json.loads({text!r}))", seconds or self._patience)
        self._has_program = not result.lost_state
        if not self._session.is_alive:
            raise BoxLost("the box has ended: its processes took more memory than they may.")
        lines = [line for line in result.stdout.split("\n") if line.startswith(f"{token} ")]
        try:
            found = json.loads(lines[-1].removeprefix(token)) if lines else {"error": f"no answer ({result.status})"}
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and "error" in found:
            raise BoxError(f"the box cannot {order['do']}: {_harmless(str(found['error'])[:300])}.")
        if not isinstance(found, dict) or not _FORMS[order["do"]](found):
            self.close()
            raise BoxLost("the box has ended: a command has changed the program in it that answers.")
        return found


def _harmless(text: str) -> str:
    return text.encode("utf8", "replace").decode()


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value == _harmless(value)


def _is_ran(found: dict[str, Any]) -> bool:
    if set(found) != {"code", "head", "tail", "left_out", "late"}:
        return False
    code, left_out = found["code"], found["left_out"]
    is_number = type(code) is int and abs(code) < 256 and type(left_out) is int and 0 <= left_out < 2**63
    return is_number and isinstance(found["late"], bool) and _is_text(found["head"]) and _is_text(found["tail"])


_FORMS: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "run": _is_ran,
    "put": lambda found: not found,
    "get": lambda found: found == {"large": True} or (set(found) == {"tree"} and _is_text(found["tree"])),
    "rewards": lambda found: (
        set(found) <= {"reward.json", "reward.txt"} and all(each is None or _is_text(each) for each in found.values())
    ),
    "others": lambda found: set(found) == {"count"} and type(found["count"]) is int,
}
"""Order -> whether an answer has its form."""


@cache
def _program() -> str:
    return (Path(__file__).parent / "inside.py").read_text("utf8")


def _limits(settings: BoxSettings) -> Limits:
    storage = min(settings.storage_mib, _LARGEST_STORAGE)
    return Limits(
        wall_seconds=10**5,
        cpu_seconds=10**5,
        memory_mib=int(max(256, min(settings.memory_mib, _LARGEST_MEMORY))),
        processes=256,
        output_kib=int(1.5 * LARGEST_SNAPSHOT / 1024),
        file_mib=int(max(1, storage)),
        scratch_mib=int(max(1, storage)),
        open_files=1024,
    )
