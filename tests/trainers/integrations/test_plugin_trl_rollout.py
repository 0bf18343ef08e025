"""The two hooks of TRL by themselves: what a rollout returns, what is refused, and what happens at the edges."""

import importlib.metadata
from typing import Any

import pytest
from plugin_examples import example

from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.generate import Completion
from turngym.agents.models.loading import LanguageModel
from turngym.agents.prompting.prompts import PromptConfig
from turngym.agents.trajectory import EpisodeSpec
from turngym.envs.textgames.number_line import NumberLine
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, EpisodeOver
from turngym.trainers.integrations.trl import (
    Rollout,
    ToolEnvironment,
    return_reward,
    rollout_rows,
    task_rows,
    tool_environment,
)

WALK = "turngym/NumberLine-v0"
SMALL: dict[str, Any] = {"highest": 3, "max_turns": 4}


class StubTrainer:
    """What a rollout function asks a trainer for, with a real small model."""

    def __init__(self, **settings: Any) -> None:
        tiny = example("tiny_model")
        self.model, self.processing_class = tiny.tiny_model(tiny.talks(16), steps=0)
        self.temperature, self.top_p, self.top_k, self.min_p, self.repetition_penalty = 1.0, 1.0, 0, None, 1.0
        self.max_completion_length, self.accelerator = 400, self
        self.process_index = 0
        vars(self).update(settings)

    def unwrap_model(self, model: Any) -> Any:
        return model


def written(trainer: StubTrainer, text: str) -> Any:
    """A way of sampling that always writes the same text."""
    ids = (*trainer.processing_class.encode(text), trainer.processing_class.eos_token_id)
    return lambda _, prompts, sampling, turn: [Completion(ids, (-0.5,) * len(ids)) for _ in prompts]


def prompts(env_id: str, seeds: Any, **task: Any) -> list[Any]:

    return [row["prompt"] for row in rollout_rows(task_rows(env_id, seeds, **task))]


def test_a_rollout_equals_the_same_answers_in_our_own_rollout() -> None:
    trainer = StubTrainer()
    same = written(trainer, "<action>A C</action>")
    columns = Rollout(generate=same, max_new_tokens=24)(prompts("turngym/TowerOfHanoi-v0", [1, 2]), trainer)
    model = LanguageModel(trainer.model, trainer.processing_class, "")
    agent = ModelAgent(model, lambda p, _, s: list(same(None, p, s, 0)), PromptConfig(mode="conversation"))
    vector = make_vec("turngym/TowerOfHanoi-v0", 2, autoreset_mode="disabled")
    ours = rollout(vector, agent, [EpisodeSpec(0, 1), EpisodeSpec(1, 2)])
    vector.close()
    for row, trajectory in enumerate(ours):
        assert columns["prompt_ids"][row] == list(trajectory.turns[0].prompt_ids)
        last = trajectory.turns[int(columns["turns"][row]) - 1]
        ids = columns["prompt_ids"][row] + columns["completion_ids"][row]
        assert ids == list(last.prompt_ids + last.completion_ids)


def test_an_episode_without_room_for_a_further_turn_is_cut_and_truncated() -> None:
    trainer = StubTrainer(max_completion_length=60)
    played = Rollout(generate=written(trainer, "<action>-</action>"), max_new_tokens=16)
    columns = played(prompts(WALK, [3, 3]), trainer)
    assert columns["truncated"] == [1.0, 1.0] and columns["terminated"] == [0.0, 0.0]
    assert 1 <= columns["turns"][0] < 10
    assert all(
        len(ids) <= 60 and mask[-1] == 1
        for ids, mask in zip(columns["completion_ids"], columns["env_mask"], strict=True)
    )


def test_a_fault_has_no_return_and_no_token_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:

    def break_down(self: Any, action: str) -> Any:
        raise OSError("gone")

    trainer = StubTrainer()
    monkeypatch.setattr(NumberLine, "apply_action", break_down)
    played = Rollout(generate=written(trainer, "<action>+</action>"), max_new_tokens=16)
    columns = played([*prompts(WALK, [3]), *prompts("turngym/TowerOfHanoi-v0", [0])], trainer)
    assert return_reward(**columns)[0] is None and return_reward(**columns)[1] == 0.0
    assert columns["faulted"] == [1.0, 0.0]
    assert sum(columns["env_mask"][0]) == 0 < sum(columns["env_mask"][1])
    env = ToolEnvironment()
    env.reset(env_id=WALK, seed=3)
    assert env.act("+") == "The environment broke.\nThe episode is over."
    assert env.get_reward() is None
    with pytest.raises(EpisodeOver):
        env.act("+")


def test_what_does_not_fit_is_refused_with_the_way_out() -> None:
    trainer = StubTrainer()
    with pytest.raises(ConfigError, match="max_completion_length=400"):
        Rollout(max_new_tokens=401)(prompts(WALK, [3]), trainer)
    with pytest.raises(ConfigError, match="top_k"):
        Rollout(max_new_tokens=8)(prompts(WALK, [3]), StubTrainer(top_k=5))
    with pytest.raises(ConfigError, match="rollout_rows"):
        Rollout(max_new_tokens=8)([[{"role": "user", "content": "hello"}]], trainer)
    with pytest.raises(ConfigError, match="column 'seed'"):
        tool_environment(WALK)().reset(prompt=[])
    with pytest.raises(ConfigError, match="registered id"):
        ToolEnvironment().reset(seed=1)


def test_settings_and_wrappers_of_the_factory_hold_unless_the_row_has_its_own() -> None:

    make = tool_environment(WALK, wrappers=["turn_limit:limit=1"], **SMALL)
    first = make().reset(**task_rows(WALK, [3])[0])
    assert "from 0 to 3" in first
    env = make()
    env.reset(seed=3)
    env.act("nothing")
    assert env.episode.result.truncated
    assert "from 0 to 2" in make().reset(seed=3, settings={"highest": 2})


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    not any(importlib.metadata.distributions(name="trl")),
    reason="trl is in .venvs/plugins only: run make test-integration",
)
def test_qwen3s_template_is_no_obstacle() -> None:
    """It rewrites earlier answers when it renders them again, so nothing is rendered again."""
    from trl.chat_template_utils import qwen3_chat_template

    trainer = StubTrainer()
    trainer.processing_class.chat_template = qwen3_chat_template
    answer = "<think>why</think><action>A B</action>"
    played = Rollout(generate=written(trainer, answer), max_new_tokens=64)
    columns = played(prompts("turngym/TowerOfHanoi-v0", [0]), trainer)
    assert trainer.processing_class.decode(columns["completion_ids"][0]).count(answer) == columns["turns"][0] > 1
