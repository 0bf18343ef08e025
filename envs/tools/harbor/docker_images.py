"""Images of boxes in Docker, built once and kept under a name that follows their files."""

from __future__ import annotations

import hashlib
import io
import tarfile
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from turngym.envs.tools.harbor.box import BoxError
from turngym.envs.tools.harbor.files import Entry, read_tree
from turngym.envs.tools.harbor.settings import BoxSettings
from turngym.envs.tools.sandbox.docker import engine
from turngym.errors import MissingExtra

_FEATURE = "turngym/Harbor-v0 with Docker"
_IMAGES = "turngym-harbor"
_KINDS = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


@cache
def client() -> Any:
    """Return the engine of this process.

    Raises:
        MissingExtra: The package docker or the engine is missing.
    """
    return engine(_FEATURE)


def image_of(folder: Path, settings: BoxSettings) -> str:
    """Return the image of a folder with a Dockerfile, built now unless it is there, or the one that is named.

    Raises:
        MissingExtra: The image that is named is not there, or there is no Dockerfile.
        BoxError: It cannot be built.
    """
    import docker

    files = read_tree(folder)
    if "Dockerfile" not in files:
        if not settings.image:
            raise MissingExtra(f"{folder} has no Dockerfile, and task.toml names no docker_image: Docker needs one.")
        try:
            client().images.get(settings.image)
        except docker.errors.ImageNotFound:
            raise MissingExtra(f"the task needs the image {settings.image}: docker pull {settings.image}.") from None
        return settings.image
    text = repr([(name, *entry) for name, entry in files.items()])
    name = f"{_IMAGES}:{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    try:
        client().images.get(name)
    except docker.errors.ImageNotFound:
        _build(name, archive((name, entry, 0) for name, entry in files.items()), settings.build_seconds)
    return name


def _build(name: str, context: bytes, seconds: float) -> None:
    import docker
    import requests

    deadline, last = time.monotonic() + seconds, ""
    try:
        for line in client().api.build(
            fileobj=io.BytesIO(context), custom_context=True, tag=name, rm=True, forcerm=True, decode=True, timeout=60
        ):
            last = str(line.get("error") or line.get("stream") or last).strip()
            if "error" in line:
                raise BoxError(f"the image of the task cannot be built: {last[:300]}.")
            if time.monotonic() > deadline:
                raise BoxError(f"the image of the task was not built in {seconds:g} seconds; last: {last[:200]}.")
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise BoxError(f"the image of the task cannot be built: {str(error)[:300]}.") from error


def archive(rows: Iterable[tuple[str, Entry, int]]) -> bytes:
    """Return files as a tar archive of root's."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, entry, stamp in rows:
            if entry.kind not in _KINDS:
                continue
            about = tarfile.TarInfo(name.lstrip("/"))
            about.type, about.mode, about.mtime = _KINDS[entry.kind], entry.mode, stamp // 10**9
            if entry.kind == "link":
                about.linkname = entry.data.decode("utf8", "replace")
            about.size = len(entry.data) if entry.kind == "file" else 0
            made.addfile(about, io.BytesIO(entry.data) if about.size else None)
    return out.getvalue()
