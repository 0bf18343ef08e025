"""Restores damaged snapshots into every registered environment, and plays on with those that are accepted.

Each one must either be refused with a ConfigError, with the episode standing exactly as before, or leave an environment
that works: it can be stepped, and its own snapshot brings back the same state.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

import gymnasium

from turngym.errors import ConfigError, error_text

_NUMBERS = (0, 1, -1, 2, 7, 10**9, 2**63, -(2**64), 10**400, 0.5, -0.0, float("nan"), float("inf"), 1e308)
_TEXTS = ("", "0", "up", chr(0xD800), chr(0), "x" * 3000)
ODD: tuple[Any, ...] = (None, True, False, *_NUMBERS, *_TEXTS, [], {}, [[]], [None], {"a": 1}, [0] * 200)
"""What stands in the place of a value."""
_NO_SNAPSHOTS = (b"", b"null", b"[]", b"{}", b"[" * 100_000, b'{"a":' * 100_000, bytes([255]) * 50, b"9" * 5000)
_ACTIONS = ("", "look", "up", "1 1", "<answer>1</answer>")
_TURNS = 3
_HEAD = ("format", "env_id", "settings")


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every part of a JSON value, containers included; of long lists the first parts."""
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value[:40]))
    else:
        parts = []
    below = [path for key, part in parts for path in paths(part, (*here, key))]
    return [here, *below] if here else below


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _bent(draw: random.Random, value: Any) -> Any:
    """Return something near a value: another type, a neighbour, a part, the same in another order."""
    if isinstance(value, bool):
        return draw.choice([not value, int(value), str(value), None])
    if isinstance(value, int | float):
        return draw.choice([value + 1, value - 1, -value, float(value) if abs(value) < 1e300 else 0, str(value), None])
    if isinstance(value, str):
        place = draw.randrange(len(value) + 1)
        return draw.choice([value[:place], value + value[:5], value[:place] + "?" + value[place + 1 :], [value], None])
    if isinstance(value, list):
        return draw.choice([value[1:], value + value[:1], value[::-1], draw.sample(value, len(value)), None])
    if isinstance(value, dict):
        return {key: part for key, part in value.items() if draw.random() < 0.8}
    return draw.choice([0, "", []])


def mutated(draw: random.Random, saved: list[bytes]) -> bytes:
    """Return one of the snapshots, damaged in one to three places."""
    whole = draw.choice(saved)
    kind = draw.random()
    if kind < 0.08:
        return whole[: draw.randrange(len(whole))]
    if kind < 0.13:
        place = draw.randrange(len(whole))
        return whole[:place] + bytes([draw.randrange(256)]) + whole[place + 1 :]
    if kind < 0.15:
        return draw.choice(_NO_SNAPSHOTS)
    content, other = json.loads(whole), json.loads(draw.choice(saved))
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        _damage(draw, content, other)
    return json.dumps(content).encode()


def _damage(draw: random.Random, content: Any, other: Any) -> None:
    """Change one part of a snapshot, more often than not of its state."""
    every = [path for path in paths(content) if path[0] not in _HEAD]
    inside = [path for path in every if path[0] == "state"]
    path = draw.choice(inside if inside and draw.random() < 0.6 else every)
    holder, key = _at(content, path[:-1]), path[-1]
    how = draw.random()
    if how < 0.35:
        holder[key] = deepcopy(draw.choice(ODD))
    elif how < 0.7:
        holder[key] = deepcopy(_bent(draw, holder[key]))
    elif how < 0.8:
        del holder[key]
    elif how < 0.85 and isinstance(holder, dict):
        holder["more"] = deepcopy(draw.choice(ODD))
    else:
        try:
            holder[key] = deepcopy(_at(other, path))
        except (KeyError, IndexError, TypeError):
            return


def taken(env: Any, episodes: int) -> list[bytes]:
    """Return snapshots of a few episodes at different turns."""
    saved = []
    for seed in range(episodes):
        _, info = env.reset(seed=seed)
        saved.append(env.unwrapped.snapshot())
        for turn in range(_TURNS):
            legal = info["legal_actions"]
            *_, terminated, truncated, info = env.step(legal[(seed + turn) % len(legal)] if legal else "1")
            saved.append(env.unwrapped.snapshot())
            if terminated or truncated:
                break
    return saved


def plays_on(env: Any, draw: random.Random) -> None:
    """Raise unless an environment whose state was accepted works."""
    again = env.snapshot()
    env.restore(again)
    if env.snapshot() != again:
        raise AssertionError("the snapshot of an accepted state brings back another one")
    for _ in range(_TURNS):
        if not env._running:
            return
        legal = env._info()["legal_actions"]
        env.step(draw.choice(legal) if legal and draw.random() < 0.7 else draw.choice(_ACTIONS))
    env.restore(env.snapshot())


def try_one(env: Any, draw: random.Random, saved: list[bytes]) -> tuple[str, str]:
    """Restore one damaged snapshot; return ``refused``, ``accepted`` or ``broken``, and what broke."""
    env.restore(draw.choice(saved))
    before = env.snapshot()
    damaged = mutated(draw, saved)
    try:
        env.restore(damaged)
    except ConfigError:
        is_same = env.snapshot() == before
        return ("refused", "") if is_same else ("broken", "a refused snapshot has changed the episode")
    except Exception as error:  # what this program looks for
        return "broken", f"restore raised {error_text(error)}"
    try:
        plays_on(env, draw)
    except Exception as error:  # what this program looks for
        return "broken", f"after it was accepted: {error_text(error)}"
    return "accepted", ""


def fuzz(env_id: str, count: int, seed: int = 0) -> dict[str, Any]:
    """Try damaged snapshots on one environment and return the counts."""
    env = gymnasium.make(env_id)
    draw = random.Random(f"{env_id} {seed}")
    found: dict[str, Any] = {"refused": 0, "accepted": 0, "broken": 0}
    examples: list[str] = []
    try:
        saved = taken(env, 4)
        for _ in range(count):
            kind, why = try_one(env.unwrapped, draw, saved)
            found[kind] += 1
            if why and why not in examples:
                examples.append(why)
    finally:
        env.close()
    return {"tried": count, **found, "examples": examples[:8]}
