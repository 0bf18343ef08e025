"""The servers of ``openenv_sessions.py``: an echo after a second, served by turngym and by openenv."""

from __future__ import annotations

import asyncio
import importlib
import time
from typing import Any

from turngym.envs.core import Outcome, TextEnv
from turngym.types import JSONValue


class Slow(TextEnv[str]):
    """Echoes after a while, in a blocking sleep.

    Args:
        seconds: How long a step waits.
    """

    def __init__(self, seconds: float = 1.0, *, split: str = "train", env_id: str = "") -> None:
        super().__init__(max_turns=100_000, split=split, env_id=env_id)
        self.finite_instances, self.seconds = 1, seconds

    def begin(self, task: str | int | None) -> str:
        self.instance = "the only one"
        return "say something"

    def apply_action(self, action: str) -> Outcome[str]:
        time.sleep(self.seconds)
        return Outcome(action)

    def anchor(self) -> str:
        return ""

    def save_state(self) -> JSONValue:
        return None

    def load_state(self, state: JSONValue) -> None:
        """Keep nothing."""


class SlowCoroutine(Slow):
    """The same in a coroutine."""

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        return self.reset(seed=seed, options=options)

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Wait, and echo."""
        await asyncio.sleep(self.seconds)
        return self.step(action)

    def apply_action(self, action: str) -> Outcome[str]:
        return Outcome(action)


def serve_ours(kind: type[Slow], sessions: int) -> None:
    """Serve with turngym; prints the URL."""
    from turngym.trainers.integrations.openenv_server import serve
    from turngym.trainers.integrations.openenv_sessions import Limits

    serve(kind, "echo", port=0, limits=Limits(max_sessions=sessions), on_start=lambda url: print(url, flush=True))


def serve_theirs(is_coroutine: bool, sessions: int) -> None:
    """Serve with openenv as its own commands do; prints the URL."""
    server: Any = importlib.import_module("openenv.core.env_server.http_server")
    interfaces: Any = importlib.import_module("openenv.core.env_server.interfaces")
    types: Any = importlib.import_module("openenv.core.env_server.types")
    uvicorn: Any = importlib.import_module("uvicorn")
    field = {"__annotations__": {"message": str}}
    action, observation = type("Said", (types.Action,), field), type("Heard", (types.Observation,), dict(field))
    state = types.State()

    def reset(self: Any, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Any:
        return observation(message="say something")

    def step(self: Any, action: Any, timeout_s: float | None = None, **_: Any) -> Any:
        time.sleep(1.0)
        return observation(message=action.message, reward=0.0)

    async def step_async(self: Any, action: Any, timeout_s: float | None = None, **_: Any) -> Any:
        await asyncio.sleep(1.0)
        return observation(message=action.message, reward=0.0)

    members = {"SUPPORTS_CONCURRENT_SESSIONS": True, "reset": reset, "step": step, "state": property(lambda _: state)}
    kind = type("Echo", (interfaces.Environment,), members | ({"step_async": step_async} if is_coroutine else {}))
    app = server.create_app(kind, action, observation, env_name="echo", max_concurrent_envs=sessions)
    listener = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", backlog=4096)
    socket = listener.bind_socket()
    socket.listen(4096)
    print(f"http://127.0.0.1:{socket.getsockname()[1]}", flush=True)
    uvicorn.Server(listener).run(sockets=[socket])


def child(side: str, sessions: int) -> None:
    """Serve in this process."""
    name, _, wait = side.partition(" ")
    if name == "turngym":
        serve_ours(SlowCoroutine if wait == "coroutine" else Slow, sessions)
    else:
        serve_theirs(wait == "coroutine", sessions)
