"""Generated conversations of agent programs, which do to their histories what such programs do."""

from __future__ import annotations

import http.client
import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from turngym.agents.gateway import GatewayEpisode
from turngym.benchmarks.studies.checks.gateway_talks.protocols import SPEAKERS, Said
from turngym.benchmarks.studies.checks.gateway_talks.texts import TextAgent

Body = dict[str, Any]
TOOLS = ("look", "move")
SCRIPTS = (
    "",
    "go up",
    "<think>It is a wall.</think>go left 🙂",
    '<tool_call>{"name": "move", "arguments": {"to": [1, 2], "b": "é", "a": 1.50}}</tool_call>',
    'I look.<tool_call>\n{"arguments": {}, "name": "look"}\n</tool_call>',
    '<tool_call>{"name": "look", "arguments": {}}</tool_call><tool_call>{"name": "move", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "look", ',
    "first STOP second",
    '{"answer": 3}',
    " spaces \n\n",
    "日本 👩‍👩‍👧 \u0301",
)
"""What the model writes, besides random tokens."""
TEXTS = [*SCRIPTS, "You are in a room. wall box goal", "The user asked the system and the assistant answered."]
_SAID = ("a wall", "wo bin ich? 🙂", "", "<|end|><|assistant|>hm", "\ud83d lone", "日本\u0000", "x" * 60, "STOP")
_LONGEST = 4
_TEXTS_SHARE = 0.2
"""Agents that continue texts instead of conversations."""


class Talk:
    """One conversation, or some, in one episode.

    Args:
        url: The gateway.
        episode: The episode.
        seed: Seed of the conversation.
    """

    def __init__(self, url: str, episode: GatewayEpisode, seed: int) -> None:
        self.episode = episode
        self.counts: Counter[str] = Counter()
        self.expected: dict[str, str] = {}
        """Id of an answer -> how its prompt must have come about."""
        self.edited: dict[str, str] = {}
        """Id of an answer -> that of the answer in its history that was edited."""
        self._place = urlsplit(url)
        self._seed = seed
        self._sent: set[str] = set()
        """Histories that end with an answer as it was returned."""

    def run(self) -> Talk:
        """Play it, and return itself."""
        draw = random.Random(self._seed)
        self._agent("", draw)
        if draw.random() < 0.3:
            self.counts["parallel sub-agents"] += 1
            with ThreadPoolExecutor(3) as threads:
                draws = [random.Random(f"{self._seed}/{k}") for k in range(3)]
                list(threads.map(self._agent, ("scout", "critic", "scout"), draws))
        return self

    def _agent(self, name: str, draw: random.Random) -> None:
        """Play one agent's conversation."""
        if draw.random() < _TEXTS_SHARE:
            agent = TextAgent(name, draw, partial(self._complete, name), self.counts)
            agent.run()
            self.expected |= agent.expected
            self.edited |= agent.edited
            return
        speaker = draw.choice(list(SPEAKERS.values()))
        about: Body = {"tools": TOOLS if draw.random() < 0.5 else (), "json": draw.random() < 0.15}
        history: list[Said] = [Said("system", "Move.")] if draw.random() < 0.6 else []
        history.append(Said("user", draw.choice(_SAID)))
        edited = ""
        for _ in range(draw.randint(1, _LONGEST)):
            ids, answer = self._ask(speaker, name, history, about, draw, edited)
            history, edited = self._next(list(history), answer, ids, draw)

    def _ask(
        self, speaker: Any, agent: str, history: list[Said], about: Body, draw: random.Random, edited: str
    ) -> tuple[str, Said]:
        """Ask for an answer, perhaps more than once, and return the id and the answer that the agent goes on with."""
        options: Body = {"choices": 1, "stream": draw.random() < 0.3}
        if speaker.has_choices and draw.random() < 0.2:
            options["choices"] = 2
        if speaker.has_stop and draw.random() < 0.3:
            options["stop"] = ["STOP"]
        if draw.random() < 0.2:
            options["max_tokens"] = draw.choice([1, 3, 7])
        if draw.random() < 0.05:
            self._break_off(speaker, agent, history, about, options)
        body = speaker.body(history, about, options, draw)
        link = self._link(history, about)
        id, answers = speaker.read(self._post(speaker, agent, body, {}), options["stream"])
        self.expected[id] = link
        if edited:
            self.edited[id] = edited
        again = draw.random()
        if again < 0.1:
            self.counts["retries"] += 1
            repeated, same = speaker.read(
                self._post(speaker, agent, body, {"x-stainless-retry-count": "1"}), options["stream"]
            )
            assert (repeated, same) == (id, answers), "a retry gets another answer"
        elif again < 0.2:
            self.counts["repeated requests"] += 1
            id, answers = speaker.read(self._post(speaker, agent, body, {}), options["stream"])
            self.expected[id] = link
        for answer in answers:
            self._sent.add(_written([*history, answer], about))
        self.counts[f"requests of {speaker.name}"] += 1
        self.counts["streams"] += options["stream"]
        self.counts["answers with tool calls"] += any(answer.calls for answer in answers)
        self.counts["empty answers"] += any(not answer.text and not answer.calls for answer in answers)
        self.counts["answers beyond ASCII"] += any(not answer.text.isascii() for answer in answers)
        return id, draw.choice(answers)

    def _link(self, history: list[Said], about: Body) -> str:
        """Return how the prompt of a history must come about."""
        answers = [k for k, said in enumerate(history) if said.role == "assistant"]
        if not answers:
            return "root"
        return "extended" if _written(history[: answers[-1] + 1], about) in self._sent else "forked"

    def _next(self, history: list[Said], answer: Said, id: str, draw: random.Random) -> tuple[list[Said], str]:
        """Return the history of the next request, and the id of an answer in it that was edited."""
        kind, edited = draw.random(), ""
        shown = answer
        if kind < 0.15 and (answer.text.strip() or answer.calls):
            stripped = answer.text.partition("</think>")[2] or f"{answer.text[: len(answer.text) // 2]}..."
            shown, edited = Said("assistant", stripped, answer.calls), id
            self.counts["edited answers"] += 1
            self.counts["stripped thinking"] += "</think>" in answer.text
        history.append(shown)
        history += [Said("tool", draw.choice(_SAID), call_id=call[0]) for call in answer.calls]
        if not answer.calls or draw.random() < 0.3:
            history.append(Said("user", draw.choice(_SAID)))
        if 0.2 < kind < 0.3:
            self.counts["compactions"] += 1
            return [*history[:1], Said("user", "Earlier: a wall.")] if history[0].role == "system" else [
                Said("user", "Earlier: a wall.")
            ], ""
        if 0.3 < kind < 0.4:
            self.counts["changed system prompts"] += 1
            rest = history[1:] if history[0].role == "system" else history
            return [Said("system", f"Move {draw.random()}."), *rest], id
        return history, edited

    def _break_off(self, speaker: Any, agent: str, history: list[Said], about: Body, options: Body) -> None:
        """Send a request and go away."""
        self.counts["calls broken off"] += 1
        connection = self._connection()
        body = speaker.body([*history, Said("user", "never mind")], about, options, random.Random(0))
        connection.request("POST", self._path(speaker, agent), json.dumps(body), self._headers(speaker))
        connection.close()

    def _complete(self, agent: str, body: Body, headers: dict[str, str]) -> bytes:
        """Send a completion."""
        known = {"Authorization": f"Bearer {self.episode.key}", **headers}
        return self._sent_to(self._address(agent, "completions"), {"model": "x", **body}, known)

    def _post(self, speaker: Any, agent: str, body: Body, headers: dict[str, str]) -> bytes:
        return self._sent_to(self._path(speaker, agent), body, {**self._headers(speaker), **headers})

    def _sent_to(self, path: str, body: Body, headers: dict[str, str]) -> bytes:
        connection = self._connection()
        try:
            content = json.dumps(body).encode()
            connection.request("POST", path, content, headers)
            response = connection.getresponse()
            found = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {found[:500]!r} for {content[:2000]!r}")
        return found

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._place.hostname or "", self._place.port, timeout=120)

    def _path(self, speaker: Any, agent: str) -> str:
        return self._address(agent, speaker.path)

    def _address(self, agent: str, path: str) -> str:
        return f"/episode/{self.episode.id}" + (f"/agent/{agent}" if agent else "") + f"/v1/{path}"

    def _headers(self, speaker: Any) -> dict[str, str]:
        return dict(speaker.headers(self.episode.key))


def _written(history: list[Said], about: Body) -> str:
    """Return a history as text that is equal for equal histories."""
    return json.dumps([about, [said.canonical() for said in history]], sort_keys=True)
