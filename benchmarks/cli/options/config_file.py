"""Options from a file: ``--config run.yaml``, whose keys are the names of a command's options."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from turngym.benchmarks.cli.options.usage import suggestion
from turngym.errors import ConfigError, MissingExtra
from turngym.options import OptionError, UnknownOption, kind_of
from turngym.storage.bounded import require_file
from turngym.storage.files import read_text, write_json
from turngym.storage.folders import Kind, require_kind
from turngym.text import valid_text

WRITTEN = "options.json"
"""File in the folder of an evaluation or tournament that starts an equal one."""
NOT_IN_FILES = ("config", "resume", "json")
"""Options that concern a single call of a command."""
_BYTE_ORDER_MARK = "\ufeff"
_KINDS: Mapping[str, Kind] = {"train": "training run", "eval": "evaluation", "tournament": "tournament"}
_LARGEST, _DEEPEST, _MOST_BITS = 2**18, 32, 1024
_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
_OLD_NUMBER = re.compile(r"[-+]?(0[0-9_]+|[0-9_]+(:[0-9_.]+)+)")
"""Octal and sexagesimal numbers of YAML 1.1: 010 would be 8, and 1:30 would be 90."""


def take_config(argv: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Return the file of ``--config``, and the words without it.

    Raises:
        ConfigError: There is no file after it, or it is given twice.

    >>> take_config(["--seed", "3", "--config=run.toml"])
    (PosixPath('run.toml'), ['--seed', '3'])
    """
    found: list[str] = []
    rest, words = list[str](), iter(argv)
    for word in words:
        name, sign, value = word.partition("=")
        if name == "--config":
            found.append(value if sign else next(words, ""))
        else:
            rest.append(word)
    if len(found) > 1 or found == [""]:
        raise ConfigError("--config takes one file: YAML, TOML or JSON, or the folder of a run.")
    return (Path(found[0]) if found else None), rest


def is_given(argv: Sequence[str], *names: str) -> bool:
    """Return whether a command line sets an option that has one of some names."""
    options = {f"--{name.replace('_', '-')}" for name in names}
    return any(word.partition("=")[0].replace("_", "-") in options for word in argv)


def read_config(path: Path, command: str) -> dict[str, Any]:
    """Return the content of a YAML, TOML or JSON file, or of the settings in the folder of a run.

    Args:
        path: The file or folder.
        command: The command whose options they are.

    Raises:
        ConfigError: It cannot be read, holds no table, or is the folder of another command's run.
        MissingExtra: It is YAML, and PyYAML is not installed.
    """
    if path.is_dir():
        require_kind(path, _KINDS[command])
        path = path / WRITTEN if (path / WRITTEN).is_file() else path / "config.json"
        if not path.exists():
            raise ConfigError(f"{path.parent} holds neither {WRITTEN} nor config.json: pass a file or a run's folder.")
    readers: dict[str, Callable[[str], Any]] = {
        ".json": partial(json.loads, object_pairs_hook=_table),
        ".toml": tomllib.loads,
        ".yaml": _read_yaml,
        ".yml": _read_yaml,
    }
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise ConfigError(f"--config takes a file that ends with {', '.join(readers)}, got {path}.")
    try:
        require_file(path, _LARGEST)
        content = readers[suffix](read_text(path).removeprefix(_BYTE_ORDER_MARK))
        require_plain(content, "", str(path))
    except OptionError:
        raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid {suffix[1:].upper()}: {error}".rstrip(".") + ".") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a table of options, such as `seed: 3`, got {type(content).__name__}.")
    return content


def _table(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a table whose keys are unique.

    Raises:
        ValueError: One is given twice.
    """
    found: dict[Any, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is given twice")
        found[key] = value
    return found


def require_plain(value: Any, name: str, owner: str) -> None:
    """Refuse a date, a set or bytes, which no option takes, and text that no file or process takes."""
    if isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value, 1):
            require_plain(inner, f"{name}.{key}".removeprefix("."), owner)
    elif isinstance(value, str) and ("\0" in value or valid_text(value) != value):
        raise OptionError(name, f"must be text without NUL and lone surrogates, got {value[:60]!r}.", owner)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise OptionError(name, f"must be a number below 2**{_MOST_BITS}, got one of {value.bit_length()} bits.", owner)
    elif not isinstance(value, str | bool | int | float | None):
        raise OptionError(
            name, f"must be text, a number, true, false, a list or a table, got {value!r}: quote it for text.", owner
        )


def _read_yaml(text: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "YAML needs the package pyyaml, which is not installed: pip install pyyaml, or write TOML or JSON."
        ) from error

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
        """Reads 1e-3 as a number, as YAML 1.2 does, and refuses a key that is given twice."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            if isinstance(node, yaml.MappingNode):
                _table((key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

        def construct_number(self, node: Any) -> Any:
            text = node.value
            if _OLD_NUMBER.fullmatch(text):
                raise ValueError(f"{text} is another number in YAML 1.1 than in 1.2: write it in decimal, or quote it")
            is_float = node.tag.endswith("float")
            return self.construct_yaml_float(node) if is_float else self.construct_yaml_int(node)

    for kind in ("int", "float"):
        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", Loader.construct_number)
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))
    try:
        depth = 0
        for event in yaml.parse(text, Loader=Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError(f"tables and lists are nested more than {_DEEPEST} deep")
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("aliases (*name) are not supported")
        return yaml.load(text, Loader=Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def checked(content: Mapping[Any, Any], hints: Mapping[str, Any], owner: str, command: str) -> dict[str, Any]:
    """Return dotted name -> value of the options in a file.

    Args:
        content: Content of the file: sections as tables or as dotted keys.
        hints: Name -> type of the options; a dataclass is a section.
        owner: The file, for messages.
        command: The command, for messages.

    Raises:
        OptionError: There is no such option, or a value has the wrong type or is out of its range.
    """
    found: dict[str, Any] = {}
    for name, value, hint in _walk(content, hints, hints, owner, command):
        if name in found:
            raise OptionError(name, "is given twice.", owner)
        found[name] = _value(name, value, hint, owner)
    return found


def _walk(
    content: Any, hints: Mapping[str, Any], all_hints: Mapping[str, Any], owner: str, command: str, prefix: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    if not isinstance(content, Mapping):
        raise OptionError(prefix.rstrip("."), f"must be a table of options, got {content!r}.", owner)
    for key, value in content.items():
        name, dot, rest = str(key).replace("-", "_").partition(".")
        hint = hints.get(name)
        if dataclasses.is_dataclass(hint):
            inner = {rest: value} if dot else value
            yield from _walk(inner, _hints(hint), all_hints, owner, command, f"{prefix}{name}.")
        elif dot or name not in hints or name in NOT_IN_FILES:
            raise _unknown(f"{prefix}{key}", all_hints, owner, command)
        else:
            yield prefix + name, value, hint


def _unknown(name: str, hints: Mapping[str, Any], owner: str, command: str) -> UnknownOption:
    known = [f"--{each.replace('_', '-')}" for each in _names(hints)]
    near = suggestion(f"--{name}", known).removeprefix("--").replace("-", "_")
    return UnknownOption(
        name, f"Did you mean {near!r}?" if near else f"`turngym {command} --help-all` shows all options.", owner
    )


def _names(hints: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, hint in hints.items():
        if dataclasses.is_dataclass(hint):
            yield from _names(_hints(hint), f"{prefix}{name}.")
        elif name not in NOT_IN_FILES:
            yield prefix + name


def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _value(name: str, value: Any, hint: Any, owner: str) -> Any:
    """Return a value as the parser would: paths as paths, tables as they are, lists as tuples."""
    if hint in (Path, Path | None):
        text = _checked_value(name, value, str | None, owner)
        return None if text is None else Path(text)
    is_list = _is_list(hint)
    if isinstance(value, Mapping) and (is_list or hint == Mapping[str, Any]):
        return dict(value)
    if is_list and isinstance(value, str):
        value = (value,)
    return _checked_value(name, value, hint, owner)


def _is_list(hint: Any) -> bool:
    return kind_of(hint).accepts(())


def _checked_value(name: str, value: Any, hint: Any, owner: str) -> Any:
    kind = kind_of(hint)
    found = kind.read(value)
    if not kind.accepts(value):
        words = "a table of options" if hint == Mapping[str, Any] else kind.words
        raise OptionError(name, f"must be {words}, got {value!r}.", owner)
    return found


def as_words(values: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line.

    >>> as_words({"seed": 3, "control": False, "rollout.group_size": 4, "lora_targets": ("q", "v")})
    ['--seed=3', '--no-control', '--rollout.group-size=4', '--lora-targets', 'q', 'v']
    """
    words = []
    for name, value in values.items():
        section, dot, last = name.replace("_", "-").rpartition(".")
        if isinstance(value, bool):
            words.append(f"--{section}{dot}{'' if value else 'no-'}{last}")
        elif isinstance(value, tuple):
            words += [f"--{section}{dot}{last}", *map(str, value)]
        else:
            words.append(f"--{section}{dot}{last}={value}")
    return words


@contextmanager
def options_kept(folder: Path | None, arguments: Any) -> Iterator[None]:
    """Write a command's options into the folder that it fills, for ``--config``, when it ends or is interrupted.

    Nothing is written after an error: the folder may be that of another run. Options that are there already stay, since
    a resumed run is the one that was started with them.
    """
    try:
        yield
    except KeyboardInterrupt:
        _write_options(folder, arguments)
        raise
    _write_options(folder, arguments)


def _write_options(folder: Path | None, arguments: Any) -> None:
    if folder is None or not folder.is_dir() or (folder / WRITTEN).exists():
        return
    values = {field.name: getattr(arguments, field.name) for field in dataclasses.fields(arguments)}
    write_json(folder / WRITTEN, {name: value for name, value in values.items() if name not in (*NOT_IN_FILES, "out")})
