"""A filter of kernel calls for sandboxes: what ordinary programs never need, and attacks on the kernel like to use.

The filter is a program of the kernel's packet filter (seccomp(2), struct sock_filter): eight bytes an instruction.
Calls that are listed fail with EPERM; ``clone3`` fails as if it did not exist, so that programs fall back to ``clone``,
whose flags can be looked at: new namespaces are refused there.
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Mapping

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

_X86_64 = {
    "ptrace": 101,
    "syslog": 103,
    "pivot_root": 155,
    "chroot": 161,
    "acct": 163,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
}
_ARM64 = {
    **{name: number for name, number in _X86_64.items() if number >= 424},
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "chroot": 51,
    "quotactl": 60,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "perf_event_open": 241,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
_KINDS: Mapping[str, tuple[int, Mapping[str, int], int]] = {
    "x86_64": (0xC000003E, _X86_64, 56),
    "aarch64": (0xC00000B7, _ARM64, 220),
}
"""Machine -> the kernel's name for it, the calls that are refused, the number of ``clone``."""
_CLONE3 = 435


def refused(machine: str = "") -> frozenset[str]:
    """Return the names of the calls that are refused.

    >>> "mount" in refused("x86_64") and "read" not in refused("x86_64")
    True
    """
    return frozenset(_KINDS[machine or platform.machine()][1])


def program(machine: str = "") -> bytes:
    """Return the filter for a kind of machine; empty for one that it is not written for.

    >>> len(program("x86_64")) % 8, program("riscv64")
    (0, b'')
    """
    kind = _KINDS.get(machine or platform.machine())
    if kind is None:
        return b""
    architecture, calls, clone = kind
    eperm, enosys = _ERRNO | _EPERM, _ERRNO | _ENOSYS
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, eperm),  # calls of another architecture
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_GREATER, 0, 1, _X32),
        (_RETURN, 0, 0, eperm),
    ]
    for number in sorted(calls.values()):
        lines += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, eperm)]
    lines += [
        (_JUMP_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, enosys),
        (_JUMP_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_SET, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, eperm),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def program_file() -> int | None:
    """Return an open file, in memory, that holds the filter; None where there is none for this machine."""
    content = program()
    if not content:
        return None
    file = os.memfd_create("seccomp", 0)
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file
