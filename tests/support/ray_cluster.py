"""A Ray cluster of two nodes on this machine, for tests; Ray itself comes from a folder of its own."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends.ray import RayBackend

FOLDER = Path(__file__).parents[2] / ".venvs" / "ray"
NODE = {"num_cpus": 8, "object_store_memory": 80 * 1024 * 1024}
DEATH = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 10,
}
"""How soon a node is given up: after 5 s if its process is gone, 25 s if it is only too busy to answer."""

Make = Callable[..., TextVectorEnv]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes, joined by this process; the second has four of the resource ``games``."""
    with pytest.MonkeyPatch.context() as patch:
        if FOLDER.is_dir():
            patch.setattr(sys, "path", [*sys.path, str(FOLDER)])
            patch.setenv("PYTHONPATH", str(FOLDER))
        elif importlib.util.find_spec("ray") is None:
            pytest.skip("the package ray is not in .venvs/ray: run make test-integration")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        import ray
        from ray.cluster_utils import Cluster

        head = {**NODE, "include_dashboard": False, "_system_config": DEATH}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(**NODE, resources={"games": 4})
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture
def make(cluster: Any) -> Iterator[Make]:
    """Make vectors that are closed in the end; ``backend="sync"`` for the twin that nothing befalls."""
    opened: list[TextVectorEnv] = []

    def make(count: int = 3, env_id: Any = "toy/Faulty-v0", **options: Any) -> TextVectorEnv:
        defaults: dict[str, Any] = {"backend": "ray", "num_workers": 1}
        opened.append(make_vec(env_id, count, **(defaults | options)))
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


def twin(make: Make, *arguments: Any, **options: Any) -> TextVectorEnv:
    """Return the same vector in this process."""
    return make(*arguments, **{**options, "backend": "sync", "num_workers": None})


def actors(vector: TextVectorEnv) -> list[tuple[str, int]]:
    """Return the node and the process of each worker's actor."""
    assert isinstance(vector._backend, RayBackend)
    return vector._backend.places()


def actor_of(pid: int) -> int:
    """Return the process of the actor that a process descends from."""
    while not Path(f"/proc/{pid}/cmdline").read_text().startswith("ray::"):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid
