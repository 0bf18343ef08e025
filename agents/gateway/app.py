"""The gateway as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from turngym.agents.gateway import operator
from turngym.agents.gateway.answering import Answering, Disconnected
from turngym.agents.gateway.body import read_object
from turngym.agents.gateway.bounds import BytesUnderWay
from turngym.agents.gateway.conversations.messages import CallRequest
from turngym.agents.gateway.dialects import PROTOCOLS
from turngym.agents.gateway.dialects.base import Protocol
from turngym.agents.gateway.episode import GatewayEpisode, valid_name
from turngym.agents.gateway.mcp.protocol import answered
from turngym.agents.gateway.mcp.streamable import send_message
from turngym.agents.gateway.refusal import Body, Dialect, Refusal
from turngym.agents.gateway.service import Gateway
from turngym.web.access import denial
from turngym.web.asgi_server import Receive, Scope, Send, belongs_to

AGENT = "player_0"
"""The agent of requests that name none."""
_REAP_SECONDS = 5.0


class Place(NamedTuple):
    """Meaning of an address.

    Args:
        episode: The episode, empty where the address names none.
        agent: The agent.
        action: Path below ``/v1/``, or name of an operation.
        is_api: Whether it is a path below ``/v1/``.
    """

    episode: str
    agent: str
    action: str
    is_api: bool


class GatewayApp:
    """The gateway as an ASGI application: run it with uvicorn, or any other server of ASGI 3.

    Args:
        gateway: Component that answers.
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
        if self.gateway.records is not None:  # uvicorn may end the process by a signal right after
            await asyncio.to_thread(self.gateway.records.flush)
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
        except Exception as error:  # a fault of ours; the server and the other episodes continue
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
        limits = self.gateway.limits
        if place.action in ("env", "mcp") and place.episode:
            episode = self._admitted(scope, place, key)
            with episode.request(limits):
                return await self._played(scope, place, episode, receive, send)
        if self.gateway.episodes.is_operator(key):
            body = {}
            if scope["method"] == "POST":
                async with self._read(place.episode or "-", receive, limits.max_body) as raw:
                    body = read_object(raw, limits.max_depth)
            return self._operate(scope, headers, place, body)
        episode = self._rewarding_itself(scope, place, key)
        with episode.request(limits):
            body = await self._short(episode, receive) if scope["method"] == "POST" else {}
            return self._operate(scope, headers, place, body)

    async def _api(
        self, scope: Scope, headers: dict[str, str], place: Place, key: str, receive: Receive, send: Send
    ) -> Body | None:
        episode = self._admitted(scope, place, key)
        with episode.request(self.gateway.limits):
            return await self._called(scope, headers, place, episode, receive, send)

    async def _called(
        self,
        scope: Scope,
        headers: dict[str, str],
        place: Place,
        episode: GatewayEpisode,
        receive: Receive,
        send: Send,
    ) -> Body | None:
        action, method = place.action, scope["method"]
        if action == "models" or action.startswith("models/"):
            return _models(self.gateway, action.removeprefix("models").strip("/"))
        counts = action == "messages/count_tokens"
        protocol = PROTOCOLS.get("messages" if counts else action)
        if protocol is None:
            raise Refusal(404, f"/v1/{action[:100]} is not served; /v1/models and {', '.join(PROTOCOLS)} are.")
        if method != "POST":
            raise Refusal(405, f"/v1/{action} takes POST, not {method[:20]}.")
        given = headers.get("x-stainless-retry-count", "")
        retry = int(given[:9]) if given.isdecimal() and given.isascii() else 0
        async with self._read(episode.id, receive, self.gateway.limits.max_body) as raw:
            if counts:
                request = await self._request(episode, protocol, {"max_tokens": 1}, raw)
                return {"input_tokens": await self.gateway.count(episode, request)}
            request = await self._request(episode, protocol, {}, raw, retry)
            await self._answering.answer(episode, place.agent, protocol, request, receive, send, len(raw))
        return None

    async def _request(
        self, episode: GatewayEpisode, protocol: Protocol, usual: Body, raw: bytes, retry: int = 0
    ) -> CallRequest:
        def read(body: Body) -> CallRequest:
            return replace(protocol.read({**usual, **body}, self.gateway.limits), retry=retry)

        return await self.gateway.read(episode, raw, read)

    def _admitted(self, scope: Scope, place: Place, key: str) -> GatewayEpisode:
        """Return the episode that a key may speak in, which the connection counts for from now on."""
        episode = self.gateway.episodes.admitted(place.episode, key)
        if not belongs_to(scope, episode.id):
            raise Refusal(429, f"episode {episode.id} has {self.gateway.limits.max_connections} connections in use.")
        return episode

    def _rewarding_itself(self, scope: Scope, place: Place, key: str) -> GatewayEpisode:
        """Return the episode of a key that may do this to itself.

        Raises:
            Refusal: There is none.
        """
        if place.action in ("reward", "finish") and place.episode:
            episode = self._admitted(scope, place, key)
            if episode.rewards_itself:
                return episode
        raise Refusal(401, "only the operator's key opens, rewards and ends episodes.")

    async def _played(
        self, scope: Scope, place: Place, episode: GatewayEpisode, receive: Receive, send: Send
    ) -> Body | None:
        """Answer an agent that plays the environment of its episode, by actions or as tools of MCP."""
        if episode.world is None:
            raise Refusal(404, f"episode {episode.id} has no environment.")
        if place.action == "mcp":
            if scope["method"] != "POST":
                raise Refusal(405, "messages of MCP are sent by POST, and each has one answer.")
            answer = await answered(await self._short(episode, receive), episode.world)
            with suppress(OSError):  # the client has gone
                await send_message(send, 202 if answer is None else 200, answer)
            return None
        if scope["method"] == "GET":
            return episode.world.look()
        if scope["method"] != "POST":
            raise Refusal(405, "an environment takes GET to look and POST to act.")
        action = (await self._short(episode, receive)).get("action")
        if not isinstance(action, str):
            raise Refusal(400, 'an action is {"action": TEXT}.')
        return await episode.world.act(action)

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

    async def _short(self, episode: GatewayEpisode, receive: Receive) -> Body:
        """Return the object that an agent sends, other than a request of the model."""
        limits = self.gateway.limits
        async with self._read(episode.id, receive, limits.max_action) as raw:
            return await self.gateway.offload.run(episode, len(raw), lambda: read_object(raw, limits.max_depth))

    @asynccontextmanager
    async def _read(self, client: str, receive: Receive, most: int) -> AsyncIterator[bytes]:
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
                if size > most:
                    raise Refusal(413, f"this request has at most {most} bytes.")
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
    if status in (429, 503):  # with what the client has sent behind the request
        headers.append((b"connection", b"close"))
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
