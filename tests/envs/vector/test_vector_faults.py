"""What breaks stays in its slot; the others go on as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_envs
from gymnasium.vector import AutoresetMode
from vector_play import FAULTS, assert_faulted, assert_gone, is_running, play, without

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends.process import ProcessBackend
from turngym.envs.vector.backends.worker import Board
from turngym.errors import TurngymError

Make = Callable[..., TextVectorEnv]


@pytest.fixture
def make() -> Iterator[Make]:
    opened: list[TextVectorEnv] = []

    def make(count: int = 3, **options: Any) -> TextVectorEnv:
        defaults: dict[str, Any] = {"backend": "process", "num_workers": 1}
        opened.append(make_vec("toy/Faulty-v0", count, **(defaults | options)))
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


def workers(vector: TextVectorEnv) -> list[int]:
    assert isinstance(vector._backend, ProcessBackend)
    return vector._backend.pids()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("kind", ["kill", "raise"])
def test_the_other_slots_of_a_broken_worker_go_on_byte_equal(make: Make, kind: str, mode: AutoresetMode) -> None:
    """Rebuilt from seed, options and action log in mid-episode; the slots before and after the culprit alike."""
    vector, twin = make(autoreset_mode=mode), make(backend="sync", num_workers=None, autoreset_mode=mode)
    turns = 12 if mode is not AutoresetMode.DISABLED else 2
    broken = play(vector, turns, {(1, 1): kind})
    whole = play(twin, turns, {})
    assert without(broken, 1) == without(whole, 1)
    observations, rewards, terminations, truncations, rows = broken[2]
    assert (rewards[1], terminations[1], truncations[1]) == (0.0, False, True)
    if mode is AutoresetMode.SAME_STEP:
        assert rows[1]["final_obs"] == "" and rows[1]["fault"] == ""
        assert_faulted(rows[1]["final_info"], FAULTS[kind])
    else:
        assert observations[1] == ""
        assert_faulted(rows[1], FAULTS[kind])
    assert sum(vector.stats()["faults"].values()) == 1
    assert vector.stats()["workers_replaced"] == (kind == "kill")


@pytest.mark.parametrize("kind", ["quit", "garbage", "hang"])
def test_the_process_backend_survives(make: Make, kind: str) -> None:
    vector = make(step_timeout_seconds=1.5)
    twin = make(backend="sync", num_workers=None)
    broken, whole = play(vector, 5, {(1, 1): kind}), play(twin, 5, {})
    assert without(broken, 1) == without(whole, 1)
    assert_faulted(broken[2][4][1], FAULTS[kind])
    assert vector.stats()["faults"] == {FAULTS[kind].partition(":")[0].partition(" (")[0]: 1}
    assert vector.stats()["workers_replaced"] >= 1


def test_an_environment_that_eats_memory_faults_alone(make: Make) -> None:
    vector = make(2, memory_limit_mib=1500)
    vector.reset(seed=0)
    _, _, _, truncations, infos = vector.step(["up", "eat"])
    assert truncations.tolist() == [False, True]
    assert infos.rows[1]["fault"].startswith(("exception: MemoryError", "worker died"))


def test_printing_does_not_disturb_the_pipe(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    vector = make(1)
    vector.reset(seed=0)
    assert vector.step(["print"])[4].rows[0]["fault"] == "" and vector.stats()["workers_replaced"] == 0
    vector.close()
    assert "noise on the standard output" in capfd.readouterr().out


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_after_an_exception_every_backend_goes_on_with_the_same_episodes(make: Make, backend: str) -> None:
    """The fault destroys a generator; the next episode comes from a seed that is derived, not from the clock."""
    plan = {(1, 1): "raise", (4, 2): "raise"}
    runs = [play(make(backend=kind, num_workers=n), 10, plan) for kind, n in (("sync", None), (backend, 2))]
    assert str(runs[0]) == str(runs[1])  # as text, because nan differs from itself


def test_a_killed_and_a_raising_environment_are_followed_by_the_same_episode(make: Make) -> None:
    one, other = (play(make(), 6, {(1, 1): kind}) for kind in ("kill", "raise"))
    assert one[3:] == other[3:]


@pytest.mark.parametrize(("backend", "kind"), [("sync", "raise"), ("process", "raise"), ("process", "kill")])
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_a_reset_that_breaks_is_tried_once_more(
    make: Make, tmp_path: Path, backend: str, kind: str, mode: AutoresetMode
) -> None:
    marker = tmp_path / "marker"
    options = {
        "marker": str(marker),
        "reset_fault": kind,
        "backend": backend,
        "num_workers": None,
        "autoreset_mode": mode,
    }
    vector = make(1, **options)
    healthy = make(1, backend="sync", num_workers=None).reset(seed=3)
    marker.write_text("x")
    assert str(vector.reset(seed=3)) == str(healthy)  # the second try succeeded: nothing shows
    assert sum(vector.stats()["faults"].values()) == 1
    marker.write_text("xx")
    observations, infos = vector.reset(seed=3)
    assert observations == ("",) and infos.rows[0]["fault"] and infos.rows[0]["success"] == -1
    _, rewards, terminations, truncations, infos = vector.step(["up"])
    assert (rewards[0], terminations[0], truncations[0]) == (0.0, False, True)
    row = infos.rows[0]["final_info"] if mode is AutoresetMode.SAME_STEP else infos.rows[0]
    assert_faulted(row, "exception" if kind == "raise" else "worker died")
    assert sum(vector.stats()["faults"].values()) == 3
    assert str(vector.reset(seed=3)) == str(healthy)


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_an_autoreset_that_breaks_ends_the_next_episode_at_once(make: Make, tmp_path: Path, backend: str) -> None:
    marker = tmp_path / "marker"
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        vector = make(1, marker=str(marker), backend=backend, num_workers=None, autoreset_mode=mode)
        vector.reset(seed=0)
        for _ in range(2):
            vector.step(["up"])
        marker.write_text("xx")
        ends = [vector.step(["up"]) for _ in range(3)]
        truncated = [bool(end[3][0]) for end in ends]
        faults = [end[4].rows[0]["fault"] for end in ends]
        if mode is AutoresetMode.NEXT_STEP:  # end, failed reset, its end
            assert truncated == [False, False, True] and not faults[0] and faults[1] and faults[2]
        else:  # end and failed reset, its end and the next reset, a turn
            assert truncated == [False, True, False] and faults[0] and not faults[1]
            assert ends[1][4].rows[0]["final_info"]["fault"]
        assert vector.stats()["faults"] == {"exception": 2}


def test_a_worker_that_is_killed_while_idle_costs_no_episode(make: Make) -> None:
    vector, twin = make(), make(backend="sync", num_workers=None)
    for each in (vector, twin):
        each.reset(seed=1)
        each.step(["up"] * 3)
    os.kill(workers(vector)[0], signal.SIGKILL)
    assert vector.step(["down"] * 3)[0] == twin.step(["down"] * 3)[0]
    assert vector.stats()["faults"] == {} and vector.stats()["workers_replaced"] == 1


def test_a_rebuild_repeats_calls_attributes_options_and_snapshots(make: Make) -> None:
    vector, twin = make(4), make(4, backend="sync", num_workers=None)
    results = []
    for each in (vector, twin):
        each.reset(seed=1, options={"slot_options": [{"task": -2}, None, {"task": -3}, None]})
        each.step(["up"] * 4)
        saved = each.snapshot()
        each.set_attr("bonus", [0, 0, 0, -1])
        each.call("add", -2, indices=[2])
        each.step(["up", "kill" if each is vector else "raise", "up", "down"])
        first = each.step(["up"] * 4)
        each.restore(saved, indices=range(4))
        each.step(["up", "up", "kill" if each is vector else "raise", "up"])
        results.append((first[0], first[4].rows, each.step(["up"] * 4)[0], each.get_attr("bonus")))
    assert results[0][1][2]["anchor"] == "-2 of 3"
    assert str(results[0]) == str(results[1])


def test_a_rebuild_that_shows_something_else_is_a_fault(make: Make, tmp_path: Path) -> None:
    """An environment whose replay is not equal must not go on as if it were."""
    vector = make(2)
    vector.reset(seed=0)
    vector.step([f"once raise-not {tmp_path / 'first'}", "up"])
    vector.set_attr("count", 0)  # repeated by a rebuild, so this is fine
    vector.step(["down", "down"])
    assert isinstance(vector._backend, ProcessBackend)
    vector._backend._journals[0].last = "something else"
    os.kill(workers(vector)[0], signal.SIGKILL)
    rows = vector.step(["up", "up"])[4].rows
    assert_faulted(rows[0], "rebuild failed: exception: TurngymError: the environment is not deterministic")
    assert rows[1]["fault"] == ""


def test_a_call_that_breaks_its_worker_raises_and_the_episode_goes_on(make: Make) -> None:
    vector, twin = make(2), make(2, backend="sync", num_workers=None)
    for each in (vector, twin):
        each.reset(seed=1)
    with pytest.raises(TurngymError, match=r"worker died \(exit code -9\)"):
        vector.call("explode", "kill", indices=[0])
    with pytest.raises(ValueError, match="no such door"):
        vector.call("explode", "raise", indices=[0])
    assert vector.step(["up", "up"])[0] == twin.step(["up", "up"])[0]


def test_a_slow_slot_does_not_hold_up_the_ready_ones(make: Make) -> None:
    """Lock-step would wait for the slot that hangs; first-ready returns the others and later the fault."""
    vector = make(3, num_workers=2, step_timeout_seconds=1.5)
    vector.reset(seed=0)
    vector.send(["up", "hang", "up"])
    ready: list[int] = []
    while len(ready) < 2:
        slots, *_, infos = vector.recv(min_ready=1)
        ready += slots
        assert all(row["fault"] == "" for row in infos.rows)
    assert sorted(ready) == [0, 2]
    assert vector.recv(min_ready=1, timeout_seconds=0.0)[0] == []
    slots, *_, infos = vector.recv(min_ready=1)
    assert slots == [1]
    assert_faulted(infos.rows[0], "timeout")


def test_looking_without_waiting_finds_what_is_ready(make: Make) -> None:
    vector = make(2, num_workers=2)
    vector.reset(seed=0)
    vector.send(["up", "up"])
    ready: list[int] = []
    deadline = time.monotonic() + 120
    while len(ready) < 2 and time.monotonic() < deadline:
        ready += vector.recv(timeout_seconds=0.0)[0]
    assert sorted(ready) == [0, 1]


def test_closing_leaves_no_process_behind(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a worker, nor one that hangs, nor what an environment has started."""
    monkeypatch.setenv("TOY_CHILD_PID", str(tmp_path / "pid"))
    vector = make(2, num_workers=2)
    vector.reset(seed=0)
    vector.step(["child", "up"])
    pids = [*workers(vector), int((tmp_path / "pid").read_text())]
    assert all(map(is_running, pids))
    vector.send(["hang"], [1])
    vector.close()
    assert_gone(pids)


def test_a_vector_that_is_forgotten_ends_its_workers(make: Make) -> None:
    vector = make_vec("toy/Faulty-v0", 1, backend="process")
    pids = workers(vector)
    del vector
    assert_gone(pids)


def test_the_board_never_shows_a_job_that_began_long_ago(tmp_path: Path) -> None:
    """A torn read would kill a healthy worker for a timeout, once in some hundred thousand steps."""
    file = tmp_path / "board"
    file.write_bytes(bytes(Board.SIZE))
    code = (
        "import sys, time; from turngym.envs.vector.backends.worker import Board\n"
        "file = open(sys.argv[1], 'r+b'); board = Board(file.fileno()); end = time.monotonic() + 120; n = 0\n"
        "while time.monotonic() < end: n += 1; board.write(n)"
    )
    with file.open("r+b") as opened, subprocess.Popen([sys.executable, "-c", code, str(file)]) as writer:
        board, seen = Board(opened.fileno()), set[int]()
        while len(seen) <= 300 and writer.poll() is None:  # on one processor both take turns, which is slow
            serial, _, began = board.read()
            seen.add(serial)
            assert serial == 0 or time.monotonic() - began < 30
        board.close()
        writer.kill()
    assert len(seen) > 300


def test_a_killed_trainer_leaves_no_worker_behind(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import toy_envs; from turngym.envs.vector import make_vec\n"
        "v = make_vec('toy/Faulty-v0', 2, backend='process', num_workers=2); v.reset(seed=0)\n"
        "print(*v._backend.pids(), flush=True)\n"
        "input(); sys.exit() if sys.argv[2] == 'exit' else None; v.step(['up', 'hang'])"
    )
    for end in ("exit", "kill"):
        arguments = [sys.executable, "-c", code, str(Path(toy_envs.__file__).parent), end]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            pids = [int(pid) for pid in process.stdout.readline().split()]
            if end == "exit":
                process.stdin.write("\n")
                process.stdin.flush()
            else:
                process.kill()
            process.wait()
        assert len(pids) == 2
        assert_gone(pids)


def test_functions_and_classes_of_a_script_reach_the_workers() -> None:
    """Makers travel by value, so what exists only in this process works too."""
    goal = 2
    maker = lambda: toy_envs.Counter(goal)  # noqa: E731
    with make_vec(env_fns=[maker] * 2, backend="process", num_workers=1) as vector:
        assert vector.get_attr("goal") == (2, 2)
    with make_vec("toy_envs:toy/Counter-v0", 2, backend="process", num_workers=1) as vector:
        assert vector.reset(seed=0)[0][0].startswith("count 0")


def test_a_maker_that_fails_is_reported_when_the_vector_is_made() -> None:
    with pytest.raises(ValueError, match="max_turns"):
        make_vec("toy/Counter-v0", 2, backend="process", num_workers=1, max_turns=0)


def test_an_answer_that_cannot_travel_is_a_fault() -> None:
    class Unpicklable(toy_envs.Counter):
        def anchor(self) -> Any:
            return (lambda: 0) if self.count == 1 else "text"

    with make_vec(env_fns=[Unpicklable] * 2, backend="process", num_workers=1) as vector:
        vector.reset(seed=0)
        rows = vector.step(["up", "down"])[4].rows
        assert_faulted(rows[0], "exception: ")
        assert rows[1]["fault"] == ""


def test_numeric_and_picture_environments_fault_with_an_empty_observation() -> None:
    vector = make_vec("toy/Picture-v0", 2)
    vector.reset(seed=0)
    observations, _, _, truncations, infos = vector.step(["look", "raise"])
    assert truncations.tolist() == [False, True] and list(observations["text"]) == ["turn 1", ""]
    np.testing.assert_array_equal(observations["image"][1], 0)
    assert infos["fault"][1].startswith("exception") and infos["_fault"].tolist() == [False, True]
