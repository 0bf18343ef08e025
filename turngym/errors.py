"""Errors raised by turngym; each message says what was given, what was expected and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


class TurngymError(Exception):
    """Base of every error that turngym defines."""


class ConfigError(TurngymError, ValueError):
    """A setting is invalid, or two settings contradict each other."""


class BrokenCode(ConfigError):
    """User code raised when it was imported or called, or broke its contract."""


class NotFinite(TurngymError, ValueError):
    """An environment returned a reward, or a reward component, that is not a finite number.

    Args:
        what: Value, such as ``"the reward nan"``.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"got {what}, which is not finite")


class PromptTooLong(ConfigError):
    """A prompt does not fit. Only its own episode is truncated, with the reason ``context``.

    Args:
        message: Length, limit, and remedy.
        tokens: Tokens of the prompt; 0 if unknown.
        limit: Maximum number of tokens; 0 if unknown.
    """

    def __init__(self, message: str, tokens: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.tokens, self.limit = tokens, limit


class ExpertLost(ConfigError):
    """The solver cannot continue from the current state."""


class UnknownName(TurngymError, KeyError):
    """No registered component has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtra(TurngymError, ImportError):
    """An optional package, or a program such as Java, is missing."""


class EpisodeOver(TurngymError, RuntimeError):
    """``step`` was called on an environment whose episode has ended, or has not started."""


class SnapshotUnsupported(ConfigError, RuntimeError):
    """The environment's exact state can neither be saved nor replayed."""


class CheckpointError(TurngymError, RuntimeError):
    """A checkpoint is empty, damaged, or belongs to another configuration."""


class RunFolderExists(TurngymError, FileExistsError):
    """A run folder already contains a run, which is not overwritten."""


class FolderInUse(RunFolderExists):
    """Another process writes the folder; this one has written nothing."""


class ModelError(TurngymError, RuntimeError):
    """A path or name is not a usable language model, or its tokenizer lacks something."""


class PromptWarning(UserWarning):
    """A prompt differs from the settings because the model's chat template does not support them."""


class ServerDown(TurngymError, RuntimeError):
    """A model server cannot be reached, refuses a request, or has stopped answering."""


class DivergenceError(TurngymError, RuntimeError):
    """Training produced a non-finite number or exceeded the limit of a guard.

    Args:
        message: Error and remedy.
        kind: Kind of error: reward, advantage, loss, gradient, weights, faults or divergence.
        where: First occurrence, such as environment, episode and turn.
    """

    def __init__(self, message: str, kind: str = "", where: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.where: dict[str, object] = dict(where or {})


class RunStopped(TurngymError, RuntimeError):
    """Training had to stop; the message is the diagnosis.

    Args:
        message: Description, location, saved data and suggested remedies.
        diagnosis: The same as a JSON value, also written to ``diagnosis.json`` in the run folder.
    """

    def __init__(self, message: str, diagnosis: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.diagnosis: dict[str, object] = dict(diagnosis or {})


_LONGEST_TEXT = 300


def error_text(error: BaseException) -> str:
    """Return the type and message of an exception on one short line.

    Safe even if ``__str__`` raises, or returns megabytes or invalid Unicode.

    >>> error_text(ValueError("no such door"))
    'ValueError: no such door'
    >>> class Rude(Exception):
    ...     def __str__(self) -> str:
    ...         raise SystemExit
    >>> error_text(Rude())
    'Rude: (its message cannot be read)'
    """
    kind = type.__getattribute__(type(error), "__name__")
    try:
        text = str.__str__(str(error))[: 4 * _LONGEST_TEXT]
    except KeyboardInterrupt:
        raise
    except BaseException:  # user code: the exception is foreign too
        text = "(its message cannot be read)"
    text = text.encode("utf-8", "replace").decode()
    return " ".join(f"{kind}: {text}".rstrip(": ").split())[:_LONGEST_TEXT]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the second half of an unknown-name message: the nearest name, or all of them.

    >>> nearest("gipgo", ["gigpo", "grpo"])
    "Did you mean 'gigpo'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(names)}."


def missing_extra(feature: str, package: str, extra: str) -> MissingExtra:
    """Return the one-sentence error for an optional package that is not installed.

    >>> str(missing_extra("training", "torch", "train"))
    'training needs the package torch, which is not installed: pip install "turngym[train]".'
    """
    return MissingExtra(
        f'{feature} needs the package {package}, which is not installed: pip install "turngym[{extra}]".'
    )
