"""The filter of kernel calls, tried by calling: what it refuses, what ordinary programs still do."""

import json
import os
import platform
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_backends import BACKENDS, LIMITS, Backend, backend_of, run_lines

from turngym.envs.tools.sandbox import Sandbox, make_sandbox
from turngym.envs.tools.sandbox.calls import ALLOWED, FAMILIES
from turngym.envs.tools.sandbox.host import SandboxError
from turngym.envs.tools.sandbox.seccomp import allowed, docker_profile, program
from turngym.errors import MissingExtra

NUMBERS = {
    "x86_64": {
        "ptrace": 101, "syslog": 103, "personality": 135, "modify_ldt": 154, "pivot_root": 155, "adjtimex": 159,
        "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212,
        "remap_file_pages": 216, "shmget": 29, "msgget": 68, "semget": 64, "io_setup": 206, "clock_settime": 227,
        "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "mq_open": 240, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "migrate_pages": 256, "unshare": 272, "vmsplice": 278, "move_pages": 279,
        "perf_event_open": 298, "fanotify_init": 300, "fanotify_mark": 301, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "seccomp": 317, "memfd_create": 319, "kexec_file_load": 320, "bpf": 321,
        "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
        "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438,
        "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "landlock_create_ruleset": 444,
        "memfd_secret": 447, "process_mrelease": 448,
    },
}  # fmt: skip
"""Calls that the filter refuses, by machine; those newer than its table begin at 451."""
needs_numbers = pytest.mark.skipif(platform.machine() not in NUMBERS, reason="numbers are known for x86_64")


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return backend_of(request.param)


@pytest.fixture(scope="module")
def sandbox(backend: Backend) -> Iterator[Sandbox]:
    with backend.make(LIMITS) as made:
        yield made


TRY = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(number, *arguments):
    '''Return the error number of a call, made in a child of its own; 0 for none, -1 where the child was ended.'''
    ending, beginning = os.pipe()
    pid = os.fork()
    if not pid:
        libc.syscall.restype = ctypes.c_long
        found = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
        os.write(beginning, str(ctypes.get_errno() if found == -1 else 0).encode())
        os._exit(0)
    os.close(beginning)
    os.waitpid(pid, 0)
    told = os.read(ending, 10)
    os.close(ending)
    return int(told or b'-1')
"""


@needs_numbers
def test_dangerous_calls_are_refused(sandbox: Sandbox, backend: Backend) -> None:
    numbers = NUMBERS[platform.machine()]
    code = f"{TRY}\nfor name, number in {numbers!r}.items(): print(name, tried(number, 0, 0, 0, 0, 0, 0))"
    found = dict(line.split() for line in run_lines(sandbox, code))
    assert set(found) == set(numbers)
    passed = {name for name, error in found.items() if error not in ("1", "38", "-1")}
    if backend.is_gvisor:  # its own kernel answers: none of these calls reaches the host's
        pytest.skip(f"gVisor answers itself: {sorted(passed)}")
    assert passed == set()


@needs_numbers
def test_calls_newer_than_the_table_do_not_exist(sandbox: Sandbox, backend: Backend) -> None:
    """A program falls back to what it knows, as on an older kernel."""
    code = f"{TRY}\nprint({{tried(number, 0, 0, 0, 0, 0, 0) for number in range(451, 520)}})"
    (line,) = run_lines(sandbox, code)
    assert line == "{38}" or (backend.name == "docker" and set(json.loads(f"[{line[1:-1]}]")) <= {1, 38})


def test_only_some_families_of_sockets_open(sandbox: Sandbox, backend: Backend) -> None:
    code = f"""{TRY}
import socket
for kind in (socket.socket, socket.socketpair):
    opened = set()
    for family in range(64):
        for type_ in (1, 2, 3, 5):
            try: kind(family, type_)
            except OSError: continue
            opened.add(family)
    print(*sorted(opened))
"""
    opened, pairs = run_lines(sandbox, code)
    assert set(map(int, opened.split())) <= set(FAMILIES.values())
    assert "1" in opened.split() and pairs == "1"


@pytest.mark.skipif(not hasattr(socket, "AF_VSOCK"), reason="this system knows no such sockets")
def test_sockets_of_virtual_machines_do_not_share_the_ports_of_the_host(sandbox: Sandbox) -> None:
    code = "import socket\ntry: socket.socket(40, 1); print('opened')\nexcept OSError: print('blocked')"
    assert run_lines(sandbox, code) == ["blocked"]


@needs_numbers
def test_new_namespaces_are_refused_however_they_are_asked_for(sandbox: Sandbox, backend: Backend) -> None:
    if backend.is_gvisor:
        pytest.skip("gVisor plays a kernel: its namespaces are its own")
    flags = [1 << bit for bit in (17, 25, 26, 27, 28, 29, 30)]
    code = f"""{TRY}
for flag in {flags!r}:
    print(tried(272, flag), tried(56, flag | 17, 0, 0, 0, 0), tried(435, 0, 0))
"""
    assert set(run_lines(sandbox, code)) <= {"1 1 38"}


@needs_numbers
def test_calls_of_other_architectures_are_refused(sandbox: Sandbox, backend: Backend) -> None:
    """getpid by ``int 0x80`` (32-bit, where socketcall is) and with the x32 bit."""
    code = f"""{TRY}
import mmap, signal
print(tried(0x40000000 + 39))
machine = bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])
pid = os.fork()
if not pid:
    area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(machine)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    found = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    os._exit(7 if found == os.getpid() else 0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    wide, narrow = map(int, run_lines(sandbox, code))
    assert wide in (1, 38, -1) and narrow != 7


ABSENT = {"msilib", "msvcrt", "nt", "winreg", "winsound", "ensurepip", "lib2to3"}
"""Modules of Windows, and those that Debian has in packages of their own."""


def test_the_standard_library_works(sandbox: Sandbox) -> None:
    """What MathPython and CodeRepair promise: every module, threads, processes, pools, files, time zones."""
    code = """
import sys, importlib
missing = []
for name in sorted(sys.stdlib_module_names):
    if name in ('antigravity', 'idlelib', 'this', 'tkinter', 'turtle', 'turtledemo') or name[0] == '_': continue
    try: importlib.import_module(name)
    except ImportError as error: missing.append(f'{name}: {error}')
import json
print(json.dumps(missing))
import concurrent.futures, ctypes, decimal, fractions, hashlib, multiprocessing, os, sqlite3, subprocess, tempfile
import asyncio, datetime, zoneinfo, socket, ssl, threading, zlib, lzma, bz2, uuid, locale
with concurrent.futures.ThreadPoolExecutor(2) as pool: print(list(pool.map(abs, [-1, 2])))
with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, 2]))
print(subprocess.run([sys.executable, '-c', 'print(5)'], capture_output=True, text=True).stdout.strip())
print(sqlite3.connect(':memory:').execute('select 6').fetchone())
print(hashlib.md5(b'x').hexdigest()[:4], zlib.crc32(b'x'), len(ssl.create_default_context().get_ciphers()) > 0)
print(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset())
print(os.system('exit 3') >> 8, subprocess.run('echo 4', shell=True, capture_output=True, text=True).stdout.strip())
async def wait(): await asyncio.sleep(0.01); return 8
print(asyncio.run(wait()))
with tempfile.NamedTemporaryFile() as file: print(file.write(b'123'))
left, right = socket.socketpair(); left.send(b'9'); print(right.recv(1))
print(locale.setlocale(locale.LC_ALL, ''), uuid.uuid4().version)
"""
    missing, *rest = run_lines(sandbox, code)
    assert {word.split(":")[0] for word in json.loads(missing)} <= ABSENT
    assert rest[:4] == ["[1, 2]", "[1, 2]", "5", "(6,)"] and rest[4].endswith("2363233923 True")
    assert rest[5:] == ["2:00:00", "3 4", "8", "3", "b'9'", "C.UTF-8 4"]


def test_the_filters_of_both_machines_and_of_docker_come_from_one_table() -> None:
    names = {call.name for call in ALLOWED}
    assert len(names) == len(ALLOWED) and set(allowed("aarch64")) < names >= set(allowed("x86_64"))
    for machine in ("x86_64", "aarch64"):
        numbers = list(allowed(machine).values())
        assert len(set(numbers)) == len(numbers) and len(program(machine)) // 8 < 4096
    profile = json.loads(docker_profile())
    told = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert told == names and profile["defaultAction"] == "SCMP_ACT_ERRNO"


@pytest.mark.skipif(not program(), reason="no filter is written for this machine")
def test_without_a_filter_for_the_machine_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(MissingExtra, match="no filter of kernel calls for riscv64"):
        make_sandbox("bubblewrap")


@pytest.mark.skipif(not program(), reason="no filter is written for this machine")
@pytest.mark.parametrize(
    "said", ["No permissions to create new namespace.", "Can't read /proc/sys/kernel/overflowuid: No such file"]
)
def test_a_container_that_refuses_namespaces_is_told_how_to_be_started(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        refusing = Path(folder, "bwrap")
        refusing.write_text(f'#!/bin/sh\necho "bwrap: {said}" >&2\nexit 1\n', "utf8")
        for path in (refusing, refusing.parent):
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        with make_sandbox("bubblewrap") as made, pytest.raises(SandboxError, match="systempaths=unconfined"):
            made.run("1")
