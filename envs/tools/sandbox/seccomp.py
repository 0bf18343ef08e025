"""A filter of kernel calls for sandboxes: what is not in the table of :mod:`turngym.envs.tools.sandbox.calls` fails.

The filter is a program of the kernel's packet filter (seccomp(2), struct sock_filter): eight bytes an instruction.
Refused calls fail with EPERM; ``clone3`` and calls newer than the table fail as if they did not exist (ENOSYS), so that
programs fall back to older ones, whose arguments can be looked at: ``clone`` may not make new namespaces, and sockets
have the families of :data:`turngym.envs.tools.sandbox.calls.FAMILIES` alone. Calls of another architecture (32-bit ones
with ``socketcall``, x32) are refused as a whole.
"""

from __future__ import annotations

import json
import os
import platform
import struct
from collections.abc import Iterable, Iterator

from turngym.envs.tools.sandbox.calls import ALLOWED, FAMILIES, LAST_KNOWN, NEW_NAMESPACES

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_FROM, _JUMP_SET, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = _ERRNO | 1, _ERRNO | 38
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x40000000
_CLONE3 = 435
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Machine -> the kernel's name for it."""
_SOCKETS = ("socket", "socketpair")


def allowed(machine: str = "") -> dict[str, int]:
    """Return the calls that are allowed on a kind of machine, some of them with certain arguments only, by name.

    >>> "read" in allowed("x86_64") and "mount" not in allowed("x86_64")
    True
    """
    machine = machine or platform.machine()
    numbers = {call.name: getattr(call, machine, -1) for call in ALLOWED}
    return {name: number for name, number in numbers.items() if number >= 0}


def program(machine: str = "") -> bytes:
    """Return the filter for a kind of machine; empty for one that it is not written for.

    >>> len(program("x86_64")) % 8, program("riscv64")
    (0, b'')
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return b""
    numbers = allowed(machine)
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_FROM, 0, 1, _X32),
        (_RETURN, 0, 0, _EPERM),
        (_JUMP_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ENOSYS),
        (_JUMP_EQUAL, 0, 4, numbers.pop("clone")),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_SET, 0, 1, NEW_NAMESPACES),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for name in _SOCKETS:
        lines += _family_check(numbers.pop(name))
    for first, last in _ranges(numbers.values()):
        lines += [(_JUMP_FROM, 0, 2, first), (_JUMP_ABOVE, 1, 0, last), (_RETURN, 0, 0, _ALLOW)]
    lines += [(_JUMP_ABOVE, 0, 1, LAST_KNOWN), (_RETURN, 0, 0, _ENOSYS), (_RETURN, 0, 0, _EPERM)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _family_check(number: int) -> list[tuple[int, int, int, int]]:
    """Return what refuses a call whose first argument is none of the families."""
    checks = [(_JUMP_EQUAL, left, 0, family) for left, family in _counted_down(FAMILIES.values())]
    body = [(_LOAD, 0, 0, _FIRST_ARGUMENT), *checks, (_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _counted_down(families: Iterable[int]) -> list[tuple[int, int]]:
    """Return each family with the number of lines between its check and what allows it."""
    listed = list(families)
    return [(len(listed) - place, family) for place, family in enumerate(listed)]


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of numbers that follow one another.

    >>> list(_ranges([5, 1, 2, 3]))
    [(1, 3), (5, 5)]
    """
    ordered = sorted(numbers)
    starts = [place for place, number in enumerate(ordered) if not place or ordered[place - 1] + 1 != number]
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        yield ordered[start], ordered[end - 1]


def memory_file(content: bytes) -> int:
    """Return an open file in memory, which child processes may inherit."""
    file = os.memfd_create("turngym", 0)
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def docker_profile() -> str:
    """Return the same filter as Docker reads it.

    >>> "SCMP_ACT_ERRNO" in docker_profile()
    True
    """
    plain = [call.name for call in ALLOWED if call.name not in (*_SOCKETS, "clone")]
    no_namespaces = {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    rules = [
        {"names": plain, "action": "SCMP_ACT_ALLOW"},
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [no_namespaces]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    ]
    for family in FAMILIES.values():
        is_family = {"index": 0, "value": family, "op": "SCMP_CMP_EQ"}
        rules.append({"names": list(_SOCKETS), "action": "SCMP_ACT_ALLOW", "args": [is_family]})
    return json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules})
