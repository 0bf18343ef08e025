"""The package as users get it: sdist and wheel, and environments that hold one extra and nothing else."""

import functools
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
_WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"

_ATTEMPTS = """
import contextlib, io, json
from turngym.__main__ import main
found = []
for name, words in commands.items():
    head, _, code = words.partition("python: ")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            status = main(words.split()) if head else exec(code)
        except SystemExit as ended:
            status = ended.code
        except ImportError as error:
            status = 1
            print(error, file=told)
    found.append([name, status or 0, told.getvalue()])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Built:
    """What was built, and the folder in which the wheel is installed."""

    sdist: Path
    wheel: Path
    site: Path


def project() -> dict[str, object]:
    """Return the table ``project`` of pyproject.toml."""
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    return found


def extras() -> dict[str, list[str]]:
    """Return each extra's requirements."""
    found = project()["optional-dependencies"]
    assert isinstance(found, dict)
    return found


def build(folder: Path) -> Built:
    """Build an sdist of the checkout, a wheel of that sdist, and install the wheel; nothing is downloaded."""
    source, out, site = folder / "source", folder / "dist", folder / "site"
    _copy_checkout(source)
    _python(_SDIST, str(out), cwd=source)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # as of Python 3.11.4
        archive.extractall(folder / "unpacked", **safely)
    (unpacked,) = (folder / "unpacked").iterdir()
    _python(_WHEEL, str(out), cwd=unpacked)
    (wheel,) = out.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(wheel)], check=True)
    return Built(sdist, wheel, site)


def _copy_checkout(target: Path) -> None:
    """Copy what belongs to the project: without environments, caches and the history."""
    left_out = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "runs", "*.egg-info", "site")
    shutil.copytree(ROOT, target, symlinks=True, ignore=left_out)


def _python(code: str, *words: str, cwd: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def environment(built: Built, folder: Path, extra: str = "") -> Path:
    """Make an environment with the wheel, what it requires, and what one extra requires; return its folder.

    The packages are links to those that are installed here.

    Raises:
        ImportError: A package of the extra is not installed here.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-I", "-c", code], check=True, capture_output=True, text=True)
    site = Path(found.stdout.strip())
    for path in [*built.site.iterdir(), *_installed(_required(extra))]:
        if path.name not in ("bin", "__pycache__") and not (site / path.name).exists():
            (site / path.name).symlink_to(path)
    shutil.copytree(built.site / "bin", folder / "bin", dirs_exist_ok=True)
    script = folder / "bin" / "turngym"
    script.write_text(re.sub(r"\A#!.*", f"#!{python}", script.read_text("utf8")), "utf8")
    return folder


def run(folder: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed command ``turngym``."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(folder / "bin" / "turngym"), *words]
    return subprocess.run(command, env=clean, cwd=cwd, capture_output=True, text=True, check=False)


def python(folder: Path, code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of Python in an environment."""
    clean = {name: value for name, value in os.environ.items() if name != "ALFWORLD_DATA"}
    command = [str(folder / "bin" / "python"), "-I", "-c", code]
    return subprocess.run(command, env=clean, cwd=cwd, capture_output=True, text=True, check=False)


def attempts(folder: Path, commands: Mapping[str, str], cwd: Path) -> dict[str, tuple[int, str]]:
    """Run commands, or the code that follows ``python:``, one after another in one process of an environment.

    Returns:
        The name of each -> its exit status and what it wrote to standard error.
    """
    done = python(folder, f"commands = {dict(commands)!r}\n{_ATTEMPTS}", cwd)
    assert done.returncode == 0, done.stderr
    return {name: (status, text) for name, status, text in json.loads(done.stdout.splitlines()[-1])}


def _required(extra: str) -> list[str]:
    """Return the requirements of the package alone, or with one extra, extras that it names resolved."""
    found = project()["dependencies"]
    assert isinstance(found, list)
    lines = [str(line) for line in found]
    wanted = [extra] if extra else []
    while wanted:
        for line in extras()[wanted.pop()]:
            requirement = Requirement(line)
            if requirement.name == "turngym":
                wanted += requirement.extras
            else:
                lines.append(line)
    return lines


def _installed(requirements: Sequence[str]) -> Iterator[Path]:
    """Yield the files and folders, at the top of where packages lie, of some packages and all that they require."""
    seen: set[str] = set()
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        key = f"{name}[{','.join(sorted(requirement.extras))}]"
        if key in seen or (requirement.marker and not _applies(requirement)):
            continue
        seen.add(key)
        try:
            distribution = importlib.metadata.distribution(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            raise ImportError(f"the package {requirement.name} is not installed here") from None
        yield from _tops(distribution)
        for line in distribution.requires or []:
            inner = Requirement(line)
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in ["", *requirement.extras]):
                waiting.append(Requirement(f"{inner.name}{_brackets(inner)}"))


def _brackets(requirement: Requirement) -> str:
    return f"[{','.join(requirement.extras)}]" if requirement.extras else ""


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


@functools.cache
def _site() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _tops(distribution: importlib.metadata.Distribution) -> Iterator[Path]:
    names = {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}
    yield from (_site() / name for name in sorted(names))
