"""Episodes whose next prompt does not fit: trained on, masked or dropped; counted always; no run is lost to them."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import group_specs, small_model, sokoban_vector

from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.loading import LanguageModel
from turngym.agents.players import AgentSettings
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError, RunStopped
from turngym.trainers.algorithms import build
from turngym.trainers.core import context
from turngym.trainers.core.rows import build_batch, build_rows
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.core.update_config import Exclusion, UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.network_columns import with_values
from turngym.trainers.functional import NORMALISATIONS, loss_weights
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.rollout_metrics import rollout_metrics
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

CONVERSATION = PromptConfig(mode="conversation", instructions=False)
GROWING = AgentSettings(max_new_tokens=5, prompt=asdict(CONVERSATION))


def episode(number: int, reward: float, turns: int = 2, **fields: Any) -> Trajectory:
    made = [
        Turn(f"s{k}", f"s{k}", "up", prompt_ids=(3, 4 + k), completion_ids=(5, 6), logprobs=(-1.0, -2.0), reward=reward)
        for k in range(turns)
    ]
    fields = fields if "truncated" in fields else {"terminated": True, **fields}
    return Trajectory(EpisodeSpec(number, 0, number // 2), "game", turns=made, **fields)


def cut(number: int, reward: float, turns: int = 2, **fields: Any) -> Trajectory:
    return episode(number, reward, turns, truncated=True, truncation_reason="context", **fields)


def learner_of(algorithm: str, model: LanguageModel, **update: Any) -> Learner:
    return Learner(model, build(algorithm), UpdateConfig(learning_rate=1e-3, **update))


def weights_of(model: LanguageModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.network.parameters()])


def advantages(on_context: str, *played: Trajectory) -> list[float]:
    learner = learner_of("grpo", small_model(), on_context=on_context)
    learner.update(played, 0)
    return [float(value) for value in learner.advantages]


def test_the_three_ways_differ_in_statistics_and_in_the_loss() -> None:
    played = [episode(0, 1.0), cut(1, 0.0)]
    trained, mask, drop = (advantages(way, *played) for way in ("train", "mask", "drop"))
    assert trained == mask and trained[0] > 0 > trained[-1] and len(trained) == 8
    assert drop == [0.0] * 4, "alone in its group, the other one has nothing to be compared with"


def test_a_masked_episode_moves_no_weight_and_still_counts_in_its_group() -> None:
    played = [episode(0, 1.0), cut(1, 0.0)]
    table = context.masked(turn_table(played), played, Exclusion("mask"))
    assert table.masked.tolist() == [False, False, True, True]
    for name in NORMALISATIONS:
        of_all, of_one = loss_weights(table, name), loss_weights(turn_table(played[:1]), name)
        assert of_all[4:].tolist() == [0.0] * 4
        torch.testing.assert_close(of_all[:4], of_one, rtol=0, atol=0)


def test_an_update_in_which_every_episode_is_masked_changes_nothing() -> None:
    model = small_model()
    before = weights_of(model)
    metrics = learner_of("grpo", model, on_context="mask").update([cut(0, 1.0), cut(1, 0.0)], 0)
    assert metrics["train/updates"] == 0 and torch.equal(weights_of(model), before)


def test_episodes_out_of_the_loss_and_groups_that_shrank_are_counted() -> None:
    played = [episode(0, 1.0), cut(1, 0.0), episode(2, 1.0), cut(3, 0.0, turns=0)]
    found = {way: tuple(context.context_metrics(played, way).values()) for way in ("train", "mask", "drop")}
    assert found == {"train": (1.0, 1.0), "mask": (2.0, 1.0), "drop": (2.0, 2.0)}
    metrics = rollout_metrics(played)
    assert (metrics["rollout/context"], metrics["rollout/context_first"], metrics["rollout/truncated"]) == (0.5, 1, 0.5)


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="on_context must be one of 'train', 'mask', 'drop', got 'lose'"):
        UpdateConfig(on_context="lose")  # type: ignore[arg-type]


# The final prompt.


def test_only_rollouts_for_a_critic_build_final_prompts() -> None:
    config = TrainConfig(
        env_options={"view": "coordinates", "max_turns": 2},
        rollout=RolloutConfig(groups=1, group_size=2),
        control=False,
    )
    for name, is_kept in (("grpo", False), ("turn_ppo", True)):
        task = make_task(replace(config, algorithm=name), build(name))
        played = task.gather(small_model(), 0, 0)
        task.close()
        assert {bool(each.final_prompt_ids) for each in played if each.truncated} == {is_kept}


def values_of(learner: Learner, played: list[Trajectory]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the value of each turn, and that after each episode."""
    assert learner.critic is not None
    table = with_values(
        build_batch(build_rows(played, with_final_prompts=True)), turn_table(played), learner.critic, 2048
    )
    assert table.turn_value is not None and table.final_value is not None
    return table.turn_value, table.final_value


def test_a_final_prompt_that_does_not_fit_is_bootstrapped_from_the_last_value() -> None:
    learner = learner_of("turn_ppo", small_model(), critic_learning_rate=1e-2)
    assert learner.critic is not None
    torch.nn.init.normal_(learner.critic.head.weight)
    played = [cut(0, 1.0), cut(1, 1.0, final_prompt_ids=(3, 9)), episode(2, 1.0)]
    turn_value, final_value = values_of(learner, played)
    assert final_value[0] == turn_value[1] != 0, "no prompt came after the last turn: the value of that turn"
    assert final_value[1] not in (turn_value[3], 0), "the prompt that came after it has a value of its own"
    assert final_value[2] == 0, "the rules ended it"


def test_the_target_of_such_an_episode_goes_on_from_the_value_of_its_last_turn() -> None:
    """One turn, reward 1, its value 0.5: the target is 1 + gamma * 0.5, where a terminated episode has 1."""
    method = build("turn_ppo", {"turn_ppo": {"bootstrap_truncated": True}})
    for played, expected in ((cut(0, 1.0, turns=1), 1 + 0.99 * 0.5), (episode(0, 1.0, turns=1), 1.0)):
        learner = learner_of("turn_ppo", small_model())
        assert learner.critic is not None
        torch.nn.init.constant_(learner.critic.head.bias, 0.5)  # the value of everything
        batch = build_batch(build_rows([played], with_final_prompts=True))
        returns = method.credit(with_values(batch, turn_table([played]), learner.critic, 2048)).returns
        assert returns is not None and float(returns[0]) == pytest.approx(expected, abs=1e-6)


# Runs.


def config_of(**settings: Any) -> TrainConfig:
    values: dict[str, Any] = {
        "env_options": {"view": "coordinates", "max_turns": 6},
        "algorithm": "grpo",
        "iterations": 2,
        "max_seconds": 0,
        "control": False,
        "rollout": RolloutConfig(groups=2, group_size=2, max_new_tokens=2),
        "evaluation": EvaluationConfig(episodes=0, every=0, curve_episodes=1),
    }
    return TrainConfig(**{**values, **settings})


def run(config: TrainConfig, folder: Path, model: LanguageModel) -> list[dict[str, Any]]:
    method = build_algorithm(config)
    task, run_folder = make_task(config, method), RunFolder.create(folder, config)
    try:
        Trainer(config, model, build_learner(config, model, method), task, run_folder, dict).run()
    finally:
        task.close()
    return run_folder.metrics()


@pytest.mark.parametrize(
    ("algorithm", "way"),
    [
        *(("grpo", "train"), ("grpo", "mask"), ("turn_ppo", "train"), ("turn_ppo", "mask")),
        *(("turn_ppo", "drop"), ("gigpo", "drop"), ("dapo", "mask"), ("remax", "drop")),
    ],
)
def test_a_run_survives_prompts_that_outgrow_the_context(algorithm: str, way: str, tmp_path: Path) -> None:
    model = small_model(layers=1)
    model.longest = 150  # a conversation outgrows it after some turns
    grown = RolloutConfig(groups=2, group_size=2, max_new_tokens=4, prompt=CONVERSATION)
    config = config_of(algorithm=algorithm, rollout=grown, update=UpdateConfig(minibatches=2, on_context=way))  # type: ignore[arg-type]
    records = run(config, tmp_path / "run", model)
    assert len(records) == 2 and all(record["rollout/context"] > 0 for record in records)
    assert all(record["rollout/faults"] == 0 and record["rollout/context_first"] == 0 for record in records)
    assert all((record["train/context_not_in_loss"] > 0) == (way != "train") for record in records)


def test_a_run_in_which_no_first_prompt_fits_stops_and_says_what_to_do(tmp_path: Path) -> None:
    model = small_model()
    model.longest = 6
    with pytest.raises(RunStopped, match=r"the first prompt fits in none of 4 episodes.*lower max_new_tokens"):
        run(config_of(), tmp_path / "run", model)
    assert json.loads((tmp_path / "run" / "diagnosis.json").read_text("utf8"))["kind"] == "error"


# Models.


def test_the_context_of_a_model_is_that_of_its_configuration_or_of_what_generates() -> None:
    model = small_model()
    assert model.context == model.network.config.max_position_embeddings == 4096
    model.longest = 100
    assert model.context == 100
    model.longest = 10_000
    assert model.context == 4096


def test_a_prompt_leaves_room_for_all_new_tokens() -> None:
    model = small_model()
    vector = sokoban_vector(1)
    lengths = [
        len(turn.prompt_ids) for turn in rollout(vector, transformers_agent(model, GROWING), group_specs(1, 1))[0].turns
    ]
    model.longest = lengths[1] + 5
    [played] = rollout(vector, transformers_agent(model, GROWING), group_specs(1, 1))
    assert [len(turn.prompt_ids) for turn in played.turns] == lengths[:2] and played.truncation_reason == "context"
    model.longest -= 1
    [played] = rollout(vector, transformers_agent(model, GROWING), group_specs(1, 1))
    assert [len(turn.prompt_ids) for turn in played.turns] == lengths[:1]
    assert len(played.final_prompt_ids) == lengths[1], "the critic only reads, which needs no room for an answer"
    vector.close()
