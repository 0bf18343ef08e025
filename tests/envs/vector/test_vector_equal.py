"""The same seeds give byte-equal transcripts on every backend; snapshots move between them."""

from typing import Any

import pytest
import toy_envs
from gymnasium.vector import AutoresetMode
from vector_envs import Waiting

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.seeding import stream

MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
LAYOUTS = [("thread", None), ("thread", 2), ("asyncio", None), ("process", 1), ("process", 3)]
GAMES = ["turngym/GuessTheNumber-v0", "turngym/Sokoban-v0", "turngym/FrozenLakeSlippery-v0"] * 2


def transcript(vector: TextVectorEnv, turns: int, *, first_ready: bool = False) -> str:
    """Play random legal actions, one stream per slot, and return what every slot has seen.

    Any backend may be passed: what it gives depends on the seeds and the actions alone, and these on what was seen.
    """
    streams = [stream("transcript", slot) for slot in range(vector.num_envs)]
    observations, infos = vector.reset(seed=11)
    seen: list[list[Any]] = [[pair] for pair in zip(observations, infos.rows, strict=True)]

    def action(slot: int, row: dict[str, Any]) -> str:
        legal = row["legal_actions"] or ("1",)
        return str(legal[int(streams[slot].random() * len(legal))])

    vector.send([action(slot, row) for slot, row in enumerate(infos.rows)])
    left = [turns] * vector.num_envs
    while any(left):
        needed = 1 if first_ready else vector.num_envs
        slots, observations, rewards, terminations, truncations, infos = vector.recv(needed)
        again = []
        for position, slot in enumerate(slots):
            row = infos.rows[position]
            flags = bool(terminations[position]), bool(truncations[position])
            seen[slot].append((observations[position], float(rewards[position]), *flags, row))
            left[slot] -= 1
            if left[slot]:
                again.append((slot, action(slot, row)))
        vector.send([text for _, text in again], [slot for slot, _ in again])
    return repr(seen)


@pytest.fixture(scope="module")
def originals() -> dict[AutoresetMode, str]:
    """The transcripts of one process."""
    return {mode: transcript(make_vec(GAMES, autoreset_mode=mode), 40) for mode in MODES}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("backend", "num_workers"), LAYOUTS)
def test_transcripts_are_byte_equal(
    originals: dict[AutoresetMode, str], backend: str, num_workers: int | None, mode: AutoresetMode
) -> None:
    with make_vec(GAMES, backend=backend, num_workers=num_workers, autoreset_mode=mode) as vector:
        for first_ready in (False, True):
            assert transcript(vector, 40, first_ready=first_ready) == originals[mode]
        assert vector.stats()["faults"] == {}


def test_other_seeds_and_other_actions_are_noticed(originals: dict[AutoresetMode, str]) -> None:
    """A comparison that cannot fail would prove nothing."""
    vector = make_vec(GAMES)
    reset = vector.reset
    vector.reset = lambda seed: reset(seed=[11, 12, 13, 14, 15, 99])  # type: ignore[method-assign,assignment,misc]
    assert transcript(vector, 40) != originals[AutoresetMode.NEXT_STEP]


def test_coroutines_give_the_same_transcripts_as_plain_methods() -> None:
    fns = [lambda: Waiting(delay=0.001)] * 4
    plain = transcript(make_vec(env_fns=[toy_envs.Faulty] * 4), 12)
    for backend in ("asyncio", "thread"):
        with make_vec(env_fns=fns, backend=backend) as vector:
            assert transcript(vector, 12, first_ready=True) == plain
            assert vector.get_attr("seen_by")[0] == ({"turngym-loop"} if backend == "asyncio" else set())


def branching(backend: str) -> TextVectorEnv:
    kind = Waiting if backend == "asyncio" else toy_envs.Faulty
    workers = 1 if backend == "process" else None
    maker = lambda: kind(env_id="toy/Faulty-v0")  # noqa: E731
    return make_vec(env_fns=[maker] * 3, backend=backend, num_workers=workers, autoreset_mode="disabled")


@pytest.mark.parametrize("source", ["sync", "thread", "asyncio", "process"])
def test_snapshots_move_between_slots_and_backends(source: str) -> None:
    """A branch goes on as the original did, whoever plays it, and the slots that were not restored are untouched."""
    futures = []
    saved: list[bytes] = []
    for backend in dict.fromkeys([source, "sync", "asyncio", "process"]):
        with branching(backend) as vector:
            vector.reset(seed=[21, 22, 23])
            vector.step(["up"] * 3)
            saved = saved or vector.snapshot(indices=[1])
            vector.step(["down"], [1])
            observations, infos = vector.restore(saved * 2, indices=[2, 1])
            assert infos.rows[0]["anchor"] == "1 of 3" and observations[0] == observations[1]
            futures.append(repr([vector.step(["down", "up", "up"])[:4] for _ in range(2)]))
            assert vector.stats()["faults"] == {}
    assert len(set(futures)) == 1


@pytest.mark.parametrize("backend", ["asyncio", "process"])
def test_a_restored_episode_survives_the_loss_of_its_worker(backend: str) -> None:
    """What is brought back begins with the snapshot, not with the seed."""
    fault = "kill" if backend == "process" else "block"
    kind = toy_envs.Faulty if backend == "process" else Waiting
    with make_vec(env_fns=[kind] * 2, backend=backend, num_workers=1, step_timeout_seconds=1.5) as vector:
        twin = make_vec(env_fns=[toy_envs.Faulty] * 2)
        for each in (vector, twin):
            each.reset(seed=1)
            each.step(["down", "down"])
            saved = each.snapshot()
            each.step(["up", "up"])
            each.restore(saved)
            each.step(["up", "up"])
        vector.step(["up", fault])
        twin.step(["up", "raise"])
        assert vector.step(["down"], [0])[0] == twin.step(["down"], [0])[0]
