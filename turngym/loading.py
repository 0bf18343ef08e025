"""Load user code by name: ``path/to/file.py:Name``, ``package.module:Name``, or ``package.module:id``.

Every option that takes a name also takes user code: environments, agents, algorithms, players, wrappers, verifiers,
reward models. All are loaded here, with one syntax and one kind of error. Loading imports code: never pass names from
untrusted files to this module.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from turngym.errors import BrokenCode, ConfigError, UnknownName, error_text, nearest
from turngym.registry import Registry

T = TypeVar("T")
_PLACE = re.compile(r"(?P<place>.+\.py|[A-Za-z_][\w.]*):(?P<name>[^:]+)", re.DOTALL)
_ALTERNATIVE = re.compile(r",(?![^(]*\))")
_MOST_SHOWN = 20
_FILE_PREFIX = "turngym_file_"
_INSTALLED = frozenset({"site-packages", "dist-packages"})  # of the user, the system, or an environment below this one
_LATER = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
_LIBRARIES = tuple(
    f"{path}/"
    for path in {
        *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
        str(Path(__file__).parent),
        str(Path(__file__).parent.resolve()),
    }
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Kind of object that a name must refer to.

    Args:
        noun: Kind, such as ``"an agent"``.
        form: Required type, such as ``"a class of turngym.agents.core.Agent"``.
        accepts: Returns whether an object is of this kind.
    """

    noun: str
    form: str
    accepts: Callable[[Any], bool]


def split_place(text: str) -> tuple[str, str]:
    """Split a name into file or module and the name within it; the place is empty if the text has none.

    >>> split_place("games/lock.py:Lock"), split_place("my_games.lock:my/Lock-v0"), split_place("turngym/Sokoban-v0")
    (('games/lock.py', 'Lock'), ('my_games.lock', 'my/Lock-v0'), ('', 'turngym/Sokoban-v0'))
    """
    found = _PLACE.fullmatch(text)
    return (found["place"], found["name"]) if found else ("", text)


def dotted_place(argument: str, kind: str) -> str:
    """Return ``"package.module:Name"`` for ``"package.module.Name"``.

    Args:
        argument: The path.
        kind: Owner of the argument, for the message.

    Raises:
        ConfigError: It is not a dotted path.

    >>> dotted_place("games.agents.Mine", "agent"), dotted_place("games/agents.py:Mine", "agent")
    ('games.agents:Mine', 'games/agents.py:Mine')
    """
    path, _, name = argument.rpartition(".")
    if split_place(argument)[0]:
        return argument
    if not path:
        raise ConfigError(f"the {kind} module needs a dotted path, got {argument!r}: write module:PACKAGE.MODULE.NAME.")
    return f"{path}:{name}"


def is_file(place: str) -> bool:
    """Return whether a place is a file rather than a module."""
    return place.endswith(".py")


def is_own(text: str, registry: Registry[Any]) -> bool:
    """Return whether a text names user code rather than ``name:argument`` of a registered component.

    Registered names take precedence. A name with a dot before the colon, or of an importable module, is user code; any
    other is treated as a misspelt registered name.

    >>> from turngym.agents.players import AGENTS
    >>> [is_own(text, AGENTS) for text in ("random", "scripted:up", "json:loads", "mine/agent.py:Mine")]
    [False, False, True, True]
    """
    place, _ = split_place(text)
    if not place or is_file(place):
        return is_file(place)
    if "." in place:
        return True
    if registry.has(place):
        return False
    return place in sys.modules or importlib.util.find_spec(place) is not None


def load_object(text: str, wanted: Wanted, registry: Registry[Any] | None = None) -> Any:
    """Load the object that a name refers to.

    Args:
        text: ``"path/to/file.py:Name"``, ``"module:Name"``, or ``"module:id"``.
        wanted: Required type.
        registry: Registry in which the module may have registered an id.

    Raises:
        UnknownName: There is no such file, module, or name in it.
        BrokenCode: The file or module cannot be imported.
        ConfigError: The object is of another kind.

    >>> load_object("json:loads", Wanted("a parser", "a function", callable)).__name__
    'loads'
    """
    place, name = split_place(text)
    if not place:
        raise UnknownName(f"{text!r} names no custom code: write path/to/file.py:Name or module:Name.")
    return find_in(load_place(place, text), place, name, wanted, registry)


def find_in(module: ModuleType, place: str, name: str, wanted: Wanted, registry: Registry[Any] | None = None) -> Any:
    """Load a name from a module; arguments and errors as in :func:`load_object`."""
    found = getattr(module, name, None)
    if found is None and registry is not None and name in registry and registry.module(name) == module.__name__:
        return registry[name]
    if found is None:
        own = {key: each for key, each in vars(module).items() if _is_of(each, module) and wanted.accepts(each)}
        functions = [key for key, each in own.items() if inspect.isroutine(each)]
        known = [key for key, each in own.items() if isinstance(each, type)]
        is_function = wanted.form.startswith("a function")
        if not known or is_function:
            is_few = is_function and len(functions) <= _MOST_SHOWN
            known = functions if is_few else difflib.get_close_matches(name, functions, n=1, cutoff=0.5)
        raise UnknownName(
            f"{place} has no {name!r}. {nearest(name, known) if known else f'It has no {_bare(wanted.form)} at all.'}"
        )
    if not wanted.accepts(found):
        raise ConfigError(f"{name} of {place} is {_what(found)}, expected {wanted.noun}: {wanted.form}.")
    return found


def _bare(form: str) -> str:
    """Return a description without its article and its alternatives.

    >>> _bare("a function reward(task, answer) that returns a number, True or False")
    'function reward(task, answer) that returns a number'
    """
    return _ALTERNATIVE.split(form)[0].removeprefix("a ").removeprefix("complete ")


def _is_of(value: object, module: ModuleType) -> bool:
    return getattr(value, "__module__", "") == module.__name__


def _what(found: object) -> str:
    """Return what kind of thing something is, in words.

    >>> _what(3), _what(len), _what(dict)
    ('an object of the type int', 'a function', 'a class of nothing that turngym knows')
    """
    if inspect.isroutine(found):
        return "a function"
    if not isinstance(found, type):
        return f"an object of the type {type(found).__name__}"
    bases = [base for base in found.__mro__[1:] if base.__module__.partition(".")[0] in ("turngym", "gymnasium")]
    if bases:
        return f"a class of {bases[0].__module__}.{bases[0].__qualname__}"
    if inspect.isabstract(found):
        return "an abstract class"
    return "a class of nothing that turngym knows"


def load_place(place: str, text: str = "") -> ModuleType:
    """Return the module of a file or of a dotted path.

    Args:
        place: ``"path/to/file.py"`` or ``"package.module"``.
        text: The whole name, for messages.

    Raises:
        UnknownName: There is no such file or module.
        BrokenCode: Its code raises.
    """
    if is_file(place):
        return load_file(Path(place))
    return _guarded(lambda: importlib.import_module(place), place, text or place)


def load_file(path: Path) -> ModuleType:
    """Load a Python file as a module; it can import modules next to it.

    Raises:
        UnknownName: There is no such file.
        BrokenCode: Its code raises.
    """
    shown, path = str(path), path.resolve()
    if not path.is_file():
        beside = sorted(str(other.name) for other in path.parent.glob("*.py")) if path.parent.is_dir() else []
        hint = f" {nearest(path.name, beside)}" if beside else ""
        raise UnknownName(f"there is no file {path}.{hint}")
    name = _FILE_PREFIX + "".join(character if character.isalnum() else "_" for character in str(path))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module, execute = importlib.util.module_from_spec(spec), spec.loader.exec_module
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        _guarded(lambda: execute(module), shown, shown)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


def _guarded(load: Callable[[], T], place: str, text: str) -> T:
    """Call something that imports, and say in words what is wrong with what it imports."""
    try:
        return load()
    except ModuleNotFoundError as error:
        missing = error.name or place
        if place == missing or place.startswith(f"{missing}."):
            raise UnknownName(
                f"no module named {missing!r}, which {text!r} needs: check the spelling, install it, or write "
                "path/to/file.py:Name."
            ) from error
        raise broken(place, error) from error
    except (Exception, SystemExit) as error:  # third-party code: anything may be raised
        raise broken(place, error) from error


def broken(place: str, error: BaseException) -> BrokenCode:
    """Return the error for user code that cannot be imported: the exception, and the line in that code."""
    return BrokenCode(f"{place} cannot be imported: {said(error)}{own_line(error)}")


def said(error: BaseException) -> str:
    r"""Return an exception as one line of text.

    >>> said(ValueError("two\n lines")), said(KeyError())
    ('ValueError: two lines', 'KeyError')
    """
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def own_line(error: BaseException) -> str:
    """Return the innermost line of user code, on its own line; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return _line(error.filename, error.lineno or 0, error.text or "")
    frame = own_frame(error)
    return _line(frame.filename, frame.lineno or 0, frame.line or "") if frame else ""


def raised_text(error: BaseException) -> str:
    """Return the exception as text and, for user code, file name and line; never raises.

    >>> raised_text(ValueError("no such door"))
    'ValueError: no such door'
    """
    try:
        frame = own_frame(error)
    except Exception:  # user code: the exception is foreign too
        frame = None
    place = f" ({Path(frame.filename).name}, line {frame.lineno})" if frame else ""
    return f"{error_text(error)}{place}"


def own_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame of an exception that belongs neither to turngym nor to an installed package."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if not is_library(frame.filename)), None)


def is_library(filename: str) -> bool:
    """Return whether a file belongs to Python, to an installed package, or to turngym."""
    path = Path(filename)
    if filename.startswith(("<", *_LIBRARIES)) or str(path.resolve()).startswith(_LIBRARIES):
        return True
    return not _INSTALLED.isdisjoint(path.parts)


def _line(filename: str, number: int, text: str) -> str:
    return f"\n  {filename}, line {number}: {' '.join(text.split())}"


def require_call(function: Callable[..., Any], owner: str, arguments: str) -> None:
    """Check that a function can be called with given positional arguments and is not a coroutine function.

    Args:
        function: The function.
        owner: Description of the function, for messages.
        arguments: Descriptions of the arguments, joined by "and".

    Raises:
        ConfigError: It takes other arguments, or is a generator or ``async``.

    >>> require_call(len, "the tool len", "one text")
    """
    if any(test(function) for test in _LATER):
        raise ConfigError(f"{owner} must be a plain function, got one with async or yield: return the result instead.")
    try:
        inspect.signature(function).bind(*arguments.split(" and "))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{owner} must take {arguments}: {error}.") from error


def call_with(make: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's class or function with as many of the arguments as it takes.

    >>> call_with(lambda: "nothing", 1, 2), call_with(lambda first: first, 1, 2)
    ('nothing', 1)
    """
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        return make(*arguments)
    for count in range(len(arguments), -1, -1):
        try:
            signature.bind(*arguments[:count])
        except TypeError:
            continue
        return make(*arguments[:count])
    return make(*arguments)
