"""Code that wants out of the sandbox: every attempt is blocked and reported, and the host does not feel it."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_backends import BACKENDS, LIMITS, Backend, backend_of, run_lines

from turngym.envs.tools.sandbox import Limits, Sandbox


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return backend_of(request.param)


@pytest.fixture(scope="module")
def sandbox(backend: Backend) -> Iterator[Sandbox]:
    with backend.make(LIMITS) as made:
        yield made


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
    if "runsc" in vars(sandbox).values():
        pytest.skip("runsc starts in these tests with --ignore-cgroups, which leaves each process its limit alone")
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
