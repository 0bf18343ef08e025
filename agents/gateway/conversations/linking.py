"""Where a request continues: the earlier answer whose ids its prompt starts with, and what is rendered behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turngym.agents.gateway.calls import Link, SampledCall
from turngym.agents.gateway.conversations.messages import CallRequest, ChatMessage, digest
from turngym.agents.gateway.conversations.rendering import Renderer
from turngym.agents.gateway.offload import check_time


class Linked(NamedTuple):
    """The prompt of a request.

    Args:
        ids: Its tokens.
        link: Their origins.
        parent: The answer that they continue from.
        kept: Tokens that were kept from the parent.
        before: Hash of the conversation before the answer.
        key: The same, with the start of the answer if the client wrote one.
        observation: Last message to the agent.
        prefill: Beginning of the answer.
    """

    ids: tuple[int, ...]
    link: Link
    parent: SampledCall | None
    kept: int
    before: str
    key: str
    observation: str
    prefill: str = ""


def linked(request: CallRequest, heads: Mapping[str, Sequence[SampledCall]], renderer: Renderer) -> Linked:
    """Return the prompt of a conversation, with the ids of the longest beginning that was sampled here.

    Args:
        request: The request.
        heads: Hash of a conversation up to and with an answer -> the answers that were sampled there.
        renderer: Renders what follows.

    Raises:
        Refusal: The chat template does not support the conversation.
    """
    messages, keys, prefill = request.messages, request.keys, ""
    key = keys[-1]
    if request.prefill:
        messages, keys, prefill = messages[:-1], keys[:-1], messages[-1].text
    about = (keys[-1], key, messages[-1].text if messages else "", prefill)
    cut = _sampled(heads.get(key, ()), prefill) if request.prefill else None
    if cut is not None and cut.stop == "length":  # the client lets an answer continue that was cut off
        return Linked(cut.ids, "extended", cut, len(cut.ids), *about)
    for end in range(len(messages), 0, -1):
        parent = _sampled(heads.get(keys[end], ()), messages[end - 1].text)
        if parent is None:
            continue
        check_time()
        ids = renderer.after(parent.completion_ids[-1], messages[end:], prefill, parent.message.calls)
        if ids is not None:
            is_edited = any(message.role == "assistant" for message in messages[end:])
            link: Link = "forked" if is_edited else "extended"
            return Linked(parent.ids + ids, link, parent, len(parent.ids), *about)
    has_answers = any(message.role == "assistant" for message in messages)
    ids = renderer.whole(_with_json(request, messages), request.tools, prefill)
    return Linked(ids, "forked" if has_answers else "root", None, 0, *about)


def _sampled(calls: Sequence[SampledCall], text: str) -> SampledCall | None:
    """Return the newest answer of some, one with exactly this text if there is one; None if there are none."""
    exact = [call for call in calls if text.endswith(call.message.text)]  # behind what the client started
    exact.sort(key=lambda call: len(call.message.text))
    return (exact or calls)[-1] if calls else None


def _with_json(request: CallRequest, messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    """Return a conversation whose system asks for JSON, if the request does."""
    if not request.json_mode:
        return messages
    told = "Answer with one JSON object and nothing else."
    if request.json_mode != "object":
        told += f" It follows this JSON schema: {request.json_mode}"
    if messages and messages[0].role == "system":
        return (ChatMessage("system", f"{messages[0].text}\n\n{told}"), *messages[1:])
    return (ChatMessage("system", told), *messages)


def linked_text(prompt: str | tuple[int, ...], calls: Sequence[SampledCall], renderer: Renderer) -> Linked:
    """Return the prompt of a completion without messages: kept ids where it starts with a prompt and its answer.

    Args:
        prompt: Text or tokens.
        calls: The answers of the episode.
        renderer: Encodes what follows.
    """
    key = digest(list(prompt) if isinstance(prompt, tuple) else prompt)
    if isinstance(prompt, tuple):
        known = [call for call in calls if _begins(prompt, call)]
        before = max(known, key=lambda call: len(call.ids), default=None)
        kept = len(before.ids) if before is not None else 0
        return Linked(prompt, "extended" if kept else "root", before, kept, key, key, renderer.text_of(prompt[kept:]))
    for call in sorted(calls, key=lambda call: len(call.ids), reverse=True):
        if not call.prompt_text or not prompt.startswith(call.prompt_text):
            continue
        check_time()
        raw = call.prompt_text + renderer.decoded(call.completion_ids)
        shown = call.prompt_text + call.message.text
        if prompt.startswith(raw):
            begun, rest = call.ids, prompt[len(raw) :]
        elif prompt.startswith(shown) and call.stop == "stop":  # without the end token
            begun, rest = call.ids[:-1], prompt[len(shown) :]
        else:
            continue
        return Linked(begun + renderer.text_after(rest), "extended", call, len(begun), key, key, rest)
    return Linked(renderer.text_prompt(prompt), "root", None, 0, key, key, prompt)


def _begins(prompt: tuple[int, ...], call: SampledCall) -> bool:
    """Return whether a prompt starts with that of an answer and the answer."""
    check_time()
    middle, end = len(call.prompt_ids), len(call.prompt_ids) + len(call.completion_ids)
    return prompt[middle:end] == call.completion_ids and prompt[:middle] == call.prompt_ids
