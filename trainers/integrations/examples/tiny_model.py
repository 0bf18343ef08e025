"""A model of 0.1 million parameters for the examples: ChatML, warmed up in seconds until it answers in the right form.

It copies the form of the answers, not the skill: the demonstrations take random legal actions. So a few steps of
training have something to improve, and no download is needed. Put a real model's name in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.seeding import stream
from turngym.trainers.integrations.episode import Episode, Task

ENV_ID = "turngym/NumberLine-v0"
SETTINGS: dict[str, Any] = {"highest": 3, "max_turns": 4}
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
Messages = list[dict[str, Any]]


def talks(count: int, seed: int = 0) -> list[Messages]:
    """Return conversations in which the actions are written as ``<action>...</action>``, at random."""
    found = []
    for number in range(count):
        choice, episode = stream("talk", seed, number), Episode()
        messages: Messages = [*episode.begin(Task(ENV_ID, number, SETTINGS))]
        while not episode.is_over:
            answer = f"<action>{'+-'[int(choice.integers(2))]}</action>"
            messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": episode.step(answer)}]
        found.append(messages[:-1])
    return found


def tool_talks(count: int, seed: int = 0) -> list[Messages]:
    """Return conversations in which the actions are calls of the tool ``act``, at random."""
    from turngym.trainers.integrations.trl import ToolEnvironment

    found = []
    for number in range(count):
        choice, env = stream("talk", seed, number), ToolEnvironment()
        messages: Messages = [{"role": "user", "content": env.reset(env_id=ENV_ID, seed=number, settings=SETTINGS)}]
        while not env.episode.is_over:
            action = "+-"[int(choice.integers(2))]
            call = {"type": "function", "function": {"name": "act", "arguments": {"action": action}}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "name": "act", "content": env.act(action)})
        found.append([*messages, {"role": "assistant", "content": "Done."}])
    return found


def tiny_model(
    conversations: Sequence[Messages], template: str = CHATML, tools: Sequence[Any] = (), steps: int = 60
) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """Return a model and its tokenizer, fitted to the answers of some conversations.

    Args:
        conversations: Object to copy.
        template: Chat template in ChatML.
        tools: Tools that the template tells the model about.
        steps: Updates on 8 conversations each.
    """
    plain = build_tokenizer([])
    plain.chat_template = template
    options: dict[str, Any] = {"tools": list(tools) or None, "tokenize": False}
    texts = [str(plain.apply_chat_template(each, **options)) for each in conversations]
    tokenizer = build_tokenizer(texts, 700)
    marks = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]
    tokenizer.add_tokens(marks, special_tokens=False)
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>"})
    tokenizer.chat_template = template
    model = build_model(tokenizer, replace(EmbeddedConfig(), hidden_size=64, layers=2), seed=0)
    rows = [_row(tokenizer, each, options) for each in conversations]
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    model.train()
    for step in range(steps):
        chosen = stream("batch", step).choice(len(rows), 8)
        ids = torch.nn.utils.rnn.pad_sequence([rows[i][0] for i in chosen], batch_first=True, padding_value=0)
        labels = torch.nn.utils.rnn.pad_sequence([rows[i][1] for i in chosen], batch_first=True, padding_value=-100)
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    return model, tokenizer


def _row(tokenizer: PreTrainedTokenizerFast, messages: Messages, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the ids of a conversation, and the same with everything but the answers left out of the loss."""
    ids: list[int] = []
    labels: list[int] = []
    for end, message in enumerate(messages, 1):
        if message["role"] != "assistant":
            continue
        for until, is_answer in ((end - 1, False), (end, True)):
            text = str(tokenizer.apply_chat_template(messages[:until], add_generation_prompt=not is_answer, **options))
            new = tokenizer.encode(text.rstrip("\n") if is_answer else text, add_special_tokens=False)[len(ids) :]
            ids += new
            labels += new if is_answer else [-100] * len(new)
    return torch.tensor(ids), torch.tensor(labels)
