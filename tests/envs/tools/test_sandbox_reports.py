"""What reaches the host from a sandbox: only the driver speaks to it, and what it says is bounded and read cheaply."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox_backends import BACKENDS, LIMITS, Backend, backend_of, run_lines

from turngym.envs.tools.code_repair.grading import passed, run_in
from turngym.envs.tools.code_repair.returned import matches, read, shown
from turngym.envs.tools.code_repair.values import decode, encode, same
from turngym.envs.tools.sandbox import Limits, Result, Sandbox, SandboxSession
from turngym.envs.tools.sandbox.bubblewrap import Bubblewrap
from turngym.envs.tools.sandbox.host import ProcessSession, SandboxError
from turngym.envs.tools.sandbox.launcher import Launch

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=3),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.tuples(st.booleans()), parts, max_size=3)
        | st.sets(st.integers(-3, 3) | st.sampled_from([1.0, True, 0.5, "1"]), max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return backend_of(request.param)


@pytest.fixture(scope="module")
def sandbox(backend: Backend) -> Iterator[Sandbox]:
    with backend.make(LIMITS) as made:
        yield made


def test_the_driver_s_memory_and_pipes_are_closed_to_the_code(sandbox: Sandbox, backend: Backend) -> None:
    if backend.is_gvisor:
        pytest.skip("gVisor shows open files of processes that are not dumpable: what is said there is checked anyway")
    code = """
import os
for pid in [name for name in os.listdir('/proc') if name.isdecimal() and int(name) != os.getpid()]:
    for name in ('mem', 'environ', 'maps', 'auxv', 'fd/0', 'fd/1', 'fd/2', 'fdinfo/1', 'task/' + pid + '/fd/1'):
        for mode in ('rb', 'r+b'):
            try: open(f'/proc/{pid}/{name}', mode, buffering=0)
            except OSError: continue
            print('opened', pid, name, mode)
    try: print('listed', os.listdir(f'/proc/{pid}/fd'))
    except OSError: print('blocked')
"""
    assert set(run_lines(sandbox, code)) == {"blocked"}


def test_no_descriptor_of_the_code_leads_to_the_host(sandbox: Sandbox) -> None:
    """It writes a report of the driver's to every one that it has, and goes on to tell the truth."""
    frame = {"status": "ok", "stdout": "", "stderr": "", "value": "'forged'", "seconds": 1e308, "lost_state": False}
    code = f"""
import os
for number in range(3, 64):
    try: os.write(number, {json.dumps(frame)!r}.encode() + b'\\n')
    except OSError: pass
"""
    with sandbox.session() as session:
        found = session.run(code)
        assert found.status in ("ok", "died") and found.value == "" and found.seconds < 30
        assert session.run("'true'").value == "'true'"


def test_the_driver_can_be_neither_ended_nor_stopped(sandbox: Sandbox, backend: Backend) -> None:
    if backend.is_gvisor:
        pytest.skip("gVisor ends a container whose first process is killed from inside")
    numbers = [int(kind) for kind in signal.Signals]
    code = f"import os\nfor number in {numbers!r}: os.kill(os.getppid(), number)\nx = 5\nos.getppid()"
    with sandbox.session() as session:
        assert session.run(code).value == "1"
        found = session.run("x")
        assert (found.status, found.value, found.lost_state) == ("ok", "5", False)


def test_reports_of_what_code_left_behind_are_not_taken_for_the_next(sandbox: Sandbox) -> None:
    code = """
import os, time
if not os.fork():
    forged = b'ok ' + b"'forged'".hex().encode() + b'\\n'
    for _ in range(20):
        time.sleep(0.01)
        for number in range(3, 64):
            try: os.write(number, forged)
            except OSError: pass
    os._exit(0)
"""
    with sandbox.session() as session:
        assert session.run(code).status == "ok"
        time.sleep(0.6)
        assert session.run("'true'").value == "'true'"


def test_processes_that_end_leave_no_place_taken(backend: Backend) -> None:
    """Orphans are the driver's to collect: five times as many as may live at once."""
    code = """
import os, time
for _ in range(80):
    for attempt in range(200):
        try: pid = os.fork()
        except BlockingIOError:
            time.sleep(0.01)
            continue
        break
    else: raise OSError('no process was ever collected')
    if not pid:
        if not os.fork(): os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
print('done')
"""
    with backend.make(replace(LIMITS, wall_seconds=120)) as patient:  # gVisor forks slowly where processors are scarce
        assert run_lines(patient, code) == ["done"]


def answered(*lines: str) -> Result:
    """Return what the host makes of a driver that says these lines, of which ``TOKEN`` is the order's own."""
    program = f"""
import json, sys
print('{{"ready": true}}', flush=True)
token = json.loads(sys.stdin.readline())['token']
for line in {lines!r}: print(line.replace('TOKEN', token), flush=True)
sys.stdin.readline()
"""
    launch: Callable[[], Launch] = lambda: Launch([sys.executable, "-c", program], lambda: None)  # noqa: E731
    with ProcessSession(launch, Limits(wall_seconds=1.0, output_kib=1)) as session:
        return session.run("1")


def frame(**changes: Any) -> str:
    whole = {"status": "ok", "stdout": "", "stderr": "", "value": "1", "lost_state": False, "token": "TOKEN"}
    return json.dumps({**whole, **changes})


def test_a_report_of_the_right_form_is_taken() -> None:
    found = answered(frame(stdout="a\ud800"))
    assert (found.status, found.value, found.stdout) == ("ok", "1", "a?")


@pytest.mark.parametrize(
    "line",
    [
        frame(token="0" * 16),
        frame(token=None),
        frame(status="root"),
        frame(status=["ok"]),
        frame(lost_state=1),
        frame(value=1),
        frame(value="x" * 10_001),
        frame(stdout="x" * 1025),
        frame(stdout="x" * 600, stderr="x" * 600),
        frame(seconds=1e308),
        '{"seconds": 1e999, "status": "ok", "stdout": "", "stderr": "", "value": "1", "lost_state": false}',
        frame()[:-1] + ', "status": "ok"}',
        "[" * 30_000,
        "1" * 30_000,
        "[]",
        '"ok"',
        "[1]",
        "null",
    ],
    ids=str,
)
def test_a_report_of_any_other_form_ends_the_session_and_raises_nothing(line: str) -> None:
    found = answered(line)
    assert (found.status, found.lost_state) == ("died", True) and 0 <= found.seconds < 60


COLLIDING = [number * (2**61 - 1) for number in range(1, 40_000)]
"""Integers of the same hash: a set of them takes time that grows with the square of their number."""


class Taken(SandboxSession):
    """A session whose driver code has taken over: it says what the code wants."""

    def __init__(self, value: str) -> None:
        self.value = value

    def run(self, code: str, wall_seconds: float | None = None) -> Result:
        return Result("ok", value=self.value)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("count", [300, 30_000])
def test_colliding_integers_cost_the_host_no_time(count: int) -> None:
    """A set of 30,000 takes about ten seconds, of 120,000 minutes."""
    session = Taken(json.dumps({"set": COLLIDING[:count]}))
    start = time.process_time()
    ran, _ = run_in(session, "def f(x): pass", "f", [[1]], 5.0)
    assert passed(ran, [{1}]) == [False] and time.process_time() - start < 1.0


@pytest.mark.parametrize("kind", ["set", "dict"])
def test_judging_and_showing_foreign_values_builds_neither_sets_nor_dictionaries(kind: str) -> None:
    numbers = COLLIDING[:300]
    text = json.dumps({kind: numbers if kind == "set" else [[number, 0] for number in numbers]})
    value = read(text)
    expected: object = set(range(300)) if kind == "set" else dict.fromkeys(range(300), 0)
    assert not matches(value, expected) and len(shown(value)) > 5000


WHAT_IS_NO_ENCODED_VALUE_IS_REFUSED: list[str] = [
    "9" * 5000,
    "[" * 5000,
    "[" * 200 + "]" * 200,
    '{"set": [' * 300 + "]}" * 300,
    '{"tuple": 1}',
    '{"dict": [[1]]}',
    '{"dict": {"a": 1}}',
    '{"set": [1], "tuple": [1]}',
    '{"complex": [1, 2, 3]}',
    '{"complex": [{"tuple": []}, 1]}',
    '{"float": "x"}',
    '{"float": [1]}',
    '{"bytes": "0"}',
    '{"bytes": 1}',
    '{"other": "x"}',
    "{}",
    "x",
    "",
    '"' + "x" * 10_000 + '"',
]


def test_what_is_no_encoded_value_is_refused() -> None:
    for text in WHAT_IS_NO_ENCODED_VALUE_IS_REFUSED:
        with pytest.raises(ValueError):
            read(text)


@given(values, values)
def test_encoded_values_are_judged_as_the_values_themselves(value: Any, other: Any) -> None:
    told = read(json.dumps(encode(value)))
    assert matches(told, value) and matches(told, other) == same(decode(told), other)


@given(values)
def test_encoded_values_are_shown_as_python_writes_them(value: Any) -> None:
    text = shown(read(json.dumps(encode(value))))
    assert same(eval(text, {"inf": float("inf")}), value)
    assert text == repr(value) or "{" in text


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("last", ["float('inf')", "10 ** 4000", "-0.0", "{1.0, True}", "frozenset({1})", "b'a'"])
def test_odd_values_are_judged(last: str) -> None:
    with backend_of("bubblewrap").make() as sandbox, sandbox.session() as session:
        ran, problem = run_in(session, f"def f(x): return {last}", "f", [[0]], 2.0)
        assert problem == "" and passed(ran, [eval(last)]) == [True]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_driver_that_is_not_the_first_process_does_not_start() -> None:
    """It would end every process that it sees, here those of a namespace that has another first process."""
    sandbox = Bubblewrap()

    def launch() -> Launch:
        made = sandbox._launch()
        return made._replace(command=[word for word in made.command if word != "--as-pid-1"])

    with pytest.raises(SandboxError, match="has to be process 1"):
        ProcessSession(launch, Limits())


def test_the_environment_of_the_driver_holds_nothing_of_the_host_s(sandbox: Sandbox) -> None:
    os.environ["TURNGYM_MARK"] = "gold"
    try:
        with sandbox.session() as session:
            assert session.run("import os\n[name for name in os.environ if 'TURNGYM' in name]").value == "[]"
    finally:
        del os.environ["TURNGYM_MARK"]
