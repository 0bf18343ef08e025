"""Environments that untrusted files ask for: which of them may be made here, and making them.

A submission or a recording is untrusted: it may name what is registered here with the options that its class declares
(:class:`turngym.envs.settings.Declared`), and nothing else. Everything is refused before anything is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium

from turngym.envs.registration import env_misfit, env_refusal
from turngym.errors import TurngymError
from turngym.wrappers.wrapping import Wrapping, is_left_out, wrapper_misfit, wrapper_refusal

CANNOT_BE_MADE = (TurngymError, TypeError, ValueError, OverflowError, gymnasium.error.Error)
"""Exceptions of environments for invalid options."""
_MOST_WRAPPERS, _MOST_RESET_OPTIONS, _LONGEST = 20, 20, 200


def refused(environment: Mapping[str, Any]) -> str:
    """Return why an environment of ``config.json`` must not be made here; empty if it may.

    >>> refused({"env": "os:path", "options": {}, "wrappers": []})
    "the environment 'os:path' is not registered here"
    """
    reason = env_refusal(environment["env"], environment["options"])
    return reason or _of_wrappers(environment["wrappers"], wrapper_refusal)


def impossible(environment: Mapping[str, Any]) -> str:
    """Return why nobody can have played an environment of ``config.json``; empty if somebody can.

    What is not installed here, or not declared safe for files to ask for, may still exist elsewhere.

    >>> impossible({"env": "turngym/OpenEnv-v0", "options": {"url": "http://127.0.0.1"}, "wrappers": []})
    ''
    """
    reason = env_misfit(environment["env"], environment["options"])
    return reason or _of_wrappers(environment["wrappers"], wrapper_misfit)


def _of_wrappers(texts: Sequence[Any], problem: Callable[[Wrapping], str]) -> str:
    """Return the first problem of some wrappers; empty if there is none."""
    if len(texts) > _MOST_WRAPPERS:
        return f"it has more than {_MOST_WRAPPERS} wrappers"
    for text in texts:
        try:
            wrapping = Wrapping.read(str(text))
        except TurngymError as error:
            return f"the wrapper {str(text)[:60]!r} cannot be read: {error}"
        if reason := problem(wrapping):
            return reason
    return ""


def reset_refused(options: Mapping[str, Any]) -> str:
    """Return why a reset must not be called with these options from a file; empty if it may.

    >>> reset_refused({"task": "boil 3", "level": 2}), reset_refused({"file": "os:path"})
    ('', "the option file='os:path' of the reset could name a module or a file")
    """
    if len(options) > _MOST_RESET_OPTIONS:
        return f"the reset has more than {_MOST_RESET_OPTIONS} options"
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            is_plain = each is None or (isinstance(each, str | int | float) and len(str(each)) <= _LONGEST)
            if not is_plain or (isinstance(each, str) and any(sign in each for sign in ":/\\")):
                return f"the option {name[:60]}={str(each)[:60]!r} of the reset could name a module or a file"
    return ""


def made(environment: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Return an environment of ``config.json`` with its wrappers, except those that change nothing.

    Call :func:`refused` first.
    """
    env = gymnasium.make(environment["env"], **environment["options"])
    for text in environment["wrappers"]:
        wrapping = Wrapping.read(str(text))
        if not is_left_out(wrapping):
            env = wrapping(env)
    return env
