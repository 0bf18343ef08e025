"""``task.toml`` of a Harbor task, schema 1.4 and the older keys; keys that turngym does not know are ignored."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from turngym.errors import ConfigError

LARGEST_TOML = 64 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_STEP = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,199})(:-.*)?\}", re.DOTALL)
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)
_MIB = {"": 1 / 2**20, "K": 1 / 2**10, "M": 1.0, "G": 2.0**10, "T": 2.0**20}
_MOST_ITEMS = 1000


@dataclass(frozen=True)
class BoxSettings:
    """``[environment]`` or ``[verifier.environment]``.

    Args:
        image: Name of a ready image; empty for the Dockerfile.
        memory_mib: Memory.
        storage_mib: Disk.
        cpus: Processors.
        build_seconds: Timeout of building and starting.
        network: Whether the task asks for a network.
        env: Variables of every command.
        workdir: Working directory; empty for the image's.
        healthcheck: Command that succeeds once the box is ready; empty for none.
        problem: Why it cannot be played at all; empty for nothing.
    """

    image: str = ""
    memory_mib: float = 2048.0
    storage_mib: float = 10240.0
    cpus: float = 1.0
    build_seconds: float = 600.0
    network: bool = True
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = ""
    healthcheck: str = ""
    problem: str = ""


@dataclass(frozen=True)
class VerifierSettings:
    """``[verifier]``, or that of a step.

    Args:
        seconds: Timeout, the start of a separate box included.
        env: Variables of the tests.
        user: User that runs them.
        box: The separate box, None to verify in the agent's.
        is_declared: Whether the separate box has its own table, and so its own image.
        collect: Commands in the agent's box before artifacts are taken.
    """

    seconds: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    box: BoxSettings | None = None
    is_declared: bool = False
    collect: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepSettings:
    """One of ``[[steps]]``, or the only step of a task without them.

    Args:
        name: Name of its folder; empty for the task's own.
        min_reward: Reward name -> least value with which the next step follows.
        agent_seconds: Time of the agent's commands.
        user: User that runs them.
        verifier: How it is verified.
        artifacts: Paths for a separate verifier.
    """

    name: str
    min_reward: Mapping[str, float]
    agent_seconds: float
    user: str
    verifier: VerifierSettings
    artifacts: tuple[str, ...]


@dataclass(frozen=True)
class TaskSettings:
    """All of ``task.toml``.

    Args:
        name: ``org/name``; empty if not given.
        box: The agent's box.
        steps: The steps, at least one.
        strategy: ``"mean"`` or ``"final"`` of the steps' rewards.
        solution_env: Variables of the solution.
    """

    name: str
    box: BoxSettings
    steps: tuple[StepSettings, ...]
    strategy: str
    solution_env: Mapping[str, str]


def read_settings(text: str, place: str) -> TaskSettings:
    r"""Return the settings in the text of a ``task.toml``.

    Raises:
        ConfigError: It is not TOML, or a key has a value of another kind.

    >>> found = read_settings('version = "1.0"\n[environment]\nmemory = "2G"\nallow_internet = false', "task.toml")
    >>> found.box.memory_mib, found.box.network, found.steps[0].agent_seconds
    (2048.0, False, 600.0)
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place} is not TOML: {str(error)[:200] or 'nested too deeply'}.") from error
    top = _Table(content, place)
    agent, box = top.table("agent"), _box(top.table("environment"))
    seconds, user = agent.number("timeout_sec", 600.0), agent.text("user")
    whole = StepSettings(
        "", {}, seconds, user, _verifier(top.table("verifier"), box), _artifacts(top.items("artifacts"), place)
    )
    steps = tuple(_step(each, whole, box) for each in top.tables("steps")) or (whole,)
    if len({each.name for each in steps}) < len(steps):
        raise ConfigError(f"{place} has two steps of one name.")
    strategy = top.text("multi_step_reward_strategy") or "mean"
    if strategy not in ("mean", "final"):
        raise ConfigError(f"multi_step_reward_strategy in {place} must be mean or final, got {strategy[:60]!r}.")
    return TaskSettings(top.table("task").text("name"), box, steps, strategy, top.table("solution").env())


def resolved(env: Mapping[str, str], allowed: Collection[str], place: str) -> dict[str, str]:
    """Return variables with ``${VAR:-default}`` replaced; the host's are read only where they are allowed.

    Raises:
        ConfigError: One is not allowed, or not set, and has no default.

    >>> resolved({"PORT": "${TURNGYM_PORT:-80}", "NAME": "x"}, (), "task.toml")
    {'PORT': '80', 'NAME': 'x'}
    """
    found = {}
    for name, value in env.items():
        match = _VARIABLE.fullmatch(value)
        wanted = match[1] if match else ""
        if match is None:
            found[name] = value
        elif wanted in allowed and wanted in os.environ:
            found[name] = os.environ[wanted]
        elif match[2] is not None:
            found[name] = match[2][2:]
        else:
            way = f"set {wanted}" if wanted in allowed else f"allow it with variables=[{wanted!r}]"
            raise ConfigError(f"{place} wants the environment variable {wanted}, which has no default: {way}.")
    return found


class _Table:
    """A table of TOML whose values are checked where they are read."""

    def __init__(self, content: Mapping[str, Any], place: str, name: str = "") -> None:
        self.content, self.place, self.name = content, place, name

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def _wrong(self, key: str, wanted: str) -> ConfigError:
        shown = repr(self.content[key])[:60]
        return ConfigError(f"{self.name}{key} in {self.place} must be {wanted}, got {shown}.")

    def text(self, key: str, longest: int = 10_000) -> str:
        value = self.content.get(key, "")
        if not isinstance(value, str) or len(value) > longest or "\0" in value:
            raise self._wrong(key, f"a text of at most {longest} characters")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise self._wrong(key, "a number above 0")
        return float(value)

    def size(self, keys: tuple[str, str], default: float) -> float:
        """Return mebibytes: a number under the first key, or a text such as 2G under the second, older one."""
        new, old = keys
        if new in self.content or old not in self.content:
            return self.number(new, default)
        match = _SIZE.fullmatch(self.text(old))
        if match is None or not float(match[1]) > 0:
            raise self._wrong(old, "a size such as 2G")
        return float(match[1]) * _MIB[match[2].upper()]

    def table(self, key: str) -> _Table:
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, "a table")
        return _Table(value, self.place, f"{self.name}{key}.")

    def items(self, key: str) -> list[Any]:
        value = self.content.get(key, [])
        if not isinstance(value, list) or len(value) > _MOST_ITEMS:
            raise self._wrong(key, f"a list of at most {_MOST_ITEMS}")
        return value

    def tables(self, key: str) -> list[_Table]:
        found = self.items(key)
        if not all(isinstance(each, dict) for each in found):
            raise self._wrong(key, "a list of tables")
        return [_Table(each, self.place, f"{self.name}{key}.") for each in found]

    def env(self, key: str = "env") -> dict[str, str]:
        """Return variables, numbers and truth values as texts."""
        table, found = self.table(key), dict[str, str]()
        for name, value in list(table.content.items())[: _MOST_ITEMS + 1]:
            is_plain = isinstance(value, str | int | float) and "\0" not in str(value)
            if not _NAME.fullmatch(name) or not is_plain or len(str(value)) > 10_000 or len(found) == _MOST_ITEMS:
                raise table._wrong(name, "a variable: letters, digits and _ as its name, a text as its value")
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return found


def _box(table: _Table) -> BoxSettings:
    mode = table.text("network_mode") or ("public" if table.content.get("allow_internet", True) else "no-network")
    problem = ""
    if table.content.get("gpus") or table.content.get("gpu_types"):
        problem = "it needs a GPU"
    elif table.items("mcp_servers"):
        problem = "it needs MCP servers"
    elif (table.text("os") or "linux").lower() != "linux":
        problem = f"it runs on {table.text('os')[:40]}"
    check = table.table("healthcheck")
    return BoxSettings(
        image=table.text("docker_image", 500),
        memory_mib=table.size(("memory_mb", "memory"), 2048.0),
        storage_mib=table.size(("storage_mb", "storage"), 10240.0),
        cpus=table.number("cpus", 1.0),
        build_seconds=table.number("build_timeout_sec", 600.0),
        network=mode != "no-network",
        env=table.env(),
        workdir=table.text("workdir", 1000),
        healthcheck=check.text("command"),
        problem=problem,
    )


def _verifier(table: _Table, box: BoxSettings) -> VerifierSettings:
    mode, own = table.text("environment_mode"), "environment" in table
    if mode not in ("", "shared", "separate"):
        raise ConfigError(f"environment_mode in {table.place} must be shared or separate, got {mode[:60]!r}.")
    is_separate = mode == "separate" or (own and mode != "shared")
    return VerifierSettings(
        seconds=table.number("timeout_sec", 600.0),
        env=table.env(),
        user=table.text("user"),
        box=(_box(table.table("environment")) if own else box) if is_separate else None,
        is_declared=is_separate and own,
        collect=tuple(_command(each, table.place) for each in table.items("collect")),
    )


def _command(found: Any, place: str) -> str:
    command = found.get("command") if isinstance(found, dict) else None
    if not isinstance(command, str) or not command or len(command) > 10_000 or "\0" in command:
        raise ConfigError(
            f'collect in {place} must be a list of tables such as {{command = "cp a b"}}, got {str(found)[:60]!r}.'
        )
    return command


def _step(table: _Table, whole: StepSettings, box: BoxSettings) -> StepSettings:
    name = table.text("name")
    if not _STEP.fullmatch(name):
        raise ConfigError(f"the name of a step in {table.place} is letters, digits and . _ -, got {name[:60]!r}.")
    least = table.content.get("min_reward", {})
    least = least if isinstance(least, dict) else {"reward": least}
    if not all(type(each) in (int, float) and math.isfinite(each) for each in least.values()):
        raise table._wrong("min_reward", "a number, or a table of numbers")
    agent, verifier = table.table("agent"), _verifier(table.table("verifier"), box)
    own, shared = table.table("verifier"), whole.verifier
    is_own = "environment" in own or "environment_mode" in own
    verifier = VerifierSettings(
        seconds=verifier.seconds,
        env={**shared.env, **verifier.env},
        user=verifier.user or shared.user,
        box=verifier.box if is_own else shared.box,
        is_declared=verifier.is_declared if is_own else shared.is_declared,
        collect=verifier.collect or shared.collect,
    )
    artifacts = whole.artifacts + _artifacts(table.items("artifacts"), table.place)
    seconds, user = agent.number("timeout_sec", whole.agent_seconds), agent.text("user") or whole.user
    return StepSettings(name, {key: float(each) for key, each in least.items()}, seconds, user, verifier, artifacts)


def _artifacts(found: list[Any], place: str) -> tuple[str, ...]:
    sources: list[str] = []
    for each in found:
        source = each.get("source") if isinstance(each, dict) else each
        if not isinstance(source, str) or not source.startswith("/") or len(source) > 1000 or "\0" in source:
            raise ConfigError(f"artifacts in {place} must be absolute paths, got {str(source)[:60]!r}.")
        sources.append(source)
    return tuple(sources)
