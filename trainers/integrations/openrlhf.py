"""OpenRLHF 0.11: an agent for ``--train.agent_func_path``. See openrlhf.md."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import torch
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor
from transformers import PreTrainedTokenizerBase

from turngym.errors import ConfigError
from turngym.trainers.integrations.episode import Episode, Task, task_rows
from turngym.wrappers.actions.action_format import AUTO

__all__ = ["TurngymExecutor", "TurngymInstance", "openrlhf_rows"]

_ANSWER = "␟answer␟"


class TurngymInstance(AgentInstanceBase):  # type: ignore[misc]  # the package has no types
    """One episode. OpenRLHF makes an object for each sample, and appends the texts that it returns as they are.

    Args:
        tokenizer: Its chat template is put around the texts.
        format: Name of the action format: ``tag``, ``boxed``, ``json`` or ``plain``.
        legal_actions: List the legal actions with each observation.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, format: str = AUTO, legal_actions: bool = False) -> None:
        self.tokenizer = tokenizer
        self.episode = Episode(format, legal_actions)

    async def reset(self, states: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Start the episode that the sample's label names, and return the text of the first prompt.

        Raises:
            ConfigError: The label is not a task.
        """
        try:
            row = json.loads(states["label"])
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"a label must be the JSON of a task's row, got {states['label']!r}: make them with openrlhf_rows()."
            ) from error
        messages = await asyncio.to_thread(self.episode.begin, Task.of_row(row))
        return {"observation": self._rendered(messages), "label": states["label"]}

    async def step(self, state_dict: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Take one turn, and return its reward and the text that comes next; none where the episode is over."""
        answer = state_dict["action_text"].removesuffix(self.tokenizer.eos_token)
        observation = await asyncio.to_thread(self.episode.step, answer)
        result, done = self.episode.result, self.episode.is_over
        if done:
            await asyncio.to_thread(self.episode.close)
        return {
            "rewards": torch.tensor(0.0 if result.fault else result.rewards[-1]),
            "scores": torch.tensor(result.total or 0.0),
            "environment_feedback": "" if done else self._between(observation),
            "done": done,
            "extra_logs": result.numbers(),
        }

    def _rendered(self, messages: list[dict[str, str]]) -> str:
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def _between(self, observation: str) -> str:
        """Return the text between the end token of an answer and the next answer."""
        said = [{"role": "user", "content": "-"}, {"role": "assistant", "content": _ANSWER}]
        text = self._rendered([*said, {"role": "user", "content": observation}])
        return text[text.index(_ANSWER) + len(_ANSWER) :].removeprefix(self.tokenizer.eos_token)


class TurngymExecutor(MultiTurnAgentExecutor):  # type: ignore[misc]  # the package has no types
    """``AgentExecutor`` for the file behind ``--train.agent_func_path``.

    A file with other settings than the defaults subclasses it, with ``settings`` as the keyword
    arguments of :class:`TurngymInstance`.
    """

    settings: dict[str, Any] = {}  # noqa: RUF012  (read only)

    def __init__(self) -> None:
        super().__init__(TurngymInstance)

    async def execute(self, prompt: Any, label: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Play one episode; OpenRLHF's own loop does it, with instances that know its tokenizer."""
        tokenizer = kwargs["hf_tokenizer"] if "hf_tokenizer" in kwargs else args[2]
        self.agent_instance_cls = partial(TurngymInstance, tokenizer, **self.settings)
        played: dict[str, Any] = await super().execute(prompt, label, *args, **kwargs)
        return played


def openrlhf_rows(env_id: str, seeds: range, **task: Any) -> list[dict[str, str]]:
    """Return rows of a data set for OpenRLHF: the label holds the task, the prompt is replaced by the first one.

    >>> openrlhf_rows("turngym/TowerOfHanoi-v0", range(2))[1]["input"]
    'turngym/TowerOfHanoi-v0 1'
    """
    rows = task_rows(env_id, seeds, **task)
    tasks = [{name: value for name, value in row.items() if name != "prompt"} for row in rows]
    return [{"input": f"{each['env_id']} {each['seed']}", "label": json.dumps(each)} for each in tasks]
