"""Docker: a container for each session, without network, capabilities or a file system that could be written.

The image needs only Python: ``python:3-slim``, or a custom one. The package ``docker`` must be able to reach an engine
(``DOCKER_HOST``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import socket
import struct
import time
from typing import Any

from turngym.envs.tools.sandbox.host import (
    ENVIRONMENT,
    READY,
    SHARED_BYTES,
    START_SECONDS,
    DriverSession,
    SandboxError,
    driver_arguments,
)
from turngym.envs.tools.sandbox.owners import is_gone, mark, user_number
from turngym.envs.tools.sandbox.protocol import SANDBOXES, Limits, Sandbox
from turngym.envs.tools.sandbox.seccomp import docker_profile
from turngym.errors import MissingExtra, missing_extra

IMAGE = "python:3-slim"
_API = "1.41"
"""Spoken by every engine since Docker 20.10."""
_HEADER = struct.Struct(">BxxxL")
_FIRST_USER = 1_000_000_000
_HELPERS = 8
_users = itertools.count()
LABEL = "turngym"
"""Says whose a container is."""


@SANDBOXES.register("docker")
class Docker(Sandbox):
    """Sessions in containers of a Docker engine.

    Args:
        limits: Limits of code.
        image: The image, with Python in its path. It must exist already: nothing is downloaded.
        runtime: Another runtime of the engine, such as ``"runsc"`` (gVisor), which keeps code away from the kernel.
        python: The interpreter inside.
        cpus: Processors that a session may use at once.
        url: Address of the engine; ``DOCKER_HOST`` or the usual socket by default.

    Raises:
        MissingExtra: The package, the engine or the image is missing.
    """

    stops = (
        "Stops: network, files of the host, environment variables, signals to and sight of other processes, new "
        "privileges and capabilities, calls of the kernel that ordinary programs do not need, too much memory, "
        "processor time, processes, output and files. Does not stop: faults in the rest of the kernel; the runtime "
        "runsc does, in whose own kernel code may make namespaces, which lead nowhere. Where runsc is started with "
        "--ignore-cgroups, each process has its memory limit alone, and all of them together have none."
    )

    def __init__(
        self,
        limits: Limits | None = None,
        image: str = IMAGE,
        runtime: str = "",
        python: str = "python3",
        cpus: float = 1.0,
        url: str = "",
    ) -> None:
        super().__init__(limits)
        self._image, self._runtime, self._python, self._cpus = image, runtime, python, cpus
        self._client = engine("the sandbox docker", url)
        require_image(self._client, "the sandbox docker", image)

    def session(self) -> DockerSession:
        """Return a fresh session."""
        return DockerSession(self._client, self._settings, self.limits)

    def _settings(self) -> dict[str, Any]:
        """Return how one container is made."""
        limits, user = self.limits, _FIRST_USER + user_number(next(_users))
        memory = int((limits.memory_mib + limits.scratch_mib) * 1024 * 1024)
        scratch = int(limits.scratch_mib * 1024 * 1024)
        return {
            "image": self._image,
            "command": [self._python, *driver_arguments(limits)],
            "environment": ENVIRONMENT,
            "user": f"{user}:{user}",  # process limits count per user, so this user must be unique
            "hostname": "sandbox",
            "working_dir": "/tmp",
            "stdin_open": True,
            "network_mode": "none",
            "read_only": True,
            "tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={scratch},mode=1777"},
            "shm_size": SHARED_BYTES,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges", f"seccomp={docker_profile()}"],
            "mem_limit": memory,
            "memswap_limit": memory,
            "nano_cpus": int(self._cpus * 1e9),
            "pids_limit": int(limits.processes + _HELPERS),
            "init": False,  # the driver itself is process 1
            "ipc_mode": "private",
            "log_config": {"Type": "none", "Config": {}},
            "labels": {LABEL: mark()},
            **({"runtime": self._runtime} if self._runtime else {}),
        }

    def close(self) -> None:
        """Close the connection to the engine; sessions in use continue with their own."""
        self._client.close()


def engine(feature: str, url: str = "") -> Any:
    """Return a client of the Docker engine, without containers that killed processes have left behind.

    Args:
        feature: Component that needs it, for the message.
        url: Address of the engine; ``DOCKER_HOST`` or the usual socket by default.

    Raises:
        MissingExtra: The package or the engine is missing.
    """
    try:
        import docker
        import requests
    except ModuleNotFoundError:
        raise missing_extra(feature, "docker", "sandbox") from None
    no_engine, client = f"{feature} needs a running Docker engine ({{}}): start dockerd.", None
    try:
        _require_socket(url or os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
        told = {"version": _API, "timeout": 60}
        client = docker.DockerClient(base_url=url, **told) if url else docker.from_env(**told)
        _remove_stale(client)
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        if client is not None:
            client.close()
        raise MissingExtra(no_engine.format(error)) from error
    return client


def require_image(client: Any, feature: str, image: str) -> None:
    """Raise, and close the client, unless the engine has an image.

    Raises:
        MissingExtra: It has not, or does not answer.
    """
    import docker
    import requests

    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        client.close()
        raise MissingExtra(f"{feature} needs the image {image}: docker pull {image}.") from None
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        client.close()
        raise MissingExtra(f"{feature} needs a running Docker engine ({error}): start dockerd.") from error


def _remove_stale(client: Any) -> None:
    """Remove the containers left behind by killed processes."""
    import docker

    for container in client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True):
        if is_gone(container.labels.get(LABEL, "")):
            with contextlib.suppress(docker.errors.APIError):  # another process may be removing it
                container.remove(force=True, v=True)


def _require_socket(url: str) -> None:
    """Raise OSError unless something listens there; the package leaves sockets open where nothing does."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as tried:
            tried.connect(url.removeprefix("unix://"))


class DockerSession(DriverSession):
    """A container, its driver on the attached standard input and output.

    Args:
        client: The engine.
        settings: Returns how a container is made.
        limits: Limits of code.

    Raises:
        SandboxError: It does not start.
    """

    def __init__(self, client: Any, settings: Any, limits: Limits) -> None:
        self._client, self._settings = client, settings
        self._container: Any = None
        self._stream: Any = None
        super().__init__(limits)

    @property
    def is_alive(self) -> bool:
        """True if there is a container."""
        return self._container is not None

    def _start(self) -> None:
        import docker
        import requests

        self._buffer = bytearray()
        self._raw = bytearray()
        self._errors = bytearray()
        try:
            self._container = self._client.containers.create(**self._settings())
            wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._stream = self._container.attach_socket(params=wanted)
            self._socket = getattr(self._stream, "_sock", self._stream)
            self._socket.setblocking(False)
            self._container.start()
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            self.close()
            raise SandboxError(f"the container does not start: {error}.") from error
        if self._read_frame(START_SECONDS) != READY:
            told = bytes(self._errors[-2000:]).decode("utf8", "replace").strip()
            self.close()
            raise SandboxError(f"the container does not start: {told or 'no word'}.")

    def _wait(self, event: int, deadline: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, event)
            return bool(selector.select(max(0.0, deadline - time.monotonic())))

    def _write(self, data: bytes, seconds: float) -> bool:
        left, deadline = memoryview(data), time.monotonic() + seconds
        while left:
            if not self._wait(selectors.EVENT_WRITE, deadline):
                return False
            try:
                left = left[self._socket.send(left[:65536]) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def _read(self, seconds: float) -> bytes:
        """Return what came on standard output; the engine wraps pieces of both streams with their length."""
        deadline = time.monotonic() + seconds
        while True:
            if (found := self._unwrapped()) is not None:
                return found
            if not self._wait(selectors.EVENT_READ, deadline):
                return b""
            try:
                data = self._socket.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                return b""
            if not data:
                return b""
            self._raw += data

    def _unwrapped(self) -> bytes | None:
        """Return the next whole piece of standard output, None if there is none yet."""
        while len(self._raw) >= _HEADER.size:
            stream, length = _HEADER.unpack_from(self._raw)
            if len(self._raw) < _HEADER.size + length:
                return None
            piece = bytes(self._raw[_HEADER.size : _HEADER.size + length])
            del self._raw[: _HEADER.size + length]
            if stream == 1 and piece:
                return piece
            self._errors = (self._errors + piece)[-4000:]
        return None

    def close(self) -> None:
        """End everything inside, and remove the container."""
        import docker
        import requests

        stream, self._stream = self._stream, None
        container, self._container = self._container, None
        if stream is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            with contextlib.suppress(OSError):
                stream.close()
        if container is not None:
            with contextlib.suppress(docker.errors.APIError, requests.RequestException):
                container.remove(force=True, v=True)
