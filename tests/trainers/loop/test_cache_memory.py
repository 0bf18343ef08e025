"""Keys and values of an iteration's rollouts, which must not take memory while the weights are updated."""

import weakref
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from small import small_model

from turngym.agents.models.kv_cache.store import Store
from turngym.agents.prompt_text import PromptConfig
from turngym.trainers.loop.setup import build_algorithm
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

CONFIG = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 3, "highest": 3},
    rollout=RolloutConfig(groups=1, group_size=2, max_new_tokens=2, prompt=PromptConfig(mode="conversation")),
)


@pytest.mark.parametrize("env_id", ["turngym/NumberLine-v0", "turngym/KuhnPoker-v0"])
def test_the_cache_of_an_iteration_is_freed_before_the_update(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting for the collector of cycles."""
    made: list[weakref.ref[Store]] = []
    build = Store.__init__

    def noted(self: Store, *arguments: Any) -> None:
        build(self, *arguments)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Store, "__init__", noted)
    is_game = "Kuhn" in env_id
    config = replace(CONFIG, env=env_id, env_options={} if is_game else CONFIG.env_options, algorithm="dr_mas")
    model = small_model()
    with closing(make_task(config, build_algorithm(config))) as task:
        for iteration in range(2):
            assert task.gather(model, iteration, 0)
            assert made and all(each() is None for each in made)
        assert task.metrics()["rollout/prefilled_tokens"] > 0
