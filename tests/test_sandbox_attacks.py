"""Code that wants out of the sandbox: every attempt is blocked and reported, and the host does not feel it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_backends import BACKENDS, Backend, backend_of

from turngym.envs.tools.sandbox import Limits, Sandbox

LIMITS = Limits(wall_seconds=10.0, memory_mib=256, processes=16, scratch_mib=8, file_mib=4)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return backend_of(request.param)


@pytest.fixture(scope="module")
def sandbox(backend: Backend) -> Iterator[Sandbox]:
    with backend.make(LIMITS) as made:
        yield made


def run_lines(sandbox: Sandbox, code: str) -> list[str]:
    """Run code that prints its findings; returns the lines."""
    found = sandbox.run(code)
    assert found.status == "ok", found
    return found.stdout.splitlines()


def test_a_fork_bomb_ends_at_the_limit_and_with_the_session(sandbox: Sandbox) -> None:
    code = """
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
    (line,) = run_lines(sandbox, code)
    born, error = line.split()
    assert 1 <= int(born) <= LIMITS.processes + 8 and error == "BlockingIOError"
    wild = sandbox.run("import os\nwhile True: os.fork()", wall_seconds=2.0)
    assert wild.status in ("error", "timeout", "died", "output")
    assert sandbox.run("1").value == "1"


def test_a_memory_bomb_ends_in_an_error(sandbox: Sandbox) -> None:
    found = sandbox.run("x = []\nwhile True: x.append(bytearray(10**7))")
    assert found.status == "error" and "MemoryError" in found.stderr


def test_many_processes_do_not_get_more_memory_together(sandbox: Sandbox) -> None:
    """Each is below its own limit; together they are not."""
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(120 * 2**20)
        for place in range(0, len(x), 4096): x[place] = 1
        time.sleep(5)
        os._exit(0)
alive = 0
for _ in range(8):
    alive += os.waitstatus_to_exitcode(os.wait()[1]) == 0
print('all lived' if alive == 8 else 'some were ended')
"""
    if os.geteuid() != 0:
        pytest.skip("only root can make control groups here, so each process has its limit alone")
    found = sandbox.run(code)
    assert found.status != "output" and "all lived" not in found.stdout


def test_the_scratch_folder_and_single_files_are_limited(sandbox: Sandbox) -> None:
    code = """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(name):
    written = 0
    try:
        with open(name, 'wb') as file:
            while True: written += file.write(bytes(2**16))
    except OSError as error:
        return written, error.errno
print(*fill('one'))
total = 0
for number in range(100):
    written, error = fill(str(number))
    total += written
print(total, error)
"""
    one, total = run_lines(sandbox, code)
    assert int(one.split()[0]) <= LIMITS.file_mib * 2**20
    assert int(total.split()[0]) <= LIMITS.scratch_mib * 2**20


def test_an_infinite_loop_ends_in_time_whatever_signals_it_ignores(sandbox: Sandbox) -> None:
    code = """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
"""
    started = time.monotonic()
    assert sandbox.run(code, wall_seconds=1.0).status == "timeout"
    assert time.monotonic() - started < 60


def test_processor_time_is_limited_over_a_session(backend: Backend) -> None:
    with backend.make(Limits(cpu_seconds=1, wall_seconds=60.0)) as made, made.session() as session:
        found = session.run("while True: pass")
        assert found.status == "died" and found.lost_state
        assert session.run("1").value == "1"


def test_there_is_no_network(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code = f"""
import socket
for family, address in ((socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_INET, ('1.1.1.1', 53))):
    with socket.socket(family) as s:
        s.settimeout(2)
        try: s.connect(address); print('connected')
        except OSError as error: print('blocked')
try: print(socket.getaddrinfo('example.org', 80))
except OSError: print('blocked')
import os
print(os.listdir('/sys/class/net') if os.path.exists('/sys') else ['lo'])
"""
        assert run_lines(sandbox, code) == ["blocked"] * 3 + ["['lo']"]


def test_abstract_sockets_of_the_host_are_out_of_reach(sandbox: Sandbox) -> None:
    name = f"\0turngym-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        code = f"""
import socket
with socket.socket(socket.AF_UNIX) as s:
    try: s.connect({name!r}); print('connected')
    except OSError: print('blocked')
"""
        assert run_lines(sandbox, code) == ["blocked"]


def test_files_and_variables_of_the_host_are_out_of_sight(
    sandbox: Sandbox, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("gold")
    # a container has a system of its own, of which nothing is the host's
    others = ("/etc/passwd", "/home", "/var", "/sys") if backend.name == "bubblewrap" else ("/etc/gshadow",)
    monkeypatch.setenv("TURNGYM_SECRET", "gold")
    code = f"""
import os
for path in ({str(secret)!r}, '/etc/shadow', '/root', {str(Path(__file__))!r}, *{others!r}):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        print('read', path)
    except OSError: print('blocked')
print('TURNGYM_SECRET' in os.environ, sorted(os.environ))
seen = b''
for pid in os.listdir('/proc'):
    for name in ('environ', 'cmdline'):
        try: seen += open(f'/proc/{{pid}}/{{name}}', 'rb').read()
        except OSError: pass
print(b'TURNGYM_SECRET' in seen, b'pytest' in seen)
"""
    *blocked, variables, seen = run_lines(sandbox, code)
    assert blocked == ["blocked"] * (4 + len(others))
    assert variables.startswith("False") and seen == "False False"


def test_nothing_outside_of_the_scratch_folder_can_be_written(sandbox: Sandbox) -> None:
    code = """
import os
for path in ('/x', '/usr/x', '/usr/bin/x', '/proc/x', '/dev/x', '/lib/x', '/usr/lib/x', '/proc/sys/kernel/hostname'):
    try: open(path, 'w').write('x'); print('wrote', path)
    except OSError: print('blocked')
open('/tmp/x', 'w').write('x')
try: os.chmod('/usr/bin/env', 0o777); print('changed')
except OSError: print('blocked')
"""
    assert run_lines(sandbox, code) == ["blocked"] * 9


def test_other_processes_can_neither_be_seen_nor_killed(sandbox: Sandbox) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    try:
        code = f"""
import os, signal
for pid in ({bystander.pid}, {os.getpid()}, {os.getppid()}):
    try: os.kill(pid, signal.SIGKILL); print('killed')
    except OSError: print('blocked')
print(len([name for name in os.listdir('/proc') if name.isdecimal()]) < 8)
"""
        lines = run_lines(sandbox, code)
        assert lines[-1] == "True" and "killed" not in lines[:2]
        sandbox.run("import os, signal\nos.kill(-1, signal.SIGKILL)")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_signals_to_the_parents_end_the_session_alone(sandbox: Sandbox) -> None:
    with sandbox.session() as victim, sandbox.session() as other:
        other.run("x = 1")
        for kind in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
            found = victim.run(f"import os\nos.kill(os.getppid(), {int(kind)})", wall_seconds=1.0)
            assert found.status in ("died", "ok", "timeout")
        assert other.run("x").value == "1"
        assert victim.run("2").status in ("ok", "died")
        assert victim.run("2").value == "2"


def test_links_and_proc_lead_nowhere(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("gold")
    code = f"""
import os
os.symlink({str(tmp_path / "secret")!r}, 'link')
for path in ('link', '/proc/1/root{tmp_path}/secret', '/proc/self/root{tmp_path}/secret', '/proc/1/cwd/../etc/shadow'):
    try: print(open(path).read())
    except OSError: print('blocked')
for fd in range(3, 64):
    try: target = os.readlink(f'/proc/self/fd/{{fd}}')
    except OSError: continue
    print('blocked' if target.startswith(('pipe:', '/dev/null', '/proc')) else target)
"""
    assert set(run_lines(sandbox, code)) == {"blocked"}


KERNEL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    found = getattr(libc, name)(*arguments)
    print(name, 'blocked' if found == -1 else 'passed')
call('mount', b'none', b'/tmp', b'tmpfs', 0, None)
call('umount2', b'/usr', 2)
call('unshare', 0x10000000)
call('unshare', 0x00020000)
call('chroot', b'/tmp')
call('sethostname', b'x', 1)
call('setuid', 0)
call('setgid', 0)
call('reboot', 0x4321FEDC)
call('swapoff', b'/x')
call('ptrace', 16, os.getpid(), 0, 0)
call('pivot_root', b'/tmp', b'/tmp') if hasattr(libc, 'pivot_root') else print('pivot_root blocked')
call('syscall', 175, 0, 0, b'')
call('syscall', 246, 0, 0, 0, 0)
call('iopl', 3) if hasattr(libc, 'iopl') else print('iopl blocked')
print('capabilities', open('/proc/self/status').read().split('CapEff:')[1].split()[0])
"""


def test_calls_of_the_kernel_give_no_privileges(sandbox: Sandbox) -> None:
    *calls, capabilities = run_lines(sandbox, KERNEL)
    passed = [line for line in calls if not line.endswith("blocked")]
    assert passed == [] and capabilities == "capabilities 0000000000000000"


def test_tracing_works_on_nobody_outside(sandbox: Sandbox, backend: Backend) -> None:
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for pid in ({os.getpid()}, 1, 2):
    print('blocked' if libc.ptrace(16, pid, 0, 0) == -1 else 'attached', pid)
"""
    found = [line.split()[0] for line in run_lines(sandbox, code)]
    assert found[0] == "blocked" and (found == ["blocked"] * 3 or backend.name == "docker")


def test_a_zip_bomb_ends_at_the_limits(sandbox: Sandbox) -> None:
    code = """
import io, zipfile
data = io.BytesIO()
with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as archive: archive.writestr('x', bytes(100 * 2**20))
data.seek(0)
zipfile.ZipFile(data).extract('x', '/tmp')
"""
    found = sandbox.run(code)
    assert found.status in ("error", "died") and sandbox.run("1").value == "1"


def test_a_forged_answer_is_at_most_the_code_s_own_word(sandbox: Sandbox) -> None:
    """Code can reach the pipe of the driver; what it writes there is its own result, or ends the session."""
    fields = {"status": "ok", "stdout": "f", "stderr": "", "value": "1", "seconds": 0, "lost_state": False}
    forged = json.dumps(fields)
    with sandbox.session() as session:
        for text in (forged, "{}", "x" * 10_000_000, "[" * 100_000, '{"status": "root"}'):
            code = f"import os\nopen(f'/proc/{{os.getppid()}}/fd/1', 'w').write({text!r} + chr(10))"
            assert session.run(code, wall_seconds=5.0).status in ("ok", "error", "died", "timeout")
        for _ in range(8):
            found = session.run("'still here'")
        assert found.value in ("'still here'", "1", "")
    assert sandbox.run("2").value == "2"


def test_nothing_is_left_on_the_host(sandbox: Sandbox) -> None:
    groups = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/pids")]

    def left() -> set[str]:
        return {str(path) for group in groups if group.is_dir() for path in group.glob(f"turngym-{os.getpid()}-*")}

    before, threads = left(), threading.active_count()
    with sandbox.session() as session:
        assert session.run("1").value == "1"
    assert left() == before
    assert threading.active_count() == threads
