"""Rewards that a verifier wrote: a number, or numbers by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from turngym.arithmetic import float_sum
from turngym.errors import TurngymError
from turngym.storage.bounded import parsed

REWARD = "reward"
"""Name of a reward without another one."""
_MOST_NAMES, _LONGEST_NAME, _LONGEST_NUMBER, _LONGEST_SHOWN = 100, 100, 100, 60


class VerifierError(TurngymError, RuntimeError):
    """A verifier that failed: no reward, none that is finite, or not in time. The episode counts as a fault."""


def read_rewards(files: Mapping[str, str | None]) -> dict[str, float]:
    r"""Return reward name -> value.

    Args:
        files: ``reward.json`` and ``reward.txt``, as far as there are any -> their text; None for a folder.

    Raises:
        VerifierError: There is neither, or the one that counts holds no finite numbers.

    >>> read_rewards({"reward.txt": "0.5\n"})
    {'reward': 0.5}
    >>> read_rewards({"reward.json": '{"tests": 1, "style": 0.25}', "reward.txt": "0"})
    {'tests': 1.0, 'style': 0.25}
    >>> read_rewards({"reward.txt": "nan"})
    Traceback (most recent call last):
    turngym.envs.tools.harbor.rewards.VerifierError: the verifier wrote reward.txt with 'nan': expected a finite number.
    """
    for name in ("reward.json", "reward.txt"):
        if name not in files:
            continue
        text = files[name]
        if text is None:
            raise VerifierError(f"{name} is not a regular file: expected a file with the reward.")
        return _named(text) if name == "reward.json" else {REWARD: _number(text)}
    raise VerifierError(
        "the verifier wrote no reward: tests/test.sh must write /logs/verifier/reward.txt or reward.json."
    )


def _number(text: str) -> float:
    try:
        is_plain = len(text.strip()) <= _LONGEST_NUMBER and text.isascii() and "_" not in text
        value = float(text) if is_plain else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise VerifierError(
            f"the verifier wrote reward.txt with {text.strip()[:_LONGEST_SHOWN]!r}: expected a finite number."
        )
    return value


def _named(text: str) -> dict[str, float]:
    try:
        found = parsed(text)
    except ValueError as error:
        raise VerifierError(f"the verifier wrote a reward.json that cannot be read: {error}.") from error
    is_named = isinstance(found, dict) and 0 < len(found) <= _MOST_NAMES and max(map(len, found)) <= _LONGEST_NAME
    if not is_named or not all(type(each) in (int, float) for each in found.values()):
        raise VerifierError(
            f"the verifier wrote reward.json with {text[:_LONGEST_SHOWN]!r}: expected an object of names and numbers."
        )
    return {name: float(value) for name, value in found.items()}


def scalar(rewards: Mapping[str, float], name: str = "") -> float:
    """Return the one number of rewards by name.

    Args:
        rewards: Rewards by name.
        name: The name that counts. Without it: the one called ``reward``, else the mean of all.

    Raises:
        VerifierError: There is none of that name.

    >>> scalar({"tests": 1.0, "style": 0.0}), scalar({"reward": 0.25, "style": 1.0}), scalar({"a": 1.0, "b": 0.5}, "b")
    (0.5, 0.25, 0.5)
    """
    if name and name not in rewards:
        raise VerifierError(f"the verifier wrote no reward named {name!r}, only {', '.join(rewards)[:200]}.")
    if name or REWARD in rewards:
        return rewards[name or REWARD]
    return sum(rewards.values()) / len(rewards)


def combined(results: Sequence[Mapping[str, float]], strategy: str) -> dict[str, float]:
    """Return the rewards of a task from those of its steps, of which aborted ones have none.

    Args:
        results: Rewards of each step that was verified.
        strategy: ``"mean"``, by name, a missing one as 0; or ``"final"``, those of the last.

    >>> combined([{"reward": 1.0}, {"reward": 0.5}], "mean"), combined([{"reward": 1.0}, {"reward": 0.5}], "final")
    ({'reward': 0.75}, {'reward': 0.5})
    """
    if not results:
        return {REWARD: 0.0}
    if strategy == "final":
        return dict(results[-1])
    names = dict.fromkeys(name for each in results for name in each)
    return {name: float_sum(each.get(name, 0.0) for each in results) / len(results) for name in names}


def passes(rewards: Mapping[str, float], least: Mapping[str, float]) -> bool:
    """Return whether every reward reaches its minimum; a missing one does not.

    >>> passes({"reward": 0.5}, {"reward": 0.5}), passes({"tests": 1.0}, {"reward": 0.5})
    (True, False)
    """
    return all(rewards.get(name, -math.inf) >= value for name, value in least.items())
