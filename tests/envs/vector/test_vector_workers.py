"""What backends with workers share, the Ray actor's part of it run in this process, and what is refused."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy_envs
from gymnasium.error import ClosedEnvironmentError
from vector_play import assert_faulted

from turngym.envs.vector import make_vec
from turngym.envs.vector.backends.base import BackendOptions, Failure
from turngym.envs.vector.backends.channel import decode, encode
from turngym.envs.vector.backends.process import ProcessBackend
from turngym.envs.vector.backends.remote.ray_host import Host, Sealed
from turngym.envs.vector.backends.remote.ray_session import RayOptions
from turngym.envs.vector.backends.worker import IDLE
from turngym.envs.vector.slots.maker import Maker
from turngym.envs.vector.slots.slot import Journal, Slot
from turngym.errors import ConfigError, MissingExtra, TurngymError


def fuse(file: Path, kind: str) -> Callable[[], toy_envs.Counter]:
    """Return a maker that arrives well in another process unless the file exists: then something happens there."""

    def arrive(file: Path, kind: str) -> Callable[[], toy_envs.Counter]:
        if file.exists():
            toy_envs.breakdown(kind)
        return toy_envs.Counter

    class Travelling:
        def __call__(self) -> toy_envs.Counter:
            return toy_envs.Counter()

        def __reduce__(self) -> Any:
            return arrive, (file, kind)

    return Travelling()


ENDS = {
    "raise": "a worker cannot load the environments' makers: exception: ValueError: no such door",
    "exit": "a worker cannot load the environments' makers: exception: SystemExit: 3",
    "quit": r"4 workers in a row ended before they answered: worker died \(exit code 3\)",
}


@pytest.mark.parametrize("kind", ENDS)
def test_a_vector_whose_workers_cannot_begin_any_more_says_why_and_is_closed(tmp_path: Path, kind: str) -> None:
    """Otherwise the next call would wait for ever."""
    vector = make_vec(env_fns=[fuse(tmp_path / "lit", kind)] * 2, backend="process", num_workers=1)
    vector.reset(seed=0)
    (tmp_path / "lit").touch()
    assert isinstance(vector._backend, ProcessBackend)
    os.kill(vector._backend.pids()[0], signal.SIGKILL)
    with pytest.raises(TurngymError, match=ENDS[kind]):
        vector.step(["up"] * 2)
    with pytest.raises(ClosedEnvironmentError):
        vector.step(["up"] * 2)


# The part that runs in a Ray actor.


class Caller:
    """Talks to a host as the backend does."""

    def __init__(self, count: int, **options: Any) -> None:
        makers = [Sealed(Maker(toy_envs.Faulty, {}, (), False))] * count
        self.slots = [10 + slot for slot in range(count)]
        self.host = Host(makers, self.slots, BackendOptions(**options), [])
        self.serial = self.replaced = 0
        self.durations: dict[str, int] = {"step": 0, "reset": 0}

    def ask(self, *ops: Any, journals: Any = None) -> list[Any]:
        """Run one operation on each slot and return content and start of each."""
        first = self.serial + 1
        self.serial += len(ops)
        journals = journals or [None] * len(ops)
        jobs = list(zip(range(first, self.serial + 1), self.slots, journals, ops, strict=True))
        frame: bytes | None = encode(("run", jobs))
        found: dict[int, Any] = {}
        while len(found) < len(ops):
            reply, replaced = self.host.exchange(frame)
            answers, durations = decode(reply)
            found |= {serial: rest for serial, *rest in answers}
            self.replaced += replaced
            for kind, seconds in durations.items():
                self.durations[kind] += len(seconds)
            frame = None
        return [found[serial] for serial in range(first, self.serial + 1)]


def test_a_host_answers_as_a_slot_does_and_says_how_episodes_began() -> None:
    caller, slot = Caller(2), Slot(Maker(toy_envs.Faulty, {}, (), False))
    (one, start), (_, other_start) = caller.ask(("reset", 4, None), ("reset", None, None))
    assert one == slot.reset(4, None) and start == ("seed", 4) and other_start[0] == "generator"
    assert caller.ask(("step", "up"), ("step", "down"))[0] == [slot.step("up"), None]
    assert caller.durations == {"step": 2, "reset": 2}
    caller.host.close()


def test_a_host_replaces_its_process_and_counts_that_once() -> None:
    caller = Caller(3)
    caller.ask(*[("reset", seed, None) for seed in range(3)])
    healthy = Slot(Maker(toy_envs.Faulty, {}, (), False))
    healthy.reset(2, None)
    answers = caller.ask(("step", "up"), ("step", "kill"), ("step", "up"))
    assert_faulted(answers[1][0][4], "worker died (exit code -9)")
    assert answers[2][0] == healthy.step("up")
    caller.ask(*[("step", "down")] * 3)
    assert caller.replaced == 1
    caller.host.close()


def test_a_host_brings_a_slot_back_from_the_journal_of_another() -> None:
    caller, slot = Caller(1), Slot(Maker(toy_envs.Faulty, {}, (), False))
    slot.reset(7, {"task": -2})
    last = slot.step("up")[0]
    journal = Journal(("seed", 7), {"task": -2}, [("step", "up")], last)
    ((content, _),) = caller.ask(("step", "down"), journals=[journal])
    assert content == slot.step("down")
    ((content, _),) = caller.ask(("step", "kill"))
    assert_faulted(content[4], "worker died")
    caller.host.close()


def test_a_host_reports_what_it_cannot_do() -> None:
    """The error travels as an answer, because Ray would wrap it."""
    caller = Caller(1)
    ((serial, content, _),), _ = decode(caller.host.exchange(b"no frame")[0])
    assert serial == IDLE and isinstance(content, Failure) and "Garbled" in repr(content.error)
    caller.host.close()


def test_makers_are_opened_only_where_the_environments_live(tmp_path: Path) -> None:
    """An actor that imported the games would die with them, and would import them twice."""
    sealed = Sealed(Maker(fuse(tmp_path / "lit", "exit"), {}, (), False))
    (tmp_path / "lit").touch()
    host = Host([sealed], [0], BackendOptions(), [])
    host.close()
    with pytest.raises(SystemExit):
        sealed()


def test_the_import_path_of_the_vector_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["own"])
    Host([], [], BackendOptions(), ["theirs", "own"]).close()
    assert sys.path == ["own", "theirs"]


# What is refused.


def test_ray_names_the_extra_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r'"ray" needs the package ray, .* pip install "turngym\[ray\]"'):
        make_vec("toy/Counter-v0", 1, backend="ray")


def test_an_unknown_option_of_a_backend_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'adress'\. Did you mean 'address'\?"):
        make_vec("toy/Counter-v0", 1, backend="ray", backend_options={"adress": "auto"})
    for backend in ("sync", "process"):
        with pytest.raises(ConfigError, match=r"no options of its own, got backend_options=\{'address': 'auto'\}"):
            make_vec("toy/Counter-v0", 1, backend=backend, backend_options={"address": "auto"})


def test_options_of_ray_are_checked() -> None:
    with pytest.raises(ConfigError, match="placement must be one of"):
        RayOptions(placement="spread")
    with pytest.raises(ConfigError, match="cannot reserve -1 of games"):
        RayOptions(resources={"games": -1})
    with pytest.raises(ConfigError, match=r"cannot reserve -0\.5 of num_cpus"):
        RayOptions(num_cpus=-0.5)
