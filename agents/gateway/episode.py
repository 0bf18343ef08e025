"""Episodes: the calls of an agent program, their key, their rewards, and how they ended."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from turngym.agents.gateway.calls import SampledCall
from turngym.agents.gateway.conversations.messages import ChatMessage
from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.gateway.refusal import Refusal, wrong
from turngym.agents.gateway.world import World

Status: TypeAlias = Literal["open", "terminated", "truncated", "fault"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RATE_SECONDS = 10.0
_ID_BYTES = 8
"""Bytes of a token id that an earlier call keeps as well."""
_NUMBER_BYTES = 32
"""Bytes of a number that no other call keeps."""


def valid_name(name: str, what: str) -> str:
    """Return the name of an episode or an agent.

    Raises:
        Refusal: It has other characters than letters, digits, ``.``, ``_`` and ``-``, or more than 100.
    """
    if _NAME.fullmatch(name) is None:
        raise wrong(f"{what} must have 1 to 100 letters, digits, '.', '_' or '-', and start with a letter or digit.")
    return name


class Stored(NamedTuple):
    """Messages that a response adds to its predecessor, which has this id; empty if there is none."""

    previous: str
    messages: tuple[ChatMessage, ...]


@dataclass
class GatewayEpisode:
    """One episode.

    Args:
        id: Its name in addresses.
        key: API key of the agent.
        number: Place among all episodes, part of the key of sampling.
        group: Episodes of a group are compared with one another.
        seed: Seed of the task.
        env_id: Name of the task or its suite.
        instance: Hash of the task instance.
        options: Further description of the task.
    """

    id: str
    key: str
    number: int
    group: int = 0
    seed: int = 0
    env_id: str = "gateway"
    instance: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    calls: list[SampledCall] = field(default_factory=list)
    status: Status = "open"
    detail: str = ""
    success: int = -1
    score: float = 0.0
    reward: float = 0.0
    is_rewarded: bool = False
    """True if the episode itself, and not only a call, has a reward."""
    rewards_itself: bool = False
    """True if its own key may reward and end it."""
    prompt_did_not_fit: str = ""
    heads: dict[str, list[SampledCall]] = field(default_factory=dict)
    """Hash of a conversation up to and with an answer -> the answers, which differ in blanks at most."""
    replies: dict[str, asyncio.Future[list[SampledCall]]] = field(default_factory=dict)
    """Hash of a request -> the answers to its latest occurrence."""
    stored: dict[str, Stored] = field(default_factory=dict)
    """Id of a response -> what it adds to the one before it."""
    kept: int = 0
    """About how many bytes are kept."""
    requests: int = 0
    world: World | None = None
    """The environment that the agent plays, if it is one of ours."""
    asked: Counter[str] = field(default_factory=Counter)
    """Hash of a prompt -> how often it was sampled."""
    reward_ids: set[str] = field(default_factory=set)
    at_once: int = 0
    """Answers that are being sampled."""
    repeated_at_once: int = 0
    """Answers that are being sent again."""
    arriving: int = 0
    """Requests that are being read and answered."""
    working: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    """Held while a large request is prepared."""
    last_use: float = field(default_factory=time.monotonic)
    _allowance: float = field(default=-1.0, repr=False)
    _allowed_at: float = field(default_factory=time.monotonic, repr=False)

    @contextmanager
    def request(self, limits: GatewayLimits) -> Iterator[None]:
        """Count a request while it is read and answered.

        Raises:
            Refusal: There are too many at once, or in too short a time.
        """
        self.take_allowance(limits)
        if self.arriving >= limits.max_at_once:
            raise self._busy(limits, "requests")
        self.arriving += 1
        try:
            yield
        finally:
            self.arriving -= 1

    @contextmanager
    def repeat(self, limits: GatewayLimits, choices: int) -> Iterator[None]:
        """Count answers while they are sent again.

        Raises:
            Refusal: There are too many at once.
        """
        if choices and self.repeated_at_once and self.repeated_at_once + choices > limits.max_at_once:
            raise self._busy(limits, "answers")
        self.repeated_at_once += choices
        try:
            yield
        finally:
            self.repeated_at_once -= choices

    def _busy(self, limits: GatewayLimits, what: str) -> Refusal:
        return Refusal(429, f"episode {self.id} has {limits.max_at_once} {what} under way: wait for one.")

    def take_allowance(self, limits: GatewayLimits) -> None:
        """Count a request that starts.

        Raises:
            Refusal: There are too many in too short a time.
        """
        now, most = time.monotonic(), limits.calls_per_second * _RATE_SECONDS
        earlier = most if self._allowance < 0 else self._allowance
        self._allowance = min(most, earlier + (now - self._allowed_at) * limits.calls_per_second)
        self._allowed_at = self.last_use = now
        if self._allowance < 1:
            raise Refusal(429, f"episode {self.id} asks more than {limits.calls_per_second:g} times a second.")
        self._allowance -= 1

    def require_room(self, limits: GatewayLimits, choices: int) -> None:
        """Raise if the episode may not have these answers now.

        Raises:
            Refusal: There are too many answers at once, or in all, or bytes that are kept.
        """
        if self.at_once and self.at_once + choices > limits.max_at_once:
            raise self._busy(limits, "answers")
        if len(self.calls) >= limits.max_calls:
            raise Refusal(429, f"episode {self.id} has had {limits.max_calls} answers, the limit.", "episode_limit")
        if self.kept > limits.max_kept:
            raise Refusal(429, f"episode {self.id} keeps {limits.max_kept} bytes, the limit.", "episode_limit")

    def require_open(self) -> None:
        """Raise if the episode has ended.

        Raises:
            Refusal: It has.
        """
        if self.status != "open":
            raise Refusal(409, f"episode {self.id} has ended ({self.status}).", "episode_ended")

    def keep(self, call: SampledCall, stored: Stored | None) -> None:
        """Log an answer; that of a response is stored, so that later ones may name it."""
        self.calls.append(call)
        self.kept += len(call.observation) + len(call.prompt_text) + len(call.message.text)
        new = len(call.prompt_ids) - call.kept + len(call.completion_ids)
        self.kept += _ID_BYTES * (len(call.prompt_ids) + len(call.completion_ids)) + _NUMBER_BYTES * (
            new + len(call.logprobs)
        )
        if stored is not None and call.id not in self.stored:
            self.stored[call.id] = stored
            self.kept += sum(message.size for message in stored.messages)

    def conversation(self, id: str) -> list[ChatMessage]:
        """Return the conversation up to and with a response.

        Raises:
            Refusal: There is no such response.
        """
        parts: list[tuple[ChatMessage, ...]] = []
        while id:
            found = self.stored.get(id)
            if found is None:
                raise Refusal(404, f"episode {self.id} has no response {id[:100]!r}.")
            parts.append(found.messages)
            id = found.previous
        return [message for part in reversed(parts) for message in part]

    def find(self, call: str, choice: int = 0) -> SampledCall:
        """Return an answer by the id that the client was given.

        Raises:
            Refusal: There is none.
        """
        for each in self.calls:
            if each.id == call and each.choice == choice:
                return each
        raise Refusal(404, f"episode {self.id} has no call {call[:100]!r} with a choice {choice}.")


class Episodes:
    """All episodes of a gateway; safe to use from several threads.

    Args:
        limits: Limits.
        operator_key: Operator key, which opens, rewards and ends episodes; random if empty.
    """

    def __init__(self, limits: GatewayLimits, operator_key: str = "") -> None:
        self.limits = limits
        self.operator_key = operator_key or secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._by_id: dict[str, GatewayEpisode] = {}
        self._by_key: dict[bytes, GatewayEpisode] = {}
        self._opened = 0

    def open(self, id: str = "", **settings: Any) -> GatewayEpisode:
        """Open an episode.

        Args:
            id: Its name; a random one if it is empty.
            **settings: Fields of :class:`GatewayEpisode`, such as ``group``.

        Raises:
            Refusal: The name is taken or not valid, or there are too many.
        """
        name = valid_name(id, "the id of an episode") if id else secrets.token_hex(8)
        with self._lock:
            if name in self._by_id:
                raise Refusal(409, f"there is an episode {name} already.")
            if sum(each.status == "open" for each in self._by_id.values()) >= self.limits.max_episodes:
                raise Refusal(429, f"{self.limits.max_episodes} episodes are open, the limit: end one.")
            number = settings.pop("number", self._opened)
            episode = GatewayEpisode(name, f"tg-{secrets.token_urlsafe(24)}", number, **settings)
            self._opened += 1
            self._by_id[name] = episode
            self._by_key[_hidden(episode.key)] = episode
        return episode

    def remove(self, episode: GatewayEpisode) -> None:
        """Forget an episode."""
        with self._lock:
            self._by_id.pop(episode.id, None)
            self._by_key.pop(_hidden(episode.key), None)

    def all(self) -> list[GatewayEpisode]:
        """Return all episodes."""
        with self._lock:
            return list(self._by_id.values())

    def is_operator(self, key: str) -> bool:
        """Return whether a key is that of the operator, in a time that does not depend on where it differs."""
        return hmac.compare_digest(key.encode("utf8", "replace"), self.operator_key.encode())

    def get(self, id: str) -> GatewayEpisode:
        """Return an episode.

        Raises:
            Refusal: There is none.
        """
        with self._lock:
            found = self._by_id.get(id)
        if found is None:
            raise Refusal(404, f"there is no episode {id[:100]!r}: POST /episodes opens one.")
        return found

    def admitted(self, id: str, key: str, opens: Callable[[str], GatewayEpisode] | None = None) -> GatewayEpisode:
        """Return the episode that a key may speak in.

        The operator's key may speak in every episode, and opens those that do not exist.

        Args:
            id: The episode's name; empty for that of the key.
            key: The key.
            opens: Opens an episode for the operator.

        Raises:
            Refusal: The key is missing or wrong. Whether there is such an episode is not said.
        """
        if not key:
            raise Refusal(401, "send the key of the episode as API key: Authorization: Bearer KEY, or x-api-key.")
        with self._lock:
            mine = self._by_key.get(_hidden(key))
            named = self._by_id.get(id) if id else mine
        if self.is_operator(key):
            return named or (opens or self.open)(id or "default")
        known = named.key if named is not None else secrets.token_urlsafe(24)
        is_right = hmac.compare_digest(key.encode("utf8", "replace"), known.encode())
        if named is None or not is_right:
            raise Refusal(401, "this key is not that of the episode.")
        return named


def _hidden(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf8", "replace")).digest()
