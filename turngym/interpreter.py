"""Check that this Python can run turngym, before anything else is imported. Older versions parse this file as well."""

import importlib.util
import os
import sys

OLDEST = (3, 11)
FOLDERS = ("agents", "benchmarks", "envs", "trainers", "wrappers")
PACKAGES = ("gymnasium", "numpy", "pettingzoo", "rich", "tyro", "wonderwords")
"""Import names of the dependencies without which nothing works, as in pyproject.toml."""


def problem() -> str:
    """Return why turngym cannot be imported here, and what to do; empty if it can."""
    version = sys.version_info
    if version < OLDEST:
        wanted = ".".join(map(str, OLDEST))
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


def require(is_command: bool) -> None:
    """Stop where turngym cannot be imported.

    Raises:
        SystemExit: The process is the command ``turngym``: it ends with one sentence.
        ImportError: Otherwise, with the same sentence.
    """
    found = problem()
    if found:
        raise SystemExit(f"error: {found}") if is_command else ImportError(found)
