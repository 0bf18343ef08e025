"""Dockerfiles whose effect can be had without Docker: files are copied, variables and the working directory are set."""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from turngym.envs.tools.harbor.files import MOST_BYTES, MOST_FILES, Entry, Tree, read_text, read_tree
from turngym.errors import ConfigError

LARGEST_DOCKERFILE = 256 * 1024
_HARMLESS = frozenset({"LABEL", "EXPOSE", "MAINTAINER", "CMD", "ENTRYPOINT", "STOPSIGNAL", "VOLUME", "HEALTHCHECK"})
"""Instructions without effect on files, variables and the working directory of a command."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "proc", "dev", "sys")
_SYSTEM_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "share", "include")
_ROOTS = ("root", "0", "root:root", "0:0")


class NeedsDocker(Exception):
    """The reason why a box cannot be made without Docker, as the end of a sentence."""


@dataclass
class Recipe:
    """Content of a box.

    Args:
        files: Path below ``/`` -> entry.
        env: Variables.
        workdir: Working directory.
    """

    files: dict[str, Entry] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"


def read_recipe(folder: Path) -> Recipe:
    """Return what the Dockerfile of a folder makes.

    Raises:
        NeedsDocker: It does more than copying files and setting variables, or there is none.
        ConfigError: It or a file of the folder cannot be read.
    """
    if not (folder / "Dockerfile").exists():
        if any((folder / f"docker-compose.{ending}").exists() for ending in ("yaml", "yml")):
            raise NeedsDocker("it has a docker-compose.yaml")
        return Recipe(workdir="/app")
    if (folder / ".dockerignore").exists() or (folder / "Dockerfile.dockerignore").exists():
        raise NeedsDocker("it has a .dockerignore")
    text = read_text(folder / "Dockerfile", LARGEST_DOCKERFILE)
    reader = _Reader(read_tree(folder))
    for instruction, rest in _instructions(text):
        reader.follow(instruction, rest)
        if len(reader.recipe.files) > MOST_FILES or reader.copied > MOST_BYTES:
            raise ConfigError(
                f"the Dockerfile in {folder} copies more than {MOST_FILES:,} files or {MOST_BYTES:,} bytes."
            )
    return reader.recipe


def _instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile and their arguments, continued lines joined."""
    found, parts = [], list[str]()
    for number, line in enumerate(text.splitlines()):
        stripped = line.strip()
        if stripped.startswith("#"):
            if number == 0 and re.match(r"#\s*escape\s*=", stripped):
                raise NeedsDocker("its Dockerfile has another escape character")
            continue
        if not stripped:
            continue
        parts.append(stripped.removesuffix("\\"))
        if not stripped.endswith("\\"):
            word, _, rest = " ".join(parts).strip().partition(" ")
            found.append((word.upper(), rest.strip()))
            parts = []
    if parts:
        word, _, rest = " ".join(parts).strip().partition(" ")
        found.append((word.upper(), rest.strip()))
    return found


class _Reader:
    """Follows instructions one by one."""

    def __init__(self, context: Tree) -> None:
        self.recipe = Recipe()
        self._context = context
        self._variables: dict[str, str] = {}
        self._is_started = False
        self.copied = 0

    def follow(self, instruction: str, rest: str) -> None:
        """Follow one instruction."""
        if instruction in _HARMLESS:
            return
        if instruction == "USER":
            if self._expanded(rest) not in _ROOTS:
                raise NeedsDocker(f"its Dockerfile changes the user to {rest[:40]}")
        elif instruction == "FROM":
            if self._is_started:
                raise NeedsDocker("its Dockerfile has several stages")
            self._is_started = True
        elif instruction == "ARG":
            name, sign, value = rest.partition("=")
            if sign:
                self._variables.setdefault(name.strip(), " ".join(_words(self._expanded(value))))
        elif instruction == "ENV":
            self._set(rest)
        elif instruction == "WORKDIR":
            path = " ".join(_words(self._expanded(rest)))
            self.recipe.workdir = posixpath.normpath(posixpath.join("/", self.recipe.workdir, path))
            self._add(self.recipe.workdir, Entry("folder", 0o755))
        elif instruction in ("COPY", "ADD"):
            self._copy(instruction, self._expanded(rest))
        else:
            raise NeedsDocker(f"its Dockerfile has {f'{instruction} {rest}'[:60].strip()}")

    def _expanded(self, text: str) -> str:
        known: Mapping[str, str] = {**self._variables, **self.recipe.env}
        text = _VARIABLE.sub(lambda found: known.get(found[1] or found[2], ""), text)
        if "${" in text:
            raise NeedsDocker("its Dockerfile expands a variable with a modifier")
        return text

    def _set(self, rest: str) -> None:
        words = _words(rest)
        if "=" not in words[0] if words else True:
            words = [rest.replace(" ", "=", 1)] if " " in rest else []
        if not words or not all("=" in word for word in words):
            raise NeedsDocker(f"its Dockerfile has ENV {rest[:40]}")
        for word in words:
            name, _, value = word.partition("=")
            self.recipe.env[name] = self._expanded(value)

    def _copy(self, instruction: str, rest: str) -> None:
        words = _json_words(rest) or _words(rest)
        options = [word for word in words if word.startswith("--")]
        if any(not each.startswith(("--chown=root", "--chown=0", "--link")) for each in options):
            raise NeedsDocker(f"its Dockerfile has {instruction} {options[0][:40]}")
        *sources, place = [word for word in words if not word.startswith("--")] or [""]
        if not sources or any(each.startswith("<<") for each in sources):
            raise NeedsDocker(f"its Dockerfile has {instruction} {rest[:40]}")
        target = posixpath.normpath(posixpath.join("/", self.recipe.workdir, place))
        is_folder = place.endswith(("/", "/.")) or place in (".", "..") or len(sources) > 1
        for source in sources:
            if instruction == "ADD" and ("://" in source or re.search(r"\.(tar|tgz|gz|bz2|xz|zst)\b", source)):
                raise NeedsDocker(f"its Dockerfile has ADD {source[:40]}")
            self._copy_one(source, target, is_folder)

    def _copy_one(self, source: str, target: str, is_folder: bool) -> None:
        pattern = posixpath.normpath(source.lstrip("/") or ".")
        if pattern == ".." or pattern.startswith("../"):
            raise NeedsDocker(f"its Dockerfile copies {source[:40]}, which is outside of its folder")
        names = [pattern] if pattern == "." or pattern in self._context else self._matching(pattern)
        if not names:
            raise NeedsDocker(f"its Dockerfile copies {source[:40]}, which is not in its folder")
        for name in names:
            entry = self._context.get(name)
            if entry is not None and entry.kind != "folder":
                is_inside = is_folder or len(names) > 1 or self._is_known_folder(target)
                self._add(posixpath.join(target, posixpath.basename(name)) if is_inside else target, entry)
                continue
            self._add(target, Entry("folder", 0o755))
            prefix = "" if name == "." else f"{name}/"
            for inner, each in self._context.items():
                if inner.startswith(prefix):
                    self._add(posixpath.join(target, inner.removeprefix(prefix)), each)

    def _matching(self, pattern: str) -> list[str]:
        depth = pattern.count("/")
        if pattern.count("*") + pattern.count("?") > 4:
            raise NeedsDocker(f"its Dockerfile copies the pattern {pattern[:40]}")
        return [name for name in self._context if name.count("/") == depth and fnmatch.fnmatchcase(name, pattern)]

    def _is_known_folder(self, target: str) -> bool:
        known = self.recipe.files.get(target.strip("/"))
        return target == "/" or (known is not None and known.kind == "folder")

    def _add(self, path: str, entry: Entry) -> None:
        """Add an entry and its parents; paths are normalised, so that none leaves the box."""
        parts = [part for part in posixpath.normpath(f"/{path}").split("/") if part]
        if parts[:1] and (parts[0] in _SYSTEM or (parts[0] == "usr" and parts[1:2] and parts[1] in _SYSTEM_USR)):
            raise NeedsDocker(f"its Dockerfile writes to /{'/'.join(parts)[:60]}")
        for count in range(1, len(parts)):
            self.recipe.files.setdefault("/".join(parts[:count]), Entry("folder", 0o755))
        self.copied += len(entry.data)
        if parts and not (entry.kind == "folder" and "/".join(parts) in self.recipe.files):
            self.recipe.files["/".join(parts)] = entry


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise NeedsDocker(f"its Dockerfile has an open quotation ({text[:40]})") from error


def _json_words(text: str) -> list[str]:
    if not text.startswith("["):
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else []
