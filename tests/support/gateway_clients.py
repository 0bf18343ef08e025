"""A gateway in this process with a tiny random model, and a client without packages."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from small import small_model

from turngym.agents.gateway import Gateway, GatewayEpisode, GatewayLimits, serving
from turngym.agents.gateway.policy import gateway_for
from turngym.agents.models.loading import LanguageModel

LIMITS = GatewayLimits(max_new_tokens=12, chunk=5)


@dataclass
class Client:
    """Sends requests.

    Args:
        url: The gateway.
        gateway: The same, in this process.
    """

    url: str
    gateway: Gateway

    def send(
        self,
        path: str,
        body: Any = None,
        key: str = "",
        method: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Send a request, by default with the operator's key, and return status and content."""
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=120)
        try:
            raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
            known = {"Authorization": f"Bearer {key or self.gateway.episodes.operator_key}", **(headers or {})}
            connection.request(method or ("GET" if body is None else "POST"), path, raw, known)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def ask(self, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request that is answered, and return the content."""
        status, content = self.send(path, body, **options)
        assert status == 200, content
        return json.loads(content)

    def chat(self, episode: GatewayEpisode, messages: list[Any], agent: str = "", **body: Any) -> Any:
        """Ask for a chat completion with the key of an episode."""
        path = f"/episode/{episode.id}" + (f"/agent/{agent}" if agent else "") + "/v1/chat/completions"
        return self.ask(path, {"messages": messages, **body}, key=episode.key)

    def events(self, path: str, body: Any, key: str = "") -> list[Any]:
        """Ask for a stream, and return the data of its events."""
        status, content = self.send(path, {**body, "stream": True}, key=key)
        assert status == 200, content
        lines = [line[6:] for line in content.decode().split("\n") if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


@contextmanager
def gateway_client(model: LanguageModel | None = None, **options: Any) -> Iterator[Client]:
    """Yield a client of a gateway with a tiny model."""
    gateway = gateway_for(model or small_model(), **{"limits": LIMITS, **options})
    with serving(gateway) as url:
        yield Client(url, gateway)


def user(text: str) -> dict[str, Any]:
    """Return a message of the user."""
    return {"role": "user", "content": text}
