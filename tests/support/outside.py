"""Packages of third parties, built and installed for tests into folders of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import warm

SAMPLE = Path(__file__).parents[1] / "sample_plugin"


def build_and_install(source: Path, folder: Path) -> Path:
    """Build a wheel of a package and return a folder in which it is installed."""
    copy, wheels, site = folder / "source", folder / "wheels", folder / "site"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))  # a build writes beside the sources
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    quiet = {"check": True, "capture_output": True, "text": True}
    build = [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(wheels), str(copy)]
    subprocess.run(build, **quiet)  # type: ignore[call-overload]
    (wheel,) = wheels.glob("*.whl")
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run(install, **quiet)  # type: ignore[call-overload]
    return site


def write_plugin(folder: Path, name: str, code: str, entries: str = "") -> Path:
    """Write a module and the data that an installation would leave beside it; return the folder.

    Args:
        folder: Where to write.
        name: Name of the module; the package has it too, and version 0.1.
        code: The module.
        entries: Lines of the entry points; one that imports the module unless given.
    """
    data = folder / f"{name}-0.1.dist-info"
    data.mkdir(parents=True)
    (data / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    (data / "entry_points.txt").write_text(f"[turngym.plugins]\n{entries or f'main = {name}'}\n")
    (folder / f"{name}.py").write_text(code)
    return folder


def python(*words: str, site: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of a folder, in a fork of a process that knows none of them."""
    paths = os.environ | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    return warm.run(*words, cwd=cwd, env=paths)


def turngym(*words: str, site: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line with the packages of a folder."""
    return python("-m", "turngym", *words, site=site, cwd=cwd)
