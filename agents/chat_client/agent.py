"""The agent around a server: messages, concurrent requests, retries, parsing, memory and costs.

A turn without an answer after the retries is played with the empty text, an invalid action: server failures neither end
nor drop an episode. A prompt that exceeds the model's context truncates its episode with the reason ``context``. A
server that becomes unreachable, or answers no request for many turns, raises :class:`turngym.errors.ServerDown`
instead.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from turngym.agents.chat import Ask, ChatModel, Reply, guessed_tokens, reasoning_notes
from turngym.agents.chat import Message as ChatMessage
from turngym.agents.chat_client.background import Background
from turngym.agents.chat_client.check import check_server, explained, is_of_server, is_unreachable
from turngym.agents.chat_client.client import CONTEXT, EMPTY, TOOLS, Answer, CallFailed, ChatServer
from turngym.agents.chat_client.config import Prices, ServerConfig
from turngym.agents.chat_client.exchange import NO_CREDIT, RATE_LIMIT
from turngym.agents.chat_client.prompts import Message, ServerPrompts, as_json
from turngym.agents.chat_client.tool_calls import tool_fields
from turngym.agents.core import Decision, EagerAgent, Request
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import Sampling
from turngym.agents.usage import Usage
from turngym.envs.tools.tool_schema import ToolSet
from turngym.errors import ConfigError, ServerDown
from turngym.seeding import stream, stream_seed
from turngym.wrappers.actions.action_format import AUTO

_TOKENS_OF_A_CHECK = 16
_MOST_LOST = 8  # turns without an answer, one after another, after which a server that can be reached counts as down
_MOST_BLANK = 3  # requests of a turn that are answered with a blank completion: the model hardly writes more later
_Key = tuple[int | str, ...]
"""Key of a request's seed: episode, turn, and the purpose unless it is the action."""


class Account:
    """Cost of the answers of one or several agents; may be used from several threads."""

    def __init__(self) -> None:
        self.spent = 0.0
        """USD since it was made; 0 without prices."""
        self._lock = threading.Lock()

    def add(self, cost: float) -> None:
        """Add the cost of an answer, in USD."""
        with self._lock:
            self.spent += cost


class ServerAgent(EagerAgent, ChatModel):
    """Plays with a model behind a server.

    Args:
        server: Sends the requests.
        model: Name of the model there.
        config: Limits, waits and additional fields.
        prompt: Prompt settings.
        sampling: Temperature, top-p, longest completion.
        format: Name of the action format.
        seed: Seeds each request and each wait, together with episode, turn and attempt.
        prices: Token prices; None if unknown.
    """

    def __init__(
        self,
        server: ChatServer,
        model: str,
        config: ServerConfig,
        prompt: PromptConfig,
        sampling: Sampling,
        format: str = AUTO,
        seed: int = 0,
        prices: Prices | None = None,
    ) -> None:
        self.server = server
        self.name = model
        self.config = config
        self.prompt = prompt
        self.sampling = sampling
        self.format = format
        self.seed = seed
        self.prices = prices
        self.problems: dict[str, str] = {}
        """Kind of failure -> message of the first one; for display, never written to a file."""
        self.failed: Counter[str] = Counter()
        """Kind of failure -> number of failed requests, including those of pending turns."""
        self.on_failure: Callable[[str], None] = lambda kind: None
        """Called with the kind of each failure, from several threads."""
        self._lost_in_a_row = 0
        self._lock = threading.Lock()
        self.account = Account()
        """What answers have cost; agents of one run that share a limit share it."""
        if config.max_cost is not None and prices is None:
            raise ConfigError(
                f"max_cost needs the prices of {model!r}: pass --server prices=FILE, a JSON file like "
                f'{{"{model}": {{"input": 0.5, "output": 1.5}}}} in USD per million tokens.'
            )
        self.prompts = ServerPrompts(prompt, self.format_of, config.escape, self.tools_of)
        self._ready: list[tuple[Request, Decision]] = []
        self._background: Background[tuple[Answer, Usage]] = Background(config.concurrency, "server-agent")

    def prepare(self) -> None:
        """Check that the server is reachable and has the model.

        Raises:
            ServerDown: It is not, or has not.
        """
        fields = self._fields((), 0)
        fields[self.config.max_tokens_field] = min(self.sampling.max_new_tokens, _TOKENS_OF_A_CHECK)
        check_server(self.server, self.name, fields, partial(self._wait, ("check",)))

    @property
    def prompts_text(self) -> str:
        """Description of prompts and action format, in one line."""
        native = "actions are native tool calls where the environment declares tools and the server takes them, else "
        text = super().prompts_text
        return text.replace("actions are ", native) if self.format == AUTO else text

    def tools_of(self, request: Request) -> ToolSet | None:
        """Return the tools declared to the server: those of the environment with the format ``auto``, else None.

        A server that has rejected declared tools gets none.
        """
        return request.tools if self.format == AUTO and TOOLS not in self.problems else None

    def begin(self, requests: Sequence[Request]) -> None:
        """Send the requests, up to ``concurrency`` at a time."""
        for request in requests:
            self.ready()
            if call := self.prompts.pending(request):  # the next of several calls in one answer
                self._ready.append((request, Decision(call.action, call.action, usage=Usage())))
                continue
            tools = self.tools_of(request)
            self._background.begin(request, partial(self._reply, request, self.messages(request), tools))

    def ready(self) -> None:
        """Reset after :meth:`abandon` and before the first request."""
        if self._background.is_idle:
            self.server.stopped.clear()

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return the completed requests with their parsed actions."""
        found, self._ready = self._ready, []
        for request, (answer, usage) in self._background.finished(wait and not found):
            if why := self._too_long(answer, usage):
                found.append((request, Decision("", usage=usage, too_long=why)))
                continue
            calls = answer.calls if request.tools and self.format == AUTO else ()
            action = calls[0].action if calls else self.format_of(request).action_of(answer.text)
            self.prompts.remember(request, answer.text, action, calls)
            notes = reasoning_notes(answer.reasoning)
            completion = "\n".join([answer.text, *(call.action for call in calls)]).strip() if calls else answer.text
            found.append((request, Decision(action, completion, usage=usage, notes=notes)))
        return found

    def _too_long(self, answer: Answer, usage: Usage) -> str:
        """Return the server's message about a prompt that does not fit; empty if it fits."""
        if answer.text or answer.calls or usage.lost or CONTEXT not in usage.failures:
            return ""
        said = " ".join(self.problems[CONTEXT].split())
        return (
            f"the prompt does not fit the model's context, says the server ({said}): show less of the past in prompts."
        )

    def abandon(self) -> None:
        """Close all connections, so that threads waiting for the server end at once."""
        self._ready = []
        self._background.abandon(self.server.abort)

    def ask(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return the answer to each call, one after another; safe to be called from several threads."""
        found = []
        for ask in asks:
            messages = [as_json(message, self.config.escape) for message in ask.messages]
            answer, usage = self._answer(_key(ask), messages)
            too_long = self._too_long(answer, usage)
            if too_long:
                self.prompts.refuse(self.count(ask.messages))
            found.append(Reply(answer.text, usage, reasoning=answer.reasoning, too_long=too_long))
        return found

    @property
    def fitting_limit(self) -> int:
        """Guessed tokens that prompts are shortened to, lowered where the server refused one."""
        return min(self.prompt_limit, self.prompts.limit)

    def count(self, messages: Sequence[ChatMessage]) -> int:
        """Return an estimate, because the server's tokenizer is unknown."""
        return guessed_tokens(messages)

    def _reply(self, request: Request, prompt: list[Message], tools: ToolSet | None) -> tuple[Answer, Usage]:
        """Return the answer to a prompt, without tools if the server rejects them, shortened until it is accepted."""
        key = request.episode, request.turn
        fields = {} if tools is None else tool_fields(tools)
        answer, total = self._answer(key, prompt, fields)
        if TOOLS in total.failures:
            prompt, fields = self.prompts.messages(request), {}
            answer, usage = self._answer(key, prompt)
            total = replace(total + usage, lost=usage.lost, retries=total.retries + usage.retries + 1)
        usage = total
        while CONTEXT in usage.failures and (shorter := self.prompts.shortened(request, prompt)) is not None:
            prompt = shorter
            answer, usage = self._answer(key, prompt, fields)
            total = replace(total + usage, retries=total.retries + usage.retries + 1)
        return answer, replace(total, shortened=int(self.prompts.leaves_out(request.episode)))

    def messages(self, request: Request) -> list[Message]:
        """Return the messages that ``request`` is answered from, images included."""
        return self.prompts.messages(request)

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Remember a turn that was decided elsewhere."""
        text = self.format_of(request).written(action, completion, self.thinking)
        self.messages(request)
        self.prompts.remember(request, text, action)
        return Decision(action, text, usage=Usage())

    def forget(self, episode: int) -> None:
        """Drop the memory of an episode."""
        self.prompts.forget(episode)

    def details(self) -> dict[str, Any]:
        """Return model, address, settings and prices, without the key."""
        fields = self._fields((), 0)
        fields.pop("seed", None)  # set for each request
        return {
            "model": self.name,
            "url": self.server.address.url,
            "server": {**asdict(self.config), "prices": None if self.prices is None else asdict(self.prices)},
            "request": fields,
        }

    def _fields(self, key: _Key, attempt: int) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": self.name,
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            self.config.max_tokens_field: self.sampling.max_new_tokens,
        }
        if self.config.seed:
            fields["seed"] = stream_seed("server", self.seed, *key, attempt) % 2**31
        return {**fields, **self.config.body}

    def _answer(
        self, key: _Key, messages: list[Message], fields: Mapping[str, Any] | None = None
    ) -> tuple[Answer, Usage]:
        """Return the answer, with an empty text if there is none, and what it cost."""
        began = time.monotonic()
        failures: Counter[str] = Counter()
        waited = 0
        told: list[tuple[int, int] | None] = []
        answer = Answer("")
        for attempt in itertools.count():
            self._require_money()
            self._wait_for_rate_limit(key, attempt)
            left = max(0.001, self.config.deadline - (time.monotonic() - began))
            body = {**self._fields(key, attempt), "messages": messages, **(fields or {})}
            try:
                answer = self.server.ask(body, min(self.config.timeout, left))
                told.append(answer.tokens)
                self._spend(answer.tokens, answer.cached)
                self._lost_in_a_row = 0
                break
            except CallFailed as failure:
                failures[failure.kind] += 1
                self.problems.setdefault(failure.kind, failure.detail)
                told += [failure.tokens] if failure.tokens else []
                self._spend(failure.tokens)
                answer = Answer("", reasoning=failure.reasoning)
                wait = max(self._wait(key, attempt), failure.retry_after)
                left = self.config.deadline - (time.monotonic() - began)
                is_announced = failure.kind == RATE_LIMIT and failure.retry_after > 0  # waiting for it is not a retry
                waited += is_announced
                is_last = attempt - waited >= self.config.retries or not failure.is_retried or wait >= left
                is_last |= failures[EMPTY] >= _MOST_BLANK
                self.failed[failure.kind] += 1
                self.on_failure(failure.kind)
                if is_last:
                    self._note_lost(failure)
                if is_last or self.server.stopped.wait(wait):
                    break
        latency = time.monotonic() - began
        is_answered = bool(answer.text or answer.calls)
        return answer, self._usage(attempt + 1, is_answered, told, failures, latency, answer.cached)

    def _wait_for_rate_limit(self, key: _Key, attempt: int) -> None:
        """Wait while a rate limit that any request has met holds all of them, and not all to the same moment.

        Raises:
            ServerDown: It lasts longer than the deadline of a turn.
        """
        held = self.server.held
        if held > self.config.deadline:
            raise ServerDown(
                f"The server allows no further request: its rate limit is reached, with {held:,.0f} s to wait: "
                "continue later."
            )
        if held > 0:
            self.server.stopped.wait(held + self._wait((*key, "rate limit"), attempt))

    def _spend(self, tokens: tuple[int, int] | None, cached: int = 0) -> None:
        if tokens and self.prices:
            self.account.add(self.prices.of(*tokens, cached))

    def share_limit(self, other: object) -> None:
        """Count the cost together with that of another agent, so that ``max_cost`` limits both, if it has a server."""
        if isinstance(other, ServerAgent):
            self.account = other.account

    def _require_money(self) -> None:
        """Raise once the run has spent all that it may.

        Raises:
            ServerDown: It has.
        """
        limit, spent = self.config.max_cost, self.account.spent
        if limit is not None and spent >= limit:
            raise ServerDown(
                f"The cost limit of {limit:g} USD (max_cost) is reached: this run has spent {spent:.4f} USD. To "
                "continue, raise it with --server max_cost=USD."
            )

    def _note_lost(self, failure: CallFailed) -> None:
        """Count a turn whose last attempt failed.

        Raises:
            ServerDown: The server is unreachable, allows nothing more within the deadline of a turn, or too many turns
                in a row had no answer.
        """
        if self.server.stopped.is_set() or not is_of_server(failure):
            return
        if NO_CREDIT in failure.detail or (failure.kind == RATE_LIMIT and failure.retry_after):
            raise ServerDown(f"The server allows no further request: {explained(self.server, self.name, failure, [])}")
        self._lost_in_a_row += 1
        gone = is_unreachable(self.server)
        if gone is not None or self._lost_in_a_row >= max(_MOST_LOST, self.config.concurrency):
            raise ServerDown(f"The server has stopped answering: {explained(self.server, self.name, failure, [])}")

    def _wait(self, key: _Key, attempt: int) -> float:
        draw = float(stream("retry", self.seed, *key, attempt).random())
        return backoff(attempt, draw, self.config.wait, self.config.longest_wait)

    def _usage(
        self,
        calls: int,
        is_answered: bool,
        told: list[tuple[int, int] | None],
        failures: Counter[str],
        latency: float,
        cached: int = 0,
    ) -> Usage:
        tokens_in = sum(tokens[0] for tokens in told if tokens)
        tokens_out = sum(tokens[1] for tokens in told if tokens)
        return Usage(
            tokens_in,
            tokens_out,
            calls,
            retries=calls - 1,
            lost=int(not is_answered and CONTEXT not in failures),
            unmetered=told.count(None),
            latency=latency,
            cost=None if self.prices is None else self.prices.of(tokens_in, tokens_out, cached),
            failures=dict(failures),
            tokens_cached=cached,
        )


def backoff(attempt: int, draw: float, first: float, longest: float) -> float:
    """Return the seconds to wait after a failed attempt: doubled each time, and between half and all of that.

    Args:
        attempt: Number of the attempt that failed, from 0.
        draw: A uniform number in [0, 1), so that clients that failed together do not retry together.
        first: The longest wait after the first attempt.
        longest: The longest wait after any.

    >>> backoff(0, 0.0, 0.5, 30.0), backoff(3, 0.5, 0.5, 30.0), backoff(9, 1.0, 0.5, 30.0)
    (0.25, 3.0, 30.0)
    """
    return float(min(longest, first * 2**attempt) * (0.5 + draw / 2))


def _key(ask: Ask) -> _Key:
    return (ask.episode, ask.turn, ask.key) if ask.key else (ask.episode, ask.turn)
