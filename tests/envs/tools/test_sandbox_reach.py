"""Code that reaches for what is not its own: files, variables, processes and the kernel of the host."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_backends import BACKENDS, LIMITS, Backend, backend_of, run_lines

from turngym.envs.tools.sandbox import Sandbox


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return backend_of(request.param)


@pytest.fixture(scope="module")
def sandbox(backend: Backend) -> Iterator[Sandbox]:
    with backend.make(LIMITS) as made:
        yield made


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
    if os.fork():
        os.wait()
        return
    found = getattr(libc, name)(*arguments)
    print(name, 'blocked' if found == -1 else 'passed', flush=True)
    os._exit(0)
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
call('pivot_root', b'/tmp', b'/tmp') if hasattr(libc, 'pivot_root') else print('pivot_root blocked')
call('syscall', 175, 0, 0, b'')
call('syscall', 246, 0, 0, 0, 0)
call('iopl', 3) if hasattr(libc, 'iopl') else print('iopl blocked')
print('capabilities', open('/proc/self/status').read().split('CapEff:')[1].split()[0])
"""


def test_calls_of_the_kernel_give_no_privileges(sandbox: Sandbox, backend: Backend) -> None:
    *calls, capabilities = run_lines(sandbox, KERNEL)
    passed = [line for line in calls if not line.endswith("blocked")]
    # gVisor plays a kernel, so that a namespace made in it is one of its own
    assert passed == (["unshare passed"] * 2 if backend.is_gvisor else [])
    assert len(calls) == 14 and capabilities == "capabilities 0000000000000000"


def test_the_root_of_a_namespace_of_its_own_reaches_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    """Where a user namespace can be made, code is root in it; what is outside stays out of reach."""
    secret = tmp_path / "secret"
    secret.write_text("gold")
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x10000000)
libc.unshare(0x00020000)
for kind in (b'proc', b'tmpfs', b'sysfs', b'devtmpfs', b'9p', b'ext4', b'overlay'):
    libc.mount(b'none', b'/tmp', kind, 0, None)
    libc.mount(b'/', b'/tmp', None, 4096, None)
    for path in ({str(secret)!r}, '/tmp/etc/shadow', '/tmp/1/root{secret}', '/tmp/sda', '/tmp/vda'):
        try: print(open(path).read(10))
        except OSError: print('blocked')
libc.sethostname(b'taken', 5)
try: os.kill({os.getpid()}, 9); print('killed')
except OSError: print('blocked')
"""
    before = socket.gethostname()
    assert set(run_lines(sandbox, code)) == {"blocked"} and socket.gethostname() == before


def test_tracing_works_on_nobody_outside(sandbox: Sandbox, backend: Backend) -> None:
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for pid in ({os.getpid()}, 1, 2):
    print('blocked' if libc.ptrace(16, pid, 0, 0) == -1 else 'attached', pid)
"""
    found = [line.split()[0] for line in run_lines(sandbox, code)]
    assert found[0] == "blocked" and (found == ["blocked"] * 3 or backend.name == "docker")
