"""Programs of the host visible to a sandbox that runs more than Python; packages of any Python are hidden."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import turngym
from turngym.envs.tools.sandbox.launcher import emptied, same_place
from turngym.envs.tools.sandbox.system import view

_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "share")
"""Folders of /usr that programs need."""
_PACKAGES = ("python*/*-packages", "*/lib/python*/*-packages", "python-wheels")
"""Hidden in those: Python packages, including turngym's own with its goals."""
_DEEP_PACKAGES = ("*/*/lib/python*/*-packages", "*/*/*/lib/python*/*-packages")
"""The same, for programs that come with their own interpreter."""


def system_programs() -> list[str]:
    """Return the arguments for Bubblewrap that show the programs of the host, read-only, without Python packages."""
    folders = [f"/usr/{name}" for name in _FOLDERS]
    return [*same_place([*folders, "/lib", "/lib64", "/bin", "/sbin"]), *emptied(_hidden())]


@cache
def _deep_packages() -> frozenset[Path]:
    """Return the folders of packages that take a fifth of a second to find."""
    tops = [Path("/usr", name) for name in ("lib", "share")]
    return frozenset(path for top in tops for pattern in _DEEP_PACKAGES for path in top.glob(pattern))


def _hidden() -> list[Path]:
    """Return the folders below /usr whose content is not shown, wherever packages are installed now."""
    tops = [Path("/usr", name) for name in _FOLDERS if not Path("/usr", name).is_symlink()]
    found = {path for top in tops for pattern in _PACKAGES for path in top.glob(pattern)} | _deep_packages()
    found |= {path for path in view().hidden() if path.is_dir()}
    envs = Path(__file__).resolve().parents[2]
    found |= {path for path in (envs, Path(turngym.__file__).resolve().parent) if path.is_relative_to("/usr")}
    return sorted(path for path in found if path.is_dir() and not path.is_symlink())
