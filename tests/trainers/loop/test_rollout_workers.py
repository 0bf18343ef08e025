"""Rollout workers on a Ray cluster: as in one process, and no lost worker costs or doubles an episode."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from ray_cluster import cluster
from small import small_model
from vector_play import assert_gone

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.trajectory import Branch, Trajectory
from turngym.envs.vector.backends.remote.ray_session import import_ray
from turngym.errors import ConfigError, TurngymError
from turngym.trainers import report
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.rollout_workers import pool
from turngym.trainers.loop.rollout_workers.player import AsyncRayTask
from turngym.trainers.loop.rollout_workers.task import RayTask
from turngym.trainers.loop.rollout_workers.worker import Gathering
from turngym.trainers.loop.setup import build_algorithm, with_adapters
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.loop.tasks import factory
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.parts import WHOLE
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.settings.ray import RayConfig

pytestmark = pytest.mark.integration
__all__ = ["cluster"]  # a fixture

TINY = TrainConfig(
    max_seconds=0,
    env_options={"view": "coordinates", "max_turns": 6, "max_moves": 2},
    iterations=3,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=32, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=20, epochs=2),
    rollout=RolloutConfig(groups=3, group_size=3),
    update=UpdateConfig(learning_rate=3e-3, minibatches=2),
    evaluation=EvaluationConfig(episodes=4, every=3, curve_episodes=4),
)
OWN = {"rollout/workers_lost", "time/hand_over_seconds"}
"""Metrics that only rollout workers add."""


def with_workers(config: TrainConfig, count: int, **options: Any) -> TrainConfig:
    return replace(config, rollout=replace(config.rollout, ray=RayConfig(workers=count, **options)))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A model that lies in a folder."""
    folder = tmp_path_factory.mktemp("model")
    small_model().save(folder)
    return load_model(str(folder))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run in this process."""
    return trained(TINY, tmp_path_factory.mktemp("plain"))


@pytest.fixture
def made(cluster: Any) -> Iterator[Callable[[TrainConfig], TaskSource]]:
    """Make tasks that are closed in the end."""
    opened: list[TaskSource] = []

    def make(config: TrainConfig) -> TaskSource:
        opened.append(make_task(config, build_algorithm(config)))
        return opened[-1]

    yield make
    for task in opened:
        task.close()


BRANCHING = replace(TINY, algorithm="vine_ppo")


@pytest.fixture(scope="module")
def shared(cluster: Any) -> Iterator[RayTask]:
    """A task with two workers, which several tests use, and attack."""
    config = with_workers(BRANCHING, 2)
    with closing(make_task(config, build_algorithm(config))) as task:
        assert isinstance(task, RayTask)
        yield task


@pytest.fixture(scope="module")
def here() -> Iterator[TaskSource]:
    """The same task in this process."""
    with closing(make_task(BRANCHING, build_algorithm(BRANCHING))) as task:
        yield task


def trained(config: TrainConfig, folder: Path) -> RunFolder:
    assert train(config, folder / "run").finished
    return RunFolder(folder / "run")


def counted(record: dict[str, Any]) -> dict[str, Any]:
    """A record without times."""
    return {name: value for name, value in record.items() if not name.startswith("time/") and name not in OWN}


def texts(played: list[Trajectory]) -> list[Any]:
    """Everything of some episodes but for the last bits of log-probabilities."""
    return [(each.spec, each.instance, each.success, [(*t.prompt_ids, *t.completion_ids) for t in each.turns])
            for each in played]  # fmt: skip


def logprobs(played: list[Trajectory]) -> list[float]:
    return [each for trajectory in played for turn in trajectory.turns for each in turn.logprobs]


def when_computing(task: TaskSource, act: Callable[[int], None]) -> threading.Thread:
    """Do something to the process of a worker as soon as it has computed a little of the next share.

    A loaded machine may keep it waiting for so long that the pool gives it up before: then it is lost as well.
    """
    assert isinstance(task, RayTask)
    member = task.cluster.pool._members[0]
    _, pid = task.cluster.pool.places()[0]
    begun = import_ray().get(member.actor.progress.remote())

    def watch() -> None:
        with suppress(import_ray().exceptions.ActorDiedError):
            while import_ray().get(member.actor.progress.remote()) < begun + 8:
                time.sleep(0.001)
            act(pid)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def test_a_worker_trains_to_the_same_bits_though_it_is_killed(
    cluster: Any, plain: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker's batches are those of one process, so that every number is equal, and so are the weights.

    It is slow to begin, and killed while it plays the second iteration.
    """
    tasks: list[RayTask] = []

    class Watched(RayTask):
        def gather(self, model: LanguageModel, iteration: int, *arguments: Any) -> list[Trajectory]:
            tasks.append(self)
            killer = when_computing(self, kill) if iteration == 1 else None
            found = super().gather(model, iteration, *arguments)
            assert len({each.spec.episode for each in found}) == len(found) == 9
            if killer is not None:
                killer.join()
            return found

    monkeypatch.setattr(pool, "_PLACE_SECONDS", 0.0)
    monkeypatch.setattr(factory, "RayTask", Watched)
    run = trained(with_workers(TINY, 1), tmp_path)
    assert [record["rollout/workers_lost"] for record in run.metrics()] == [0, 1, 0]
    assert tasks[0].cluster.version == 3
    assert [counted(each) for each in run.metrics()] == [counted(each) for each in plain.metrics()]
    assert {name for name in run.metrics()[0] if name not in plain.metrics()[0]} == OWN
    weights = [(each.path / "model" / "model.safetensors").read_bytes() for each in (run, plain)]
    assert weights[0] == weights[1]
    documented = (Path(report.__file__).parents[1] / "METRICS.md").read_text("utf8")
    assert all(f"| `{name}` |" in documented for name in OWN)


def test_episodes_do_not_depend_on_workers_and_machines(
    cluster: Any, shared: RayTask, here: TaskSource, model: LanguageModel
) -> None:
    """Two workers on two machines, one of which is lost; later tests have the other one."""
    [node] = cluster.worker_nodes
    played, alone = shared.gather(model, 4, 1), here.gather(model, 4, 1)
    assert texts(played) == texts(alone)
    assert logprobs(played) == pytest.approx(logprobs(alone), abs=1e-5)
    places = shared.cluster.pool.places()
    there = [pid for place, pid in places if place == node.node_id]
    assert there, "Ray spreads the workers"
    cluster.remove_node(node, allow_graceful=False)
    assert_gone(there)  # a worker that is not gone yet may answer in time
    assert texts(shared.gather(model, 1, 0)) == texts(here.gather(model, 1, 0))
    # Until Ray notices that the machine is gone, it may start a replacement there, which is lost as well.
    assert shared.cluster.pool.lost >= len(there)
    now = [member.place for member in shared.cluster.pool._members if member.has_arrived]
    survivors = {pid for _, pid in import_ray().get(now)}
    assert survivors >= {pid for _, pid in places} - set(there)


def test_episodes_branch_off_on_workers(shared: RayTask, here: TaskSource, model: LanguageModel) -> None:
    found = []
    for task in (shared, here):
        origins = [each for each in task.gather(model, 0, 0) if len(each.turns) > 1]
        branches = [Branch(each, 1) for each in origins]
        played = task.branch(model, 0, branches, 5)
        assert all(new.spec.branch is branch for new, branch in zip(played, branches, strict=True))
        assert [turn for new in played for turn in new.earlier_turns] == [each.turns[0] for each in origins]
        found.append(texts(played))
    assert len(found[0]) > 2 and found[0] == found[1]


def test_groups_of_a_worker_that_hangs_are_played_again(
    shared: RayTask, here: TaskSource, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is noticed because it computes nothing, as is one that a loaded machine keeps waiting for so long."""
    monkeypatch.setattr(shared.cluster.pool, "config", replace(shared.cluster.pool.config, silent_seconds=6.0))
    shared.gather(model, 0, 0)
    _, pid = shared.cluster.pool.places()[0]
    lost = shared.cluster.pool.lost
    attacker = when_computing(shared, lambda pid: os.kill(pid, signal.SIGSTOP))
    played = shared.gather(model, 1, 0)
    attacker.join()
    assert texts(played) == texts(here.gather(model, 1, 0))
    assert shared.cluster.pool.lost > lost
    assert_gone([pid])
    assert texts(shared.gather(model, 2, 0)) == texts(here.gather(model, 2, 0))


class Deadly:
    """A share that ends the process of whatever plays it."""

    def play(self, task: TaskSource, model: LanguageModel) -> list[Trajectory]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []


class Wrong:
    """A share that cannot be played."""

    def play(self, task: TaskSource, model: LanguageModel) -> list[Trajectory]:
        raise ConfigError("these episodes cannot be played.")


class OtherBase:
    """A share that leaves a worker with other frozen weights, as of another revision of the model."""

    def play(self, task: TaskSource, model: LanguageModel) -> list[Trajectory]:
        weight = next(tensor for name, tensor in model.network.named_parameters() if "embed_tokens" in name)
        with torch.no_grad():
            weight[7] += 0.5
        return []


def test_a_worker_with_another_base_model_is_replaced(
    made: Callable[[TrainConfig], TaskSource], model: LanguageModel
) -> None:
    """With adapters the base model is handed over once, so that a change of it is not written over; here in games."""
    config = replace(TINY, env="turngym/KuhnPoker-v0", env_options={}, algorithm="dr_mas", lora_rank=2)
    task = made(with_workers(config, 1))
    adapted = with_adapters(config, load_model(model.name))  # which changes the network that it is given
    assert isinstance(task, RayTask)
    task._play(adapted, [OtherBase()])
    assert task.cluster.pool.lost == 0
    with torch.no_grad():
        for name, tensor in adapted.network.named_parameters():
            if "lora_B" in name:
                tensor.fill_(0.02)
    assert texts(task.gather(adapted, 1, 0)) == texts(made(config).gather(adapted, 1, 0))
    assert task.cluster.pool.lost == 1


def test_groups_that_lose_every_worker_stop_the_run(
    shared: RayTask, here: TaskSource, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stops an iteration, the next one is played as if nothing had happened."""
    monkeypatch.setattr(pool, "_MOST_LOSSES", 0)
    with pytest.raises(TurngymError, match="1 rollout workers were lost one after the other as one plays the same"):
        shared._play(model, [Deadly()])
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=r"^these episodes cannot be played\.$"):
        shared._play(model, [Wrong(), Gathering(0, 0, False, WHOLE)])
    assert texts(shared.gather(model, 2, 0)) == texts(here.gather(model, 2, 0))


def test_asynchronous_groups_are_played_once_whatever_happens_to_workers_and_run(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed, and the run is interrupted and resumed."""
    rollout = replace(TINY.rollout, schedule="async", max_staleness=1, groups=4)
    config = with_workers(replace(TINY, iterations=6, checkpoint_every=100, rollout=rollout), 2)
    tasks: list[AsyncRayTask] = []
    made = AsyncRayTask.__init__

    def noted(self: AsyncRayTask, *given: Any) -> None:
        made(self, *given)
        tasks.append(self)

    monkeypatch.setattr(AsyncRayTask, "__init__", noted)
    batches: list[list[Trajectory]] = []
    gather = AsyncRayTask.gather

    def gathered(self: AsyncRayTask, *given: Any) -> list[Trajectory]:
        batches.append(gather(self, *given))
        return batches[-1]

    monkeypatch.setattr(AsyncRayTask, "gather", gathered)

    def trouble(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 1:
            kill(tasks[-1].cluster.pool.places()[0][1])
        if record["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    assert not train(config, tmp_path / "run", watch=trouble).finished
    assert train(config, tmp_path / "run", resume=True).finished
    records = RunFolder(tmp_path / "run").metrics()
    assert [record["rollout/episodes"] for record in records] == [12] * 6
    assert sum(record["rollout/workers_lost"] for record in records) >= 1
    assert all(record["policy/staleness_max"] <= 1 for record in records)
    groups = Counter(episode.spec.group for batch in batches for episode in batch)
    assert groups == dict.fromkeys(range(24), 3)
    for iteration, batch in enumerate(batches):
        versions = {(episode.spec.group, turn.policy_version) for episode in batch for turn in episode.turns}
        assert len(versions) == 4, "a group is played with one version of the weights"
        assert all(iteration - 1 <= version <= iteration for _, version in versions)
    assert any(record["policy/staleness_0"] < 1 for record in records), "rollouts ran ahead of the learner"


def test_a_cluster_without_room_is_named(
    made: Callable[[TrainConfig], TaskSource], model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are the logs to look at, where there may be room and no worker begins."""
    task = made(with_workers(TINY, 1, gpus=1.0))
    for limit, told in {
        "_PLACE_SECONDS": r"1 CPUs and 1 GPUs, and no machine has as many.*Lower rollout\.ray\.cpus",
        "_START_SECONDS": r"no rollout worker has started within 0 s.*look at the logs of the workers",
    }.items():
        with monkeypatch.context() as patch, pytest.raises(TurngymError, match=told):
            patch.setattr(pool, limit, 0.0)
            task.gather(model, 0, 0)
