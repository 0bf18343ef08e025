"""Guards: numbers that are not finite are found where they arise, limits warn or stop, diagnoses say it in words."""

import errno
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import play, small_model

from turngym.errors import ConfigError, DivergenceError
from turngym.storage.files import append_line, read_jsonl, write_atomic
from turngym.trainers.algorithms.grpo import GRPO, GRPOConfig
from turngym.trainers.core.algorithm import Credit, Gradients, LossInputs, LossOutput
from turngym.trainers.core.finite import check_weights, screen_rewards
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.policy_statistics import table_metrics
from turngym.trainers.report.diagnosis import ADVICE, diagnose, kind_of
from turngym.trainers.settings.guards import GuardConfig, Watchdog


class BadCredit(GRPO):
    """Gives the fifth token an infinite advantage."""

    def credit(self, table: TurnTable) -> Credit:
        found = super().credit(table).advantages.clone()
        found[4] = math.inf
        return Credit(found)


class BadLoss(GRPO):
    """Its loss of one turn is not a number."""

    def loss(self, inputs: LossInputs) -> LossOutput:
        output = super().loss(inputs)
        term = output.terms["policy"]
        values = torch.where(inputs.turn_ids == 3, torch.full_like(term.values, math.nan), term.values)
        return replace(output, terms={**output.terms, "policy": term._replace(values=values)})


class BadGradient(GRPO):
    """Its gradient of one parameter is infinite while its loss is fine."""

    def transform_gradients(self, gradients: Any, probes: Any, metrics: Any) -> Gradients:
        return Gradients([gradients[0], torch.full_like(gradients[1], math.inf), *gradients[2:]])


def raised(kind: type[Any]) -> tuple[DivergenceError, Learner, Any]:
    model = small_model()
    trajectories = play(model)
    learner = Learner(model, kind(GRPOConfig()), UpdateConfig())
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    with pytest.raises(DivergenceError) as caught:
        learner.update(trajectories, 0)
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())
    assert learner.updates == 0, "found before any harm was done"
    return caught.value, learner, trajectories


def test_an_advantage_that_is_infinite_is_traced_to_its_turn() -> None:
    error, _, trajectories = raised(BadCredit)
    table = turn_table(trajectories)
    row = int(table.token_turn[4])
    assert error.kind == "advantage" and error.where["value"] == "inf" and error.where["tokens"] == 1
    assert (error.where["episode"], error.where["turn"]) == (int(table.episode[row]), int(table.turn[row]))
    assert error.where["env"] == "turngym/Sokoban-v0" and error.where["action"] is not None


def test_a_loss_that_is_no_number_is_traced_to_its_term_and_turn() -> None:
    error, _, trajectories = raised(BadLoss)
    first = trajectories[0]
    assert error.kind == "loss" and error.where["term"] == "policy"
    expected = (0, 3) if len(first.turns) > 3 else (trajectories[1].spec.episode, 3 - len(first.turns))
    assert (error.where["episode"], error.where["turn"]) == expected
    assert "row" not in error.where and float(str(error.where["sampler_log_probability"])) < 0


def test_a_gradient_that_is_infinite_is_traced_to_its_parameter() -> None:
    error, learner, _ = raised(BadGradient)
    names = [name for name, parameter in learner.network.named_parameters() if parameter.requires_grad]
    assert error.kind == "gradient" and error.where["parameter"] == f"policy.{names[1]}"


def test_weights_are_checked_and_frozen_ones_are_not() -> None:
    module = torch.nn.Linear(2, 2)
    check_weights({"policy": module})
    module.bias.data[1] = math.inf
    with pytest.raises(DivergenceError, match="a weight is not finite after the update") as caught:
        check_weights({"policy": module})
    assert caught.value.where == {"parameter": "policy.bias"} and caught.value.kind == "weights"
    module.bias.requires_grad_(False)
    check_weights({"policy": module})


def test_rewards_and_their_parts_are_screened() -> None:
    trajectories = play(small_model())
    assert screen_rewards(trajectories, "stop") == 0
    trajectories[1].turns[0].columns = {"reward/goal": 1.0, "reward/step": -math.inf}
    with pytest.raises(
        DivergenceError, match=r"episode 1 of .*Sokoban-v0 got the reward part 'step' of -inf at turn 0"
    ):
        screen_rewards(trajectories, "stop")
    assert screen_rewards(trajectories, "drop") == 1
    assert trajectories[1].fault == "bad reward: the reward part 'step' of -inf at turn 0"
    assert screen_rewards(trajectories, "stop") == 0, "a faulted episode is passed over"
    assert turn_table(trajectories).num_episodes == len(trajectories) - 1


# Limits


def record(**values: float) -> dict[str, float]:
    names = {"reward": "rollout/reward_sum", "entropy": "policy/entropy_sampled", "kl": "policy/kl_sampler"}
    names |= {"ratio": "policy/ratio_max", "episodes": "rollout/episodes", "faults": "rollout/faults"}
    return {"rollout/episodes": 4.0, **{names[key]: value for key, value in values.items()}}


@pytest.mark.parametrize(
    ("name", "good", "bad", "words"),
    [
        ("entropy", 0.5, 1e-4, "the entropy has collapsed: 0.0001 nats a token, below 0.001"),
        ("ratio", 3.0, 2e4, "importance ratios explode: the largest is 2e+04, above 1000"),
        ("kl", 0.01, 2.0, "the policy diverges from the sampler: the KL is 2, above 1"),
    ],
)
def test_a_limit_warns_once_after_its_patience_and_again_after_it_was_kept(
    name: str, good: float, bad: float, words: str
) -> None:
    dog = Watchdog(GuardConfig(patience=3))
    found = [dog.look(record(**{name: value})) for value in (bad, bad, good, bad, bad, bad, bad, good, bad, bad, bad)]
    assert [len(each) for each in found] == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert found[5][0].startswith(words) and "3 iterations in a row" in found[5][0]
    strict = Watchdog(GuardConfig(patience=1, on_divergence="stop"))
    with pytest.raises(DivergenceError, match=r"collapsed|explode|diverges") as caught:
        strict.look(record(**{name: bad}))
    assert caught.value.kind == "divergence"
    off = Watchdog(GuardConfig(patience=1, min_entropy=0, max_ratio=0, max_kl=0))
    assert off.look(record(**{name: bad})) == []


def test_a_reward_collapse_is_a_fall_of_the_mean_by_half_of_the_range() -> None:
    dog = Watchdog(GuardConfig(patience=1))
    rewards = [0, 0.2, 0.4, 0.8, 0.9, 1.0, 0.9, 1.0, 0.9, 0.5, 0.1, 0.0, 0.0]
    found = [dog.look(record(reward=reward)) for reward in rewards]
    warned = [index for index, each in enumerate(found) if each]
    assert warned == [11]
    assert found[11] == ["the reward has collapsed: 0.375 on average of 4 iterations, after 0.95"]
    noisy = Watchdog(GuardConfig(patience=5))
    generator = torch.Generator().manual_seed(0)
    for value in torch.rand(200, generator=generator).tolist():
        assert noisy.look(record(reward=value)) == [], "noise is not a collapse"


def test_iterations_without_a_whole_episode_stop_the_run() -> None:
    dog = Watchdog(GuardConfig(max_faulty_iterations=2))
    dog.look(record(episodes=0, faults=4))
    dog.look(record(episodes=1, faults=3))
    dog.look(record(episodes=0, faults=4))
    with pytest.raises(DivergenceError, match="every episode of 2 iterations in a row broke"):
        dog.look(record(episodes=0, faults=4))
    patient = Watchdog(GuardConfig(max_faulty_iterations=0))
    assert [patient.look(record(episodes=0, faults=4)) for _ in range(9)] == [[]] * 9


def test_settings_out_of_range_are_refused() -> None:
    for options, message in (
        ({"bad_reward": "keep"}, "bad_reward must be one of 'stop', 'drop', got 'keep'"),
        ({"on_divergence": "go"}, "on_divergence must be one of 'warn', 'stop'"),
        ({"patience": 0}, "patience must be a whole number of at least 1, got 0"),
        ({"max_kl": -1.0}, r"max_kl must be a number of at least 0, got -1.0"),
    ):
        with pytest.raises(ConfigError, match=message):
            GuardConfig(**options)


# Words and files


def test_a_diagnosis_is_json_and_words(tmp_path: Path) -> None:
    error = DivergenceError("the loss is not finite.", "loss", {"episode": 3, "turn": 1, "action": "go on"})
    records = [{"iteration": 6, "loss/policy": math.nan, "rollout/success": 0.25}]
    found = diagnose(error, iteration=7, phase="update", checkpoint=tmp_path / "000004", records=records)
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["last_metrics"][0]["loss/policy"] == "nan"
    words = found.in_words()
    assert "stopped in iteration 8, while it was busy with the update of the weights" in words
    assert "episode 3, turn 1, action 'go on'" in words and "rollout/success 0.25" in words
    assert "3 iterations after it are lost" in words and "--update.learning-rate" in words


def test_every_kind_of_error_has_advice() -> None:
    errors = [OSError(errno.ENOSPC, "full"), OSError(errno.EACCES, "no"), MemoryError(), KeyboardInterrupt()]
    kinds = [kind_of(error) for error in [*errors, ConfigError("x"), ValueError("x"), DivergenceError("x")]]
    assert kinds == ["disk", "files", "memory", "interrupt", "error", "bug", "divergence"]
    assert set(kinds) | {"reward", "advantage", "loss", "gradient", "weights", "faults"} == set(ADVICE)


def test_a_line_goes_in_whole_and_replaces_half_of_one(tmp_path: Path) -> None:
    file = tmp_path / "new" / "lines.jsonl"
    append_line(file, '{"a": 1}')
    append_line(file, json.dumps({"long": "x" * 10_000}))
    with file.open("a") as handle:
        handle.write('{"half": ' + "y" * 9_000)
    assert len(read_jsonl(file)) == 2
    append_line(file, '{"a": 3}')
    assert [list(record) for record in read_jsonl(file)] == [["a"], ["long"], ["a"]]
    (tmp_path / "only_half").write_text('{"half')
    append_line(tmp_path / "only_half", "{}")
    assert (tmp_path / "only_half").read_text() == "{}\n"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    import resource

    file = tmp_path / "file"
    write_atomic(file, "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_atomic(file, "x" * 1000)
        with pytest.raises(OSError, match="File too large"):
            append_line(file, "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == ""  # half a line, which "old" was, is not a line


# Numbers by hand


def test_entropies_by_turn_and_staleness_by_hand() -> None:
    trajectories = play(small_model())[:2]
    for trajectory in trajectories:
        for index, turn in enumerate(trajectory.turns):
            turn.logprobs = tuple(-1.0 - index for _ in turn.logprobs)
    trajectories[1].turns[0].staleness = 5
    found = table_metrics(turn_table(trajectories))
    turns = sum(len(trajectory.turns) for trajectory in trajectories)
    assert found["policy/staleness_mean"] == pytest.approx(5 / turns) and found["policy/staleness_max"] == 5
    assert found["policy/entropy_first_turn"] == found["policy/entropy_turn_1"] == 1
    assert found["policy/entropy_turn_2"] == 2 and 3 <= found["policy/entropy_turns_3_to_4"] <= 4
    assert found["policy/entropy_last_turn"] == pytest.approx(4)
