"""The processes of ``gateway_load.py``: a gateway with a scripted policy, and agent programs that speak to it.

Both do what they are told, see ``worker.py``. The agents are asyncio clients with a connection of their own each, and
send prepared bytes, so that what is measured is the gateway.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from turngym.agents.gateway import Gateway, GatewayLimits, serving, trajectory_of
from turngym.agents.gateway.engine import Job, Sampled
from turngym.agents.gateway.server import shorten_collections
from turngym.agents.models.completion import Completion
from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling
from turngym.benchmarks.studies.speed.sides.worker import Results, serve

TURNS = 8
_SYSTEM = "You play a game of boxes. Push every box onto a goal, and say one action at a time: up, down, left, right. "
_SEEN = "The room has a wall to the north, a box to the east, and a goal behind it. You are in row {} and column {}. "
_DONE = "go up and then look around the room for the next box, number {}"
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} something in the room, and see what happens",
            "parameters": {
                "type": "object",
                "properties": {"what": {"type": "string"}, "times": {"type": "integer", "minimum": 1}},
                "required": ["what"],
            },
        },
    }
    for name in ("push", "pull", "look")
]


class Scripted:
    """A policy that writes a numbered text after a known time, and remembers every answer.

    Args:
        model: Its tokenizer.
        seconds: How long a batch takes.
    """

    def __init__(self, model: LanguageModel, seconds: float) -> None:
        self.seconds = seconds
        self.numbers: dict[tuple[int, ...], int] = {}
        """Sampled ids -> number of the answer."""
        self._tokenizer, self._end = model.tokenizer, min(model.stop_ids)

    def __call__(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Answer each prompt."""
        if self.seconds:
            time.sleep(self.seconds)
        found = []
        for _ in prompts:
            text = _DONE.format(number := len(self.numbers))
            ids = (*self._tokenizer.encode(text, add_special_tokens=False), self._end)
            self.numbers[ids] = number
            found.append(Completion(ids, (-0.5,) * len(ids)))
        return found


def scripted_gateway(texts: Sequence[str], context: int, seconds: float) -> tuple[Gateway, Scripted]:
    """Return a gateway and its policy, whose tokenizer knows some texts."""
    tokenizer = build_tokenizer([*texts] * 9, 400)
    settings = EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=400, context=context)
    model = LanguageModel(build_model(tokenizer, settings, 0), tokenizer, "tiny")
    policy = Scripted(model, seconds)
    limits = GatewayLimits(max_new_tokens=64, idle_seconds=3600)
    return Gateway(model, policy, context=context, limits=limits), policy


class Server:
    """A gateway in this process, its policy, and how long the sampler took for each answer."""

    def __init__(self, service_ms: float) -> None:
        texts = (_SYSTEM, _SEEN, _DONE, "0123456789")
        self.gateway, self.policy = scripted_gateway(texts, 1_000_000, service_ms / 1000)
        self.sampled: dict[int, float] = {}
        self._submit = self.gateway.engine.submit
        self.gateway.engine.submit = self._timed  # type: ignore[method-assign]
        self._serving = serving(self.gateway)
        self.url = self._serving.__enter__()
        shorten_collections()

    def _timed(self, job: Job) -> Future[Sampled]:
        began = time.perf_counter()

        def done(result: Future[Sampled]) -> None:
            if not result.cancelled() and result.exception() is None:
                self.sampled[self.policy.numbers[result.result().ids]] = time.perf_counter() - began

        future = self._submit(job)
        future.add_done_callback(done)
        return future

    def open(self, count: int) -> list[list[str]]:
        """Open episodes; return names and keys."""
        opened = [self.gateway.open(group=k // 8) for k in range(count)]
        return [[each.id, each.key] for each in opened]

    def used(self) -> Results:
        """Return processor time, memory, and the time that threads waited for a core."""
        waited = [int(path.read_text().split()[1]) for path in Path("/proc/self/task").glob("*/schedstat")]
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "processor_s": time.process_time(),
            "waited_s": sum(waited) / 1e9,
            "memory_mib": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            "answers": len(self.policy.numbers),
        }

    def logged(self, names: Sequence[str]) -> Results:
        """Return the numbers of the answers in the logs of some episodes, and of those that are turns to train on."""
        episodes = [self.gateway.episodes.get(name) for name in names]
        calls = [self.policy.numbers[call.completion_ids] for each in episodes for call in each.calls]
        turns = [self.policy.numbers[turn.completion_ids] for each in episodes for turn in trajectory_of(each).turns]
        return {"calls": calls, "turns": turns}

    def close(self, names: Sequence[str]) -> Results:
        """Forget some episodes."""
        for name in names:
            self.gateway.episodes.remove(self.gateway.episodes.get(name))
        return {}

    def answer(self, command: Results) -> Results:
        """Do what is asked for."""
        match command["do"]:
            case "open":
                return {"episodes": self.open(command["count"])}
            case "used":
                return self.used()
            case "sampled":
                return {"sampled": self.sampled}
            case "logged":
                return self.logged(command["episodes"])
            case "forget":
                return self.close(command["episodes"])
        raise ValueError(command)


class AgentProgram:
    """One agent: episodes in turn, one connection.

    Args:
        place: Host and port.
        number: Which agent it is.
        think: Seconds between an answer and the next request, on average.
    """

    def __init__(self, place: tuple[str, int], number: int, think: float) -> None:
        self._place = place
        self._draw = random.Random(number)
        self._think = think
        self._tools = _TOOLS if number % 2 else []
        self.calls: list[tuple[int, float]] = []
        """Number of an answer, and its latency."""

    async def play(self, name: str, key: str) -> None:
        """Play one episode."""
        reader, writer = await asyncio.open_connection(*self._place)
        head = (
            f"POST /episode/{name}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: application/json\r\nAccept: application/json\r\nUser-Agent: load\r\nContent-Length: "
        )
        history = [{"role": "system", "content": _SYSTEM * 4}]
        try:
            for turn in range(TURNS):
                if self._think:
                    await asyncio.sleep(self._draw.expovariate(1 / self._think))
                seen = _SEEN.format(turn, self._draw.randrange(9999)) * 2
                history.append({"role": "user", "content": seen})
                body: dict[str, Any] = {"model": "x", "messages": history}
                if self._tools:
                    body["tools"] = self._tools
                content = json.dumps(body).encode()
                history.append(await self._call(reader, writer, f"{head}{len(content)}\r\n\r\n".encode() + content))
        finally:
            writer.close()

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> dict[str, Any]:
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        content = await reader.readexactly(size)
        seconds = time.perf_counter() - began
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head!r} {content[:500]!r}")
        message: dict[str, Any] = json.loads(content)["choices"][0]["message"]
        self.calls.append((int(message["content"].rpartition(" ")[2]), seconds))
        return {"role": "assistant", "content": message["content"]}


async def play(url: str, episodes: Sequence[Sequence[str]], at_once: int, think: float) -> list[tuple[int, float]]:
    """Play episodes, so many at once, and return the number and latency of each call."""
    place = urlsplit(url)
    waiting = list(episodes)[::-1]
    agents = [AgentProgram((place.hostname or "", place.port or 0), k, think) for k in range(at_once)]

    async def work(agent: AgentProgram) -> None:
        while waiting:
            await agent.play(*waiting.pop())

    await asyncio.gather(*map(work, agents))
    return [call for agent in agents for call in agent.calls]


class Side:
    """A process that is a server, or a client, whichever it is told first."""

    def __init__(self) -> None:
        self._server: Server | None = None
        self._playing: threading.Thread | None = None
        self._played: Results = {}

    def answer(self, command: Results) -> Results:
        """Do what is asked for."""
        if command["do"] == "serve":
            self._server = Server(command["service_ms"])
            return {"url": self._server.url}
        if command["do"] == "play":
            self._playing = threading.Thread(target=self._play, args=(command,))
            self._playing.start()
            return {}
        if command["do"] == "played":
            assert self._playing is not None
            self._playing.join()
            return self._played
        assert self._server is not None
        return self._server.answer(command)

    def _play(self, command: Results) -> None:
        began, used = time.perf_counter(), time.process_time()
        calls = asyncio.run(play(command["url"], command["episodes"], command["at_once"], command["think"]))
        self._played = {
            "calls": calls,
            "seconds": time.perf_counter() - began,
            "processor_s": time.process_time() - used,
        }


if __name__ == "__main__":
    serve(Side().answer)
