"""The processes of ``gateway_attacks.py``: a gateway with a scripted policy, its agents, and an attacker.

All do what they are told, see ``worker.py``; the agents and the policy are those of ``gateway_load_side.py``.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from turngym.agents.gateway import serving
from turngym.agents.gateway.server import shorten_collections
from turngym.benchmarks.studies.speed.sides.gateway_load_side import Side, scripted_gateway
from turngym.benchmarks.studies.speed.sides.worker import Results, serve

CONTEXT = 131_072
FILES = 1024
LARGEST = 8 * 2**20 - 4096
_TEXTS = (
    "You push boxes onto goals.",
    "up down left right",
    "0123456789",
    "go up and then look around the room, number",
)
_DEEP = {"id": "x", "type": "function"}


class AttackedServer:
    """A gateway in this process, whose open files are limited."""

    def __init__(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.gateway, _ = scripted_gateway(_TEXTS, CONTEXT, 0.0)
        self.folder = Path(f"/tmp/gateway-attacks-{os.getpid()}.sock")
        self._serving = serving(self.gateway, path=self.folder)
        self.url = self._serving.__enter__()
        shorten_collections()

    def answer(self, command: Results) -> Results:
        """Do what is asked for."""
        if command["do"] == "open":
            return {"episodes": [[each.id, each.key] for each in map(self.gateway.open, [""] * command["count"])]}
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {"memory_mib": pages * os.sysconf("SC_PAGE_SIZE") / 2**20, "processor_s": time.process_time()}


def _chat(**body: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "up"}], **body}).encode()


def _filled(parts: Callable[[int], Any], size: int) -> list[Any]:
    """Return as many parts as a body of the largest size has."""
    return [parts(k) for k in range(LARGEST // size)]


def _long_text() -> str:
    return "go up and then look around the room. " * (LARGEST // 37)


def _nested() -> bytes:
    deep = [{**_DEEP, "function": {"name": "look", "arguments": "[" * (LARGEST - 1000)}}]
    called = {"role": "assistant", "content": "", "tool_calls": deep}
    return _chat(messages=[called, {"role": "user", "content": "up"}])


def _tools() -> bytes:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    return _chat(tools=_filled(lambda k: tool, 112))


_CHAT = "chat/completions"
BODIES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a long message": (_CHAT, lambda: _chat(messages=[{"role": "user", "content": _long_text()}])),
    "a long word": (_CHAT, lambda: _chat(messages=[{"role": "user", "content": "x" * LARGEST}])),
    "many messages": (_CHAT, lambda: _chat(messages=_filled(lambda k: {"role": "user", "content": "x"}, 36))),
    "nested arguments": (_CHAT, _nested),
    "many tools": (_CHAT, _tools),
    "count_tokens": (
        "messages/count_tokens",
        lambda: _chat(model="x", messages=[{"role": "user", "content": _long_text()}]),
    ),
    "many token ids": ("completions", lambda: json.dumps({"prompt": _filled(lambda k: 5, 3)}).encode()),
    "many empty lists": (_CHAT, lambda: _chat(stop=_filled(lambda k: [], 4))),
    "a long prompt": ("completions", lambda: json.dumps({"prompt": _long_text()}).encode()),
}
"""Each attack with one large request: where it goes, and its body."""


class Attacker:
    """What hostile clients do.

    Args:
        url: The gateway.
        episodes: Names and keys that they have.
        path: A Unix socket of the gateway.
    """

    def __init__(self, url: str, episodes: list[list[str]], path: str) -> None:
        self.place = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self.episodes, self.path = episodes, path
        self.statuses: dict[str, int] = {}
        self._over = threading.Event()

    def attack(self, name: str, seconds: float) -> Results:
        """Attack for so long, and return how often which answer came."""
        self._over.clear()
        self.statuses = {}
        how = getattr(self, "_" + name.replace(" ", "_").replace("-", "_"), None)
        path, make = BODIES.get(name, ("", bytes))
        body = make()
        threading.Timer(seconds, self._over.set).start()
        began = time.perf_counter()
        if how is not None:
            how()
        else:
            while not self._over.is_set():
                self._post(path, body, self.episodes[0])
        return {"statuses": self.statuses, "seconds": time.perf_counter() - began}

    def _post(self, path: str, body: bytes, episode: list[str]) -> None:
        connection = http.client.HTTPConnection(*self.place, timeout=120)
        try:
            headers = {"Authorization": f"Bearer {episode[1]}", "Content-Type": "application/json"}
            connection.request("POST", f"/episode/{episode[0]}/v1/{path}", body, headers)
            with connection.getresponse() as response:
                response.read()
                self._count(str(response.status))
        except OSError as error:
            self._count(type(error).__name__)
        finally:
            connection.close()

    def _count(self, what: str) -> None:
        self.statuses[what] = self.statuses.get(what, 0) + 1

    def _reasoning_that_the_template_drops(self) -> None:
        """100 calls whose history has an answer with 8 MiB of reasoning."""
        for k in range(100):
            past = {"role": "assistant", "content": "x", "reasoning_content": f"{k} " + "x" * (LARGEST - 1000)}
            self._post("chat/completions", _chat(messages=[past, {"role": "user", "content": "up"}]), self.episodes[0])
        self._over.wait()

    def _bodies_without_end(self) -> None:
        """120 bodies of 7 MiB, and never the last byte."""
        name, key = self.episodes[0]
        head = (
            f"POST /episode/{name}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        )
        self._hold(120, f"{head}Content-Length: {LARGEST}\r\n\r\n".encode() + b" " * (7 * 2**20))

    def _connections_without_a_key(self) -> None:
        self._hold(1100, b"")

    def _connections_of_the_sandbox(self) -> None:
        self._hold(1100, b"", self.path)

    def _connections_that_hold_a_half_head(self) -> None:
        self._hold(1100, b"GET /health HTTP/1.1\r\nHost: ")

    def _streams_that_nobody_reads(self) -> None:
        """Pipelined requests for streams, of which no byte is read."""
        name, key = self.episodes[0]
        head = (
            f"POST /episode/{name}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        )
        body = _chat(stream=True, n=16, logprobs=True)
        self._hold(100, (f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body) * 40)

    def _hold(self, count: int, data: bytes, path: str = "") -> None:
        """Open connections, send something, and keep them; those that are closed are opened again, 100 a second."""
        with contextlib.ExitStack() as stack:
            held: list[socket.socket] = []
            while not self._over.is_set():
                for each in [each for each in held if _has_ended(each)]:
                    held.remove(each)
                    each.close()
                    self._count("closed by the server")
                missing = count - len(held)
                for connection in self._opened(min(missing, 5) if self.statuses else missing, path):
                    stack.enter_context(connection)
                    held.append(connection)
                    self._count("opened")
                    with contextlib.suppress(OSError):
                        connection.settimeout(0.5)
                        connection.sendall(data)
                self._over.wait(0.05)

    def _opened(self, count: int, path: str) -> Iterator[socket.socket]:
        for _ in range(count):
            if self._over.is_set():
                return
            connection = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
            connection.settimeout(0.5)
            try:
                connection.connect(path or self.place)
            except OSError:
                connection.close()
                continue
            yield connection


def _has_ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


class AttackSide:
    """A process that is a gateway, its agents, or an attacker, whichever it is told first."""

    def __init__(self) -> None:
        self._agents = Side()
        self._attacked: AttackedServer | None = None
        self._attacker: Attacker | None = None
        self._attacking: threading.Thread | None = None
        self._found: Results = {}

    def answer(self, command: Results) -> Results:
        """Do what is asked for."""
        match command["do"]:
            case "serve":
                self._attacked = AttackedServer()
                return {"url": self._attacked.url, "path": str(self._attacked.folder)}
            case "attack":
                resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
                self._attacker = Attacker(command["url"], command["episodes"], command["path"])
                self._attacking = threading.Thread(target=self._attack, args=(command["name"], command["seconds"]))
                self._attacking.start()
                return {}
            case "attacked":
                assert self._attacking is not None
                self._attacking.join()
                return self._found
            case "play" | "played":
                found: Results = self._agents.answer(command)
                return found
        assert self._attacked is not None
        return self._attacked.answer(command)

    def _attack(self, name: str, seconds: float) -> None:
        assert self._attacker is not None
        self._found = self._attacker.attack(name, seconds)


if __name__ == "__main__":
    serve(AttackSide().answer)
