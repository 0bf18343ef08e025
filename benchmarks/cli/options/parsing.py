"""Reading the command line: dataclasses to options, KEY=VALUE pairs, environments by name."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar, cast, get_type_hints

import gymnasium
import tyro

from turngym.agents.task_packages import PACKAGES
from turngym.benchmarks.cli.options.config_file import checked, is_given, read_config, take_config
from turngym.benchmarks.cli.options.help import Groups
from turngym.benchmarks.cli.options.usage import read_words
from turngym.envs.core import TextEnv
from turngym.envs.own import FromFile, find_spec
from turngym.envs.registration import NAMESPACE
from turngym.envs.vector.slots.boundary import is_for_program
from turngym.errors import ConfigError, UnknownName, error_text
from turngym.options import Options
from turngym.plugins import outside_ids
from turngym.wrappers.core import TextWrapper
from turngym.wrappers.wrapping import wrap

ArgumentsT = TypeVar("ArgumentsT")

Pairs: TypeAlias = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="KEY=VALUE")]

Specs: TypeAlias = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="SPEC")]
"""Wrappers as :meth:`turngym.wrappers.Wrapping.read` reads them."""


def parse(
    arguments: type[ArgumentsT], argv: Sequence[str], command: str, groups: Groups = types.MappingProxyType({})
) -> ArgumentsT:
    """Return the command line as the dataclass that describes it; prints help and exits where asked to.

    Args:
        arguments: The dataclass.
        argv: The words.
        command: The command, for messages.
        groups: The options that ``--help`` shows; all if there are none.

    Raises:
        ConfigError: The command line is wrong.
    """
    plain = (tyro.conf.FlagCreatePairsOff, tyro.conf.PositionalMetavarFromFieldName)
    kind: Any = arguments
    default = None
    if any(field.name == "config" for field in dataclasses.fields(kind)):
        file, argv = take_config(argv)
        default = None if file is None else _from_file(kind, file, argv, command)

    def read(words: Sequence[str]) -> Any:
        return tyro.cli(relaxed(kind), args=list(words), prog=f"turngym {command}", config=plain, default=default)

    return cast("ArgumentsT", read_words(read, argv, groups))


def with_target(words: Sequence[str]) -> list[str]:
    """Return words with an empty target where ``--from`` names a folder that has the environment.

    >>> with_target(["--from", "runs/base@5", "--agent", "random"])[:2], with_target(["--agent", "random"])
    (['', '--from'], ['--agent', 'random'])
    """
    return ["", *words] if is_given(words, "from") and words[0].startswith("-") else list(words)


def _from_file(kind: Any, file: Path, argv: Sequence[str], command: str) -> Any:
    """Return the options in a file, the defaults and what is missing, without lists that the command line sets."""
    hints = get_type_hints(kind, include_extras=True)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        values[field.name] = tyro.MISSING if field.default is dataclasses.MISSING else field.default
    for name, value in checked(read_config(file, command), hints, str(file), command).items():
        if not is_given(argv, name):  # the parser would append to a list
            values[name] = as_pairs(value) if isinstance(value, dict) else value
    return relaxed(kind)(**values)


_LISTED_PAIRS: Any = Annotated[tuple[str, ...], tyro.conf.arg(metavar="[KEY=VALUE ...]")]


def _is_mapping(hint: Any) -> bool:
    return bool(hint == Mapping[str, Any])


def _accept(self: object) -> None:
    """Stand for ``__post_init__``: accept everything."""


@cache
def relaxed(kind: Any) -> Any:
    """Return a subclass of a configuration class, and of those inside of it, that accepts any value.

    The parser would catch an error of the class itself and print it in its own form. So it fills this one, and
    :func:`strict` makes the real one afterwards. A mapping is written as KEY=VALUE pairs.
    """
    _resolve(kind)
    hints = get_type_hints(kind, include_extras=True)
    inner: dict[str, Any] = {name: _LISTED_PAIRS for name, hint in hints.items() if _is_mapping(hint)}
    values: dict[str, Any] = dict.fromkeys(inner, ())
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(hints[field.name]):
            inner[field.name], values[field.name] = relaxed(hints[field.name]), field
    namespace = {
        "__annotations__": inner,
        "__post_init__": _accept,
        "__doc__": (kind.__doc__ or "").replace("``", "`"),
        "__module__": kind.__module__,
        **values,
    }
    made = types.new_class(kind.__name__, (kind,), exec_body=lambda body: body.update(namespace))
    return made if issubclass(made, Options) else dataclasses.dataclass(frozen=True)(made)


def _resolve(kind: type) -> None:
    """Replace annotations that are text by what they mean: the parser would evaluate each of them many times."""
    for each in kind.__mro__:
        if dataclasses.is_dataclass(each):
            hints = get_type_hints(each, include_extras=True)
            each.__annotations__ = {name: hints[name] for name in inspect.get_annotations(each)}


def loosened(value: Any) -> Any:
    """Return a configuration object as one of its :func:`relaxed` class."""
    if isinstance(value, Mapping):
        return as_pairs(dict(value))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    values = {field.name: loosened(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return relaxed(type(value))(**values)


def strict(value: Any, kind: Any, is_part: bool = False) -> Any:
    """Return what the parser filled as the real configuration class, checked.

    Args:
        value: An object of a :func:`relaxed` class.
        kind: The real class.
        is_part: Return options as a dict instead, from which those that they are part of are built.

    Raises:
        ConfigError: A setting is outside of what is allowed.
    """
    hints = get_type_hints(kind)
    values = {}
    for field in dataclasses.fields(kind):
        inner, hint = getattr(value, field.name), hints[field.name]
        if _is_mapping(hint):
            values[field.name] = key_values(inner, f"--{field.name.replace('_', '-')}")
        else:
            values[field.name] = strict(inner, hint, is_part) if dataclasses.is_dataclass(hint) else inner
    return values if is_part else kind(**values)


_PYTHON = {"True": True, "False": False, "None": None}
"""Values as Python writes them."""


def key_values(pairs: Iterable[str], option: str, is_dotted: bool = False) -> dict[str, Any]:
    """Return KEY=VALUE pairs as a dict; a value is read as JSON or True, False or None, else it is text.

    Args:
        pairs: The pairs.
        option: The option that they were passed to, for the message.
        is_dotted: Allow dots in keys, and hyphens in their first part.

    Raises:
        ConfigError: A pair has no ``=`` or no key, a key occurs twice, or it is ``env_id``.

    >>> key_values(["view=grid", "max_turns=20", "slippery=true", "image=False"], "--option")
    {'view': 'grid', 'max_turns': 20, 'slippery': True, 'image': False}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        first, dot, rest = key.strip().partition(".") if is_dotted else ("", "", key.strip())
        key = f"{first}{dot}{rest.replace('-', '_')}"
        parts = key.split(".") if is_dotted else [key]
        if not sign or not all(part.replace("-", "_").isidentifier() for part in parts):
            example = "FrozenLake.env_options.size=4" if is_dotted else "max_turns=20"
            raise ConfigError(f"{option} takes KEY=VALUE, such as {example}, got {pair!r}.")
        if key == "env_id":
            raise ConfigError(f"{option} cannot set env_id: it follows from the name of the environment.")
        if key in found:
            raise ConfigError(f"{option} got {key!r} twice: pass it once.")
        found[key] = _value(value)
    return found


def as_pairs(values: dict[str, Any]) -> tuple[str, ...]:
    """Return what :func:`key_values` reads back.

    >>> as_pairs({"view": "grid", "max_turns": 20})
    ('view=grid', 'max_turns=20')
    """
    pairs = []
    for key, value in values.items():
        is_plain = isinstance(value, str) and _value(value) == value
        pairs.append(f"{key}={value if is_plain else json.dumps(value, ensure_ascii=False)}")
    return tuple(pairs)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        return _PYTHON.get(text, text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def text_env_ids() -> tuple[str, ...]:
    """Return the ids of all registered environments of turngym, and of those that plug-ins bring."""
    own = {name for name, spec in gymnasium.registry.items() if spec.namespace == NAMESPACE}
    return tuple(sorted(own.union(outside_ids())))


def find_env(name: str, others: Iterable[str] = (), kind: str = "environment") -> str:
    """Return the id of an environment; one of the user's own is registered for this process.

    Args:
        name: User input.
        others: Names of another kind that could be meant as well.
        kind: Kind of the object, for the message.

    Raises:
        UnknownName: There is no such environment, module, file, or class.
        BrokenCode: The file or module cannot be imported.
    """
    if name.partition(":")[0] in PACKAGES:
        raise UnknownName(
            f"{name!r} names tasks of a package and no {kind}: train on them with `turngym train --agent.package "
            f"{name}`."
        )
    return find_spec(name, others, kind).id


def text_env_maker(
    name: str, options: dict[str, Any], wrappers: Iterable[str] = ()
) -> Callable[..., TextEnv[Any] | TextWrapper]:
    """Return a function that makes an environment, with more options if they are passed.

    Args:
        name: An id, ``"module:id"``, ``"module:Class"`` or ``"path/to/file.py:Class"``.
        options: Options of the environment.
        wrappers: Put around it, the first innermost.

    Raises:
        UnknownName: There is no such environment, module, file, class or wrapper.
        ConfigError: It is not a text environment, or a wrapper cannot be read.
    """
    env_id = find_env(name)

    def make(**more: Any) -> TextEnv[Any] | TextWrapper:
        return cast("TextEnv[Any] | TextWrapper", wrap(make_text_env(env_id, {**options, **more}), *wrappers))

    return make


def make_text_env(env_id: str, options: dict[str, Any]) -> TextEnv[Any]:
    """Return a fresh environment.

    Raises:
        ConfigError: It is not a text environment, or an option is wrong.
    """
    require_text_env(env_id)
    try:
        env = gymnasium.make(env_id, **options)
    except BaseException as error:  # user code: SystemExit is reported like any other
        if isinstance(error, Exception) or is_for_program(error):
            raise
        raise ConfigError(f"{env_id} cannot be made: {error_text(error)}.") from error
    if not isinstance(env.unwrapped, TextEnv):
        env.close()
        raise ConfigError(_refusal(env_id))
    return env.unwrapped


def require_text_env(env_id: str) -> None:
    """Refuse a registered environment of another kind, as far as that can be told without making it.

    Raises:
        ConfigError: It is not a text environment, or its class is absent or incomplete.
    """
    creator: Any = gymnasium.spec(env_id).entry_point
    if isinstance(creator, str):
        module, _, name = creator.partition(":")
        creator = getattr(importlib.import_module(module), name, None)
        if creator is None:
            raise ConfigError(f"{env_id} cannot be made: the module {module} has no {name}.")
    if isinstance(creator, FromFile):
        creator = creator.creator
    if not callable(creator) or (isinstance(creator, type) and not issubclass(creator, TextEnv)):
        raise ConfigError(_refusal(env_id))
    if missing := sorted(getattr(creator, "__abstractmethods__", ())):
        raise ConfigError(
            f"{env_id} cannot be made: the class {creator.__name__} does not define {', '.join(missing)}."
        )


def _refusal(env_id: str) -> str:
    return (
        f"{env_id} is not a text environment of turngym: `turngym list environments` shows those, and "
        f"turngym/Gymnasium-v0 makes one of it."
    )
