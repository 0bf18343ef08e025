"""Vectors over a Ray cluster of two nodes: equal to the other backends, spread, and careful with what others run."""

import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import toy_envs
from ray_cluster import FOLDER, Make, actors, cluster, make, twin

from turngym.agents.episodes.evaluate import evaluate
from turngym.agents.players import make_agent
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends import ray as ray_backend
from turngym.errors import ConfigError, TurngymError
from turngym.seeding import stream
from turngym.system.processes import descendants

pytestmark = pytest.mark.integration
__all__ = ["cluster", "make"]  # fixtures


def transcript(vector: TextVectorEnv, turns: int) -> str:
    """Play random legal actions and return everything that was seen."""
    generator = stream("ray test")
    observations, infos = vector.reset(seed=11)
    seen: list[Any] = [(observations, infos.rows)]
    for _ in range(turns):
        choices = [row["legal_actions"] or ("5",) for row in infos.rows]
        actions = [legal[int(generator.random() * len(legal))] for legal in choices]
        observations, rewards, terminations, truncations, infos = vector.step(actions)
        seen.append((observations, rewards, terminations, truncations, infos.rows))
    return repr(seen)


@pytest.mark.parametrize(("num_workers", "mode"), [(1, "next_step"), (3, "same_step")])
def test_transcripts_equal_those_of_one_process(make: Make, num_workers: int, mode: str) -> None:
    games = [f"turngym/{game}-v0" for game in ("Sokoban", "FrozenLake", "GuessTheNumber", "TowerOfHanoi")] * 2
    vector = make(8, games, num_workers=num_workers, autoreset_mode=mode)
    assert transcript(vector, 60) == transcript(twin(make, 8, games, autoreset_mode=mode), 60)
    assert vector.stats()["workers_replaced"] == 0
    assert vector.stats()["step_seconds"]["count"] > 0


def test_the_slots_lie_on_both_nodes(cluster: Any, make: Make) -> None:
    """Each environment runs in a process that comes from the actor of its slot, and the actors are spread."""

    class Process(toy_envs.Counter):
        def pid(self) -> int:
            return os.getpid()

    vector = make(6, None, env_fns=[Process] * 6, num_workers=4)
    places = actors(vector)
    assert {node for node, _ in places} == {node.node_id for node in cluster.list_all_nodes()}
    assert all(pid in descendants(places[slot % 4][1])[1:] for slot, pid in enumerate(vector.call("pid")))


def test_workers_lie_where_their_resources_are(cluster: Any, make: Make) -> None:
    (node,) = cluster.worker_nodes
    vector = make(3, num_workers=3, backend_options={"resources": {"games": 1}})
    assert {place for place, _ in actors(vector)} == {node.node_id}


def test_a_snapshot_moves_from_the_cluster_into_this_process(make: Make) -> None:
    vector, here = make(2), twin(make, 2)
    vector.reset(seed=5)
    vector.step(["up", "down"])
    observations, _ = here.restore(vector.snapshot())
    assert observations == vector.restore(vector.snapshot())[0]
    assert here.step(["down"] * 2)[0] == vector.step(["down"] * 2)[0]


def test_large_pictures_arrive_as_arrays_that_may_be_written(make: Make) -> None:
    """Ray hands out large arrays as read-only views of its own memory."""

    class Poster(toy_envs.Picture):
        def __init__(self) -> None:
            super().__init__()
            box = gymnasium.spaces.Box(0, 255, (512, 512), np.uint8)
            self.observation_space = gymnasium.spaces.Dict(text=self.action_space, image=box)

        def _look(self) -> dict[str, Any]:
            return {"text": "poster", "image": np.full((512, 512), self.turn, np.uint8)}

    vector = make(2, None, env_fns=[Poster] * 2)
    vector.reset(seed=0)
    image = vector.step(["look"] * 2)[0]["image"]
    assert image.shape == (2, 512, 512) and (image == 1).all() and image.flags.writeable
    assert vector.call("_look")[0]["image"].flags.writeable


def test_a_vector_starts_and_ends_a_ray_of_its_own(cluster: Any) -> None:
    """It does not join the cluster that runs here, a second vector finds room in it, and the last one ends it."""
    code = (
        "import sys; sys.path += sys.argv[1:3]; import toy_envs, ray; from turngym.envs.vector import make_vec\n"
        "vectors = [make_vec('toy/Counter-v0', 2, backend='ray', num_workers=2) for _ in range(2)]\n"
        "print(ray.get_runtime_context().gcs_address, len(ray.nodes()), flush=True)\n"
        "from listening import addresses; print(*addresses(), flush=True)\n"
        "for vector in vectors: vector.reset(seed=0); vector.close(); print(ray.is_initialized())\n"
        "try: make_vec('toy/Counter-v0', 1, backend='ray', backend_options={'resources': {'games': 1}})\n"
        "except ValueError as error: print(error)"
    )
    folders = [str(Path(toy_envs.__file__).parent), str(FOLDER)]
    lines = subprocess.run(
        [sys.executable, "-c", code, *folders],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=900,
    ).stdout.splitlines()
    address, num_nodes = lines[0].split()
    assert address != cluster.address and num_nodes == "1"
    places = lines[1].split()
    assert len(places) > 4 and all(ip_address(place).is_loopback for place in places), places
    assert lines[2:4] == ["True", "False"]
    assert lines[4].startswith("a Ray that turngym starts on this machine has no ['games']")


def test_another_address_than_the_one_joined_is_rejected(cluster: Any) -> None:
    with pytest.raises(ConfigError, match=r"joined the Ray at .* already, so it cannot use the one at '10.0.0.1:6379'"):
        make_vec("toy/Counter-v0", 1, backend="ray", backend_options={"address": "10.0.0.1:6379"})
    make_vec("toy/Counter-v0", 1, backend="ray", backend_options={"address": cluster.address}).close()


def test_a_cluster_without_room_says_what_was_asked_for(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_backend, "_START_SECONDS", 2.0)
    with pytest.raises(TurngymError, match=r"no place in the Ray cluster within 2 s: each asks for .*'num_cpus': 99"):
        make_vec("toy/Counter-v0", 1, backend="ray", backend_options={"num_cpus": 99})


def test_an_agent_is_evaluated_over_the_cluster(cluster: Any) -> None:
    agent = make_agent("expert")
    results = [
        evaluate("turngym/GuessTheNumber-v0", agent, episodes=6, num_envs=3, backend=backend)[0]
        for backend in ("sync", "ray")
    ]
    assert results[0].success.value == results[1].success.value == 1.0
