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
    """Serve an environment to OpenEnv clients, with one environment per session.

    Requires the extra `serve`.

    Args:
        env: Id of the environment, `module:id`, `module:Class`, or `path/to/file.py:Class`.
        option: Environment option, such as max_turns=20.
        wrapper: Wrapper, such as invalid_action:penalty=0.1.
        host: Address to listen on; other than loopback requires a token.
        port: Port to listen on; 0 selects a free one.
        token: Token that clients send as `Authorization: Bearer TOKEN`. The variable TURNGYM_TOKEN is safer, because
            command lines are visible to other users.
        max_sessions: Maximum number of sessions.
        idle_seconds: Seconds without reset or step after which a session is closed; 60 if another client needs its
            place.
        step_seconds: Time limit of a step in seconds; exceeding it ends the session's episode.
        reset_seconds: Time limit of a reset, including creation of the environment.
        threads: Maximum number of environments running at once (default: max_sessions).
        seed: Base seed of sessions that give none.
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
    from turngym.envs.servers.openenv.server import serve
    from turngym.envs.servers.openenv.sessions import Limits

    arguments = parse(Arguments, argv, "serve-env")
    if not 0 <= arguments.port < 2**16:
        raise ConfigError(f"--port must be between 0 and {2**16 - 1}, got {arguments.port}.")
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
