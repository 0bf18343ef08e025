"""The sandbox backends that the attack suite runs against, and a Docker engine of the tests' own."""

import atexit
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from turngym.envs.tools.sandbox import Limits, Sandbox, make_sandbox

IMAGE = "turngym-sandbox"
SHARED = "runsc-shared"
"""Name of gVisor with files that the engine sees."""
LIMITS = Limits(wall_seconds=10.0, memory_mib=256, processes=16, scratch_mib=8, file_mib=4)
"""What attacks may use."""
BACKENDS = [
    pytest.param(
        "bubblewrap",
        marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
    ),
    pytest.param("docker", marks=pytest.mark.integration),
    pytest.param(
        "gvisor",
        marks=[
            pytest.mark.integration,
            pytest.mark.skipif(shutil.which("runsc") is None, reason="runsc (gVisor) is not installed"),
        ],
    ),
]
_PROGRAMS = ("dockerd", "debootstrap", "containerd")


class EngineMissing(RuntimeError):
    """No engine can be started here; the text says why."""


class Backend(NamedTuple):
    """A backend and what it is told."""

    name: str
    options: dict[str, Any]

    @property
    def is_gvisor(self) -> bool:
        """Whether the kernel that code sees is gVisor's."""
        return "runtime" in self.options

    def make(self, limits: Limits | None = None) -> Sandbox:
        """Return a sandbox."""
        return make_sandbox(self.name, limits, **self.options)


def backend_of(name: str) -> Backend:
    """Return a backend; for docker and gVisor an engine runs from then on, or the test is skipped."""
    if name == "bubblewrap":
        return Backend(name, {})
    options = {"image": IMAGE, "url": engine_url()}
    return Backend("docker", {**options, "runtime": "runsc"} if name == "gvisor" else options)


@cache
def _engine() -> tuple[str, str]:
    """Return where the engine of this process listens, or why there is none."""
    if problem := missing():
        return "", problem
    opened = ExitStack()
    try:
        url = opened.enter_context(engine())
    except EngineMissing as error:
        return "", str(error)
    atexit.register(opened.close)
    return url, ""


def engine_url() -> str:
    """Return where the engine listens that all tests of this process share; without one the test is skipped."""
    url, problem = _engine()
    if not url:
        pytest.skip(problem)
    return url


def missing() -> str:
    """Return why no engine can be started here, empty for nothing."""
    if importlib.util.find_spec("docker") is None:
        return "the package docker is not installed (make test-integration)"
    if os.geteuid() != 0:
        return "only root can start an engine"
    absent = [name for name in _PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    return f"not installed: {', '.join(absent)} (apt-get install docker.io debootstrap)" if absent else ""


@contextmanager
def engine() -> Iterator[str]:
    """Start an engine without network, with the image; gives where it listens."""
    data = Path(os.environ.get("TURNGYM_DOCKER_ROOT", "/var/tmp/turngym-docker"))
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tgd") as folder, open(f"{folder}/log", "wb") as log:
        url = f"unix://{folder}/sock"
        command = ["dockerd", "--storage-driver=overlay2", "--iptables=false", "--bridge=none", "-H", url]
        command += [f"--data-root={folder}/data", f"--exec-root={folder}/exec", "-p", f"{folder}/pid"]
        if runsc := shutil.which("runsc"):  # these arguments let it run within containers too
            words = ["--ignore-cgroups", "--network=none", "--platform=ptrace"]
            shared = [*words, "--overlay2=none", "--file-access=shared"]
            runtimes = {
                name: {"path": runsc, "runtimeArgs": each} for name, each in (("runsc", words), (SHARED, shared))
            }
            Path(folder, "daemon.json").write_text(json.dumps({"runtimes": runtimes}), "utf8")
            command += [f"--config-file={folder}/daemon.json"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_for(process, Path(folder, "log"))
            _import_image(url, _root_folder(data))
            yield url
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while "API listen on" not in log.read_text("utf8", "replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise EngineMissing(f"the Docker engine does not start here: {log.read_text('utf8', 'replace')[-500:]}")
        time.sleep(0.2)


def _root_folder(data: Path) -> Path:
    """Return an unpacked system with Python, made once."""
    root, part = data / "root", data / "root.part"
    if not (root / "usr/bin/python3").exists():
        shutil.rmtree(part, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", "--include=python3", "bookworm", str(part)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineMissing(f"no image can be made: {done.stdout[-300:]}{done.stderr[-300:]}")
        part.rename(root)
    return root


def _import_image(url: str, root: Path) -> None:
    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as archive:
        command = ["docker", "-H", url, "import", "-", f"{IMAGE}:latest"]
        subprocess.run(command, stdin=archive.stdout, check=True, capture_output=True)


def run_lines(sandbox: Sandbox, code: str) -> list[str]:
    """Run code that prints its findings; returns the lines."""
    found = sandbox.run(code)
    assert found.status == "ok", found
    return found.stdout.splitlines()
