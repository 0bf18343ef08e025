"""The sandbox of an ordinary user, who can make no control groups: which promises hold, and which do not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import turngym
from turngym.envs.tools.sandbox.bubblewrap import Bubblewrap

pytestmark = [
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]
LIMITS = {"wall_seconds": 10.0, "memory_mib": 256, "processes": 16, "scratch_mib": 8, "file_mib": 4}
PROGRAM = f"""
import json, os, sys, warnings
from turngym.envs.tools.sandbox import Limits, make_sandbox
from turngym.envs.tools.sandbox.cgroups import can_make_groups
limits = Limits(**{LIMITS!r})
make_sandbox("bubblewrap", limits).run("1")  # reads what it needs while it still may
os.setgroups([]); os.setresgid(1_650_000_000, 1_650_000_000, 1_650_000_000)
os.setresuid(1_650_000_000, 1_650_000_000, 1_650_000_000)
can_make_groups.cache_clear()
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    sandbox = make_sandbox("bubblewrap", limits)
with sandbox:
    told = [sandbox.run(code) for code in json.loads(sys.argv[1])]
print(json.dumps([[str(warning.message) for warning in warned]]
    + [[one.status, one.stdout, one.stderr[-200:]] for one in told]))
"""
FORKS = """
import os, time
born = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
        born += 1
except OSError as error:
    print(born, type(error).__name__)
"""
SCRATCH = """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(path):
    written = 0
    try:
        with open(path, 'wb') as file:
            while True: written += file.write(bytes(2**16))
    except OSError: return written
print(fill('/tmp/one'), *(sum(fill(f'{folder}/{number}') for number in range(20)) for folder in ('/tmp', '/dev/shm')))
"""
FILES = """
import os, socket
for path in ('/etc/passwd', '/root', '/home', '/var', '/sys', '/usr/lib/python3/dist-packages'):
    try: os.listdir(path) if os.path.isdir(path) else open(path).read(); print('read', path)
    except OSError: pass
for pid in [name for name in os.listdir('/proc') if name.isdecimal() and int(name) != os.getpid()]:
    for name in ('mem', 'fd/0', 'fd/1', 'fd/2'):
        try: open(f'/proc/{pid}/{name}', 'r+b', buffering=0); print('opened', pid, name)
        except OSError: pass
with socket.socket() as s:
    try: s.connect(('1.1.1.1', 53)); print('connected')
    except OSError: print('end')
"""
TOGETHER = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        x = bytearray(120 * 2**20)
        time.sleep(0.5)
        os._exit(0)
print(sum(os.waitstatus_to_exitcode(os.wait()[1]) == 0 for _ in range(4)))
"""


def told(*codes: str) -> list[list[str]]:
    """Return the warnings of an ordinary user's sandbox, and what it says to each piece of code."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(codes)]
    environment = {**os.environ, "PYTHONPATH": str(Path(turngym.__file__).parent.parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_limits_of_processes_files_and_each_memory_hold_without_control_groups() -> None:
    _, forks, memory, scratch, files, processor = told(
        FORKS,
        "x = []\nwhile True: x.append(bytearray(10**7))",
        SCRATCH,
        FILES,
        "import resource\nprint(*resource.getrlimit(resource.RLIMIT_CPU))",
    )
    born, error = forks[1].split()
    assert 1 <= int(born) <= LIMITS["processes"] and error == "BlockingIOError"
    assert memory[0] == "error" and "MemoryError" in memory[2]
    one, many, shared = map(int, scratch[1].split())
    assert one <= 4 * 2**20 and one + many <= 8 * 2**20 and shared <= 256 * 1024
    assert files[:2] == ["ok", "end\n"] and processor[1] == "60 61\n"


def test_all_processes_together_have_no_memory_limit_and_a_warning_says_so() -> None:
    (warning,), together = told(TOGETHER)
    assert together[:2] == ["ok", "4\n"]
    assert "may take 4,096 MiB together: run as root, or use docker." in warning
    assert "each process has its memory limit alone" in Bubblewrap.stops
