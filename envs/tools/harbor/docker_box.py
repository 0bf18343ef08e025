"""Boxes in Docker: containers of a task's image."""

from __future__ import annotations

import contextlib
import io
import posixpath
import selectors
import struct
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from turngym.envs.tools.harbor.box import LARGEST_REWARD, Box, BoxError, BoxLost, Ran
from turngym.envs.tools.harbor.docker_images import archive, client
from turngym.envs.tools.harbor.files import Entry, packed_rows, unpacked
from turngym.envs.tools.harbor.inside import add
from turngym.envs.tools.harbor.settings import BoxSettings
from turngym.envs.tools.sandbox.docker import LABEL
from turngym.envs.tools.sandbox.owners import mark
from turngym.envs.tools.sandbox.seccomp import docker_profile
from turngym.errors import ConfigError, SnapshotUnsupported

_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]
_PROCESSES = 512
_POLL_SECONDS = 0.05
_DRAIN_SECONDS = 0.5  # without output after the end of a command
_HEADER = struct.Struct(">BxxxL")
_PREPARED = ("/tests", "/logs/agent", "/logs/verifier", "/logs/artifacts")
_INSIDE, _FOLDER = "/logs/artifacts/.inside", "/logs/artifacts/.outside"
_sharing: set[str] = set()
"""Runtimes whose containers share their files with the engine, as one of them has shown."""


class DockerBox(Box):
    """A container without network, whose user is that of the image.

    Args:
        image: Its image.
        settings: Memory, processors and working directory.
        env: Variables of every command.
        runtime: Runtime of Docker, such as ``"runsc"``; the engine's own if empty.
        network: Whether it has a network.

    Raises:
        BoxError: It does not start.
        ConfigError: The runtime keeps files of containers from the engine.
    """

    def __init__(
        self, image: str, settings: BoxSettings, env: Mapping[str, str], runtime: str = "", network: bool = False
    ) -> None:
        import docker
        import requests

        self._client = client()
        memory = f"{int(max(64, settings.memory_mib))}m"
        try:
            about = self._client.images.get(image).attrs.get("Config") or {}
            super().__init__(env, settings.workdir or str(about.get("WorkingDir") or "/"))
            self._container: Any = self._client.containers.create(
                image,
                entrypoint=["sleep"],
                command=["infinity"],
                network_mode="bridge" if network else "none",
                hostname="box",
                mem_limit=memory,
                memswap_limit=memory,
                nano_cpus=int(settings.cpus * 1e9),
                pids_limit=_PROCESSES,
                cap_drop=["ALL"],
                cap_add=_CAPABILITIES,
                security_opt=["no-new-privileges", f"seccomp={docker_profile()}"],
                log_config={"Type": "none", "Config": {}},
                labels={LABEL: mark()},
                **({"runtime": runtime} if runtime else {}),
            )
            self._container.start()
        except (docker.errors.DockerException, requests.RequestException) as error:
            self.close()
            raise BoxError(f"the container does not start: {str(error)[:300]}.") from error
        folders = {folder.lstrip("/"): Entry("folder", 0o777) for folder in (*_PREPARED, self.workdir)}
        self._extract((name, entry, 0) for name, entry in folders.items() if name)
        self._require_shared_files(runtime)
        self._shell = self._find_shell()

    def _require_shared_files(self, runtime: str) -> None:
        """Raise unless the engine and processes in the container see the same files, which gVisor may keep apart."""
        if runtime in _sharing:
            return
        tries = f"mkdir {_FOLDER}; ls {_FOLDER}; rm -r {_FOLDER}; touch {_INSIDE}"
        self._executed(["/bin/sh", "-c", tries], self.env, 60, "0")
        self._extract([(_FOLDER, Entry("folder", 0o755), 0), (f"{_FOLDER}/file", Entry("file", 0o644), 0)])
        found = self._executed(["/bin/sh", "-c", f"cat {_FOLDER}/file"], self.env, 60, "0")
        if found.code or not self._exists(_INSIDE):
            self.close()
            raise ConfigError(
                f"the runtime {runtime or 'of the engine'} keeps a container's files from the engine, so that no task "
                'can be judged: add "--overlay2=none" and "--file-access=shared" to its runtimeArgs in '
                "/etc/docker/daemon.json, and restart the engine."
            )
        self._executed(["/bin/sh", "-c", f"rm -r {_INSIDE} {_FOLDER}"], self.env, 60, "0")
        _sharing.add(runtime)

    def _find_shell(self) -> str:
        for shell in ("/bin/bash", "/usr/bin/bash"):
            if self._exists(shell):
                return shell
        return "/bin/sh"

    def run(self, command: str, env: Mapping[str, str], seconds: float, *, stay: bool = False, user: str = "") -> Ran:
        """Run a command in a new shell."""
        ran = self._executed([self._shell, "-c", command], {**self.env, **env}, seconds, user)
        if ran.is_late or (not stay and self.has_processes()):
            self.end_processes()
        return ran

    def _executed(self, command: Sequence[str], env: Mapping[str, str], seconds: float, user: str) -> Ran:
        api, deadline = self._client.api, time.monotonic() + seconds
        head, tail, total = bytearray(), bytearray(), 0
        with self._errors("run"):
            found = api.exec_create(
                self._container.id, list(command), environment=dict(env), workdir=self.workdir, user=user
            )
            stream = api.exec_start(found["Id"], socket=True)
            try:
                is_late = False
                for piece in self._pieces(stream, found["Id"], deadline):
                    if piece is None:
                        is_late = True
                        break
                    add(head, tail, piece)
                    total += len(piece)
            finally:
                for each in (getattr(stream, "_sock", stream), stream):
                    each.close()
            code = api.exec_inspect(found["Id"])["ExitCode"]
        left_out = total - len(head) - len(tail)
        between = f"\n... {left_out} bytes left out ...\n" if left_out > 0 else ""
        output = f"{head.decode('utf8', 'replace')}{between}{tail.decode('utf8', 'replace')}"
        return Ran(137 if code is None else int(code), output, is_late)

    def _pieces(self, stream: Any, name: str, deadline: float) -> Iterator[bytes | None]:
        """Yield output until the command has ended; None at the deadline.

        A process that the command has left behind may hold the output open. So what ends it as well is a pause
        after the command's end: output written just before that may still be on its way through the engine.
        """
        raw, data, has_ended = getattr(stream, "_sock", stream), bytearray(), False
        raw.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(raw, selectors.EVENT_READ)
            while True:
                if time.monotonic() > deadline:
                    yield None
                    return
                if not selector.select(_DRAIN_SECONDS if has_ended else _POLL_SECONDS):
                    if has_ended:
                        return
                    has_ended = not self._client.api.exec_inspect(name)["Running"]
                    continue
                try:
                    read = raw.recv(65536)
                except BlockingIOError:
                    continue
                if not read:
                    return
                data += read
                yield from _frames(data)

    def put(self, tree: str, root: str, *, empty: bool = False) -> None:
        """Write a packed tree below a folder; that nothing else is there is checked from outside."""
        try:
            rows = unpacked(tree)
        except (ValueError, TypeError) as error:
            raise BoxError(f"the box cannot put what is not a packed tree: {error}.") from error
        place = root.strip("/")
        if empty and place:
            self._executed(["/bin/sh", "-c", f"rm -rf /{place}"], self.env, 60, "0")
            if self._exists(root):
                raise BoxLost(f"{root} cannot be emptied.")
        parents = [(place, Entry("folder", 0o777), 0)] if place else []
        self._extract([*parents, *((posixpath.join(place, name), entry, stamp) for name, entry, stamp in rows if name)])

    def _extract(self, rows: Iterable[tuple[str, Entry, int]]) -> None:
        with self._errors("put"):
            self._container.put_archive("/", archive(rows))

    def get(self, paths: Sequence[str], most: int) -> str | None:
        """Return a packed tree of paths; None if it is too large.

        Raises:
            SnapshotUnsupported: It is the whole box, which is an image and more.
        """
        if "/" in paths:
            raise SnapshotUnsupported("boxes of Docker have no snapshots: use bubblewrap where the task allows it.")
        rows: list[tuple[str, Entry, int]] = []
        for path in paths:
            data = self._archive(path, most)
            if data is None:
                return None
            with tarfile.open(fileobj=io.BytesIO(data)) as found:
                parent = posixpath.dirname(posixpath.normpath(path)).lstrip("/")
                rows += list(_rows(found, parent)) if data else []
        return packed_rows(rows)

    def rewards(self, folder: str) -> dict[str, str | None]:
        """Return name -> text of the files of rewards, read from outside of the container."""
        found: dict[str, str | None] = {}
        for name in ("reward.json", "reward.txt"):
            path = posixpath.join(folder, name)
            if self._exists(path):
                found[name] = _only_file(self._archive(path, LARGEST_REWARD + 10_240) or b"")
        return found

    def _exists(self, path: str) -> bool:
        with self._errors("look"):
            return bool(self._client.api.head(self._address(), params={"path": path}, timeout=60).status_code == 200)

    def _archive(self, path: str, most: int) -> bytes | None:
        """Return the archive of a path, None if it is too large; an empty one for a missing path."""
        data = bytearray()
        with (
            self._errors("get"),
            self._client.api.get(self._address(), params={"path": path}, stream=True, timeout=60) as found,
        ):
            if found.status_code != 200:
                return archive([])
            for piece in found.iter_content(65536):
                data += piece
                if len(data) > most:
                    return None
        return bytes(data)

    def _address(self) -> str:
        return f"{self._client.api.base_url}/v{self._client.api.api_version}/containers/{self._container.id}/archive"

    def end_processes(self) -> None:
        """End every process of the box from outside, and keep its files."""
        with self._errors("restart"):
            self._container.restart(timeout=0)

    def has_processes(self) -> bool:
        """Return whether processes of earlier commands run."""
        with self._errors("list processes"):
            return len(self._container.top(ps_args="-eo pid")["Processes"]) > 1

    def close(self) -> None:
        """Remove the box; calling it again has no effect."""
        import docker
        import requests

        container, self._container = getattr(self, "_container", None), None
        if container is not None:
            with contextlib.suppress(docker.errors.APIError, requests.RequestException):
                container.remove(force=True, v=True)

    @contextlib.contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        """Raise BoxError for errors of the engine."""
        import docker
        import requests

        try:
            yield
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
                self._container.reload()
                if self._container.status != "running":
                    raise BoxLost("the box has ended: its processes took more memory than they may.") from error
            raise BoxError(f"the box cannot {verb}: {str(error)[:300]}.") from error


def _rows(found: tarfile.TarFile, parent: str) -> Iterator[tuple[str, Entry, int]]:
    for each in found:
        name, stamp = posixpath.join(parent, posixpath.normpath(f"/{each.name}").lstrip("/")), int(each.mtime) * 10**9
        if each.isdir():
            yield name, Entry("folder", each.mode), stamp
        elif each.issym():
            yield name, Entry("link", each.mode, each.linkname.encode()), stamp
        elif each.isreg() and (file := found.extractfile(each)) is not None:
            yield name, Entry("file", each.mode, file.read()), stamp


def _only_file(data: bytes) -> str | None:
    """Return the text of an archive's only file, None if it holds something else."""
    with contextlib.suppress(tarfile.TarError), tarfile.open(fileobj=io.BytesIO(data)) as found:
        first = found.next()
        if first is not None and first.isreg() and (file := found.extractfile(first)) is not None:
            return file.read(LARGEST_REWARD + 1).decode("utf8", "replace")
    return None


def _frames(data: bytearray) -> Iterator[bytes]:
    """Yield the whole pieces of output in what the engine sent, which are taken out of it."""
    while len(data) >= _HEADER.size:
        _, length = _HEADER.unpack_from(data)
        if len(data) < _HEADER.size + length:
            return
        yield bytes(data[_HEADER.size : _HEADER.size + length])
        del data[: _HEADER.size + length]
