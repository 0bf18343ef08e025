"""Files of the host visible to a sandboxed program."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import turngym
from turngym.envs.tools.sandbox.launcher import if_present, same_place
from turngym.errors import ConfigError

SYSTEM = Path("/usr")
_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/localtime", "/etc/mime.types")
_OWN = ("/proc", "/dev", "/sys", "/run", "/tmp", "/etc")
"""Places of the host that are never mounted as a whole, nor anything above them."""


def found_program(word: str) -> Path:
    """Return the path of a program, links kept.

    Raises:
        ConfigError: There is none.
    """
    path = shutil.which(word)
    if path is None:
        raise ConfigError(f"there is no program {word!r} to start as an agent: pass its path, or one on PATH.")
    return Path(os.path.abspath(path))


def _interpreter(program: Path) -> list[Path]:
    """Return what a program outside of the system needs: its own file, and its folders if it is an interpreter."""
    if program.is_relative_to(SYSTEM) and program.resolve().is_relative_to(SYSTEM):
        return []
    home = program.parent.parent
    settings = home / "pyvenv.cfg"
    if not settings.is_file():
        prefix = program.resolve().parent.parent
        return [program, *_standard_library(prefix)]
    lines = dict(line.partition("=")[::2] for line in settings.read_text("utf8", "replace").splitlines())
    base = Path({key.strip(): value.strip() for key, value in lines.items()}.get("home", "/usr/bin")).resolve().parent
    return [home, *([] if base.is_relative_to(SYSTEM) else [base / "bin", *_standard_library(base)])]


def _standard_library(prefix: Path) -> list[Path]:
    """Return the folders with the libraries of an interpreter; none if there is no interpreter."""
    if not any(prefix.glob("lib/python3*")):
        return []
    return [prefix / name for name in ("bin", "lib", "lib64") if (prefix / name).is_dir()]


def mounted(template: Sequence[str], asked: Sequence[str]) -> list[Path]:
    """Return the files and folders of the host that a program sees, each at its own place.

    Args:
        template: The command before anything is filled in: words that name files are mounted.
        asked: Further files and folders.

    Raises:
        ConfigError: One of them is missing, or may not be mounted.
    """
    found = _interpreter(found_program(template[0]))
    found += [path for word in template[1:] if (path := Path(os.path.abspath(word))).is_file()]
    for name in asked:
        path = Path(os.path.abspath(os.path.expanduser(name)))
        if not path.exists():
            raise ConfigError(f"{name!r} of --agent.mounts does not exist.")
        if any(Path(own).is_relative_to(path) for own in (*_OWN, Path.home())):
            raise ConfigError(f"{name!r} of --agent.mounts holds more than a program may see: name folders below it.")
        found.append(path)
    unique = sorted(set(found))
    return [path for path in unique if not any(path != each and path.is_relative_to(each) for each in unique)]


def hidden(paths: Sequence[Path]) -> list[Path]:
    """Return the folders of turngym among those that are seen, which hold the solutions of its environments."""
    place = Path(turngym.__file__).parent
    real = {place.resolve(), *(each.resolve() for each in place.iterdir() if each.is_dir())}
    real |= {Path(sysconfig.get_path(name)) / "turngym" for name in ("purelib", "platlib")}
    tops = [SYSTEM, *paths]
    seen = {each for each in real if each.is_dir() and any(each.is_relative_to(top) for top in tops)}
    return sorted(each for each in seen if not any(each != other and each.is_relative_to(other) for other in seen))


def system_arguments() -> list[str]:
    """Return the arguments for Bubblewrap that show the system."""
    return [*same_place([str(SYSTEM), *_LINKS]), *if_present(_SETTINGS)]
