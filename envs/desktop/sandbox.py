"""The sandbox of one desktop: Bubblewrap, without network; the host's programs but none of its Python packages."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path

from turngym.envs.tools.sandbox.launcher import if_present, isolation, variables
from turngym.envs.tools.sandbox.programs import system_programs
from turngym.errors import MissingExtra

PYTHON = "/usr/bin/python3"
PACKAGES = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "mousepad": "mousepad",
    "gnumeric": "gnumeric",
    "bwrap": "bubblewrap",
    PYTHON: "python3",
}
"""Program -> Debian package."""
FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
_APT = f"apt-get install --no-install-recommends {' '.join(PACKAGES.values())} fonts-dejavu-core"
_MODULES = ("inside", "keys", "rest", "screen")
_SETTINGS = Path(__file__).parent / "data"
_SYSTEM = ("/etc/fonts", "/etc/alternatives", "/etc/ld.so.cache", "/etc/X11", "/var/cache/fontconfig")
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/user",
    "USER": "user",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "DISPLAY": ":0",
    "PYTHONPATH": "/opt",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GSETTINGS_BACKEND": "keyfile",
    "GTK_THEME": "Adwaita",
    "GTK_IM_MODULE": "gtk-im-context-simple",
    "GTK_OVERLAY_SCROLLING": "0",
    "GDK_BACKEND": "x11",
    "NO_AT_BRIDGE": "1",
    "GIO_USE_VFS": "local",
    "GVFS_DISABLE_FUSE": "1",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
    "LIBGL_ALWAYS_SOFTWARE": "1",
    "MALLOC_ARENA_MAX": "2",
}


def require_programs(feature: str) -> None:
    """Raise unless everything that a desktop needs is installed.

    Args:
        feature: Component that needs it, for the message.

    Raises:
        MissingExtra: A program, the font or the package python-xlib is missing; the message says how to install it.
    """
    missing = [program for program in PACKAGES if shutil.which(program) is None]
    if not FONT.exists():
        missing.append("the font DejaVu Sans")
    fixes = [_APT] if missing else []
    if not all(map(importlib.util.find_spec, ("Xlib", "six"))):
        missing.append("the package python-xlib")
        fixes.append('pip install "turngym[desktop]"')
    if missing:
        raise MissingExtra(f"{feature} needs {', '.join(missing)}, not installed here: {'; '.join(fixes)}.")


def command(scratch: Path) -> list[str]:
    """Return the command that starts a desktop.

    Args:
        scratch: Folder of the slot: ``home`` is the user's, ``screen`` holds the picture.
    """
    return [
        *(str(shutil.which("bwrap")), *isolation(1000, "desktop")),
        *(*system_programs(), *if_present(_SYSTEM)),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/tmp/.X11-unix", "--perms", "0700"),
        *("--dir", "/run/user", "--setenv", "XDG_RUNTIME_DIR", "/run/user"),
        *("--bind", str(scratch / "home"), "/home/user", "--bind", str(scratch / "screen"), "/screen"),
        *_bound(scratch / "passwd", "/etc/passwd"),
        *_bound(_SETTINGS / "openbox.xml", "/etc/openbox.xml"),
        *_bound(_SETTINGS / "settings.ini", "/etc/gtk-3.0/settings.ini"),
        *(*_libraries(), *variables(ENVIRONMENT)),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/home/user", "--"),
        *(PYTHON, "-s", "-S", "-m", "turngym.envs.desktop.inside"),
    ]


def _bound(source: Path, place: str) -> Sequence[str]:
    return "--ro-bind", str(source), place


def _libraries() -> list[str]:
    """Return the arguments that make only this package's modules and python-xlib importable inside."""
    here = Path(__file__).resolve().parent
    found = [word for name in _MODULES for word in _bound(here / f"{name}.py", f"/opt/turngym/envs/desktop/{name}.py")]
    for package in ("Xlib", "six"):
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.origin is not None
        path = Path(spec.origin).resolve()
        path = path.parent if path.name == "__init__.py" else path
        found += _bound(path, f"/opt/{path.name}")
    return found
