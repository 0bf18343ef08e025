"""``--data``, ``--reward`` and ``--tools``: the options of turngym/Questions-v0 on a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turngym.agents.agent_program import QUESTIONS
from turngym.benchmarks.cli.options.config_file import is_given, read_config, take_config
from turngym.benchmarks.cli.options.parsing import as_pairs
from turngym.errors import ConfigError

NAMES = ("data", "reward", "tools")
DATA = "Questions to use instead of an environment: a file (JSON Lines) or hf:NAME; see docs/how-to/questions.md."
REWARD = "Reward of an answer to --data: auto, exact, numeric, math, ... or a function `path/to/file.py:function`."
TOOLS = "Tools for --data: python, and functions `path/to/file.py:function`."


def data_options(data: str, reward: str = "", tools: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options of the environment; none without data.

    Raises:
        ConfigError: There is a reward or a tool, but no data.

    >>> data_options("mine.jsonl", tools=["python"])
    {'data': 'mine.jsonl', 'tools': ['python']}
    """
    if not data and (reward or tools):
        given = "--reward" if reward else "--tools"
        raise ConfigError(f"{given} is for questions of your own: pass --data FILE, or leave it out.")
    options = {"data": data, "reward": reward, "tools": list(tools)}
    return {name: value for name, value in options.items() if value}


def with_data(words: Sequence[str]) -> list[str]:
    """Return the words of ``turngym eval`` with ``--data`` and its options as the environment with options.

    Raises:
        ConfigError: There is a reward or a tool, but no data.

    >>> with_data(["--data", "mine.jsonl", "--agent", "random"])
    ['turngym/Questions-v0', '--agent', 'random', '--option', 'data=mine.jsonl']
    """
    words = [*_of_file(words), *words]
    options, rest = _taken(words)
    if not options:
        return list(words)
    if rest and not rest[0].startswith("-"):
        raise ConfigError(f"--data and {rest[0][:100]} are two environments: leave one out.")
    return [QUESTIONS, *rest, *(word for pair in as_pairs(options) for word in ("--option", pair))]


def _of_file(words: Sequence[str]) -> list[str]:
    """Return the options of data in the file of ``--config`` as words, without those that the command line sets."""
    file, rest = take_config(words)
    content = {} if file is None else read_config(file, "eval")
    data, target = content.get("data"), content.get("target")
    if not data and not is_given(rest, "data"):
        data_options("", content.get("reward", ""), content.get("tools", ()))
        return []
    if rest and not rest[0].startswith("-") and rest[0] != QUESTIONS:
        return []
    if data and target:
        raise ConfigError(f"{file} has data and a target, which are two environments: leave one out.")
    found = []
    for name in ("data", "reward", "tools", *(["option"] if target in (None, QUESTIONS) else [])):
        value = content.get(name) or ()
        values = as_pairs(value) if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        found += [] if is_given(words, name) else [f"--{name}={each}" for each in values]
    given = [f"--option={name}=" for name in NAMES if is_given(words, name)]
    return [word for word in found if not word.startswith(tuple(given))]


def lifted(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a training with the data of its environment as ``data``, ``reward`` and ``tools``.

    A run writes the former, and a command line overrides the latter.

    >>> lifted({"env": "turngym/Questions-v0", "env_options": {"data": "mine.jsonl", "attempts": 2}})
    {'env_options': {'attempts': 2}, 'data': 'mine.jsonl'}
    """
    options = content.get("env_options")
    if content.get("env") != QUESTIONS or not isinstance(options, Mapping) or not options.get("data"):
        return dict(content)
    moved = {name: options[name] for name in NAMES if options.get(name)}
    if twice := moved.keys() & content.keys():
        raise ConfigError(f"{min(twice)} is given twice, as such and in env_options: leave one out.")
    left = {name: value for name, value in options.items() if name not in moved}
    others = {name: value for name, value in content.items() if name not in ("env", "env_options")}
    return {**others, "env_options": left, **moved}


def with_training_data(words: Sequence[str]) -> list[str]:
    """Return the words of ``turngym train`` with ``--data`` and its options as the environment with options.

    Raises:
        ConfigError: There is another environment as well, or no data for a reward or tools.

    >>> with_training_data(["--data", "mine.jsonl", "--tools", "python", "--seed", "1"])
    ['--seed', '1', '--env', 'turngym/Questions-v0', '--env-options', 'data=mine.jsonl', 'tools=["python"]']
    """
    options, rest = _taken(words)
    if not options:
        return list(words)
    others, rest = _values(rest, ("env-options",))
    if {"--env", "--game"} & {word.partition("=")[0] for word in rest}:
        raise ConfigError("--data and --env are two environments: leave one out.")
    return [*rest, "--env", QUESTIONS, "--env-options", *as_pairs(options), *others["env-options"]]


def _taken(words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the environment, and the other words."""
    own, rest = _values(words, NAMES)
    for name in ("data", "reward"):
        if len(own[name]) > 1:
            raise ConfigError(f"--{name} takes one value, got {' '.join(own[name])[:100]}.")
        if own[name] == [""]:
            raise ConfigError(f"--{name} must not be empty: leave it out, or name what to use.")
    return data_options("".join(own["data"]), "".join(own["reward"]), own["tools"]), rest


def _values(words: Sequence[str], names: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return name -> values of some options, and the words without these."""
    found: dict[str, list[str]] = {name: [] for name in names}
    rest: list[str] = []
    values = rest
    for word in words:
        if not word.startswith("-"):
            values.append(word)
            continue
        name, sign, value = word.removeprefix("--").partition("=")
        values = found.get(name.replace("_", "-"), rest)
        if values is rest:
            rest.append(word)
        elif sign:
            values.append(value)
    return found, rest
