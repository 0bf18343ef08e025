"""Importing and creating third-party games without their side effects: downloads, prints, log settings.

These context managers patch global state: use them inside ``GlobalRandom.lent()``, whose lock keeps them apart.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from turngym.errors import ConfigError, MissingExtra, missing_extra

_UNUSABLE = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError),
)


def import_package(name: str, feature: str, package: str, extra: str) -> ModuleType:
    """Import an optional package, and undo what its import does to the root logger.

    Raises:
        MissingExtra: It is not installed.
    """
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        with no_downloads():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing_extra(feature, package if error.name == name else str(error.name), extra) from error
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@contextlib.contextmanager
def no_downloads() -> Iterator[None]:
    """Run a block in which ``nltk.download`` does nothing."""
    try:
        nltk: Any = importlib.import_module("nltk")
    except ModuleNotFoundError:
        yield
        return
    download = nltk.download
    nltk.download = lambda *_, **__: False
    try:
        yield
    finally:
        nltk.download = download


def mute(package: str) -> None:
    """Silence ``print`` in the loaded modules of a package, and nowhere else."""
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            vars(module)["print"] = lambda *_, **__: None


@contextlib.contextmanager
def made_for(feature: str, what: str) -> Iterator[None]:
    """Run a block that creates a third-party game, and turn its errors into readable ones.

    Raises:
        MissingExtra: It needs word lists that are not on this machine.
        ConfigError: Anything else that it raised.
    """
    try:
        with no_downloads():
            yield
    except (ConfigError, MissingExtra):
        raise
    except LookupError as error:
        if "nltk" in str(error).lower():
            raise MissingExtra(
                f"{what} of {feature} needs word lists of NLTK that are not on this machine, and nothing is downloaded "
                "at run time: run `python -m nltk.downloader words averaged_perceptron_tagger_eng` once, or let "
                "NLTK_DATA name a folder that holds them."
            ) from error
        raise _unusable(feature, what, error) from error
    except _UNUSABLE as error:
        raise _unusable(feature, what, error) from error


def _unusable(feature: str, what: str, error: BaseException) -> ConfigError:
    return ConfigError(f"{feature} cannot make {what}: {type(error).__name__}: {str(error).strip()[:300]}")
