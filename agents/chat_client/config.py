"""Settings of a server: address, environment variable of its key, limits, waits and prices."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from turngym.errors import ConfigError
from turngym.options import Natural, Options, Positive, Seconds

OPENAI_HOST = "api.openai.com"
_OWN_FIELDS = frozenset({"model", "messages", "stream", "n"})


class ServerConfig(Options):
    """Settings of a server.

    Args:
        concurrency: Maximum number of concurrent requests.
        retries: Retries of a failed request; at most two for a blank completion.
        timeout: Seconds for one request, from the connection to the last byte.
        deadline: Seconds for one turn, with all its requests and waits.
        wait: Seconds before the first retry; doubled for each further one.
        longest_wait: Longest of these waits in seconds; the server may ask for a longer one.
        seed: Whether a seed goes with each request, made from the run's seed, the episode and the turn.
        max_tokens_field: Name of the field for the longest completion; some models want ``max_completion_tokens``.
        key_variable: Environment variable that holds the key; ``OPENAI_API_KEY`` for OpenAI's own server and
            ``TURNGYM_API_KEY`` for any other, unless given.
        prices: Prices in USD per million tokens, ``{"input": 0.5, "output": 1.5, "cached": 0.1}`` (``cached``, by
            default that of ``input``, for what the server read from its cache), or the path of a JSON file with such an
            entry for each model; by default those of :data:`PRICES` for OpenAI's own server.
        max_cost: USD that one run may spend, critics and judges with these settings included; when they are spent, it
            stops and can be resumed. Requests that are in progress then are paid in addition, at most ``concurrency``.
        body: Additional fields of every request.
        escape: Whether control tokens of common chat models, such as ``<|im_end|>`` in a web page, are escaped in user
            messages, because a server would read them as tokens. Turn it off if the server encodes texts safely itself.
    """

    concurrency: Positive = 16
    retries: Natural = 5
    timeout: Seconds = 120.0
    deadline: Seconds = 600.0
    wait: Seconds = 0.5
    longest_wait: Seconds = 30.0
    seed: bool = True
    max_tokens_field: str = "max_tokens"
    key_variable: str = ""
    prices: Mapping[str, float] | str | None = None
    max_cost: Seconds | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    escape: bool = True

    def check(self) -> None:
        """Check that ``body`` sets no field that turngym fills in."""
        taken = _OWN_FIELDS & self.body.keys()
        if taken:
            raise ConfigError(f"body of a server may not set {min(taken)!r}, which turngym fills in itself.")


@dataclass(frozen=True)
class Prices:
    """Prices in USD per million tokens.

    Args:
        input: Tokens that the model reads.
        output: Tokens that it writes, reasoning included.
        cached: Tokens read that the server had in its cache; as ``input`` unless given.

    >>> Prices(0.5, 2.0).of(1_000_000, 500_000), Prices(0.5, 2.0, cached=0.1).of(1_000_000, 0, cached=500_000)
    (1.5, 0.3)
    """

    input: float
    output: float
    cached: float | None = None

    def of(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        """Return the price of so many tokens; ``cached`` are among ``tokens_in``."""
        price = self.input if self.cached is None else self.cached
        return (self.input * (tokens_in - cached) + price * cached + self.output * tokens_out) / 1e6


PRICES = Path(__file__).with_name("data") / "prices.json"
"""Prices of models of OpenAI's own server. They change: check them, or give your own."""


def read_prices(given: Mapping[str, float] | str | None, model: str, address: Address | None = None) -> Prices | None:
    """Return the prices of a model; None if none are known.

    Args:
        given: The setting ``prices``.
        model: Name of the model.
        address: Its server.

    Raises:
        ConfigError: The file cannot be read, lacks the model, or an entry is not a pair of prices.
    """
    entry: Any = given
    if isinstance(given, str):
        try:
            table = json.loads(Path(given).read_text("utf8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"the price table {given} cannot be read ({error}).") from error
        if not isinstance(table, dict) or model not in table:
            raise ConfigError(f'{given} has no price of {model!r}: add "{model}": {{"input": 0.5, "output": 1.5}}.')
        entry = table[model]
    if entry is None and address is not None and address.is_secure and address.host == OPENAI_HOST:
        entry = json.loads(PRICES.read_text("utf8")).get(model)
    if entry is None:
        return None
    names = ("input", "output", *(["cached"] if isinstance(entry, Mapping) and "cached" in entry else []))
    numbers: list[Any] = [entry.get(name) for name in names] if isinstance(entry, Mapping) else []
    found = [float(number) for number in numbers if type(number) in (int, float) and 0 <= number < 1e9]
    if len(found) != len(names):
        raise ConfigError(
            f'prices must be like {{"input": 0.5, "output": 1.5}} in USD per million tokens, got {entry!r}.'
        )
    return Prices(*found)


@dataclass(frozen=True)
class Address:
    """Address of a server.

    Args:
        is_secure: Whether it is reached by HTTPS.
        host: Name or number of the host.
        port: Port.
        path: Path of the chat completions.
    """

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """The address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_secure else 'http'}://{host}:{self.port}{self.path}"


def read_address(url: str) -> Address:
    """Return the address that a URL names; ``/chat/completions`` is appended if missing.

    Raises:
        ConfigError: It is not an http or https URL, or it holds a password or a query, which would end up in files.

    >>> read_address("http://localhost:8000").path, read_address("https://api.example.org/openai/v1/").path
    ('/v1/chat/completions', '/openai/v1/chat/completions')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"a server's URL cannot be read ({error}): write http://HOST:PORT/v1.") from error
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError(
            "a server's URL may hold no name, password, query or fragment, as it is written to files: put the key into "
            "an environment variable."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not re.fullmatch(r"[!-~]*", url):
        raise ConfigError(f"a server's URL must be like http://HOST:PORT/v1, got {url!r}.")
    path = parts.path.rstrip("/") or "/v1"
    path += "" if path.endswith("/chat/completions") else "/chat/completions"
    is_secure = parts.scheme == "https"
    return Address(is_secure, parts.hostname, port or (443 if is_secure else 80), path)


def read_key(address: Address, variable: str) -> str:
    """Return the key of a server from the environment; empty if there is none.

    ``OPENAI_API_KEY`` is sent only to OpenAI's own server, unless it is named explicitly.

    Raises:
        ConfigError: The variable that was named is not set, or is not valid in a header.
    """
    is_openai = address.is_secure and address.host == OPENAI_HOST
    name = variable or ("OPENAI_API_KEY" if is_openai else "TURNGYM_API_KEY")
    key = os.environ.get(name, "").strip()
    if not key and (variable or is_openai):
        raise ConfigError(f"the environment variable {name} is not set: put the server's key into it.")
    if not re.fullmatch(r"[!-~]*", key):
        raise ConfigError(f"the key in the environment variable {name} holds characters that no key has.")
    return key
