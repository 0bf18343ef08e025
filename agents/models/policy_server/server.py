"""The HTTP side of a policy server: the routes of vLLM that training uses, and no others.

``/inference/v1/generate`` and ``/v1/completions`` sample; ``/pause``, ``/resume``, ``/collective_rpc`` (the method
``reload_weights`` alone), ``/reset_prefix_cache``, ``/update_weight_version``, ``/weight_info`` and
``/v1/load_lora_adapter`` change the weights.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from turngym.agents.models.policy_server.answers import completed, generated
from turngym.agents.models.policy_server.engine import Engine
from turngym.agents.models.policy_server.jobs import Job
from turngym.agents.models.policy_server.requests import (
    LARGEST_REQUEST,
    Order,
    Refused,
    read_completions,
    read_generate,
    read_name,
    read_object,
)
from turngym.errors import TurngymError
from turngym.web.json_server import JsonHandler, JsonServer

_LOOK_SECONDS = 0.25
"""Seconds between checks for a closed connection while its completion is running."""
_MODES = ("abort", "wait", "keep")
Body = Mapping[str, Any]


class Gone(Exception):
    """The client has closed its connection."""


class PolicyServer(JsonServer):
    """Answers requests for an engine, a thread for each connection.

    Without a token only requests to the loopback are answered, and none that a web page of another origin sends.

    Args:
        engine: Sampler.
        host: Address to listen on; other than loopback requires a token.
        port: Port to listen on; 0 selects a free one.
        token: Token that clients send as ``Authorization: Bearer TOKEN``; empty for none.
        max_connections: Maximum number of connections; excess ones get status 503.

    Raises:
        ConfigError: The address can be reached from outside and there is no token.
    """

    max_bytes = 2**32  # clients have the token, and send long prompts

    def __init__(
        self, engine: Engine, host: str = "127.0.0.1", port: int = 0, token: str = "", max_connections: int = 1024
    ) -> None:
        self.engine = engine
        super().__init__(_Handler, "a policy server", host, port, token, max_connections)


class _Handler(JsonHandler):
    server: PolicyServer

    def do_GET(self) -> None:
        """Answer a question."""
        path = urlsplit(self.path).path
        if path == "/health":  # without a token, as in vLLM
            is_well = self.server.engine.weights.is_whole
            return self.send_json(200 if is_well else 503, {} if is_well else {"error": "the weights are not whole"})
        return self._answer(lambda: self._look(path))

    def do_POST(self) -> None:
        """Do what is asked."""
        if found := self.denial():
            self.close_connection = True  # its body is not read
            return self._refuse(found.status, found.detail)
        body = self.body(LARGEST_REQUEST)
        if body is None:
            return self._refuse(413, f"the body needs a Content-Length of at most {LARGEST_REQUEST}")
        address = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(address.query).items()}
        return self._answer(lambda: self._do(address.path, read_object(body), query))

    def _answer(self, find: Callable[[], Body]) -> None:
        """Send what a function returns, or why it does not."""
        if found := self.denial():
            return self._refuse(found.status, found.detail)
        try:
            content = find()
        except Refused as refused:
            return self._refuse(refused.status, str(refused))
        except TurngymError as error:
            return self._refuse(500, str(error))
        except Gone:
            self.close_connection = True
            return None
        return self.send_json(200, content)

    def _refuse(self, status: int, text: str) -> None:
        self.send_json(status, {"error": {"message": text, "code": status}})

    def _look(self, path: str) -> Body:
        engine = self.server.engine
        if path == "/v1/models":
            longest = engine.limits.longest
            entries = [{"id": each, "object": "model", "max_model_len": longest} for each in engine.weights.names]
            return {"object": "list", "data": entries}
        if path == "/weight_info":
            return {"weight_version": engine.version}
        if path == "/is_paused":
            return {"is_paused": engine.is_paused}
        if path == "/load":
            return {"server_load": sum(engine.counts.values()), **engine.counts}
        raise Refused(f"GET {path[:100]} is not served", 404)

    def _do(self, path: str, body: Body, query: Mapping[str, str]) -> Body:
        engine = self.server.engine
        if path == "/inference/v1/generate":
            return self._generate(body)
        if path == "/v1/completions":
            return self._complete(body)
        if path == "/pause":
            mode = query.get("mode", "abort")
            if mode not in _MODES:
                raise Refused(f"mode must be one of {', '.join(_MODES)}")
            engine.pause(mode)
            return {"status": "paused"}
        if path == "/resume":
            engine.resume()
            return {"status": "resumed"}
        if path == "/reset_prefix_cache":
            return {"success": engine.forget_prefixes()}
        if path == "/update_weight_version":
            engine.version = read_name(body.get("new_version"), "new_version")
            return {"success": True, "new_version": engine.version}
        return self._change_weights(path, body)

    def _change_weights(self, path: str, body: Body) -> Body:
        engine = self.server.engine
        if path == "/collective_rpc":
            arguments = body.get("kwargs")
            if body.get("method") != "reload_weights" or not isinstance(arguments, dict):
                raise Refused('only {"method": "reload_weights", "kwargs": {"weights_path": FOLDER}} is served')
            where = _text(arguments, "weights_path")
            engine.between(lambda: engine.weights.load(where))
            return {"results": [None]}
        if path == "/v1/load_lora_adapter":
            name, where = read_name(body.get("lora_name"), "lora_name"), _text(body, "lora_path")
            in_place = body.get("load_inplace") is True
            engine.between(lambda: engine.weights.load_adapter(name, where, in_place))
            return {"status": f"{name} is loaded"}
        if path == "/v1/unload_lora_adapter":
            name = read_name(body.get("lora_name"), "lora_name")
            engine.between(lambda: engine.weights.unload_adapter(name))
            return {"status": f"{name} is unloaded"}
        raise Refused(f"POST {path[:100]} is not served", 404)

    def _generate(self, body: Body) -> Body:
        engine = self.server.engine
        order = read_generate(body, engine.limits)
        (outcome,) = self._outcomes([order])
        name = body.get("request_id")
        identity = name if isinstance(name, str) else f"generate-{id(order):x}"
        return generated(order, outcome, order.model or engine.weights.name, identity)

    def _complete(self, body: Body) -> Body:
        engine = self.server.engine
        orders = read_completions(body, engine.limits)
        outcomes = self._outcomes(orders)
        texts = [engine.model.text_of(outcome.ids) for outcome in outcomes]
        has_ids, as_ids = body.get("return_token_ids") is True, body.get("return_tokens_as_token_ids") is True
        return completed(orders, outcomes, texts, orders[0].model or engine.weights.name, has_ids, as_ids)

    def _outcomes(self, orders: list[Order]) -> list[Any]:
        """Return the completions, in order; they are dropped if the client goes away meanwhile."""
        jobs: list[Job] = []
        try:
            jobs.extend(self.server.engine.submit(order) for order in orders)
            for job in jobs:
                while not job.wait(_LOOK_SECONDS):
                    if self._is_gone():
                        raise Gone
            return [job.outcome() for job in jobs]
        except BaseException:
            for job in jobs:
                job.cancel()
            raise

    def _is_gone(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            if not select.select([self.connection], [], [], 0)[0]:
                return False
            return not self.connection.recv(1, socket.MSG_PEEK)
        return True


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 4096 or "\0" in value:
        raise Refused(f'"{name}" must be the path of a folder')
    return value
