"""Finding Java, and Java processes that are never left behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.textworlds import java
from turngym.envs.textworlds.java import JavaFailed, JavaGone, JavaObject, JavaProcess, find_java
from turngym.envs.vector.engine_pool import EnginePool
from turngym.errors import ConfigError, MissingExtra
from turngym.system.processes import has_ended

NEEDS_JAVA = pytest.mark.skipif(shutil.which("java") is None, reason="needs a Java runtime on the PATH")
START = """
from pathlib import Path
from turngym.envs.textworlds.java import JavaProcess
held = JavaProcess("a test", Path("."))
print(held.pid, flush=True)
"""


def new_process() -> JavaProcess:
    pytest.importorskip("py4j", reason="needs py4j, which comes with textworld-express")
    return JavaProcess("a test", Path("."))


def new_list(seats: int = 1) -> tuple[EnginePool[JavaProcess], JavaObject]:
    """Return a pool, and a plain list of Java's own library in it."""
    pool = EnginePool(new_process, seats=seats)
    return pool, JavaObject(pool, "java.util.ArrayList")


def is_gone(pid: int, patience_seconds: float = 30.0) -> bool:
    """Wait until a process that is not a child of ours has ended; a zombie without a parent to reap it counts."""
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        if has_ended(pid):
            return True
        time.sleep(0.02)
    return False


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**clean, **environment}, check=False
    )


def test_no_java_is_one_sentence_that_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingExtra, match=r"a game needs a Java runtime.*default-jre-headless\.$"):
        find_java("a game")


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java("a game") == str(program)


MAKE = "import gymnasium, turngym; gymnasium.make('turngym/TextWorldExpress-v0')"
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "textworld_express":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def test_the_environment_without_its_package_names_the_extra() -> None:
    result = run_python(BLOCK + MAKE)
    assert result.returncode == 1
    assert 'needs the package textworld-express, which is not installed: pip install "turngym[text]".' in result.stderr


def test_the_environment_without_java_names_the_runtime() -> None:
    pytest.importorskip("textworld_express", reason="needs the optional package textworld-express")
    result = run_python(MAKE, PATH="")
    assert result.returncode == 1
    assert "TextWorldExpress-v0 needs a Java runtime" in result.stderr


def test_importing_the_environment_loads_no_bridge_to_java() -> None:
    code = "import sys, turngym.envs.textworlds.textworld_express.env; sys.exit('py4j' in sys.modules)"
    assert run_python(code).returncode == 0


@NEEDS_JAVA
def test_calls_reach_java_and_its_exceptions_come_back() -> None:
    pool, held = new_list()
    assert held.call("add", "first") is True
    assert held.call("size") == 1
    with pytest.raises(JavaFailed, match="out of bounds"):
        held.call("get", 5)
    assert held.call("get", 0) == "first"
    assert held.call("subList", 0, 1) == ("first",)
    assert held.call("subList", 0, 0) == ()
    pool.close()
    pool.close()
    with pytest.raises(JavaGone, match="a test has ended"):
        held.call("size")
    held.close()


@NEEDS_JAVA
def test_objects_of_one_process_are_apart_and_the_process_is_used_again() -> None:
    pool, first = new_list(seats=2)
    second, third = JavaObject(pool, "java.util.ArrayList"), JavaObject(pool, "java.util.ArrayList")
    first.call("add", "only here")
    assert [each.call("size") for each in (first, second, third)] == [1, 0, 0]
    assert first.process is second.process is not third.process
    first.close()
    assert second.call("size") == 0
    again = JavaObject(pool, "java.util.ArrayList")
    assert again.process is first.process
    assert again.call("size") == 0
    for each in (second, third, again):
        each.close()
    assert len(pool.engines) == 1, "one is kept warm, the other ended"
    assert pool.memory_mib() > 10
    pool.close()
    assert is_gone(first.process.pid) and is_gone(third.process.pid)


@NEEDS_JAVA
def test_an_object_that_cannot_be_constructed_keeps_no_seat() -> None:
    pool, held = new_list(seats=2)
    for _ in range(3):
        with pytest.raises(TypeError):
            JavaObject(pool, "java.util.NoSuchList")
    other = JavaObject(pool, "java.util.ArrayList")
    assert other.process is held.process and pool.counts["started"] == 1
    pool.close()


@NEEDS_JAVA
def test_an_object_is_constructed_where_it_is_told_to_be() -> None:
    pool, held = new_list()
    turns = []

    def take_turn(process: JavaProcess, construct: Callable[[Any], Any]) -> Any:
        with process.lock:
            turns.append(process)
            return process.run(construct)

    held.close()
    other = JavaObject(pool, "java.util.ArrayList", take_turn)
    assert turns == [other.process] and other.call("size") == 0
    pool.close()


@NEEDS_JAVA
def test_a_full_heap_ends_the_process_with_a_word() -> None:
    pool, held = new_list()
    with pytest.raises(JavaGone, match="the Java process of a test has ended with exit status 3"):
        held.process.run(lambda java: java.new_array(java.jvm.long, 2**30))
    held.close()
    assert JavaObject(pool, "java.util.ArrayList").call("size") == 0
    assert pool.counts == {"started": 2, "leased": 2, "lost": 1}
    pool.close()


def stop(process: int) -> None:
    """Stop a process, and wait until all of its threads stand still: until then it may answer."""
    os.kill(process, signal.SIGSTOP)
    tasks = Path(f"/proc/{process}/task")
    while any((task / "stat").read_text().rpartition(")")[2].split()[0] != "T" for task in tasks.iterdir()):
        time.sleep(0.001)


@NEEDS_JAVA
def test_a_process_that_hangs_is_ended_when_the_next_one_needs_a_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, held = new_list(seats=2)
    stop(held.process.pid)
    monkeypatch.setattr(java, "HANG_SECONDS", 0.5)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(held.call, "size")
        while held.is_alive():
            time.sleep(0.02)
        monkeypatch.undo()
        pool.counts.clear()
        monkeypatch.setattr(held.process, "is_alive", lambda: False)
        other = JavaObject(pool, "java.util.ArrayList")
        with pytest.raises(JavaGone, match="a test has ended with exit status -9"):
            waiting.result()
    assert other.process is not held.process and other.call("size") == 0
    assert pool.counts == {"lost": 1, "started": 1, "leased": 1}
    pool.close()


@NEEDS_JAVA
def test_the_heap_limit_reaches_java() -> None:
    held = new_process()
    limit = held.run(lambda java: java.jvm.java.lang.Runtime.getRuntime().maxMemory())
    assert 0.8 * java.HEAP_MEGABYTES < limit / 2**20 <= java.HEAP_MEGABYTES
    held.close()


@NEEDS_JAVA
def test_what_java_prints_never_blocks_it() -> None:
    """A pipe holds 64 KiB; Java would stop at the next line."""
    held = new_process()
    held.run(lambda java: java.jvm.java.lang.System.out.println("x" * 1_000_000))
    assert held.run(lambda java: java.jvm.java.lang.Math.abs(-1)) == 1
    held.close()


@NEEDS_JAVA
def test_letting_go_of_a_process_ends_it() -> None:
    held = new_process()
    pid = held.pid
    del held
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@NEEDS_JAVA
def test_a_copy_in_a_fork_does_not_end_the_owners_process() -> None:
    held = new_process()
    java._end(held._process, [], owner=os.getpid() + 1)
    assert held.is_alive()
    held.close()


@NEEDS_JAVA
def test_how_many_share_a_process_is_told_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("0", "-1", "many"):
        monkeypatch.setenv(java.SEATS_VARIABLE, text)
        with pytest.raises(ConfigError, match=f"TURNGYM_ENVS_PER_JAVA must be a number of at least 1, got '{text}'"):
            java.java_pool("another test", Path("."), 64)
    monkeypatch.setenv(java.SEATS_VARIABLE, "3")
    pool = java.java_pool("another test", Path("."), 64)
    assert pool.seats == 3
    assert pool is java.java_pool("another test", Path("."), 64)
    java.close_java()


@NEEDS_JAVA
def test_interpreter_exit_ends_the_process_without_a_word() -> None:
    pytest.importorskip("py4j", reason="needs py4j, which comes with textworld-express")
    result = run_python(START)
    assert (result.returncode, result.stderr) == (0, "")
    assert is_gone(int(result.stdout))


@NEEDS_JAVA
def test_a_killed_interpreter_takes_its_process_along() -> None:
    pytest.importorskip("py4j", reason="needs py4j, which comes with textworld-express")
    result = run_python(START + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert result.returncode == -signal.SIGKILL
    assert is_gone(int(result.stdout))


@NEEDS_JAVA
def test_a_process_that_dies_while_it_starts_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_OPTIONS", ("-XX:NoSuchOption",))
    with pytest.raises(JavaGone, match=r"ended while it started \(exit status"):
        new_process()


def test_a_process_that_is_never_ready_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("py4j", reason="needs py4j, which comes with textworld-express")
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(java, "find_java", lambda feature: str(program))
    monkeypatch.setattr(java, "START_SECONDS", 0.3)
    with pytest.raises(JavaGone, match=r"ended while it started \(exit status -9"):
        new_process()
