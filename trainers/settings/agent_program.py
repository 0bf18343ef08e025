"""How agent programs are started; imports no torch."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from dataclasses import dataclass

from turngym.errors import ConfigError, nearest

FIELDS = ("base_url", "root_url", "env_url", "key", "task", "seed", "model")
"""What may stand in braces in a command."""


@dataclass(frozen=True)
class ProgramConfig:
    """How agent programs are started.

    Args:
        command: The program and its words, such as ``python my_agent.py --base-url {base_url} --key {key}``; no shell
            reads it. ``{base_url}`` is that of OpenAI's protocol, ``{root_url}`` of Anthropic's, ``{env_url}`` where
            the environment is played, ``{task}`` its rules and first observation, ``{seed}`` the number of the task.
            The variables OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and TURNGYM_ENV_URL
            hold the same.
        seconds: Time of one episode; the program is ended then.
        memory_mib: Address space of the program.

    Raises:
        ConfigError: The command cannot be read, or a limit is not positive.
    """

    command: str = ""
    seconds: float = 300.0
    memory_mib: int = 8192

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf") or self.memory_mib < 1:
            raise ConfigError("seconds and memory_mib of agent programs must be greater than 0.")
        if self.command:
            self.words(dict.fromkeys(FIELDS, ""))

    def words(self, values: Mapping[str, str]) -> list[str]:
        """Return the words of the command, filled in.

        Raises:
            ConfigError: It cannot be read, or asks for something unknown.

        >>> ProgramConfig("agent --key {key}").words(dict.fromkeys(FIELDS, "a b"))
        ['agent', '--key', 'a b']
        """
        try:
            words = shlex.split(self.command)
            for word in words:
                for _, name, spec, conversion in string.Formatter().parse(word):
                    if name is not None and (name not in FIELDS or spec or conversion):
                        raise ConfigError(f"an agent command has no {{{name}}}. {nearest(name, FIELDS)}")
            filled = [word.format_map(values) for word in words]
        except ValueError as error:
            raise ConfigError(
                f"the agent command {self.command!r} cannot be read ({error}): close its quotes, and double braces "
                "that are meant as such."
            ) from error
        if not filled:
            raise ConfigError("the agent command is empty.")
        return [word.replace("\0", "") for word in filled]
