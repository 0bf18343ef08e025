"""Asynchronous runs: K = 0 repeats the synchronous ones to the bit, ages are bounded, and stops are clean."""

import hashlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import watched_env
from fault_runs import TINY, at, diagnosis, faulty, numbers
from safetensors.torch import load_file

from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.agents.trajectory_json import trajectory_to_json
from turngym.errors import ConfigError, RunStopped
from turngym.trainers.loop.asynchronous.task import AsyncTask
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import build_algorithm, iteration_specs
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.records.run_folder import config_from_store, config_to_store
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

assert watched_env
WATCHED = replace(
    TINY,
    env="test/Watched-v0",
    env_options={},
    checkpoint_every=100,
    rollout=replace(TINY.rollout, format="plain"),
)


def with_rollout(config: TrainConfig, **settings: Any) -> TrainConfig:
    return replace(config, rollout=replace(config.rollout, **settings))


def weights(folder: Path) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(load_file(folder / "model" / "model.safetensors").items()):
        found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


def common(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    """Every metric of one run is that of the other one."""
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert mine == {name: theirs[name] for name in mine}


def lines_of(config: TrainConfig, log: Path) -> list[str]:
    """Return what the environments of training wrote, without those that texts for the tokenizer came from."""
    env, mine = watched_env.Watched(), set()
    for spec in (spec for iteration in range(config.iterations) for spec in iteration_specs(config, iteration)):
        env.reset(seed=spec.seed)
        mine.add(env.instance)
    return [line for line in log.read_text().split("\n")[:-1] if line.split()[1] in mine]


def no_player() -> bool:
    return not any(thread.name == "rollouts" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("algorithm", "options", "settings"),
    [
        ("dapo", {"dapo": {"max_rounds": 3}}, {"schedule": "async", "max_staleness": 0}),
        ("ppo+tis", {}, {"journal": True}),
    ],
)
def test_no_staleness_repeats_the_synchronous_run_to_the_bit(
    algorithm: str, options: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    config = replace(WATCHED, algorithm=algorithm, algorithm_options=options, iterations=4)
    train(config, tmp_path / "sync")
    train(with_rollout(config, **settings), tmp_path / "async")
    common(numbers(tmp_path / "sync"), numbers(tmp_path / "async"))
    assert weights(tmp_path / "sync") == weights(tmp_path / "async") != weights_of_start(tmp_path / "sync")
    assert all(record["policy/staleness_0"] == 1 for record in numbers(tmp_path / "async"))


def weights_of_start(folder: Path) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(load_file(folder / "warmup" / "model.safetensors").items()):
        found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


def test_the_tokens_without_staleness_are_those_of_the_synchronous_run(tmp_path: Path) -> None:
    seen: dict[str, list[Any]] = {}

    def recorder(name: str) -> Any:
        def note(trajectories: Any) -> None:
            seen.setdefault(name, []).append([repr(trajectory_to_json(each)) for each in trajectories])

        return note

    for name, config in (("sync", WATCHED), ("async", with_rollout(WATCHED, schedule="async", max_staleness=0))):
        note = recorder(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("turngym.trainers.loop.trainer.require_turns", note)
            train(config, tmp_path / name)
    assert len(seen["sync"]) == 5 and seen["sync"] == seen["async"]


@pytest.mark.parametrize("on_stale", ["wait", "drop"])
def test_episodes_are_played_during_updates_and_their_age_is_bounded(
    on_stale: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(WATCHED, env_options={"seconds": 0.002}, iterations=8)
    config = with_rollout(config, schedule="async", max_staleness=2, on_stale=on_stale, backend="thread", num_envs=9)
    batches: list[list[Trajectory]] = []
    gather = AsyncTask.gather

    def noted(self: AsyncTask, *given: Any, **named: Any) -> list[Trajectory]:
        batches.append(gather(self, *given, **named))
        return batches[-1]

    monkeypatch.setattr(AsyncTask, "gather", noted)
    train(config, tmp_path / "run")
    records = numbers(tmp_path / "run")
    assert all(record["policy/staleness_max"] <= 2 for record in records)
    assert any(record["policy/staleness_0"] < 1 for record in records)
    groups: dict[int, list[Trajectory]] = {}
    for iteration, batch in enumerate(batches):
        for episode in batch:
            groups.setdefault(episode.spec.group, []).append(episode)
            versions = [turn.policy_version for turn in episode.turns]
            assert versions == sorted(versions) and iteration - 2 <= versions[0] and versions[-1] <= iteration
    assert len(batches) == 8 and len(groups) == 16 and all(len(group) == 3 for group in groups.values())
    firsts = [{episode.turns[0].policy_version for episode in group} for group in groups.values()]
    assert all(len(versions) == 1 for versions in firsts), "all episodes of a group begin with the same weights"


def test_a_sampler_that_breaks_ends_the_run_with_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = with_rollout(WATCHED, schedule="async", max_staleness=1)
    calls = []

    def breaks(self: Any, *given: Any) -> Any:
        calls.append(given)
        if len(calls) > 12:
            raise RuntimeError("the sampler fell over")
        return act(self, *given)

    act = ModelAgent.act
    monkeypatch.setattr(ModelAgent, "act", breaks)
    with pytest.raises(RunStopped, match="the sampler fell over"):
        train(config, tmp_path / "run")
    assert no_player() and diagnosis(tmp_path / "run")["phase"] == "rollout"
    monkeypatch.setattr(ModelAgent, "act", act)
    assert train(config, tmp_path / "run", resume=True).finished and len(numbers(tmp_path / "run")) == 5


def test_an_interrupt_leaves_a_checkpoint_and_the_run_goes_on_without_playing_anything_twice(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "run"

    def interrupt(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    config = replace(WATCHED, env_options={"log": str(log), "longest": 8}, iterations=6)
    config = with_rollout(config, schedule="async", max_staleness=2)
    assert not train(config, folder, watch=interrupt).finished and no_player()
    assert [path.name for path in all_checkpoints(folder / "checkpoints")] == ["000002"]
    assert train(config, folder, resume=True).finished
    records = numbers(folder)
    steps = Counter(line for line in lines_of(config, log) if line.startswith("step"))
    in_flight = 6
    assert records[-1]["turns_total"] <= steps.total() <= records[-1]["turns_total"] + in_flight
    assert len([line for line in lines_of(config, log) if line.startswith("reset")]) <= 36 + in_flight


@pytest.mark.parametrize("settings", [{"schedule": "async", "max_staleness": 1}, {"journal": True}])
def test_an_episode_whose_worker_dies_is_played_on(settings: dict[str, Any], tmp_path: Path) -> None:
    deadly = tmp_path / "deadly"

    def strike(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 1:
            deadly.touch()

    config = replace(WATCHED, env_options={"deadly": str(deadly), "longest": 8}, iterations=4)
    config = with_rollout(config, backend="process", num_workers=2, **settings)
    train(config, tmp_path / "run", watch=strike)
    records = numbers(tmp_path / "run")
    assert not deadly.exists() and sum(record["rollout/replayed"] for record in records) >= 1
    assert [record["rollout/faults"] for record in records] == [0] * 4
    assert [record["rollout/episodes"] for record in records] == [6] * 4


def test_an_environment_that_breaks_by_itself_costs_its_episode(tmp_path: Path) -> None:
    config = with_rollout(faulty(tmp_path / "marker", "raise"), schedule="async", max_staleness=1)
    train(config, tmp_path / "run", watch=at(tmp_path / "marker", 0))
    assert sum(record["rollout/faults"] for record in numbers(tmp_path / "run")) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"algorithm": "vine_ppo"}, "branches off from episodes"),
        ({"algorithm": "remax"}, "once more with greedy decoding"),
        ({"algorithm": "remax+tis"}, "once more with greedy decoding"),
        ({"env": "turngym/KuhnPoker-v0", "env_options": {}}, "from deal to end in one piece"),
    ],
)
def test_what_cannot_be_asynchronous_is_refused_at_once(changes: dict[str, Any], words: str) -> None:
    config = with_rollout(replace(TINY, **changes), schedule="async")
    with pytest.raises(ConfigError, match=words):
        make_task(config, build_algorithm(config))


def test_greedy_baselines_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    config = with_rollout(replace(WATCHED, algorithm="remax"), schedule="async")
    with pytest.raises(ConfigError, match="once more with greedy decoding"):
        train(config, tmp_path / "run")
    assert no_player() and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"schedule": "sometimes"}, "'lockstep', 'continuous', 'async'"),
        ({"on_stale": "hope"}, "'wait', 'drop'"),
        ({"schedule": "async", "max_staleness": -1}, "max_staleness must be a whole number of at least 0"),
        ({"schedule": "async", "refresh_every": 2}, "max_staleness"),
        ({"schedule": "async", "num_envs": 2, "group_size": 3}, "at least group_size=3"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        RolloutConfig(**settings)


def test_settings_are_kept_in_the_folder_of_a_run() -> None:
    config = with_rollout(TINY, schedule="async", max_staleness=3, on_stale="drop", journal=True)
    assert config_from_store(config_to_store(config)) == config


@pytest.mark.parametrize(
    ("algorithm", "old_logprobs", "staleness", "words"),
    [
        ("grpo", "sampler", 2, ""),
        ("a3po", "sampler", 2, ""),
        ("grpo+tis", "sampler", 2, ""),
        ("grpo", "trainer", 2, "grpo+tis"),
        ("grpo", "trainer", 0, ""),
        ("reinforce", "sampler", 2, "reinforce+tis"),
        ("reinforce+tis", "sampler", 2, ""),
        ("reinforce", "sampler", 0, ""),
    ],
)
def test_methods_that_take_stale_samples_for_fresh_ones_are_named(
    algorithm: str, old_logprobs: Any, staleness: int, words: str
) -> None:
    options = {"reinforce": {"objective": "plain"}} if "reinforce" in algorithm else {}
    config = replace(TINY, algorithm=algorithm, algorithm_options=options)
    config = replace(config, update=replace(TINY.update, old_logprobs=old_logprobs))
    config = with_rollout(config, schedule="async", max_staleness=staleness)
    method = build_algorithm(config)
    task = make_task(config, method)
    assert isinstance(task, AsyncTask)
    found = task.warning(method)
    task.close()
    assert words in found and bool(found) == bool(words)
