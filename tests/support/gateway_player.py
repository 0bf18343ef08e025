"""A scripted agent program: a conversation with the model about one environment, with nothing but sockets.

It starts in a few milliseconds (``python -I -S``), and sends what the built-in agent shows its model: each observation
as a message of the user behind the answers as they were written.
"""

from __future__ import annotations

import json
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than a call of the model
    from typing import Any


def post(url: str, key: str, body: Any) -> Any:
    """Send a request over a connection of its own, and return the data of the answer."""
    place, _, path = url.removeprefix("http://").partition("/")
    host, _, port = place.partition(":")
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{'GET' if body is None else 'POST'} /{path} HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + content)
        with connection.makefile("rb") as reader:
            found = reader.read()
    status, _, data = found.partition(b"\r\n\r\n")
    if b" 200 " not in status[:20]:
        raise SystemExit(found[:500].decode("utf8", "replace"))
    return json.loads(data)


def main(base_url: str, env_url: str, key: str) -> None:
    """Play one episode."""
    seen = post(env_url, key, None)
    history: list[Any] = []
    while not seen["done"]:
        history.append({"role": "user", "content": seen["observation"]})
        answer = post(f"{base_url}/chat/completions", key, {"messages": history})
        said = answer["choices"][0]["message"]["content"]
        history.append({"role": "assistant", "content": said})
        action, end, _ = said.rpartition("<action>")[2].partition("</action>")
        seen = post(env_url, key, {"action": action if end else ""})


if __name__ == "__main__":
    main(*sys.argv[1:])
