"""Check that this Python can run turngym, before anything else is imported. This file also parses on older versions."""

import importlib.util
import os
import sys

_OLDEST = (3, 11)
FOLDERS = ("agents", "benchmarks", "envs", "trainers", "wrappers")
PACKAGES = ("gymnasium", "jinja2", "numpy", "pettingzoo", "rich", "tyro", "wonderwords")
"""Import names of the dependencies without which nothing works, as in pyproject.toml."""


def is_command() -> bool:
    """Return whether this process is the command ``turngym`` or ``python -m turngym``."""
    return _is_module() or "turngym" in (os.path.basename(word) for word in sys.orig_argv[:2])


def prepare_command() -> None:
    """Remove the working directory from the search path, and shorten the message of an interrupt.

    ``python -m turngym`` searches the working directory first, which may contain a downloaded gymnasium.py. In a
    checkout, where turngym itself is found there, the directory stays.
    """
    try:
        here = os.getcwd()
    except FileNotFoundError:  # the working directory has been deleted
        here = ""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if here and here != home and _is_module() and sys.path[:1] == [here]:  # the last is not so under python -P
        sys.path.pop(0)
    from turngym.terminal.interrupted import be_quiet

    be_quiet()


def require() -> None:
    """Stop if turngym cannot be imported.

    Raises:
        SystemExit: The process is the command ``turngym``: it ends with one sentence.
        ImportError: Otherwise, with the same sentence.
    """
    found = _problem()
    if found:
        raise SystemExit(f"error: {found}") if is_command() else ImportError(found)


def _is_module() -> bool:
    return any(pair == ("-m", "turngym") for pair in zip(sys.orig_argv, sys.orig_argv[1:], strict=False))


def _problem() -> str:
    """Return why turngym cannot be imported here, and what to do; empty if it can."""
    version = sys.version_info
    if version < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        return f"turngym needs Python {wanted} or newer, got {version[0]}.{version[1]}: use python{wanted} or newer."
    here = os.path.dirname(os.path.abspath(__file__))
    lost = [name for name in FOLDERS if not os.path.isdir(os.path.join(here, name))]
    if lost:
        return (
            f"turngym/{lost[0]} is not a folder: this checkout lost its symbolic links. Unpack the archive with tar, "
            "or clone the repository with `git clone -c core.symlinks=true`."
        )
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if absent:
        return (
            f"turngym needs the packages {', '.join(absent)}, which are not installed in {sys.prefix}: "
            "pip install turngym, or `pip install --editable .` in a checkout."
        )
    return ""
