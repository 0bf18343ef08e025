"""Snapshots of tables as bytes, with generators of every kind that numpy has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from turngym.envs.multiagent.game import Game
from turngym.errors import ConfigError
from turngym.types import JSONValue

_FORMAT = 1
_LONGEST_TOLD = 300
_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


def generator_state(generator: np.random.Generator) -> JSONValue:
    """Return the state of a generator as JSON can hold it; some kinds have arrays in theirs.

    >>> generator = np.random.Generator(np.random.Philox(1))
    >>> twin = generator_of(generator_state(generator), np.random.default_rng())
    >>> bool(generator.random() == twin.random())
    True
    """
    return _plain(generator.bit_generator.state)


def _plain(value: Any) -> JSONValue:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def generator_of(state: JSONValue, generator: np.random.Generator) -> np.random.Generator:
    """Return a generator in a state of :func:`generator_state`: the given one if of the same kind.

    Raises:
        ValueError: The state is none, or of a kind of generator that numpy does not have.
    """
    kind = state["bit_generator"]
    if kind not in _GENERATORS:
        raise ValueError(f"no generator of the kind {kind!r}")
    if type(generator.bit_generator).__name__ != kind:
        generator = np.random.Generator(getattr(np.random, kind)(0))
    generator.bit_generator.state = state
    return generator


def to_bytes(game: Game, options: Mapping[str, Any], content: Mapping[str, Any]) -> bytes:
    """Return a snapshot.

    Args:
        game: The rules.
        options: Options of the table, which must be the same where it is restored.
        content: The state.
    """
    head = {"format": _FORMAT, "game": game.name, "settings": game.settings, "table": options}
    return json.dumps({**head, **content}, sort_keys=True).encode()


def from_bytes(game: Game, options: Mapping[str, Any], snapshot: bytes) -> dict[str, Any]:
    """Return what :func:`to_bytes` was given.

    Raises:
        ConfigError: The bytes are not a snapshot, or one of another game or other options.
    """
    try:
        content: dict[str, Any] = json.loads(snapshot)
        found = content["format"], content["game"], content["settings"], content["table"]
        told = [str(each)[:_LONGEST_TOLD] for each in found]
        expected = _FORMAT, game.name, json.loads(json.dumps(game.settings)), dict(options)
        is_equal = [one == other for one, other in zip(found, expected, strict=True)]
    except Exception as error:  # untrusted bytes: anything may be raised
        raise ConfigError(f"restore() of {game.name} got bytes that are not a snapshot of turngym.") from error
    if not is_equal[0]:
        raise ConfigError(f"this snapshot has the format {told[0]}, not {_FORMAT}: take a new one.")
    if not (is_equal[1] and is_equal[2]):
        raise ConfigError(
            f"this snapshot belongs to {told[1]} with {told[2]}, not to {expected[1]} with {expected[2]}."
        )
    if not is_equal[3]:
        raise ConfigError(f"this snapshot belongs to a table with {told[3]}, not to one with {expected[3]}.")
    return content
