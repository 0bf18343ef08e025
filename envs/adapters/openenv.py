"""Any text environment behind a server of OpenEnv's protocol (openenv 0.10), as a :class:`TextEnv`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

import gymnasium

from turngym.envs.adapters.openenv_line import Body, Line, Refused, ServerFault, fetch
from turngym.envs.adapters.openenv_reading import (
    FINDS_ACTION,
    Reading,
    action_field,
    is_success,
    number,
    read_json_action,
    read_observation,
)
from turngym.envs.core import UNBOUNDED, MaxTurns, Outcome, TextEnv
from turngym.errors import ConfigError, MissingExtra, SnapshotUnsupported
from turngym.options import between
from turngym.types import JSONValue

_NO_SERVER = (
    "needs a server: start one with `turngym serve-env ID`, and pass its address as url='http://127.0.0.1:8000'."
)

Seconds: TypeAlias = Annotated[float, between(1e-3, 1e6)]


class OpenEnv(TextEnv[str]):
    """Client of an OpenEnv server, with one WebSocket connection per environment.

    It offers coroutines, so that a vector with the backend ``asyncio`` waits for all its servers at once. A connection
    lost between episodes is re-established; one lost during an episode, or a server that does not answer in time, is a
    fault: in a vector it affects one slot, whose next episode starts on a fresh connection.

    The seed of a reset is passed on as it is, so that equal seeds mean what they mean there; without one, a seed is
    sampled here. Servers of turngym (``turngym serve-env``) send the whole info in their metadata. Metadata of other
    servers may contain ``truncated`` and ``success``; an episode without ``success`` is solved if it terminated with a
    last reward above ``solved_above``, and never if that option is None; the anchor is the observation; the score is
    the sum of the rewards. An action of one text field is the action text; any other is a JSON object. Snapshots hold
    the seed and the actions, and are restored by replay.
    """

    class Options(TextEnv.Options):
        url: str = ""
        """The server, such as ``http://127.0.0.1:8000``."""
        token: str = ""
        """Sent as ``Authorization: Bearer TOKEN`` unless empty; ``$NAME`` reads it from a variable of the environment,
        so that it appears in no log. It is not part of :attr:`settings`."""
        action_field: str = ""
        """Field of an action that takes the text; found in the server's schema unless given."""
        observation_field: str = ""
        """Field of an observation that is shown; if empty ``text``, else the only text field, else all fields."""
        reset_options: Mapping[str, Any] | None = None
        """Sent with every reset, JSON values only."""
        solved_above: Annotated[float, between(-1e9, 1e9)] | None = None
        """Last reward above which an episode that ended is a success, if the server does not say; None for never."""
        connect_seconds: Seconds = 30.0
        """Seconds to retry opening a session on a full server."""
        answer_seconds: Seconds = 60.0
        """Timeout of an answer."""
        max_turns: MaxTurns = 1000
        """Turns after which the episode is truncated, if the server does not end it first."""

    options: Options

    score_range = UNBOUNDED

    def setup(self) -> None:
        options = self.options
        if not options.url:
            raise MissingExtra(f"{self.env_id} {_NO_SERVER}")
        if urlsplit(options.url).scheme not in ("http", "https") or not urlsplit(options.url).hostname:
            raise ConfigError(f"url of {self.env_id} must be like http://127.0.0.1:8000, got {options.url!r}.")
        self.finite_instances = 2**31  # seeds; the server decides which of them belong to a split
        self.settings = {**self.settings, "token": options.token if options.token.startswith("$") else ""}
        token = os.environ.get(options.token[1:], "") if options.token.startswith("$") else options.token
        self._line = Line(options.url, token, options.connect_seconds, options.answer_seconds)
        self._options = dict(options.reset_options or {})
        self._fields = options.action_field, options.observation_field
        self._solved_above = options.solved_above
        self._name = options.url
        self._learn(
            fetch(options.url, "/metadata", token, options.connect_seconds),
            fetch(options.url, "/schema", token, options.connect_seconds),
        )
        self._seed: int | None = None
        self._task: str | int | None = None
        self._arrived: Body | Refused | None = None
        self._start_books(Reading("", 0.0, False, False, {}))

    def _learn(self, metadata: Body, schemas: Body) -> None:
        """Store the server's description of its environment."""
        schema = schemas.get("action")
        schema = schema if isinstance(schema, dict) else {}
        self._name = str(metadata.get("name") or self._name)
        self.finds_action = schema.get(FINDS_ACTION) is True
        self._fields = self._fields[0] or action_field(schema), self._fields[1]
        about = str(metadata.get("readme_content") or metadata.get("description") or f"You play {self._name}.")
        form = "" if self._fields[0] else f"\nAn action is a JSON object that fits this schema: {json.dumps(schema)}"
        self.instructions = about + form

    # With and without coroutines.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start a new episode; see :meth:`TextEnv.reset`."""
        self._seed = seed
        return super().reset(seed=seed, options=options)

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a new episode, as :meth:`reset` does."""
        self._running = False
        gymnasium.Env.reset(self, seed=seed)
        self._seed = self._chosen(seed)
        request = self._request((options or {}).get("task"))
        try:
            with self._refusals():
                self._arrived = await asyncio.wrap_future(self._line.begin(request))
            return super().reset(seed=None, options=options)
        finally:
            self._arrived = None

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one turn, as :meth:`step` does."""
        is_sent = self._running and isinstance(action, str) and len(action) <= self.longest_action
        message = self._message(action) if is_sent else None
        if message is not None:
            try:
                self._arrived = await asyncio.wrap_future(self._line.act(message))
            except Refused as refused:
                self._arrived = refused
        try:
            return self.step(action)
        finally:
            self._arrived = None

    def close(self) -> None:
        """End the session."""
        self._line.close()
        super().close()

    # Rules, delegated to the server.

    def _chosen(self, seed: int | None) -> int:
        return int(self.np_random.integers(2**31)) if seed is None else seed

    def _request(self, task: str | int | None) -> Body:
        self._task = task
        return {"seed": self._seed, **self._options} | ({} if task is None else {"task": task})

    def begin(self, task: str | int | None) -> str:
        if isinstance(self._arrived, dict):
            data = self._arrived
        else:
            self._seed = self._chosen(self._seed)
            with self._refusals():
                data = self._line.begin(self._request(task)).result()
        self.instance = f"{self._name} seed {self._seed}" + ("" if task is None else f" task {task}")
        reading = self._read(data)
        if reading.terminated or reading.truncated:
            raise ServerFault(f"{self._name} started an episode that is over already")
        self._start_books(reading)
        return reading.text

    def apply_action(self, action: str) -> Outcome[str]:
        message = self._message(action)
        if message is None:
            return Outcome("An action is a JSON object, as the instructions say.", action_is_valid=False)
        try:
            data = self._arrived if self._arrived is not None else self._line.act(message).result()
            if isinstance(data, Refused):
                raise data
        except Refused as refused:
            if refused.code != "VALIDATION_ERROR":
                raise
            return Outcome(refused.words, action_is_valid=False)
        reading = self._read(data)
        self._note(action, reading)
        success = reading.terminated and is_success(reading.metadata, reading.reward, self._solved_above)
        is_valid = reading.metadata.get("action_is_valid") is not False
        return Outcome(reading.text, reading.reward, reading.terminated, success, is_valid, reading.truncated)

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """Run a block that starts an episode; arguments that the server rejects become a ConfigError."""
        try:
            yield
        except Refused as refused:
            if refused.code != "VALIDATION_ERROR":
                raise
            raise ConfigError(f"reset of {self.env_id} was refused: {refused.words}") from refused

    def _message(self, action: str) -> Body | None:
        action = action.encode("utf8", "replace").decode()  # lone surrogates cannot be encoded
        return {self._fields[0]: action} if self._fields[0] else read_json_action(action)

    def _read(self, data: Body) -> Reading:
        try:
            return read_observation(data, self._fields[1])
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ServerFault(f"{self._name} answered with what is not an observation: {error}") from error

    # Bookkeeping.

    def _start_books(self, reading: Reading) -> None:
        self._last = reading
        self._actions: list[str] = []
        self._total = 0.0
        self._seen = hashlib.sha256(reading.text.encode("utf8", "surrogatepass"))

    def _note(self, action: str, reading: Reading) -> None:
        self._last = reading
        self._actions.append(action)
        self._total += reading.reward
        self._seen.update(repr(reading[:4]).encode("utf8", "surrogatepass"))

    def anchor(self) -> str:
        anchor = self._last.metadata.get("anchor")
        return anchor if isinstance(anchor, str) else self._last.text

    def legal_actions(self) -> tuple[str, ...]:
        legal = self._last.metadata.get("legal_actions")
        return tuple(map(str, legal)) if isinstance(legal, list) else ()

    def progress(self) -> float:
        return number(self._last.metadata.get("progress", float(self._success == 1)), 0.0)

    def score(self) -> float:
        return number(self._last.metadata.get("score", self._total), self._total)

    def save_state(self) -> JSONValue:
        return {
            "seed": self._seed,
            "task": self._task,
            "actions": list(self._actions),
            "seen": self._seen.hexdigest(),
        }

    def load_state(self, state: JSONValue) -> None:
        self._seed = state["seed"]
        self._start_books(self._read(self._line.begin(self._request(state["task"])).result()))
        for action in state["actions"]:
            self._note(action, self._read(self._line.act(self._message(action) or {}).result()))
        if self._seen.hexdigest() != state["seen"]:
            raise SnapshotUnsupported(
                f"replaying {self.instance} of {self.env_id} showed something else than before: an environment whose "
                "course depends on more than its seed and actions."
            )
