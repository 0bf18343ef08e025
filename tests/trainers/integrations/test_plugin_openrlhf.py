"""OpenRLHF's own multi-turn executor plays our episodes with a small real model as its engine."""

import asyncio
import doctest
import importlib
import importlib.metadata
import json
from types import SimpleNamespace
from typing import Any

import pytest
from plugin_examples import code_lines, example

from turngym.errors import ConfigError

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not any(importlib.metadata.distributions(name="openrlhf")),
        reason="openrlhf is in .venvs/plugins only: run make test-integration",
    ),
]


@pytest.fixture(scope="module")
def played() -> Any:
    return example("openrlhf_agent").main()


def test_the_executor_plays_whole_episodes(played: Any) -> None:
    samples, _, _ = played
    assert len(samples) == 6
    assert {sample["reward"] for sample in samples} == {0.0, 1.0}, "some were solved, some were not"
    for sample in samples:
        logs = sample["extra_logs"]
        assert logs["terminated"] + logs["truncated"] == 1.0 and logs["faulted"] == 0.0
        assert sample["reward"] == sample["scores"].item() == logs["episode_return"]
        assert len(sample["action_ranges"]) == logs["turns"]


def test_the_tokens_that_are_trained_on_are_the_sampled_ones(played: Any) -> None:
    samples, engine, _ = played
    sampled = {tuple(prompt + answer) for prompt, answer in engine.answers}
    for sample in samples:
        ids = sample["observation_tokens"]
        assert all(tuple(ids[:end]) in sampled for _, end in sample["action_ranges"])
        assert sample["action_ranges"][-1][1] == len(ids)
        assert len(sample["rollout_log_probs"]) == len(ids)


def test_the_whole_text_is_what_the_chat_template_would_have_written(played: Any) -> None:
    samples, _, tokenizer = played
    for sample in samples:
        text = tokenizer.decode(sample["observation_tokens"])
        turns = [turn.removesuffix("\n").removesuffix("<|im_end|>") for turn in text.split("<|im_start|>")[1:]]
        messages = [dict(zip(("role", "content"), turn.split("\n", 1), strict=True)) for turn in turns]
        assert str(tokenizer.apply_chat_template(messages, tokenize=False)).rstrip("\n") == text


def test_a_label_that_is_no_task_is_refused() -> None:
    from turngym.trainers.integrations.openrlhf import TurngymInstance

    tokenizer: Any = SimpleNamespace()
    with pytest.raises(ConfigError, match="openrlhf_rows"):
        asyncio.run(TurngymInstance(tokenizer).reset({"observation": "", "label": "42 is the answer"}))
    with pytest.raises(ConfigError, match="seed"):
        asyncio.run(TurngymInstance(tokenizer).reset({"observation": "", "label": json.dumps({})}))


def test_a_fault_pays_nothing_and_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    from turngym.envs.textgames.number_line import NumberLine
    from turngym.trainers.integrations.openrlhf import TurngymInstance, openrlhf_rows

    def break_down(self: Any, action: str) -> Any:
        raise OSError("gone")

    monkeypatch.setattr(NumberLine, "apply_action", break_down)
    tiny = example("tiny_model")
    instance = TurngymInstance(tiny.tiny_model(tiny.talks(8), steps=0)[1])
    row = openrlhf_rows("turngym/NumberLine-v0", range(1))[0]
    asyncio.run(instance.reset({"observation": row["input"], "label": row["label"]}))
    output = asyncio.run(instance.step({"action_text": "<action>+</action><|im_end|>"}))
    assert output["done"] and output["rewards"].item() == 0.0 and output["extra_logs"]["faulted"] == 1.0


def test_the_example_is_short() -> None:
    assert code_lines("openrlhf_agent") < 60


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(importlib.import_module("turngym.trainers.integrations.openrlhf")).failed == 0
