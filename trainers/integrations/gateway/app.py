"""The gateway as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from turngym.trainers.integrations.gateway import operator
from turngym.trainers.integrations.gateway.answering import Answering, Disconnected
from turngym.trainers.integrations.gateway.body import read_object
from turngym.trainers.integrations.gateway.bounds import BytesUnderWay
from turngym.trainers.integrations.gateway.dialects import PROTOCOLS
from turngym.trainers.integrations.gateway.dialects.base import Protocol
from turngym.trainers.integrations.gateway.episode import GatewayEpisode, valid_name
from turngym.trainers.integrations.gateway.messages import CallRequest
from turngym.trainers.integrations.gateway.refusal import Body, Dialect, Refusal
from turngym.trainers.integrations.gateway.service import Gateway
from turngym.trainers.integrations.mcp_server.protocol import answered
from turngym.trainers.integrations.mcp_server.streamable import send_message
from turngym.web.access import denial
from turngym.web.asgi_server import Receive, Scope, Send, belongs_to

AGENT = "player_0"
"""The agent of requests that name none."""
_REAP_SECONDS = 5.0


class Place(NamedTuple):
    """What an address means.

    Args:
        episode: The episode, empty where the address names none.
        agent: The agent.
        action: What is asked for: a path below ``/v1/``, or the name of an operation.
        is_api: Whether it is a path below ``/v1/``.
    """

    episode: str
    agent: str
    action: str
    is_api: bool


class GatewayApp:
    """The gateway as an ASGI application: run it with uvicorn, or any other server of ASGI 3.

    Args:
        gateway: What answers.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._answering = Answering(gateway)
        self._under_way = BytesUnderWay(gateway.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI says."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        reaper = asyncio.create_task(self._reap())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        reaper.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(_REAP_SECONDS, self.gateway.limits.idle_seconds / 2))
            self.gateway.end_idle()

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        dialect: Dialect = "chat"
        try:
            headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}
            place = place_of(scope["path"], headers)
            if place.is_api and place.action.startswith("messages"):
                dialect = "messages"
            content = await self._content(scope, headers, place, receive, send)
        except Disconnected:
            return
        except Refusal as refusal:
            await _send_json(send, refusal.status, refusal.body(dialect))
            return
        except Exception as error:  # a fault of ours; the server and the other episodes go on
            fault = Refusal(500, f"the gateway failed: {type(error).__name__}")
            await _send_json(send, 500, fault.body(dialect))
            raise
        if content is not None:
            await _send_json(send, 200, content)

    async def _content(
        self, scope: Scope, headers: dict[str, str], place: Place, receive: Receive, send: Send
    ) -> Body | None:
        """Return the content of the answer; None if it has been sent."""
        key = _key(headers)
        refused = denial("-", headers.get("host", ""), headers.get("origin", ""), "Bearer -")
        if refused is not None:
            raise Refusal(refused.status, refused.detail)
        if place.action == "health" and not place.is_api:
            return {"status": "healthy"}
        if place.is_api:
            return await self._api(scope, headers, place, key, receive, send)
        if place.action == "env" and place.episode:
            return await self._environment(scope, self._admitted(scope, place, key), receive)
        if place.action == "mcp" and place.episode:
            await self._mcp(scope, self._admitted(scope, place, key), receive, send)
            return None
        if not self.gateway.episodes.is_operator(key) and not self._rewards_itself(scope, place, key):
            raise Refusal(401, "only the operator's key opens, rewards and ends episodes.")
        body = await self._body(place.episode or "-", receive) if scope["method"] == "POST" else {}
        return self._operate(scope, headers, place, body)

    async def _api(
        self, scope: Scope, headers: dict[str, str], place: Place, key: str, receive: Receive, send: Send
    ) -> Body | None:
        episode = self._admitted(scope, place, key)
        action, method = place.action, scope["method"]
        if action == "models" or action.startswith("models/"):
            return _models(self.gateway, action.removeprefix("models").strip("/"))
        counts = action == "messages/count_tokens"
        protocol = PROTOCOLS.get("messages" if counts else action)
        if protocol is None:
            raise Refusal(404, f"/v1/{action[:100]} is not served; /v1/models and {', '.join(PROTOCOLS)} are.")
        if method != "POST":
            raise Refusal(405, f"/v1/{action} takes POST, not {method[:20]}.")
        retry = headers.get("x-stainless-retry-count", "")
        with episode.request(self.gateway.limits):
            async with self._read(episode.id, receive) as raw:
                request = await self._request(episode, protocol, counts, raw)
                if counts:
                    return {"input_tokens": await self.gateway.count(episode, request)}
                request = replace(request, retry=int(retry[:9]) if retry.isdecimal() and retry.isascii() else 0)
                await self._answering.answer(episode, place.agent, protocol, request, receive, send)
        return None

    async def _request(self, episode: GatewayEpisode, protocol: Protocol, counts: bool, raw: bytes) -> CallRequest:
        limits = self.gateway.limits
        usual = {"max_tokens": 1} if counts else {}
        return await self.gateway.read(episode, raw, lambda body: protocol.read({**usual, **body}, limits))

    def _admitted(self, scope: Scope, place: Place, key: str) -> GatewayEpisode:
        """Return the episode that a key may speak in, which the connection counts for from now on."""
        episode = self.gateway.episodes.admitted(place.episode, key)
        if not belongs_to(scope, episode.id):
            raise Refusal(429, f"episode {episode.id} has {self.gateway.limits.max_connections} connections in use.")
        return episode

    def _rewards_itself(self, scope: Scope, place: Place, key: str) -> bool:
        """Return whether a key is that of an episode that may do this to itself."""
        if place.action not in ("reward", "finish") or not place.episode:
            return False
        return self._admitted(scope, place, key).rewards_itself

    async def _environment(self, scope: Scope, episode: GatewayEpisode, receive: Receive) -> Body:
        if episode.world is None:
            raise Refusal(404, f"episode {episode.id} has no environment.")
        if scope["method"] == "GET":
            return episode.world.look()
        if scope["method"] != "POST":
            raise Refusal(405, "an environment takes GET to look and POST to act.")
        action = (await self._body(episode.id, receive)).get("action")
        if not isinstance(action, str):
            raise Refusal(400, 'an action is {"action": TEXT}.')
        return await episode.world.act(action)

    async def _mcp(self, scope: Scope, episode: GatewayEpisode, receive: Receive, send: Send) -> None:
        """Answer a message of MCP: the environment of an episode as tools."""
        if episode.world is None:
            raise Refusal(404, f"episode {episode.id} has no environment.")
        if scope["method"] != "POST":
            raise Refusal(405, "messages of MCP are sent by POST, and each has one answer.")
        answer = await answered(await self._body(episode.id, receive), episode.world)
        with suppress(OSError):  # the client has gone
            await send_message(send, 202 if answer is None else 200, answer)

    def _operate(self, scope: Scope, headers: dict[str, str], place: Place, body: Body) -> Body:
        method, gateway = scope["method"], self.gateway
        if place.action == "report" and method == "GET":
            return gateway.report()
        if place.action == "episodes" and method == "POST":
            return operator.open_episode(gateway, body, f"{scope.get('scheme', 'http')}://{headers.get('host', '')}")
        if not place.episode:
            raise Refusal(404, f"{method[:20]} /{place.action[:100]} is not served.")
        episode = gateway.episodes.get(place.episode)
        if method == "POST" and place.action in ("reward", "finish"):
            return operator.reward(episode, body) if place.action == "reward" else operator.finish(episode, body)
        if method == "GET" and place.action in ("state", "trajectory"):
            found = operator.state(episode) if place.action == "state" else operator.trajectory(gateway, episode)
            return found
        if method == "DELETE" and place.action == "state":
            gateway.episodes.remove(episode)
            return {"id": episode.id, "removed": True}
        raise Refusal(404, f"{method[:20]} {place.action[:100]} of an episode is not served.")

    async def _body(self, client: str, receive: Receive) -> Body:
        async with self._read(client, receive) as raw:
            return read_object(raw, self.gateway.limits.max_depth)

    @asynccontextmanager
    async def _read(self, client: str, receive: Receive) -> AsyncIterator[bytes]:
        """Yield the bytes of a body, which are counted until the block ends."""
        parts, size, is_more = [], 0, True
        try:
            while is_more:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise Disconnected
                parts.append(event.get("body", b""))
                size, is_more = size + len(parts[-1]), event.get("more_body", False)
                self._under_way.add(client, len(parts[-1]))
                if size > self.gateway.limits.max_body:
                    raise Refusal(413, f"a request has at most {self.gateway.limits.max_body} bytes.")
                self.gateway.bounds.check_size(size)
            yield b"".join(parts)
        finally:
            self._under_way.remove(client, size)


def place_of(path: str, headers: dict[str, str]) -> Place:
    """Return what an address means; headers name episode and agent where the path does not.

    Raises:
        Refusal: A name is not valid.

    >>> place_of("/episode/e1/agent/critic/v1/messages", {})
    Place(episode='e1', agent='critic', action='messages', is_api=True)
    >>> place_of("/v1/models", {"x-episode": "e2"}).episode
    'e2'
    """
    parts = [part for part in path.split("/") if part]
    episode, agent = headers.get("x-episode", ""), headers.get("x-agent", "")
    if len(parts) >= 2 and parts[0] == "episode":
        episode, parts = parts[1], parts[2:]
        if len(parts) >= 2 and parts[0] == "agent":
            agent, parts = parts[1], parts[2:]
        parts = parts or ["state"]
    episode = valid_name(episode, "the id of an episode") if episode else ""
    agent = valid_name(agent, "the name of an agent") if agent else AGENT
    is_api = bool(parts) and parts[0] == "v1"
    return Place(episode, agent, "/".join(parts[is_api:]), is_api)


def _key(headers: dict[str, str]) -> str:
    kind, _, given = headers.get("authorization", "").partition(" ")
    return headers.get("x-api-key", "") or (given.strip() if kind.lower() == "bearer" else "")


def _models(gateway: Gateway, name: str) -> Body:
    model = {"id": gateway.name, "object": "model", "created": gateway.created, "owned_by": "turngym"}
    if not name:
        return {"object": "list", "data": [{**model, "max_model_len": gateway.context or None}]}
    if name != gateway.name:
        raise Refusal(404, f"there is no model {name[:100]!r}; {gateway.name!r} is served.")
    return model


async def _send_json(send: Send, status: int, content: Body) -> None:
    body = json.dumps(_finite(content)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    with suppress(OSError):  # the client has gone
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _finite(value: Any) -> Any:
    """Return content with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


__all__ = ["AGENT", "GatewayApp", "GatewayEpisode", "place_of"]
