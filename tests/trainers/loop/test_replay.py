"""Replay, offline training and notes: which episodes, with whose log-probabilities and prompts, and over a resume."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from algorithm_batches import batch_of
from small import play, small_model
from test_metric_names import TINY, records

from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.offline import Offline
from turngym.trainers.algorithms.replay import Replay
from turngym.trainers.core.rows import build_rows
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.prepared import prepare
from turngym.trainers.loop.tasks.factory import make_task


def episode(number: int, group: int, success: int, instance: str = "a", logprob: float = -1.0) -> Trajectory:
    turn = Turn("see", "", "go", prompt_ids=(5, 6), completion_ids=(7, 8), logprobs=(logprob, logprob), reward=success)
    spec = EpisodeSpec(number, group, group)
    return Trajectory(spec, "X", instance, [turn], terminated=True, success=success)


def replay(**options: Any) -> Replay:
    algorithm = build("grpo+replay", {"replay": options})
    assert isinstance(algorithm, Replay)
    return algorithm


def iteration(algorithm: Replay | Offline, number: int, fresh: list[Trajectory]) -> list[Trajectory]:
    """One whole iteration, as the trainer runs it."""
    algorithm.begin_iteration(number, 10)
    found = algorithm.collect(lambda: fresh)
    algorithm.update_state(found, algorithm.credit(turn_table(found)))
    algorithm.observe({})
    return found


MIXED = [episode(0, 0, 1), episode(1, 0, 0), episode(2, 1, 0), episode(3, 1, 0)]
FAILED = [episode(0, 0, 0), episode(1, 0, 0, logprob=-3.0), episode(2, 1, 0, "b"), episode(3, 1, 0, "b")]


def test_a_group_with_a_success_comes_back_as_a_group_of_its_own() -> None:
    algorithm = replay()
    assert iteration(algorithm, 0, MIXED) == MIXED
    found = iteration(algorithm, 1, FAILED)
    assert found[:4] == FAILED and len(found) == 6
    assert [(t.spec.episode, t.spec.group, t.success) for t in found[4:]] == [(4, 2, 1), (5, 2, 0)]
    assert [t.turns for t in found[4:]] == [t.turns for t in MIXED[:2]], "tokens and log-probabilities as then"


def test_fresh_groups_get_the_advantages_that_they_get_without_a_replay() -> None:
    algorithm, plain = replay(), build("grpo")
    iteration(algorithm, 0, MIXED)
    fresh = [episode(0, 0, 1), episode(1, 0, 0), episode(2, 0, 0)]
    algorithm.begin_iteration(1, 10)
    found = algorithm.collect(lambda: fresh)
    together = algorithm.credit(turn_table(found))
    alone = plain.credit(turn_table(fresh)).advantages
    torch.testing.assert_close(together.advantages[:6], alone, rtol=0, atol=0)
    again = plain.credit(turn_table(MIXED[:2])).advantages
    torch.testing.assert_close(together.advantages[6:], again, rtol=0, atol=0)
    assert (together.metrics["replayed_episodes"], together.metrics["replayed_groups"]) == (2, 1)
    assert together.metrics["replay_kept"] == 1


def test_a_failed_group_is_given_a_success_on_the_same_instance_and_on_no_other() -> None:
    algorithm = replay(mode="failed_groups")
    assert iteration(algorithm, 0, MIXED) == MIXED
    found = iteration(algorithm, 1, FAILED)
    assert [t.success for t in found] == [0, 1, 0, 0], "instance b has no success"
    assert (found[1].spec.episode, found[1].spec.group, found[1].turns) == (1, 0, MIXED[0].turns)
    assert iteration(algorithm, 2, MIXED[:2]) == MIXED[:2], "a group that has its own success needs none"


def test_only_groups_that_teach_are_kept_and_stale_ones_are_forgotten() -> None:
    algorithm = replay(max_staleness=2, capacity=2)
    iteration(algorithm, 0, [episode(0, 0, 1), episode(1, 0, 1), episode(2, 1, 0), episode(3, 1, 0)])
    assert algorithm.kept == []
    iteration(algorithm, 1, [*MIXED[:2], replace(MIXED[0], fault="worker died")])
    assert [len(each.episodes) for each in algorithm.kept] == [2], "no faulted episode"
    assert len(iteration(algorithm, 2, FAILED)) == 6 and algorithm.kept[0].uses == 1
    assert len(iteration(algorithm, 3, FAILED)) == 6
    assert iteration(algorithm, 4, FAILED) == FAILED and algorithm.kept == []
    for number in range(5, 9):
        iteration(algorithm, number, MIXED)
    assert [each.iteration for each in algorithm.kept] == [7, 8]


def test_the_least_used_and_newest_are_replayed_first() -> None:
    algorithm = replay(per_iteration=1)
    for number in range(3):
        iteration(algorithm, number, [replace(each, instance=str(number)) for each in MIXED])
    assert [each.uses for each in algorithm.kept] == [1, 1, 0]
    assert iteration(algorithm, 3, FAILED)[4].instance == "2"
    assert iteration(algorithm, 4, FAILED)[4].instance == "2"
    assert iteration(algorithm, 5, FAILED)[4].instance == "1"
    assert [each.uses for each in algorithm.kept] == [1, 2, 2]


def test_a_group_whose_collection_failed_is_neither_kept_nor_counted_as_used() -> None:
    algorithm = replay()
    iteration(algorithm, 0, MIXED)
    before = json.dumps(algorithm.state())
    algorithm.begin_iteration(1, 10)
    algorithm.collect(lambda: MIXED)
    assert json.dumps(algorithm.state()) == before, "a checkpoint of now repeats the iteration"


def test_what_is_kept_survives_a_checkpoint_exactly() -> None:
    algorithm, again = replay(), replay()
    iteration(algorithm, 0, [episode(0, 0, 1, logprob=-0.1234567890123456789), episode(1, 0, 0)])
    again.load_state(json.loads(json.dumps(algorithm.state())))
    assert again.kept == algorithm.kept
    branched = replace(MIXED[0], spec=EpisodeSpec(9, 0, 0, None, Branch(MIXED[1], 0)))
    with pytest.raises(ConfigError, match="episode 9 branches off another one: keep whole episodes only"):
        trajectory_to_json(branched)
    whole = replace(
        MIXED[0],
        turns=[replace(MIXED[0].turns[0], columns={"reward/goal": 1.0, "scores": (0.5, 1.5)}, policy_version=3)],
    )
    again_whole = trajectory_from_json(json.loads(json.dumps(trajectory_to_json(whole))))
    assert again_whole == whole and again_whole.turns[0].policy_version == 3


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="mode must be one of failed_groups, own_groups; got 'all'"):
        replay(mode="all")
    with pytest.raises(ConfigError, match="capacity must be at least 1, got 0"):
        replay(capacity=0)


# Stale samples go through the same maths


def test_stale_and_replayed_turns_have_the_ratio_to_the_policy_that_sampled_them() -> None:
    """The loss of a stale turn is that of a fresh one with the same log-probabilities: only these count."""
    algorithm = build("grpo")
    fresh = [episode(0, 0, 1, logprob=-1.0), episode(1, 0, 0, logprob=-2.5)]
    stale = [replace(each, turns=[replace(each.turns[0], staleness=4)]) for each in fresh]
    losses = []
    for trajectories in (fresh, stale):
        batch = batch_of(algorithm, trajectories)
        inputs = batch.inputs(batch.by_turn())
        expected = (inputs.logprobs - inputs.old_logprobs).detach()[inputs.action_mask].exp()
        output = algorithm.loss(inputs)
        torch.testing.assert_close(
            float((output.metrics["ratio_mean"].values * inputs.weights["token"]).sum()), float(expected.mean())
        )
        losses.append(output.terms["policy"].values)
    torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=0)


def test_several_epochs_drift_and_the_first_update_does_not() -> None:
    model = small_model()
    config = {"normalisation": "token", "kl_coef": 0.0, "entropy_coef": 0.01, "dual_clip": 3.0}
    learner = Learner(model, build("grpo", {"grpo": config}), UpdateConfig(epochs=1, learning_rate=1e-2))
    trajectories = [episode(0, 0, 1), episode(1, 0, 0)]
    trajectories[1].turns[0].completion_ids = (9, 10)
    for each in trajectories:
        each.turns[0].logprobs = _logprobs(learner, each)
    once = learner.update(trajectories, 0)
    assert once["policy/ess"] == pytest.approx(1, abs=1e-6) and once["policy/kl_sampler"] < 1e-9
    learner = Learner(small_model(), build("grpo", {"grpo": config}), UpdateConfig(epochs=4, learning_rate=1e-2))
    often = learner.update(trajectories, 0)
    assert often["policy/kl_sampler_last"] > often["policy/kl_sampler"] > 1e-4
    assert often["policy/ess_turn"] < often["policy/ess"] < 1 and often["policy/ratio_max"] > 1.01
    assert often["loss/clip_fraction_token"] > 0 and often["train/grad_norm_clipped"] <= 1


def _logprobs(learner: Learner, trajectory: Trajectory) -> tuple[float, ...]:
    """What the policy of now gives the tokens of a turn."""
    turn = trajectory.turns[0]
    ids = torch.tensor([turn.prompt_ids + turn.completion_ids])
    with torch.no_grad():
        scores = learner.network(ids).logits.log_softmax(-1)[0]
    start = len(turn.prompt_ids) - 1
    return tuple(float(scores[start + k, token]) for k, token in enumerate(turn.completion_ids))


def test_a_sampler_that_is_held_back_makes_known_stale_samples(tmp_path: Path) -> None:
    config = replace(TINY, iterations=6, rollout=replace(TINY.rollout, refresh_every=3), algorithm="a3po")
    config = replace(config, algorithm_options={"a3po": {"entropy_coef": 0.01, "invalid_penalty": 0.1}})
    found = records(config, tmp_path / "run")
    assert [record["policy/staleness_max"] for record in found] == [0, 1, 2, 0, 1, 2]
    assert [record["credit/staleness"] for record in found] == [0, 1, 2, 0, 1, 2]
    assert max(record["train/logprob_gap"] for record in found) < 1e-4, "of fresh turns only"
    drift = [record["policy/kl_sampler"] for record in found]
    assert drift[1] > 1e-9 and drift[2] > 1e-9
    assert "policy/entropy_sampled" in found[0] and "policy/entropy_sampled" not in found[1]


def test_offline_training_records_first_and_then_plays_nothing_more(tmp_path: Path) -> None:
    config = replace(TINY, iterations=5, algorithm="rloo+offline", algorithm_options={"offline": {"rollouts": 2}})
    found = records(config, tmp_path / "run")
    assert [record["rollout/episodes"] for record in found] == [4, 4, 0, 0, 0]
    assert ["rollout/success" in record for record in found] == [True, True, False, False, False]
    assert [record["policy/staleness_max"] for record in found] == [0, 0, 2, 2, 4], "episodes of iteration 0, 1, 0"
    assert [record["credit/offline_passes"] for record in found] == [0, 0, 0, 0.5, 1]
    assert found[-1]["turns_total"] == found[1]["turns_total"]
    assert found[1]["policy/kl_sampler"] < 1e-9, "the policy stays as it is while it is recorded"


def test_recorded_episodes_survive_a_checkpoint() -> None:
    algorithm, again = (build("dr_grpo+offline", {"offline": {"rollouts": 2}}) for _ in range(2))
    assert isinstance(algorithm, Offline) and isinstance(again, Offline)
    for number, fresh in enumerate((MIXED, FAILED)):
        assert not algorithm.trains_policy(number)
        assert iteration(algorithm, number, fresh) == fresh
    again.load_state(json.loads(json.dumps(algorithm.state())))
    for number, expected in ((2, MIXED), (3, FAILED), (4, MIXED)):
        for each in (algorithm, again):
            assert each.trains_policy(number)
            assert iteration(each, number, []) == expected


def test_episodes_that_branch_off_others_are_refused_before_they_are_recorded() -> None:
    algorithm = build("rloo+offline", {})
    branched = replace(MIXED[0], spec=EpisodeSpec(9, 0, 0, None, Branch(MIXED[1], 0)))
    algorithm.begin_iteration(0, 10)
    with pytest.raises(ConfigError, match="trains on episodes that branch off others: leave offline out"):
        algorithm.collect(lambda: [MIXED[0], branched])


@pytest.mark.parametrize("mode", ["window", "conversation"])
def test_episodes_are_played_once_more_with_notes_in_their_prompts(mode: Any) -> None:
    """In a conversation a note is before the first observation and stays; other prompts have it before each."""
    rollout = replace(TINY.rollout, prompt=replace(TINY.rollout.prompt, mode=mode))
    task, model = make_task(replace(TINY, rollout=rollout)), small_model()
    try:
        played = task.gather(model, 0, 0)
        notes = ["try three first", "", "try three first", ""]
        again = task.again(model, 0, [each.spec for each in played], notes, 4)
    finally:
        task.close()
    assert [each.instance for each in again] == [each.instance for each in played]
    assert [each.spec.group for each in again] == [each.spec.group for each in played]
    assert not {each.spec.episode for each in again} & {each.spec.episode for each in played}
    for each, note in zip(again, notes, strict=True):
        for turn in each.turns:
            assert model.text_of(turn.prompt_ids).count("try three first") == bool(note)
            assert "try three first" not in turn.observation
    found = [len(build_rows([each], False)) for each in again if len(each.turns) > 1]
    assert found
    if mode == "conversation":
        assert set(found) == {1}, "each prompt starts with the one before it"


@pytest.mark.parametrize("mode", ["window", "conversation"])
def test_notes_that_leave_no_room_for_the_prompt_are_left_out(mode: Any) -> None:
    rollout = replace(TINY.rollout, prompt=replace(TINY.rollout.prompt, mode=mode, max_prompt_tokens=100))
    task, model = make_task(replace(TINY, rollout=rollout)), small_model()
    try:
        played = task.gather(model, 0, 0)
        again = task.again(model, 0, [each.spec for each in played], ["a draft", "up " * 200, "", ""], 4)
    finally:
        task.close()
    assert all(each.turns and not each.fault for each in again)
    noted = ["a draft" in model.text_of(each.turns[0].prompt_ids) for each in again]
    assert noted == [True, False, False, False]
    assert "up up" not in model.text_of(again[1].turns[0].prompt_ids)


def test_recorded_episodes_are_credited_by_the_policy_as_it_is_now() -> None:
    policy, before = small_model(), small_model()
    trajectories = play(policy)
    for number, each in enumerate(trajectories):
        each.turns[0].reward = float(number % 2)
    with torch.no_grad():
        for parameter in policy.network.parameters():
            parameter.mul_(1.05)
    method = build("dpo+offline")
    table = prepare(trajectories, policy, method, reference=before.network).table
    now = torch.tensor([each for t in trajectories for turn in t.turns for each in turn.logprobs], dtype=torch.float64)
    torch.testing.assert_close(table.token_reference_logprob, now, atol=1e-5, rtol=0)
    assert float((table.token_old_logprob - now).abs().max()) > 1e-3
    assert abs(method.credit(table).metrics["dpo_loss"] - math.log(2)) > 1e-4
