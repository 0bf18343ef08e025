"""verl 0.9: an agent loop that plays episodes, registered as ``turngym``. See verl.md."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import torch
from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
    _agent_loop_registry,
    register,
)
from verl.utils.profiler import simple_timer

from turngym.errors import ConfigError
from turngym.trainers.integrations.episode import Episode, Message, Task, task_rows
from turngym.wrappers.actions.action_format import AUTO

__all__ = ["NAME", "TurngymAgentLoop", "verl_rows"]

NAME = "turngym"
"""The name of the loop in verl's registry, and in the column ``agent_name`` of a data set."""


class TurnOutput(AgentLoopOutput):  # type: ignore[misc]
    """An episode whose rewards lie at the last token of each turn, in trainers that take them as tensors of tokens."""

    def as_dict(self) -> dict[str, Any]:
        """Return the episode as verl does, with ``rm_scores`` divided among the turns."""
        found: dict[str, Any] = super().as_dict()
        scores, mask = self.extra_fields.get("turn_scores", ()), found["response_mask"].bool()
        ends = (mask & ~torch.cat([mask[1:], mask.new_zeros(1)])).nonzero().flatten()
        if "rm_scores" in found and len(ends) == len(scores):
            found["rm_scores"] = torch.zeros_like(found["rm_scores"])
            found["rm_scores"][ends] = torch.tensor(scores, dtype=torch.float32)
        return found


class TurngymAgentLoop(AgentLoopBase):  # type: ignore[misc]  # the package has no types
    """Plays one episode for each row of a batch, as one append-only sequence of tokens.

    verl makes an object for each episode. The response holds all answers, exactly as sampled (``response_mask`` 1), and
    between them the environment's tokens (0). An episode is truncated if another turn might not fit into
    ``rollout.response_length``. After a fault no token counts, but verl still takes the reward, which is 0 then, into
    the group's mean; ``faulted`` in ``reward_extra_info`` says so.

    Args:
        *args: Arguments that verl passes to every loop.
        format: Name of the action format: ``tag``, ``boxed``, ``json`` or ``plain``.
        legal_actions: List the legal actions with each observation.
        max_new_tokens: Longest answer of one turn.
        **kwargs: Arguments that verl passes to every loop.

    Raises:
        ConfigError: One turn does not fit into ``rollout.response_length``.
    """

    def __init__(
        self, *args: Any, format: str = AUTO, legal_actions: bool = False, max_new_tokens: int = 256, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.room = int(self.rollout_config.response_length)
        self.max_new_tokens = int(max_new_tokens)
        if self.max_new_tokens > self.room:
            raise ConfigError(
                f"max_new_tokens={self.max_new_tokens} of one turn exceeds rollout.response_length={self.room}, which "
                "is for a whole episode: raise that."
            )
        self.episode = Episode(format, legal_actions)
        self.ids: list[int] = []
        self.mask: list[int] = []
        self.logprobs: list[float] | None = None
        self.answers = 0
        self.timing: dict[str, float] = {}

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play the episode of a row.

        Args:
            sampling_params: verl's settings of the sampling.
            **row: The columns of the row: those of :class:`~turngym.trainers.integrations.episode.Task`, and
                ``raw_prompt``, verl's name for the column ``prompt``.

        Raises:
            ConfigError: The row has no seed or names no environment, or the first prompt is too long.
        """
        task = Task.of_row(row)
        try:
            messages = await self._aside(self.episode.begin, task, list(row.get("raw_prompt", ())))
            self.ids = await self.ct_build_initial_tokens(messages)
            request, settings = uuid4().hex, {**sampling_params, "max_tokens": self.max_new_tokens}
            while not self.episode.is_over:
                before = tuple(self.ids)
                answer, sampled, logprobs = await self._sample(request, settings)
                with simple_timer("tool_calls", self.timing):
                    observation = await self._aside(self.episode.step, answer, before, sampled, logprobs)
                if not self.episode.is_over:
                    messages = await self._show(messages, answer, observation)
            return self._output()
        finally:
            await self._aside(self.episode.close)

    async def _aside(self, function: Any, *args: Any) -> Any:
        """Call a blocking function in a thread, so that no other episode of this worker waits."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *args)

    def _cap_text_prompt_length(self, prompt_ids: list[int]) -> list[int]:
        """Raise for a first prompt that is too long; verl would cut off the start of the rules."""
        room = int(self.rollout_config.prompt_length)
        if len(prompt_ids) > room:
            raise ConfigError(
                f"the first prompt of an episode has {len(prompt_ids)} tokens, more than rollout.prompt_length={room}: "
                "raise that."
            )
        return prompt_ids

    async def _sample(self, request: str, settings: dict[str, Any]) -> tuple[str, list[int], list[float]]:
        """Sample an answer, append its tokens, and return its text, its tokens and their log-probabilities."""
        with simple_timer("generate_sequences", self.timing):
            output = await self.server_manager.generate(
                request_id=request, prompt_ids=self.ids, sampling_params=settings
            )
        known = self.logprobs if self.logprobs is not None else [] if output.log_probs else None
        merged, self.mask, self.logprobs = await self.ct_merge_assistant_token(
            self.ids, output.token_ids, self.mask, known, assistant_logprobs=output.log_probs or None
        )
        self.ids = merged.token_ids
        self.answers += 1
        text = str(self.tokenizer.decode(output.token_ids, skip_special_tokens=True))
        return text, list(output.token_ids), list(output.log_probs or ())

    async def _show(self, messages: list[Message], answer: str, observation: str) -> list[Message]:
        """Append an observation; truncate the episode if there is no room for another turn."""
        said = [*messages, {"role": "assistant", "content": answer}]
        longer = [*said, {"role": "user", "content": observation}]
        merged, mask, logprobs = await self.ct_merge_context_msg(said, longer, self.ids, self.mask, self.logprobs)
        if len(mask) + self.max_new_tokens > self.room:
            self.episode.cut()
            return said
        self.ids, self.mask, self.logprobs = merged.token_ids, mask, logprobs
        return longer

    def _output(self) -> AgentLoopOutput:
        """Return what verl wants; at least one token of response, all masked after a fault."""
        result, start = self.episode.result, len(self.ids) - len(self.mask)
        filler = [] if self.mask else [int(self.tokenizer.eos_token_id)]
        mask = self.mask or [0]
        turns = self.episode.trajectory.turns
        return TurnOutput(
            prompt_ids=self.ids[:start],
            response_ids=self.ids[start:] + filler,
            response_mask=[0] * len(mask) if result.fault else mask,
            response_logprobs=self.logprobs,
            reward_score=result.total or 0.0,
            num_turns=2 * self.answers,
            metrics=AgentLoopMetrics(**self.timing),
            extra_fields={
                "turn_scores": list(result.rewards),
                "turn_anchors": [turn.anchor for turn in turns],
                "turn_valid": [turn.action_is_valid for turn in turns],
                "tool_rewards": [],
                "reward_extra_info": result.numbers(),
            },
        )


if (
    NAME not in _agent_loop_registry
):  # a configuration file may have put it there, with settings, and caused this import
    register(NAME)(TurngymAgentLoop)


def verl_rows(env_id: str, seeds: range, **task: Any) -> list[dict[str, Any]]:
    """Return rows of a data set for verl: those of :func:`task_rows` with the columns that verl asks for.

    >>> verl_rows("turngym/TowerOfHanoi-v0", range(2))[1]["agent_name"]
    'turngym'
    """
    rows = task_rows(env_id, seeds, **task)
    return [
        {**row, "agent_name": NAME, "data_source": env_id, "extra_info": {"index": index}}
        for index, row in enumerate(rows)
    ]
