"""Sessions of the sandbox: results, state, limits, ends."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from turngym.envs.tools.sandbox import SANDBOXES, Limits, Sandbox, SandboxSession, make_sandbox
from turngym.envs.tools.sandbox.owners import user_number
from turngym.envs.tools.sandbox.pool import Pool
from turngym.errors import ConfigError, MissingExtra, UnknownName

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
pytestmark = needs_bubblewrap


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with make_sandbox("bubblewrap", Limits(wall_seconds=20.0)) as made:
        yield made


@pytest.fixture(scope="module")
def session(sandbox: Sandbox) -> Iterator[SandboxSession]:
    with sandbox.session() as made:
        yield made


def test_variables_and_files_are_kept_within_a_session_and_nowhere_else(sandbox: Sandbox) -> None:
    with sandbox.session() as first, sandbox.session() as second:
        assert first.run("x = 20\nopen('note', 'w').write('hello')").status == "ok"
        assert first.run("print(x + 1, open('note').read())").stdout == "21 hello\n"
        assert second.run("x").status == "error"
        assert second.run("import os; os.listdir('.')").value == "[]"
    assert sandbox.run("x").status == "error"


@pytest.mark.parametrize(
    ("code", "status", "stdout", "value"),
    [
        ("", "ok", "", ""),
        ("1 + 1", "ok", "", "2"),
        ("print('a'); 'b'", "ok", "a\n", "'b'"),
        ("None", "ok", "", ""),
        ("x = 3", "ok", "", ""),
        ("print('é 漢 🙂')", "ok", "é 漢 🙂\n", ""),
        ("def f():\n    return 7\nf()", "ok", "", "7"),
        ("import sys; sys.exit()", "ok", "", ""),
        ("import sys; print('x'); sys.exit(3)", "error", "x\n", ""),
        ("import os; os.write(1, b'\\xff')", "ok", "\ufffd", "1"),
        ("input()", "error", "", ""),
        ("import sys; sys.stdin.read()", "ok", "", "''"),
    ],
)
def test_what_code_says(session: SandboxSession, code: str, status: str, stdout: str, value: str) -> None:
    found = session.run(code)
    assert (found.status, found.stdout, found.value, found.lost_state) == (status, stdout, value, False), found


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException('odd')", "BaseException: odd"),
        ("\x00", "null bytes"),
        ("'" * 3, "SyntaxError"),
        ("def f(): f()\nf()", "RecursionError"),
        ("class A:\n    def __repr__(self): raise ValueError('no')\nA()", "ValueError: no"),
    ],
)
def test_errors_are_told_without_lines_of_ours(session: SandboxSession, code: str, error: str) -> None:
    found = session.run(code)
    assert found.status == "error" and error in found.stderr and "driver" not in found.stderr
    assert session.run("1").value == "1"


def test_a_traceback_names_the_line(session: SandboxSession) -> None:
    assert 'File "<code>", line 3' in session.run("x = 1\n\nraise ValueError").stderr


@pytest.mark.parametrize("code", [b"x", 3, None])
def test_code_is_text(session: SandboxSession, code: object) -> None:
    with pytest.raises(TypeError, match="code is text"):
        session.run(code)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_the_time_of_a_call_is_positive(session: SandboxSession, seconds: float) -> None:
    with pytest.raises(ValueError, match="wall_seconds"):
        session.run("1", wall_seconds=seconds)


def test_code_of_a_megabyte_and_lone_surrogates_arrive(session: SandboxSession) -> None:
    assert session.run("x = '" + "a" * 1_000_000 + "'\nlen(x)").value == "1000000"
    assert session.run("'\ud800'").status in ("ok", "error")
    assert session.run("1").value == "1"


def test_after_a_timeout_the_state_is_gone_and_the_session_goes_on(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 1")
        found = session.run("print('before', flush=True)\nwhile True: pass", wall_seconds=0.5)
        assert (found.status, found.stdout, found.lost_state) == ("timeout", "before\n", True)
        assert session.run("x").status == "error" and session.run("2").value == "2"


def test_output_is_cut_at_the_limit() -> None:
    with make_sandbox("bubblewrap", Limits(output_kib=4)).session() as session:
        for code in ("print('a' * 10**7)", "while True: print('a' * 100)", "import sys; sys.stderr.write('a' * 10**6)"):
            found = session.run(code)
            assert found.status == "output" and found.lost_state
            assert len(found.stdout) + len(found.stderr) == 4096
        assert session.run("print('a' * 4000)").status == "ok"


def test_processes_that_code_leaves_behind_end_with_the_session(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        started = "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
        assert session.run(f"import subprocess, sys\n{started}\np.pid").value
        assert session.run("p.poll() is None").value == "True"
    marker = "import time; time.sleep(600)"
    for process in (path for path in os.listdir("/proc") if path.isdecimal()):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                command = file.read().decode("utf8", "replace")
        except OSError:
            continue
        assert not command.endswith(f"-c\0{marker}\0") or "pytest" in command


def test_many_sessions_side_by_side_keep_to_themselves(sandbox: Sandbox) -> None:
    def play(number: int) -> str:
        with sandbox.session() as session:
            session.run(f"x = {number}")
            return session.run("x * 2").value

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(play, range(16))) == [str(2 * number) for number in range(16)]


def test_a_pool_gives_each_session_once_and_fills_up_again(sandbox: Sandbox) -> None:
    with Pool(sandbox, 2) as pool:
        assert pool.wait_until_full() and pool.num_ready == 2
        for number in range(5):
            with pool.session() as session:
                assert session.run("'x' in globals()").value == "False"
                assert session.run(f"x = {number}\nx").value == str(number)
        assert pool.wait_until_full()
    assert pool.num_ready == 0


def test_a_thousand_calls_leave_nothing_behind(sandbox: Sandbox) -> None:
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    with sandbox.session() as session:
        assert [session.run(f"{number}").value for number in range(1000)] == [str(number) for number in range(1000)]
        assert int(session.run("import os; len(os.listdir('/proc/self/fd'))").value) < 16
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


@pytest.mark.parametrize("limits", [{"wall_seconds": 0}, {"memory_mib": -1}, {"processes": True}, {"output_kib": 1e9}])
def test_limits_out_of_range_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be between"):
        Limits(**limits)  # type: ignore[arg-type]


def test_a_missing_backend_is_an_error_and_nothing_weaker_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "bubblewrap" in SANDBOXES
    with pytest.raises(UnknownName, match="chroot"):
        make_sandbox("chroot")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingExtra, match="apt-get install bubblewrap"):
        make_sandbox("bubblewrap")


HOLDER = """
import sys, time
from turngym.envs.tools.sandbox import make_sandbox
session = make_sandbox("bubblewrap").session()
print(session.run("1").value, flush=True)
time.sleep(600)
"""


def groups_of(pid: int) -> list[Path]:
    """Return the control groups that a process has made."""
    places = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/pids")]
    return [folder for place in places for folder in place.glob(f"turngym-{pid}-*")]


def test_what_a_killed_process_left_is_removed_at_the_next_start_and_nothing_else(sandbox: Sandbox) -> None:
    with sandbox.session() as mine, subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
        left = groups_of(holder.pid)
        make_sandbox("bubblewrap").close()
        assert groups_of(holder.pid) == left
        holder.kill()
        holder.wait()
        if not left:
            pytest.skip("no control groups can be made here")
        assert groups_of(holder.pid) == left
        make_sandbox("bubblewrap").close()
        assert groups_of(holder.pid) == [] and groups_of(os.getpid())
        assert mine.run("2").value == "2"


def test_sandboxes_of_processes_side_by_side_belong_to_different_users(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    for pid in (1, 2, 99_999, 4_000_001):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        seen |= {user_number(count) for count in range(1000)}
    assert len(seen) == 3000 and max(seen) < 100_000_000  # 1 and 4,000,001 meet, which takes 100,000 processes


def test_signals_that_the_host_ignores_or_blocks_work_inside() -> None:
    """Under nohup the host ignores SIGHUP, and every program that it starts would too."""
    code = "import subprocess\nsubprocess.run(['sh', '-c', 'kill -{} $$; exit 7']).returncode"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        with make_sandbox("bubblewrap", Limits(wall_seconds=60.0)) as sandbox, sandbox.session() as session:
            assert [session.run(code.format(name)).value for name in ("HUP", "TERM")] == ["-1", "-15"]
    finally:
        signal.signal(signal.SIGHUP, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
