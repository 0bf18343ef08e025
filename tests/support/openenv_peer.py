"""A small environment written for openenv's own server, to be played through ours; needs the package openenv."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class EchoAction(Action):  # type: ignore[misc]  # the package is not there when types are checked
    """Says something."""

    words: str


class EchoObservation(Observation):  # type: ignore[misc]
    """Hears it back."""

    heard: str
    length: int = 0


class Echo(Environment[EchoAction, EchoObservation, State]):  # type: ignore[misc]
    """Echoes; ``win`` ends the episode with reward 1, ``break`` breaks the server's code."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> EchoObservation:
        self._state = State(episode_id=episode_id)
        return EchoObservation(heard=f"seed {seed}", reward=None)

    def step(self, action: EchoAction, timeout_s: float | None = None, **_: Any) -> EchoObservation:
        self._state.step_count += 1
        if action.words == "break":
            raise RuntimeError("broken over there")
        done = action.words == "win"
        return EchoObservation(heard=action.words, length=len(action.words), reward=float(done), done=done)

    @property
    def state(self) -> State:
        return self._state


@contextmanager
def echo_server(sessions: int = 4) -> Iterator[str]:
    """Give the URL of openenv's own server of :class:`Echo`."""
    app = create_app(Echo, EchoAction, EchoObservation, env_name="echo", max_concurrent_envs=sessions)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="websockets-sansio"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
