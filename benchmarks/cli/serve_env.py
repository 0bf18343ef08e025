"""``turngym serve-env``: an environment over HTTP and WebSockets, for OpenEnv's clients."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import Pairs, Specs, key_values, parse, text_env_maker
from turngym.errors import ConfigError
from turngym.terminal.console import Console

TOKEN_VARIABLE = "TURNGYM_TOKEN"

USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Serve an environment so that clients of OpenEnv play it: many sessions, each with an environment of its own.

    It needs the extra `serve`.

    Args:
        env: Id of the environment, `module:id`, `module:Class`, or `path/to/file.py:Class`.
        option: An option of the environment, such as max_turns=20; may be repeated.
        wrapper: A wrapper around it, such as invalid_action:penalty=0.1; may be repeated.
        host: Address to listen on; anything but the loopback needs a token.
        port: Port to listen on; 0 for any that is free.
        token: What clients have to send as `Authorization: Bearer TOKEN`. The variable TURNGYM_TOKEN is safer: a
            command line can be read by others on the machine.
        max_sessions: Sessions at once.
        idle_seconds: A session without a reset or step for that long is ended; after a minute if a new one
            needs its place.
        step_seconds: A step that takes longer ends the episode of its session.
        reset_seconds: The same for a reset, which may include making the environment.
        threads: Environments that may be at work at once; as many as sessions unless given.
        seed: Sessions that name no seed get one that follows from this.
    """

    env: Positional[str]
    option: Pairs = ()
    wrapper: Specs = ()
    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    max_sessions: int = 1024
    idle_seconds: float = 1800.0
    step_seconds: float = 60.0
    reset_seconds: float = 120.0
    threads: int | None = None
    seed: int | None = None


def main(argv: Sequence[str]) -> int:
    """Serve until interrupted."""
    from turngym.trainers.integrations.openenv_server import serve
    from turngym.trainers.integrations.openenv_sessions import Limits

    arguments = parse(Arguments, argv, "serve-env")
    if not 0 <= arguments.port < 2**16:
        raise ConfigError(f"--port must lie between 0 and {2**16 - 1}, got {arguments.port}.")
    make = text_env_maker(arguments.env, key_values(arguments.option, "--option"), arguments.wrapper)
    limits = Limits(
        max_sessions=arguments.max_sessions,
        idle_seconds=arguments.idle_seconds,
        step_seconds=arguments.step_seconds,
        reset_seconds=arguments.reset_seconds,
        threads=arguments.threads,
        seed=arguments.seed,
    )
    token = arguments.token or os.environ.get(TOKEN_VARIABLE, "")
    console = Console(highlight=False)

    def announce(url: str) -> None:
        guard = "a token is needed" if token else "no token"
        text = f"serving {arguments.env} at {url} ({guard}, at most {limits.max_sessions} sessions); Ctrl+C ends it"
        console.print(text, markup=False, soft_wrap=True)

    serve(make, arguments.env, host=arguments.host, port=arguments.port, token=token, limits=limits, on_start=announce)
    return 0
