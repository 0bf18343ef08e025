"""The gateway itself: requests of agents to sampled answers, with a log of every token."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from turngym.agents.gateway.body import read_object
from turngym.agents.gateway.bounds import RequestBounds
from turngym.agents.gateway.calls import Records, SampledCall, TokenCounts
from turngym.agents.gateway.conversations.linking import Linked, linked, linked_text
from turngym.agents.gateway.conversations.messages import CallRequest, ChatMessage, digest
from turngym.agents.gateway.conversations.rendering import Renderer, StopWords
from turngym.agents.gateway.conversations.tools import Answer, read_answer
from turngym.agents.gateway.engine import Engine, Job, Sampled
from turngym.agents.gateway.episode import Episodes, GatewayEpisode, Stored
from turngym.agents.gateway.limits import GatewayLimits, GatewayRules
from turngym.agents.gateway.offload import Offload
from turngym.agents.gateway.refusal import TOO_LONG, Body, Refusal, wrong
from turngym.agents.models.completion import Generate
from turngym.agents.models.loading import Vocabulary, vocabulary_size
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import turn_uniforms

_CALL_WEIGHT = 256
_NAMES = {"chat": "chatcmpl", "completions": "cmpl", "responses": "resp", "messages": "msg"}
_OnText = Callable[[str, int, str], None]
"""Called with the id of an answer, a choice, and its whole text so far."""


class Gateway:
    """Answers the requests of agent programs with a policy, and keeps the exact tokens of every answer.

    Args:
        model: Tokenizer, chat template and end tokens of the policy.
        generate: The backend's core call, such as :class:`turngym.agents.models.sampler.Sampler`.
        context: Longest sequence of the model; 0 if unknown.
        limits: Limits.
        rules: Policies for retries, abandoned answers and dead agents.
        prompt: Variables of the chat template.
        seed: Seed of the run; with the episode, the prompt and how often it came it fixes what is sampled.
        operator_key: Operator key, which opens, rewards and ends episodes; random if empty.
        records: Folder of the episode logs; None for none.
        name: Name of the model for clients.
    """

    def __init__(
        self,
        model: Vocabulary,
        generate: Generate,
        *,
        context: int = 0,
        limits: GatewayLimits | None = None,
        rules: GatewayRules | None = None,
        prompt: PromptConfig | None = None,
        seed: int = 0,
        operator_key: str = "",
        records: Records | None = None,
        name: str = "turngym",
    ) -> None:
        self.limits = limits or GatewayLimits()
        self.rules = rules or GatewayRules()
        self.renderer = Renderer(model, prompt)
        self.bounds = RequestBounds(context, self.limits)
        self.offload = Offload(self.limits.work_seconds)
        self.engine = Engine(generate, model.stop_ids, self.limits)
        self.episodes = Episodes(self.limits, operator_key)
        self.context = context
        self.words = vocabulary_size(model)
        """Token ids are below this number."""
        self.seed = seed
        self.iteration = 0
        """Part of the key of sampling, and the version that calls carry."""
        self.name = name
        self.records = records
        self.counts = TokenCounts()
        self.created = int(time.time())

    def close(self) -> None:
        """End the threads."""
        self.engine.close()
        self.offload.close()
        if self.records is not None:
            self.records.close()

    async def answer(
        self, episode: GatewayEpisode, agent: str, request: CallRequest, on_text: _OnText | None = None
    ) -> list[SampledCall]:
        """Return the answers to a request.

        Args:
            episode: The episode.
            agent: Name of the agent.
            request: The request.
            on_text: Told the text of each answer as it grows.

        Raises:
            Refusal: The request is not answered.
        """
        episode.require_open()
        key = request.body_key
        if self.repeats(episode, request):
            calls = await asyncio.shield(episode.replies[key])
            for call in calls:
                call.requests += 1
            return calls
        episode.require_room(self.limits, request.choices)
        reply: asyncio.Future[list[SampledCall]] = asyncio.get_running_loop().create_future()
        episode.replies[key] = reply
        episode.at_once += request.choices
        try:
            calls = await self._sample(episode, agent, request, on_text)
        except BaseException as error:
            episode.replies.pop(key, None)
            reply.set_exception(error if isinstance(error, Refusal) else Refusal(500, "the request broke off."))
            reply.exception()  # nobody may be waiting for it
            if isinstance(error, Refusal) and error.code == TOO_LONG:
                episode.prompt_did_not_fit = error.message
            raise
        finally:
            episode.at_once -= request.choices
            episode.last_use = time.monotonic()
        reply.set_result(calls)
        return calls

    def repeats(self, episode: GatewayEpisode, request: CallRequest) -> bool:
        """Return whether a request gets the answers to an earlier one."""
        is_retry = self.rules.retries == "same" or (self.rules.retries == "counter" and request.retry > 0)
        return is_retry and request.body_key in episode.replies

    async def _sample(
        self, episode: GatewayEpisode, agent: str, request: CallRequest, on_text: _OnText | None
    ) -> list[SampledCall]:
        began = time.perf_counter()
        stored = None
        if request.dialect == "responses":
            stored = Stored(request.previous, request.messages[_told(request) :])
            request = _with_previous(episode, request) if request.previous else request
        weight = self.bounds.check(request) + (len(episode.calls) * _CALL_WEIGHT if request.prompt is not None else 0)
        found, prompt = await self.offload.run(episode, weight, lambda: self._linked(episode, request))
        episode.requests += 1
        id = f"{_NAMES[request.dialect]}-{digest([episode.key, episode.requests])}"
        on_texts = [partial(on_text, id, choice) if on_text else None for choice in range(request.choices)]
        jobs = [self._job(episode, request, found, f"{prompt}/{choice}", told) for choice, told in enumerate(on_texts)]
        futures = [asyncio.wrap_future(self.engine.submit(job)) for job in jobs]
        try:
            results = await asyncio.gather(*futures)
        except asyncio.CancelledError:
            for future in futures:
                future.cancel()
            raise
        except Exception as error:
            raise Refusal(500, f"the sampler failed: {type(error).__name__}: {str(error)[:300]}") from error
        episode.require_open()
        seconds = time.perf_counter() - began
        calls = []
        for choice, (job, result) in enumerate(zip(jobs, results, strict=True)):
            call = self._call(id, choice, episode, agent, request, found, job, result)
            call.seconds = seconds
            self._keep(episode, call, found, stored)
            calls.append(call)
        if self.records is not None:
            await asyncio.shield(asyncio.wrap_future(self.records.write(episode, calls)))
        return calls

    def _linked(self, episode: GatewayEpisode, request: CallRequest) -> tuple[Linked, str]:
        """Return the prompt of a request, and its hash."""
        if request.prompt is None:
            found = linked(request, episode.heads, self.renderer)
        else:
            if isinstance(request.prompt, tuple):
                self._require_known(request.prompt)
            found = linked_text(request.prompt, episode.calls, self.renderer)
        if not found.ids:
            raise wrong("the prompt is empty.")
        self._require_known(found.ids)
        return found, digest(list(found.ids))

    def _require_known(self, ids: Sequence[int]) -> None:
        """Raise if the model's embedding has no row for a token: on a GPU it would be an assertion of the device.

        Raises:
            Refusal: It has none.
        """
        if min(ids) < 0 or max(ids) >= self.words:
            raise wrong(f"token ids must be between 0 and {self.words - 1}, got {min(ids)} to {max(ids)}.")

    def _job(
        self,
        episode: GatewayEpisode,
        request: CallRequest,
        found: Linked,
        purpose: str,
        on_text: Callable[[str], None] | None,
    ) -> Job:
        most = min(request.max_tokens or self.limits.max_new_tokens, self.limits.max_new_tokens)
        if self.context:
            most = min(most, self.context - len(found.ids))
        if most < 1:
            raise Refusal(
                400,
                f"This model's maximum context length is {self.context} tokens, and the prompt has {len(found.ids)}.",
                TOO_LONG,
            )
        asked = 1.0 if request.temperature is None else request.temperature
        temperature = asked if self.rules.temperature is None else self.rules.temperature
        wanted = 1.0 if request.top_p is None else request.top_p
        top_p = wanted if self.rules.top_p is None else self.rules.top_p
        if request.seed is not None:
            purpose = f"{purpose}/seed {request.seed}"
            occurrence = 0
        else:
            occurrence = episode.asked[purpose]
            episode.asked[purpose] += 1
        uniforms = turn_uniforms(self.seed, self.iteration, episode.number, occurrence, most, purpose)
        words = StopWords(request.stop, self.renderer) if request.stop else None
        on_tokens = None
        if on_text is not None:
            loop, renderer = asyncio.get_running_loop(), self.renderer

            def on_tokens(ids: Sequence[int]) -> None:
                loop.call_soon_threadsafe(on_text, renderer.text_of(ids))

        return Job(found.ids, uniforms, temperature, top_p, words.ends_at if words else None, on_tokens)

    def _call(
        self,
        id: str,
        choice: int,
        episode: GatewayEpisode,
        agent: str,
        request: CallRequest,
        found: Linked,
        job: Job,
        result: Sampled,
    ) -> SampledCall:
        text = self.renderer.text_of(result.ids)
        if result.stop == "word":
            text = StopWords(request.stop, self.renderer).before(text)
        answer = Answer(text)
        if request.tools and request.reads_calls:
            template = self.renderer.template
            thinking = replace(template.plain.thinking, begun="") if found.prefill else template.plain.thinking
            answer = read_answer(text, template.format, request.tools, f"{id}/{choice}", thinking)
        return SampledCall(
            id=id,
            choice=choice,
            number=len(episode.calls),
            agent=agent,
            parent=found.parent.number if found.parent is not None else -1,
            link=found.link,
            kept=found.kept,
            key=found.key,
            prompt_ids=found.ids,
            completion_ids=result.ids,
            logprobs=result.logprobs,
            message=ChatMessage("assistant", answer.text, answer.calls),
            observation=found.observation,
            stop=result.stop,
            temperature=job.temperature,
            restricted=job.temperature > 0 and job.top_p < 1,
            version=self.iteration,
            columns=_columns(request, answer, text),
            prompt_text=request.prompt if isinstance(request.prompt, str) else "",
        )

    def _keep(self, episode: GatewayEpisode, call: SampledCall, found: Linked, stored: Stored | None) -> None:
        """Log an answer, so that later requests find it."""
        if found.parent is not None:
            found.parent.delivered = True  # the client has gone on from it
        said = ChatMessage("assistant", found.prefill + call.message.text, call.message.calls)
        if not call.prompt_text:
            episode.heads.setdefault(said.chained(found.before), []).append(call)
        episode.keep(call, stored and Stored(stored.previous, (*stored.messages, said)))

    async def read(self, episode: GatewayEpisode, raw: bytes, read: Callable[[Body], CallRequest]) -> CallRequest:
        """Return the request in a body.

        Args:
            episode: The episode.
            raw: The body.
            read: Returns the request of an object.

        Raises:
            Refusal: It is not understood, or too long.
        """

        def work() -> CallRequest:
            self.bounds.check_body(raw)
            request = read(read_object(raw, self.limits.max_depth))
            self.bounds.check(request)
            assert request.body_key  # computed once, here
            return request

        return await self.offload.run(episode, len(raw), work)

    async def count(self, episode: GatewayEpisode, request: CallRequest) -> int:
        """Return how many tokens a conversation has as a prompt."""
        weight = self.bounds.check(request)
        return len((await self.offload.run(episode, weight, lambda: linked(request, {}, self.renderer))).ids)

    def delivered(self, episode: GatewayEpisode, calls: Sequence[SampledCall]) -> None:
        """Say that the client has received some answers."""
        for call in calls:
            call.delivered = True
        episode.last_use = time.monotonic()

    def open(self, id: str = "", **settings: Any) -> GatewayEpisode:
        """Open an episode, see :meth:`turngym.agents.gateway.episode.Episodes.open`."""
        return self.episodes.open(id, **settings)

    def end_idle(self) -> list[GatewayEpisode]:
        """End the episodes whose agents are dead, and return them."""
        now, ended = time.monotonic(), []
        for episode in self.episodes.all():
            if episode.status == "open" and not episode.at_once and now - episode.last_use > self.limits.idle_seconds:
                episode.status = self.rules.timeout
                episode.detail = f"the agent was silent for {self.limits.idle_seconds:g} seconds"
                ended.append(episode)
        return ended

    def report(self, episodes: Sequence[GatewayEpisode] | None = None) -> dict[str, float]:
        """Return what became of the tokens of all episodes, or of some."""
        counts = TokenCounts()
        chosen = self.episodes.all() if episodes is None else episodes
        for episode in chosen:
            for call in list(episode.calls):
                counts.add(call)
        return {"episodes": float(len(chosen)), **counts.report()}


def _with_previous(episode: GatewayEpisode, request: CallRequest) -> CallRequest:
    """Return a request with the conversation that it follows; of its instructions only the new ones count."""
    before, told = episode.conversation(request.previous), _told(request)
    return replace(request, messages=(*request.messages[:told], *before, *request.messages[told:]))


def _told(request: CallRequest) -> int:
    """Return how many of the messages are instructions of this request alone."""
    return 1 if request.extra.get("instructions") else 0


def _columns(request: CallRequest, answer: Answer, text: str) -> dict[str, float | str]:
    found: dict[str, float | str] = {"tool_calls": float(len(answer.calls))}
    if answer.calls:
        found["tools"] = ",".join(call.name for call in answer.calls)
    if answer.unread:
        found["unread_call"] = 1.0
        found["call_problem"] = answer.problem
    if request.json_mode:
        found["json_valid"] = float(_is_object(text))
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
