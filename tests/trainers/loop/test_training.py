"""The training loop: it learns, it logs what the sampler did, it survives a kill without a changed number."""

import json
import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from faulty_envs import CannotBegin
from forked import run_forked
from small import agent_of, small_model, sokoban_vector

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.vector import make_vec
from turngym.errors import CheckpointError, ConfigError, DivergenceError, RunFolderExists, UnknownName
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.sft import SupervisedConfig, SupervisedLearner, demonstrations
from turngym.trainers.loop.trainer import Trainer, rollout_metrics
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

SMALL = TrainConfig(
    max_seconds=0,
    env_options={"view": "coordinates", "max_turns": 6, "max_moves": 2},
    iterations=6,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=20, epochs=2),
    rollout=RolloutConfig(groups=3, group_size=3, max_new_tokens=3, sampler="transformers"),
    evaluation=EvaluationConfig(episodes=10, every=3, curve_episodes=5),
)
WALL_CLOCK = ("time/",)


def numbers(folder: Path) -> list[dict[str, Any]]:
    """Return the metrics without wall-clock times."""
    return [
        {name: value for name, value in record.items() if not name.startswith(WALL_CLOCK)}
        for record in RunFolder(folder).metrics()
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(SMALL, folder).finished
    return folder


def test_a_run_leaves_everything_behind(whole: Path) -> None:
    folder = RunFolder(whole)
    assert [record["iteration"] for record in folder.metrics()] == list(range(6))
    assert set(folder.evaluations()) == {f"{who}-{how}" for who in ("warmup", "final") for how in ("sampled", "greedy")}
    assert len(folder.evaluated_episodes("final-sampled")) == 10
    assert folder.samples() and folder.config() == SMALL
    for name in ("curve.png", "report.html", "warmup/model.safetensors", "tensorboard"):
        assert (whole / name).exists(), name
    tested = {record["instance"] for record in folder.evaluated_episodes("final-sampled")}
    assert len(tested) == 10 and not tested & folder.instances()


def test_log_probabilities_at_update_0_are_the_samplers(whole: Path) -> None:
    gaps = [record["train/logprob_gap"] for record in RunFolder(whole).metrics()]
    assert 0 < max(gaps) < 1e-4


def test_another_seed_gives_other_numbers(whole: Path, tmp_path: Path) -> None:
    train(replace(SMALL, seed=1, iterations=1), str(tmp_path / "other"))
    assert numbers(tmp_path / "other")[0] != numbers(whole)[0]


@pytest.mark.parametrize(
    ("algorithm", "refresh_every", "checkpoint_every", "lora_rank", "precision"),
    [
        pytest.param("ppo+epo", 1, 2, 0, "fp32", marks=pytest.mark.integration),
        pytest.param("a3po", 3, 4, 0, "fp32", marks=pytest.mark.integration),
        ("turn_ppo", 3, 4, 2, "fp32"),
        pytest.param("turn_ppo", 1, 2, 0, "bf16", marks=pytest.mark.integration),
    ],
)
def test_a_killed_run_goes_on_to_the_same_numbers(
    algorithm: str, refresh_every: int, checkpoint_every: int, lora_rank: int, precision: Any, tmp_path: Path
) -> None:
    """kill -9 in the middle of training; epo has a history and ppo a critic that must come back too.

    A sampler that is held back for three iterations is one iteration old at the checkpoint after four.
    """
    rollout = replace(SMALL.rollout, refresh_every=refresh_every)
    few = replace(
        SMALL,
        iterations=6,
        checkpoint_every=checkpoint_every,
        evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
    )
    config = replace(few, algorithm=algorithm, rollout=rollout, lora_rank=lora_rank, precision=precision)
    if lora_rank:  # with a reference policy
        config = replace(config, algorithm_options={algorithm: {"kl_coef": 0.1}})
    train(config, tmp_path / "whole")
    killed, done = tmp_path / "killed", checkpoint_every + 1

    def kill(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] + 1 == done:
            os.kill(os.getpid(), signal.SIGKILL)

    status = run_forked(lambda: train(config, killed, watch=kill))
    assert status == -signal.SIGKILL, "the run ended before it was killed"
    assert len(RunFolder(killed).metrics()) == done and len(all_checkpoints(killed / "checkpoints")) == 1
    train(config, killed, resume=True)
    assert numbers(killed) == numbers(tmp_path / "whole")


def test_an_interrupt_stops_after_the_iteration_with_a_checkpoint(whole: Path, tmp_path: Path) -> None:
    """Before and after it, the same seed gives the same numbers as another run."""
    config = replace(SMALL, checkpoint_every=100)
    seen: list[int] = []

    def interrupt(model: LanguageModel, record: Mapping[str, Any]) -> None:
        seen.append(record["iteration"])
        if len(seen) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    assert not train(config, tmp_path / "run", watch=interrupt).finished
    assert seen == [0, 1, 2, 3]
    assert train(config, tmp_path / "run", resume=True).finished
    assert numbers(tmp_path / "run") == numbers(whole)


def test_the_control_arm_learns_for_as_long_as_training_took(tmp_path: Path) -> None:
    evaluation = EvaluationConfig(episodes=1, every=0, curve_episodes=1)
    train(replace(SMALL, control=True, iterations=1, evaluation=evaluation), tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "control" / "summary.json").read_text())
    trained = RunFolder(tmp_path / "run").metrics()[-1]["time/seconds_total"]
    assert trained <= summary["seconds"] < trained + 5
    assert summary["epochs"] >= 1
    assert "control-sampled" in RunFolder(tmp_path / "run").evaluations()


def test_the_end_that_comes_first_is_the_time_that_is_left(whole: Path) -> None:
    """The bar promised hours to the last iteration where --max-seconds ended the run after minutes."""
    trainer = Trainer.__new__(Trainer)
    trainer.seconds_total, trainer.turns_total = 10.0, 100

    def left(**limits: Any) -> float:
        trainer.config = replace(SMALL, **limits)
        return trainer.deadline() - time.monotonic()

    assert left() == float("inf")
    assert left(max_seconds=40) == pytest.approx(30, abs=1)
    assert left(max_environment_turns=250) == pytest.approx(15, abs=1)
    assert left(max_seconds=40, max_environment_turns=250) == pytest.approx(15, abs=1)
    assert left(max_seconds=5) == pytest.approx(0, abs=1), "never below zero"


def test_an_environment_that_breaks_in_every_demonstration_is_named(tmp_path: Path) -> None:
    """Without its error, "gave no demonstration" sent people to look for a solver."""
    vector = make_vec(env_fns=[CannotBegin] * 2, autoreset_mode="Disabled")
    student = agent_of(small_model())
    with pytest.raises(ConfigError, match=r"broke in each of 4 demonstrations: exception: .*no such cave"):
        demonstrations(vector, student, 4, seed=0)
    vector.close()


def test_config_survives_json() -> None:
    assert TrainConfig.from_json(json.loads(json.dumps(SMALL.as_json()))) == SMALL


def test_a_run_folder_that_exists_is_never_overwritten(whole: Path) -> None:
    before = (whole / "metrics.jsonl").read_bytes()
    with pytest.raises(RunFolderExists, match="exists already: pass --resume"):
        train(SMALL, whole)
    assert (whole / "metrics.jsonl").read_bytes() == before


def test_there_must_be_a_run_to_resume(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no run in .* leave out --resume"):
        train(SMALL, tmp_path / "nothing", resume=True)


@pytest.mark.parametrize("damage", ["empty state", "cut weights", "no optimizer", "other model"])
def test_a_damaged_checkpoint_is_named(damage: str, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    checkpoint = all_checkpoints(folder / "checkpoints")[-1]
    if damage == "empty state":
        (checkpoint / "state.json").write_text("")
    elif damage == "cut weights":
        content = (checkpoint / "policy.safetensors").read_bytes()
        (checkpoint / "policy.safetensors").write_bytes(content[: len(content) // 2])
    elif damage == "no optimizer":
        (checkpoint / "optimizer.safetensors").unlink()
    else:
        from safetensors.torch import save_file

        save_file({"strange": torch.zeros(2)}, checkpoint / "policy.safetensors")
    with pytest.raises(CheckpointError, match=r"is empty or damaged|belongs to another model"):
        train(SMALL, folder, resume=True)


def test_an_older_checkpoint_serves_when_the_damaged_one_is_deleted(whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    newest = all_checkpoints(copy / "checkpoints")
    assert len(newest) == 2
    shutil.rmtree(newest[-1])
    assert train(SMALL, copy, resume=True).finished
    assert numbers(copy) == numbers(whole)


def test_wrong_settings_fail_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no algorithm named 'gigpoo'\. Did you mean 'gigpo'\?"):
        train(replace(SMALL, algorithm="gigpoo"), tmp_path / "a")
    with pytest.raises(ConfigError, match="got group_size=1"):
        train(replace(SMALL, rollout=RolloutConfig(group_size=1)), tmp_path / "b")
    with pytest.raises(UnknownName, match="Sokoban"):
        train(replace(SMALL, env="turngym/Sokobann-v0"), tmp_path / "c")
    with pytest.raises(ConfigError, match="max_turns"):
        train(replace(SMALL, env_options={"max_turns": 0}), tmp_path / "d")
    with pytest.raises(ConfigError, match="draft_tokens is 4, and nothing is drafted for the model embedded"):
        train(replace(SMALL, rollout=RolloutConfig(draft_tokens=4)), tmp_path / "e")
    assert not list(tmp_path.iterdir())


def test_settings_out_of_range_are_refused() -> None:
    for make, message in (
        (lambda: replace(SMALL, iterations=-1), "iterations must be a whole number of at least 0, got -1"),
        (lambda: UpdateConfig(learning_rate=0), "learning_rate must be a number above 0 and below 1, got 0"),
        (lambda: UpdateConfig(minibatches=0), "minibatches must be a whole number of at least 1, got 0"),
        (lambda: RolloutConfig(temperature=0), "temperature must be a number above 0, got 0"),
        (lambda: RolloutConfig(groups=0), "groups must be a whole number of at least 1, got 0"),
        (lambda: SupervisedConfig(batch_size=0), "batch_size must be a whole number of at least 1, got 0"),
        (lambda: EmbeddedConfig(heads=5), "heads must divide hidden_size, got 5 and 96"),
        (lambda: EmbeddedConfig(vocabulary=100), "vocabulary must be a whole number of at least 300"),
    ):
        with pytest.raises(ConfigError, match=message):
            make()


def learner_of(model: LanguageModel, name: str = "grpo", rate: float = 1e-3) -> Learner:
    algorithm = build_algorithm(replace(SMALL, algorithm=name, algorithm_options={name: {"entropy_coef": 0.0}}))
    return Learner(model, algorithm, UpdateConfig(learning_rate=rate))


def single_turn(model: LanguageModel, completion: str, reward: float, number: int) -> Trajectory:
    prompt = tuple(model.tokenizer.encode("player 2 3"))
    ids = tuple(model.tokenizer.encode(completion))
    turn = Turn("o", "o", completion, prompt_ids=prompt, completion_ids=ids, logprobs=(-1.0,) * len(ids), reward=reward)
    return Trajectory(EpisodeSpec(number, 0, 0), turns=[turn], terminated=True)


def logprob_of(model: LanguageModel, trajectory: Trajectory) -> float:
    from turngym.trainers.core.rows import build_rows
    from turngym.trainers.engine.scoring import score

    with torch.no_grad():
        return float(score(model.network, build_rows([trajectory], False), 1.0).logprobs.sum())


@pytest.mark.parametrize("name", ["grpo", "reinforce"])
def test_rewarded_completions_become_likelier_and_punished_ones_less(name: str) -> None:
    model = small_model()
    good, bad = single_turn(model, "up", 1.0, 0), single_turn(model, "down", 0.0, 1)
    for trajectory in (good, bad):
        ids = trajectory.turns[0].completion_ids
        share = logprob_of(model, trajectory) / len(ids)
        trajectory.turns[0].logprobs = (share,) * len(ids)
    before = logprob_of(model, good), logprob_of(model, bad)
    learner_of(model, name).update([good, bad], 0)
    assert logprob_of(model, good) > before[0]
    assert logprob_of(model, bad) < before[1]


def test_equal_rewards_leave_the_weights_alone() -> None:
    model = small_model()
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    learner_of(model).update([single_turn(model, "up", 1.0, 0), single_turn(model, "down", 1.0, 1)], 0)
    for name, value in model.network.state_dict().items():
        torch.testing.assert_close(value, before[name], atol=0, rtol=0)


def test_a_reward_that_is_no_number_stops_with_its_episode() -> None:
    model = small_model()
    with pytest.raises(DivergenceError, match=r"episode 1 .* got the reward nan at turn 0"):
        learner_of(model).update([single_turn(model, "up", 1.0, 0), single_turn(model, "up", float("nan"), 1)], 0)


def test_nothing_to_learn_from_is_no_error() -> None:
    model = small_model()
    broken = single_turn(model, "up", 1.0, 0)
    broken.fault = "timeout"
    assert learner_of(model).update([broken], 0)["train/rows"] == 0


def test_faulted_episodes_are_counted_and_left_out_of_the_means() -> None:
    model = small_model()
    broken = single_turn(model, "up", 100.0, 0)
    broken.fault = "timeout"
    found = rollout_metrics([broken, single_turn(model, "up", 1.0, 1)])
    assert found["rollout/faults"] == 1
    assert found["rollout/reward_sum"] == 1.0


def test_the_critic_sees_the_prompt_after_a_truncated_episode() -> None:
    """Without the final prompt's value a cut would be trained as a failure."""
    model = small_model()
    cut = single_turn(model, "up", 0.0, 0)
    cut.terminated, cut.truncated = False, True
    cut.final_prompt_ids = tuple(model.tokenizer.encode("player 3 3"))
    over = single_turn(model, "up", 0.0, 1)
    learner = learner_of(model, "ppo")
    assert learner.critic is not None
    torch.nn.init.ones_(learner.critic.head.bias)
    from turngym.trainers.core.rows import build_batch, build_rows
    from turngym.trainers.core.turn_table import turn_table
    from turngym.trainers.engine.network_columns import with_values

    batch = build_batch(build_rows([cut, over], with_final_prompts=True))
    table = with_values(batch, turn_table([cut, over]), learner.critic, 2048)
    assert table.final_value is not None and table.turn_value is not None
    assert table.final_value.tolist() == [1.0, 0.0]
    assert table.turn_value.tolist() == [1.0, 1.0]


def test_adapters_train_few_weights_and_leave_the_rest() -> None:
    from turngym.trainers.engine.adapters import add_adapters

    model = small_model()
    total = sum(p.numel() for p in model.network.parameters())
    frozen = {name: value.clone() for name, value in model.network.state_dict().items()}
    adapted = add_adapters(model, 2, 0)
    learner = build_learner(
        replace(SMALL, algorithm="grpo"), adapted, build_algorithm(replace(SMALL, algorithm="grpo"))
    )
    assert 0 < sum(p.numel() for p in learner.policy_parameters) < total / 3
    learner.update([single_turn(adapted, "up", 1.0, 0), single_turn(adapted, "down", 0.0, 1)], 0)
    for name, value in adapted.network.state_dict().items():
        if "lora" not in name:
            torch.testing.assert_close(value, frozen[name.replace("base_layer.", "")], atol=0, rtol=0)


def test_supervised_learning_fits_the_demonstrations() -> None:
    from small import agent_of

    model, vector = small_model(hidden=32), sokoban_vector(8, max_moves=2)
    data = demonstrations(vector, agent_of(model), 30, 0)
    assert all(trajectory.success == 1 for trajectory in data)
    learner = SupervisedLearner(model.network, data, SupervisedConfig(learning_rate=1e-2), 0)
    losses = [learner.run_epoch() for _ in range(12)]
    assert losses[-1] < 0.3 * losses[0]
    tokens = sum(len(turn.completion_ids) for trajectory in data for turn in trajectory.turns)
    mean = -sum(logprob_of(model, trajectory) for trajectory in data) / tokens
    assert mean == pytest.approx(losses[-1], rel=0.5)
