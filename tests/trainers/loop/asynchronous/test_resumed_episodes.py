"""Episodes that a run was playing when it ended continue in mid-turn; batches that it had trained are trained again."""

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import watched_env
from fault_runs import TINY, numbers

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import CheckpointError, RunStopped
from turngym.trainers.loop.asynchronous.history import EpisodeHistory, History
from turngym.trainers.loop.asynchronous.task import AsyncTask
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import iteration_specs
from turngym.trainers.records.journal import Journal
from turngym.trainers.settings.config import TrainConfig

assert watched_env
Batches = dict[int, list[Trajectory]]


def config_of(**options: Any) -> TrainConfig:
    rollout = replace(
        TINY.rollout, format="plain", schedule="async", max_staleness=2, backend="thread", num_envs=9, groups=2
    )
    options = {"seconds": 0.01, "longest": 12, **options}
    return replace(
        TINY, env="test/Watched-v0", env_options=options, rollout=rollout, iterations=8, checkpoint_every=100
    )


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Batches]:
    """The batches of each run of the test, by iteration."""
    found: list[Batches] = []
    gather, playing = AsyncTask.gather, AsyncTask.playing

    def noted(self: AsyncTask, model: LanguageModel, iteration: int, *given: Any, **named: Any) -> list[Trajectory]:
        batch = gather(self, model, iteration, *given, **named)
        found[-1][iteration] = batch
        return batch

    def begun(self: AsyncTask, *given: Any) -> Any:
        found.append({})
        return playing(self, *given)

    monkeypatch.setattr(AsyncTask, "gather", noted)
    monkeypatch.setattr(AsyncTask, "playing", begun)
    return found


def break_off(config: TrainConfig, folder: Path, iteration: int, is_due: Callable[[], bool] = lambda: True) -> None:
    """Run until an iteration is over, and leave what a killed process leaves: the journal as it is, no checkpoint.

    Args:
        config: The run.
        folder: Its folder.
        iteration: The iteration.
        is_due: Waited for before the run ends.
    """

    def end(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == iteration:
            give_up = time.monotonic() + 120
            while not is_due():
                assert time.monotonic() < give_up
                time.sleep(0.01)
            shutil.copytree(folder / "journal", folder.parent / "journal")
            shutil.copy(folder / "metrics.jsonl", folder.parent / "metrics.jsonl")
            raise RuntimeError("killed")

    with pytest.raises(RunStopped, match="killed"):
        train(config, folder, watch=end)
    shutil.rmtree(folder / "journal")
    shutil.rmtree(folder / "checkpoints")
    shutil.copytree(folder.parent / "journal", folder / "journal")
    shutil.copy(folder.parent / "metrics.jsonl", folder / "metrics.jsonl")


def held_group(config: TrainConfig, iteration: int) -> str:
    """Return the instance of the last group that belongs to an iteration; it must last two turns."""
    env = watched_env.Watched(longest=config.env_options["longest"])
    env.reset(seed=iteration_specs(config, iteration)[-1].seed)
    assert env.length >= 2
    return env.instance


def break_off_in_mid_episode(config: TrainConfig, folder: Path) -> None:
    """Break off after iteration 3, while the last group of iteration 4 has two turns: however fast it is played."""
    group = range(4 * 6 + 3, 5 * 6)

    def is_held() -> bool:
        found = open_episodes(folder)
        return all(number in found and len(found[number].turns) == 2 for number in group)

    with watched_env.held_at_the_second_step({held_group(config, 4)}):
        break_off(config, folder, 3, is_held)


def open_episodes(folder: Path) -> dict[int, EpisodeHistory]:
    """Return the episodes of untrained groups that have a turn and are not over."""
    history = History.of(Journal(folder / "journal").read(0), 0)
    groups = [history.groups[number] for number in set(history.groups) - history.to_train()]
    every = {number: episode for group in groups for number, episode in group.episodes.items()}
    return {number: episode for number, episode in every.items() if episode.turns and episode.whole is None}


@pytest.mark.parametrize("can_save", [True, pytest.param(False, marks=pytest.mark.integration)])
def test_a_run_goes_on_where_it_was(can_save: bool, tmp_path: Path, batches: list[Batches]) -> None:
    config, folder = config_of(can_save=can_save), tmp_path / "run"
    break_off_in_mid_episode(config, folder)
    before, going_on = numbers(folder), open_episodes(folder)
    assert sum(len(episode.turns) > 1 for episode in going_on.values()) >= 3
    assert all(bool(episode.state) == can_save for episode in going_on.values())
    assert train(config, folder, resume=True).finished
    first, second = batches
    assert [repr(first[iteration]) for iteration in range(4)] != [] and sorted(second) == list(range(8))
    for iteration in range(4):
        assert second[iteration] == first[iteration], "trained on again, not played again"
        mine, theirs = ([t.policy_version for e in each[iteration] for t in e.turns] for each in (first, second))
        assert mine == theirs
    after = numbers(folder)
    assert after[:4] == before[:4], "the same numbers as before"
    trained = {episode.spec.episode: episode for batch in second.values() for episode in batch}
    for number, episode in going_on.items():
        if number in trained:  # the last groups of a run may not be needed any more
            known = [turn.completion_ids for turn in episode.turns]
            assert [turn.completion_ids for turn in trained[number].turns[: len(known)]] == known
            assert [turn.policy_version for turn in trained[number].turns[: len(known)]] == [
                turn.policy_version for turn in episode.turns
            ]
    groups = [episode.spec.group for batch in second.values() for episode in batch]
    assert len(groups) == 8 * 6 and all(groups.count(group) == 3 for group in groups)
    assert sum(record["rollout/restored"] for record in after) >= len(going_on)


def test_environments_that_do_not_repeat_themselves_go_on_with_new_turns(
    tmp_path: Path, batches: list[Batches]
) -> None:
    config, folder = config_of(can_save=False, noisy=True), tmp_path / "run"
    break_off_in_mid_episode(config, folder)
    assert train(config, folder, resume=True).finished
    assert len({e.spec.episode for batch in batches[1].values() for e in batch}) == 8 * 6


def test_without_its_journal_a_run_plays_on_from_the_checkpoint(tmp_path: Path, batches: list[Batches]) -> None:
    config, folder = replace(config_of(seconds=0.0), checkpoint_every=2), tmp_path / "run"
    with pytest.raises(RunStopped):
        train(config, folder, watch=at_iteration(4))
    shutil.rmtree(folder / "journal")
    assert train(config, folder, resume=True).finished and len(numbers(folder)) == 8


def test_a_damaged_journal_stops_the_run_with_the_way_out(tmp_path: Path, batches: list[Batches]) -> None:
    config, folder = config_of(seconds=0.0), tmp_path / "run"
    break_off(config, folder, 2)
    file = folder / "journal" / "000000.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"begun"', b'"beg', 1))
    with pytest.raises((RunStopped, CheckpointError), match="is damaged: delete the folder"):
        train(config, folder, resume=True)


def test_checkpoints_keep_what_the_one_before_needs(tmp_path: Path, batches: list[Batches]) -> None:
    config, folder = replace(config_of(seconds=0.002), checkpoint_every=2), tmp_path / "run"
    with pytest.raises(RunStopped):
        train(config, folder, watch=at_iteration(5))
    whole = numbers(folder)[:6]
    assert Journal(folder / "journal").segments() == [4, 6]
    shutil.rmtree(folder / "checkpoints" / "000006")
    assert train(config, folder, resume=True).finished
    assert numbers(folder)[4:6] == whole[4:6] and sorted(batches[1]) == [4, 5, 6, 7]


def at_iteration(iteration: int) -> Any:
    def end(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == iteration:
            raise RuntimeError("killed")

    return end
