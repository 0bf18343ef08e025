"""``turngym mcp``: an environment as tools of the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import Pairs, Specs, key_values, parse, text_env_maker
from turngym.errors import ConfigError

TOKEN_VARIABLE = "TURNGYM_TOKEN"

USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Serve an environment as MCP tools: reset, step and legal_actions; rewards are recorded and never shown.

    Without --port it uses standard input and output, as MCP clients expect. HTTP requires the extra `serve`.

    Args:
        env: Id of the environment, `module:id`, `module:Class`, or `path/to/file.py:Class`.
        option: Environment option, such as max_turns=20.
        wrapper: Wrapper, such as invalid_action:penalty=0.1.
        seed: Seed from which the task of each reset is derived.
        episodes: Maximum number of episodes; 0 for no limit.
        records: File for one JSON line per episode with reward, success and score.
        port: Serve over HTTP on this port (0 selects a free one), with one environment per session.
        host: Address to listen on; other than loopback requires a token.
        token: Token that clients send as `Authorization: Bearer TOKEN`. The variable TURNGYM_TOKEN is safer, because
            command lines are visible to other users.
        max_sessions: Maximum number of HTTP sessions.
        idle_seconds: Seconds without reset or step after which an HTTP session is closed; 60 if another client needs
            its place.
        step_seconds: Time limit of a step in seconds; exceeding it is a fault.
        reset_seconds: Time limit of a reset, including creation of the environment.
    """

    env: Positional[str]
    option: Pairs = ()
    wrapper: Specs = ()
    seed: int = 0
    episodes: int = 0
    records: Path | None = None
    port: int | None = None
    host: str = "127.0.0.1"
    token: str = ""
    max_sessions: int = 64
    idle_seconds: float = 1800.0
    step_seconds: float = 60.0
    reset_seconds: float = 120.0


def main(argv: Sequence[str]) -> int:
    """Serve until the client has gone, or until interrupted."""
    from turngym.agents.gateway.mcp import EnvSession, Episodes
    from turngym.agents.gateway.mcp.serving import serve_http, serve_stdio
    from turngym.agents.gateway.mcp.streamable import McpApp
    from turngym.envs.servers.hosting import HostLimits

    arguments = parse(Arguments, argv, "mcp")
    if arguments.port is not None and not 0 <= arguments.port < 2**16:
        raise ConfigError(f"--port must be between 0 and {2**16 - 1}, got {arguments.port}.")
    if arguments.episodes < 0:
        raise ConfigError(f"--episodes must be 0 or more, got {arguments.episodes}.")
    make = text_env_maker(arguments.env, key_values(arguments.option, "--option"), arguments.wrapper)
    make().close()  # errors are reported before anything is served
    episodes = Episodes(arguments.seed, arguments.episodes, arguments.records)
    token = arguments.token or os.environ.get(TOKEN_VARIABLE, "")
    names = ("max_sessions", "idle_seconds", "step_seconds", "reset_seconds")
    limits = HostLimits(**{name: getattr(arguments, name) for name in names})
    if arguments.port is None:
        if arguments.host != "127.0.0.1" or arguments.token:
            raise ConfigError("--host and --token are for HTTP: pass --port as well.")
        serve_stdio(EnvSession(make, episodes, limits=limits), sys.stdin, sys.stdout)
        return 0
    app = McpApp(make, episodes, token, limits)
    serve_http(app, arguments.host, arguments.port, _announce, bool(token))
    return 0


def _announce(url: str) -> None:
    print(f"serving at {url}; Ctrl+C ends it", file=sys.stderr, flush=True)
