"""Serialise exceptions so that every rank raises the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngym import errors
from turngym.errors import DivergenceError, TurngymError

_HEARD = "raised by another rank, which reports it"
_TOLD = "told to the other ranks, which stop as well"


class RankLost(TurngymError, RuntimeError):
    """Another rank has ended, or has not answered within the timeout."""


class RankFailed(TurngymError, RuntimeError):
    """Another rank stopped with an error that is not turngym's."""


def as_json(error: Exception, rank: int) -> dict[str, Any]:
    """Return an error of a rank as a JSON-compatible value."""
    where = {key: _plain(value) for key, value in error.where.items()} if isinstance(error, DivergenceError) else {}
    kind = error.kind if isinstance(error, DivergenceError) else ""
    return {"rank": rank, "type": type(error).__name__, "message": str(error), "kind": kind, "where": where}


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def from_json(content: Mapping[str, Any]) -> Exception:
    """Return the error of another rank; one that is not turngym's as a :class:`RankFailed`.

    :func:`is_heard` distinguishes it from the rank's own errors.

    >>> from_json(as_json(errors.ConfigError("no such thing"), 1))
    ConfigError('no such thing')
    >>> print(from_json(as_json(ZeroDivisionError("division by zero"), 1)))
    rank 1 stopped: ZeroDivisionError: division by zero
    """
    found = _made(content)
    found.add_note(_HEARD)
    return found


def is_heard(error: BaseException) -> bool:
    """Return True if an error, or its cause, was raised by another rank.

    >>> is_heard(from_json(as_json(errors.ConfigError("no"), 1))), is_heard(errors.ConfigError("no"))
    (True, False)
    """
    own = _HEARD in getattr(error, "__notes__", [])
    return own or (error.__cause__ is not None and is_heard(error.__cause__))


def note_told(error: Exception) -> None:
    """Mark an error of this rank as known to all ranks."""
    error.add_note(_TOLD)


def is_known_to_all(error: BaseException) -> bool:
    """Return True if an error, or its cause, stops every rank at the same point of the program.

    >>> failed = errors.ConfigError("no")
    >>> is_known_to_all(failed), note_told(failed), is_known_to_all(failed)
    (False, None, True)
    """
    own = not {_HEARD, _TOLD}.isdisjoint(getattr(error, "__notes__", []))
    return own or (error.__cause__ is not None and is_known_to_all(error.__cause__))


def _made(content: Mapping[str, Any]) -> Exception:
    name, message = str(content["type"]), str(content["message"])
    if name == "DivergenceError":
        return DivergenceError(message, content["kind"], content["where"])
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, TurngymError) and kind is not errors.NotFinite:
        return kind(message)
    if name == RankLost.__name__:
        return RankLost(message)
    if name == "MemoryError":
        return MemoryError(f"rank {content['rank']}: {message}")
    return RankFailed(f"rank {content['rank']} stopped: {name}: {message}")
