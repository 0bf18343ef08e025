"""What breaks on a Ray cluster stays in its slot; lost actors and nodes cost no episode at all."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_envs
from ray_cluster import FOLDER, NODE, Make, actor_of, actors, cluster, make, twin
from vector_play import FAULTS, assert_faulted, assert_gone, is_running, play, without

from turngym.envs.vector import make_vec
from turngym.envs.vector.backends import ray as ray_backend
from turngym.system.processes import descendants

pytestmark = pytest.mark.integration
__all__ = ["cluster", "make"]  # fixtures


@pytest.mark.parametrize("kind", FAULTS)
def test_what_breaks_stays_in_its_slot(make: Make, kind: str) -> None:
    """The others of its worker are rebuilt in mid-episode; the actor itself is not touched."""
    vector = make(step_timeout_seconds=1.5)
    before = actors(vector)
    broken, whole = play(vector, 8, {(1, 1): kind}), play(twin(make), 8, {})
    assert without(broken, 1) == without(whole, 1)
    assert_faulted(broken[2][4][1], FAULTS[kind])
    assert sum(vector.stats()["faults"].values()) == 1
    assert bool(vector.stats()["workers_replaced"]) == (kind not in ("raise", "exit"))
    assert actors(vector) == before


@pytest.mark.parametrize("kind", ["raise", "hang", "exit", "kill"])
def test_a_reset_that_breaks_is_tried_once_more(make: Make, tmp_path: Path, kind: str) -> None:
    marker = tmp_path / "marker"
    limits = {"reset_timeout_seconds": 1.5, "step_timeout_seconds": 1.5}
    vector = make(2, num_workers=2, marker=str(marker), reset_fault=kind, **limits)
    healthy = twin(make, 2).reset(seed=3)
    marker.write_text("x")
    assert repr(vector.reset(seed=3)) == repr(healthy)  # the second try succeeded: nothing shows
    marker.write_text("xx")
    vector.step(["up", "up"])
    observations, _ = vector.reset(seed=3, options={"reset_mask": np.array([True, False])})
    assert observations[0] == ""
    rows = vector.step(["up", "up"])[4].rows
    assert_faulted(rows[0], {"raise": "exception", "hang": "timeout", "exit": "exception"}.get(kind, "worker died"))
    assert rows[1]["fault"] == "" and rows[1]["anchor"] == "2 of 3"
    assert sum(vector.stats()["faults"].values()) == 3
    assert repr(vector.reset(seed=3)) == repr(healthy)


def test_an_environment_that_cannot_be_closed_is_ended(make: Make) -> None:
    vector = make(2, close_fault="hang", num_workers=2, step_timeout_seconds=1.5)
    vector.reset(seed=0)
    rows = vector.step(["up", "raise"])[4].rows  # a broken environment is closed at once
    assert rows[0]["fault"] == ""
    assert_faulted(rows[1], "timeout")
    pids = [pid for _, pid in actors(vector)]
    pids = [each for pid in pids for each in descendants(pid)]
    vector.close()
    assert_gone(pids)


def test_an_environment_that_eats_memory_faults_alone(make: Make) -> None:
    vector = make(2, memory_limit_mib=1500)
    vector.reset(seed=0)
    _, _, _, truncations, infos = vector.step(["up", "eat"])
    assert truncations.tolist() == [False, True]
    assert infos.rows[1]["fault"].startswith(("exception: MemoryError", "worker died"))


def test_a_killed_actor_costs_no_episode(make: Make) -> None:
    """Idle or at work: everything goes on byte-equal, the generators included."""
    vector, whole = make(4, num_workers=2, delay=0.1), twin(make, 4)
    seen = []
    for each in (vector, whole):
        rows = [each.reset(seed=1)[0], each.step(["up", "down", "down", "up"])[0]]
        if each is vector:
            os.kill(actors(each)[0][1], signal.SIGKILL)
        rows.append(each.step(["up", "down", "down", "up"])[0])
        each.send(["down"] * 4)
        if each is vector:
            time.sleep(0.15)  # the second slot of each worker is at work, the answer of the first not yet fetched
            os.kill(actors(each)[1][1], signal.SIGKILL)
        slots, observations, *_ = each.recv(min_ready=4)
        rows.append(tuple(observations[slots.index(slot)] for slot in range(4)))
        seen.append(rows)
    assert seen[0] == seen[1]
    assert vector.stats()["faults"] == {} and vector.stats()["workers_replaced"] == 2


def test_an_operation_that_takes_its_actor_down_twice_is_a_fault(make: Make) -> None:
    class Patricide(toy_envs.Counter):
        def apply_action(self, action: str) -> Any:
            if action == "patricide":
                os.kill(actor_of(os.getpid()), signal.SIGKILL)
                time.sleep(600)
            return super().apply_action(action)

    vector, whole = make(3, None, env_fns=[Patricide] * 3), twin(make, 3, None, env_fns=[Patricide] * 3)
    broken = play(vector, 4, {(1, 1): "patricide"})
    assert without(broken, 1) == without(play(whole, 4, {}), 1)
    assert_faulted(broken[2][4][1], "worker died (")
    assert vector.stats()["workers_replaced"] == 2


def test_a_lost_node_costs_no_episode(cluster: Any, make: Make) -> None:
    """Its raylet is killed in mid-episode; what ran there goes on elsewhere, byte-equal."""
    node = cluster.add_node(**NODE)
    vector, whole = make(4, num_workers=4), twin(make, 4)
    seen = []
    for each in (vector, whole):
        each.reset(seed=3)
        each.step(["up"] * 4)
        if each is vector:
            lost = [pid for place, pid in actors(each) if place == node.node_id]
            num_lost = len(lost)
            assert num_lost > 0
            lost = [each for pid in lost for each in descendants(pid)]
            cluster.remove_node(node, allow_graceful=False)
            assert_gone(lost)
        seen.append([each.step(["down"] * 4)[0], each.step(["up"] * 4)[0]])
    assert seen[0] == seen[1]
    assert vector.stats()["faults"] == {} and vector.stats()["workers_replaced"] >= num_lost
    assert {place for place, _ in actors(vector)} == {each.node_id for each in cluster.list_all_nodes()}


def test_an_actor_that_says_nothing_is_replaced(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    vector, whole = make(2), twin(make, 2)
    for each in (vector, whole):
        each.reset(seed=1)
    monkeypatch.setattr(ray_backend, "_SILENT_SECONDS", 3.0)
    os.kill(actors(vector)[0][1], signal.SIGSTOP)
    assert vector.step(["down"] * 2)[0] == whole.step(["down"] * 2)[0]
    assert vector.stats()["faults"] == {} and vector.stats()["workers_replaced"] >= 1


def test_a_rebuild_repeats_calls_attributes_options_and_snapshots(make: Make) -> None:
    vector, whole = make(4), twin(make, 4)
    results = []
    for each in (vector, whole):
        each.reset(seed=1, options={"slot_options": [{"task": -2}, None, {"task": -3}, None]})
        each.step(["up"] * 4)
        saved = each.snapshot()
        each.set_attr("bonus", [0, 0, 0, -1])
        each.call("add", -2, indices=[2])
        if each is vector:
            os.kill(actors(each)[0][1], signal.SIGKILL)
        first = each.step(["up"] * 4)
        each.restore(saved, indices=range(4))
        if each is vector:
            os.kill(actors(each)[0][1], signal.SIGKILL)
        results.append((first[0], first[4].rows, each.step(["down"] * 4)[0], each.get_attr("bonus")))
    assert results[0][1][2]["anchor"] == "-3 of 3"
    assert str(results[0]) == str(results[1])


def test_a_slow_slot_does_not_hold_up_other_workers(make: Make) -> None:
    vector = make(4, num_workers=3, step_timeout_seconds=1.5)
    vector.reset(seed=0)
    vector.send(["up", "hang", "up", "up"])
    ready: list[int] = []
    while len(ready) < 3:
        slots, *_, infos = vector.recv(min_ready=1)
        ready += slots
        assert all(row["fault"] == "" for row in infos.rows)
    assert sorted(ready) == [0, 2, 3]
    assert vector.recv(min_ready=1, timeout_seconds=0.0)[0] == []
    vector.send(["up"], [3])
    assert vector.recv()[0] == [3]
    slots, *_, infos = vector.recv(min_ready=1)
    assert slots == [1]
    assert_faulted(infos.rows[0], "timeout")


def test_closing_leaves_no_process_behind(make: Make, tmp_path: Path) -> None:
    """Neither an actor nor its process, one that hangs included, nor what an environment has started."""
    import ray

    class Parent(toy_envs.Faulty):
        def child(self, file: Path) -> None:
            os.environ["TOY_CHILD_PID"] = str(file)
            toy_envs.breakdown("child")

    vector = make(2, None, env_fns=[Parent] * 2, num_workers=2)
    vector.reset(seed=0)
    vector.call("child", tmp_path / "pid", indices=[0])
    pids = [pid for _, pid in actors(vector)]
    pids = [each for pid in pids for each in descendants(pid)] + [int((tmp_path / "pid").read_text())]
    assert len(pids) >= 5 and all(map(is_running, pids))
    vector.send(["hang"], [1])
    vector.close()
    assert_gone(pids)
    assert ray.is_initialized()  # it was there before the vector


def test_a_vector_that_is_forgotten_ends_its_actors(cluster: Any) -> None:
    vector = make_vec("toy/Faulty-v0", 1, backend="ray")
    pids = [pid for _, pid in actors(vector)]
    del vector
    assert_gone(pids)


def test_a_killed_trainer_leaves_no_process_behind(cluster: Any) -> None:
    code = (
        "import sys; sys.path += sys.argv[1:3]; import toy_envs; from turngym.envs.vector import make_vec\n"
        "v = make_vec('toy/Faulty-v0', 1, backend='ray', backend_options={'address': sys.argv[3]}); v.reset(seed=0)\n"
        "print(v._backend.places()[0][1], flush=True); v.step(['hang'])"
    )
    folders = [str(Path(toy_envs.__file__).parent), str(FOLDER), cluster.address]
    arguments = [sys.executable, "-c", code, *folders]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        actor = int(process.stdout.readline())
        pids = descendants(actor)
        assert len(pids) >= 2
        process.kill()
    assert_gone(pids)


def test_a_maker_that_fails_is_reported_when_the_vector_is_made(cluster: Any) -> None:
    with pytest.raises(ValueError, match="max_turns"):
        make_vec("toy/Counter-v0", 2, backend="ray", num_workers=1, max_turns=0)
