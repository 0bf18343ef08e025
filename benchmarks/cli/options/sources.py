"""Targets such as ``harbor:FOLDER`` and ``gymnasium:ID``: environments of others, as an adapter with an option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turngym.benchmarks.cli.options.parsing import as_pairs
from turngym.errors import ConfigError

_SOURCES: Mapping[str, tuple[str, str]] = {
    "agentdojo": ("turngym/AgentDojo-v0", "suite"),
    "bfcl": ("turngym/BFCL-v0", "category"),
    "gem": ("turngym/GEM-v0", "game"),
    "gymnasium": ("turngym/Gymnasium-v0", "inner"),
    "harbor": ("turngym/Harbor-v0", "path"),
    "openenv": ("turngym/OpenEnv-v0", "url"),
    "pettingzoo": ("turngym/PettingZooSeat-v0", "module"),
    "reasoning-gym": ("turngym/ReasoningGym-v0", "data"),
    "textarena": ("turngym/TextArena-v0", "game"),
    "textarena-seat": ("turngym/TextArenaGameSeat-v0", "rules"),
}
"""Prefix -> environment, and the option that what follows the colon is a value of."""


def with_source(words: Sequence[str], option: str = "--option") -> list[str]:
    """Return the words of a command with such a target as the environment with its option.

    Args:
        words: The words.
        option: Option of the command for those of an environment.

    Raises:
        ConfigError: Nothing follows the colon.

    >>> with_source(["harbor:tasks/sort-words", "--agent", "expert"])
    ['turngym/Harbor-v0', '--agent', 'expert', '--option', 'path=tasks/sort-words']
    >>> with_source(["--env=harbor:tasks"], "--env-options")
    ['--env=turngym/Harbor-v0', '--env-options', 'path=tasks']
    """
    found, pairs = [], list[str]()
    for word in words:
        start, value = ("--env=", word.removeprefix("--env=")) if word.startswith("--env=") else ("", word)
        prefix, sign, rest = value.partition(":")
        if not sign or prefix not in _SOURCES:
            found.append(word)
            continue
        if not rest:
            raise ConfigError(f"{value} names nothing: write {prefix}:{_SOURCES[prefix][1].upper()}.")
        env_id, name = _SOURCES[prefix]
        found.append(f"{start}{env_id}")
        pairs += [option, *as_pairs({name: rest})]
    return [*found, *pairs]
