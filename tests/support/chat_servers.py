"""A real server of the chat completions protocol on the loopback: slow, dropping connections, talking nonsense."""

import hashlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.core import Request
from turngym.agents.players import AgentSettings, make_agent

Body = dict[str, Any]
QUICK: dict[str, Any] = {"wait": 0.001, "longest_wait": 0.002}
Headers = dict[str, str]


@dataclass
class Reply:
    """What the server does with a request.

    Args:
        text: The completion.
        status: Status of the answer.
        raw: Content of the answer, in place of a completion.
        headers: Further headers.
        delay: Seconds before the answer.
        drop: Where the connection is cut: ``before`` the answer, or in the ``middle`` of it.
        drip: Seconds between the bytes of the answer.
        usage: Tokens read and written that the answer tells; None tells nothing.
    """

    text: Any = "<action>up</action>"
    status: int = 200
    raw: bytes | None = None
    headers: Headers = field(default_factory=dict)
    delay: float = 0.0
    drop: str = ""
    drip: float = 0.0
    usage: tuple[int, int] | None = (10, 3)

    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        choice = {"index": 0, "message": {"role": "assistant", "content": self.text}, "finish_reason": "stop"}
        answer: Body = {"id": "1", "object": "chat.completion", "created": 0, "model": "model", "choices": [choice]}
        if self.usage is not None:
            read, written = self.usage
            answer["usage"] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        return json.dumps(answer).encode()


class ChatServerForTests(ThreadingHTTPServer):
    """Answers with what a function of the request says, and remembers every request.

    Args:
        answer: Body of a request to what is done with it.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer: Callable[[Body], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.lock = threading.Lock()
        self.models: tuple[str, ...] = ("m", "model")
        self.is_gone = False
        self.requests: list[Body] = []
        self.headers: list[Headers] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: ChatServerForTests
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Tell the models, as servers do; it is not a request of the model, and not counted."""
        if self.server.is_gone:
            return self._hang_up()
        content = json.dumps({"object": "list", "data": [{"id": name} for name in self.server.models]}).encode()
        status = 200 if self.path == "/v1/models" and self.server.models else 404
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.requests.append(body)
            server.headers.append(dict(self.headers))
            server.paths.append(self.path)
            server.times.append(time.monotonic())
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            reply = server.answer(body)
            server.closing.wait(reply.delay)
        finally:
            with server.lock:
                server.at_once -= 1  # before the client has the reply, for it may ask again at once
        try:
            self._reply(reply)
        except OSError:
            self.close_connection = True

    def _reply(self, reply: Reply) -> None:
        content = reply.content()
        if reply.drop == "before":
            return self._hang_up()
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.drop == "middle":
            self.wfile.write(content[: len(content) // 2])
            return self._hang_up()
        if not reply.drip:
            self.wfile.write(content)
            return None
        for byte in content:
            if self.server.closing.wait(reply.drip):
                return None
            self.wfile.write(bytes([byte]))
        return None

    def _hang_up(self) -> None:
        """Cut the connection with a reset."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


@contextmanager
def chat_server(answer: Callable[[Body], Reply], context: ssl.SSLContext | None = None) -> Iterator[ChatServerForTests]:
    """Give a running server, encrypted where there is a context."""
    server = ChatServerForTests(answer)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def draw_of(body: Body) -> float:
    """Return a number in [0, 1) that depends on the request alone."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def chaotic(body: Body) -> Reply:
    """Return one of many mishaps, or an action; which of them depends on the request alone."""
    number = int(draw_of(body) * 1000)
    moves = ("left", "right", "up", "down")
    good = Reply(f"I go. <action>{moves[number % 4]}</action>", usage=(100 + number % 7, 1 + number % 5))
    mishaps = {
        0: Reply(drop="before"),
        1: Reply(drop="middle"),
        2: Reply(raw=b"<html>busy</html>"),
        3: Reply(raw=b'{"choices": []}'),
        4: Reply(text=""),
        5: Reply(text=None),
        6: Reply(status=500, raw=b"oops"),
        7: Reply(status=429, raw=b"slow down", headers={"Retry-After": "0.01"}),
        8: Reply(good.text, delay=0.01, usage=None),
        9: Reply(status=503, raw=b""),
    }
    return mishaps.get(number // 25, good)


def agent_of(server: ChatServerForTests, prompt: dict[str, Any] | None = None, **settings: Any) -> ServerAgent:
    agent = make_agent(
        f"openai:model@{server.url}", AgentSettings(prompt=prompt or {}, server={**QUICK, **settings}, seed=3)
    )
    assert isinstance(agent, ServerAgent)
    return agent


def request(turn: int = 0, observation: str = "a wall", episode: int = 0, **more: Any) -> Request:
    return Request(0, episode, turn, observation, {"legal_actions": ("up", "down")}, "Find the door.", **more)
