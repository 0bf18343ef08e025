"""Plug-ins: third-party packages that register components, found through their entry points.

A package names modules, or functions in them, in the group ``turngym.plugins``. They are imported when a name is
unknown to turngym or when components are listed, never by ``import turngym``. An entry point named after a kind of
:data:`KINDS` registers only that kind. One that raises is reported and undone, without effect on others; a name
registered by two of them is refused, naming both.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
from gymnasium.envs.registration import EnvSpec

from turngym.errors import ConfigError, error_text

if TYPE_CHECKING:
    from turngym.entries import Entry

_PLUGIN_GROUP = "turngym.plugins"
OURS = "turngym"
"""The origin of what comes with turngym, and the namespace of its ids."""
ENVIRONMENT, GAME = "environment", "game"
KINDS = (ENVIRONMENT, GAME, "algorithm", "agent", "suite", "wrapper", "player", "verifier", "reward model")
"""Kinds of entry points: one named ``algorithms`` is imported when an algorithm is requested."""
_MOST_NAMED = 10
"""Maximum number of failed plug-ins listed in a warning."""
_SLOW_SECONDS = 10.0
_LONGEST_LINE = 300


class PluginWarning(UserWarning):
    """A plug-in could not be loaded."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point.

    Args:
        name: Its name.
        value: Target: ``"package.module"`` or ``"package.module:function"``.
        package: Name and version of its package; empty if unknown.
        added: Kind and name of everything it registered.
        error: Reason why it could not be loaded; empty if it was.
    """

    name: str
    value: str
    package: str = ""
    added: tuple[tuple[str, str], ...] = ()
    error: str = ""

    @property
    def root(self) -> str:
        """Top-level package that is imported."""
        return root_of(self.value)

    @property
    def label(self) -> str:
        """The package, or the import target if no package is known."""
        return self.package or self.value


class _Entry(NamedTuple):
    """Something that was registered, and how to take it back."""

    module: str
    kind: str
    name: str
    undo: Callable[[], object]


_loaded: dict[tuple[str, ...], Plugin] = {}
_journal: list[_Entry] = []
_contested: dict[tuple[str, str], str] = {}


def root_of(path: str) -> str:
    """Return the top-level package of a dotted name.

    >>> root_of("games.locks:Lock")
    'games'
    """
    return path.partition(":")[0].partition(".")[0]


def load_plugins(*kinds: str) -> tuple[Plugin, ...]:
    """Load all remaining plug-ins and return all; one that fails is a :class:`PluginWarning`.

    Args:
        *kinds: Skip entry points named after other kinds; without any, load all.
    """
    from turngym.entries import entries  # not needed to import turngym

    broken = []
    others = {f"{each}s" for each in KINDS if kinds and each not in kinds}
    for entry in entries(_PLUGIN_GROUP):
        if entry[:3] not in _loaded and entry.name not in others:
            _loaded[entry[:3]] = Plugin(entry.name, entry.value, entry.package)  # it may ask for a name itself
            _loaded[entry[:3]] = found = _load(entry)
            broken += [f"{found.label} ({found.value}): {found.error}"] if found.error else []
    if broken:
        message = f"{len(broken)} of {len(_loaded)} plug-ins could not be loaded; the rest works without: "
        more = len(broken) - _MOST_NAMED
        rest = [f"and {more} more, which `turngym list plugins` shows"] if more > 0 else []
        warnings.warn(message + "; ".join(broken[:_MOST_NAMED] + rest), PluginWarning, stacklevel=2)
    return tuple(_loaded.values())


def _load(entry: Entry) -> Plugin:
    """Import what an entry point names; if that breaks, take back all that it registered."""
    if entry.point is None:
        return Plugin(entry.name, entry.value, entry.package, (), entry.error)
    before, start, root = dict(gymnasium.registry), len(_journal), root_of(entry.value)
    error = ""
    patience = threading.Timer(_SLOW_SECONDS, _tell_slow, (entry,))
    patience.daemon = True
    patience.start()
    try:
        found = entry.point.load()
        if isinstance(found, FunctionType):
            found()
        _refuse_overrides(before, root)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # third-party code: anything may be raised
        from turngym.text import printable

        error = printable(f"{error_text(problem)}{_place(problem)}")
    finally:
        patience.cancel()
    own = [each for each in _journal[start:] if root_of(each.module) == root]
    new = [env_id for env_id, spec in gymnasium.registry.items() if _is_new(env_id, spec, before, root)]
    if error:
        for each in reversed(own):
            each.undo()
            _journal.remove(each)
        for env_id in new + _changed_of_ours(before):
            _put_back(env_id, before)
        return Plugin(entry.name, entry.value, entry.package, (), error)
    added = {(each.kind, each.name) for each in own} | {(ENVIRONMENT, env_id) for env_id in new}
    return Plugin(entry.name, entry.value, entry.package, tuple(sorted(added)))


def _place(problem: BaseException) -> str:
    """Return the innermost line of an exception that is no library's, in parentheses; empty if there is none."""
    from turngym.loading import own_line

    try:
        found = " ".join(own_line(problem).split())
    except Exception:  # user code: the exception is foreign too
        return ""
    return f" ({found[:_LONGEST_LINE]})" if found else ""


def _tell_slow(entry: Entry) -> None:
    name = entry.package or entry.value
    print(f"still loading the plug-in {name} ({entry.value}); uninstall it if it hangs", file=sys.stderr)


def module_of(spec: EnvSpec) -> str:
    """Return the module of a registered environment."""
    return spec.entry_point if isinstance(spec.entry_point, str) else str(getattr(spec.entry_point, "__module__", ""))


def _is_new(env_id: str, spec: EnvSpec, before: Mapping[str, EnvSpec], root: str) -> bool:
    return before.get(env_id) is not spec and root_of(module_of(spec)) == root


def _changed_of_ours(before: Mapping[str, EnvSpec]) -> list[str]:
    """Return the ids in turngym's namespace that are new or have changed: all of its own are there from the start."""
    names = {env_id for env_id, spec in (*before.items(), *gymnasium.registry.items()) if spec.namespace == OURS}
    return sorted(env_id for env_id in names if gymnasium.registry.get(env_id) is not before.get(env_id))


def _put_back(env_id: str, before: Mapping[str, EnvSpec]) -> None:
    if env_id in before and (ENVIRONMENT, env_id) not in _contested:
        gymnasium.registry[env_id] = before[env_id]
    else:
        gymnasium.registry.pop(env_id, None)


def _refuse_overrides(before: Mapping[str, EnvSpec], root: str) -> None:
    """Raise if ids that others had were registered with Gymnasium itself, which lets the last one win."""
    for env_id in _changed_of_ours(before):
        if env_id in before:
            raise taken(ENVIRONMENT, env_id, module_of(before[env_id]), root)
        raise ConfigError(f"the namespace {OURS} is for what comes with it, got {env_id!r}: take your own.")
    for env_id, spec in list(gymnasium.registry.items()):
        if not _is_new(env_id, spec, before, root):
            continue
        if env_id in before and root_of(module_of(before[env_id])) != root:
            raise taken(ENVIRONMENT, env_id, module_of(before[env_id]), module_of(spec))
        require_uncontested(ENVIRONMENT, env_id)


def note(module: str, kind: str, name: str, undo: Callable[[], object]) -> None:
    """Record a registration and how to undo it if its plug-in fails later."""
    if root_of(module) != OURS:
        _journal.append(_Entry(module, kind, name, undo))


def taken(kind: str, name: str, first: str, second: str) -> ConfigError:
    """Return the error for a name registered twice; if neither is turngym's, both are refused.

    Args:
        kind: Kind, such as ``"environment"``.
        name: The name.
        first: The module that has registered it.
        second: The module that registers it now.
    """
    if root_of(first) == root_of(second):
        return ConfigError(f"{kind} {name!r} is already registered by {first}.")
    if OURS in (root_of(first), root_of(second)):
        who = origin(second if root_of(first) == OURS else first)
        return ConfigError(f"{kind} {name!r} is one of turngym's own, so {who} needs another name for its {kind}.")
    message = f"{kind} {name!r} is registered by {origin(first)} and by {origin(second)}: uninstall one of them."
    _contested[kind, name] = message
    if kind == ENVIRONMENT:
        gymnasium.registry.pop(name, None)
    return ConfigError(message)


def is_contested(kind: str, name: str) -> bool:
    """Return whether two plug-ins have registered this name."""
    return (kind, name) in _contested


def require_uncontested(kind: str, name: str) -> None:
    """Check that no two plug-ins have registered this name.

    Raises:
        ConfigError: Two have; the message names both.
    """
    if (kind, name) in _contested:
        raise ConfigError(_contested[kind, name])


def is_registered(env_id: Any) -> bool:
    """Return whether Gymnasium has an environment of that id, loading plug-ins if necessary.

    Raises:
        ConfigError: Two plug-ins have registered it.

    >>> is_registered("CartPole-v1")
    True
    """
    if env_id not in gymnasium.registry:
        load_plugins(ENVIRONMENT, GAME)
        require_uncontested(ENVIRONMENT, str(env_id))
    return env_id in gymnasium.registry


def origin(module: str) -> str:
    """Return the origin of a component: ``"turngym"``, name and version of a plug-in's package, or its module.

    >>> origin("turngym.envs.textgames.sokoban:Sokoban"), origin("my_games.locks:Lock")
    ('turngym', 'my_games')
    """
    root = root_of(module)
    return next((plugin.label for plugin in _loaded.values() if plugin.root == root), root)


def outside_ids() -> tuple[str, ...]:
    """Return the ids of all third-party environments registered for turngym.

    These were registered with :func:`turngym.envs.registration.register_env` or by a plug-in's package.
    """
    roots = {plugin.root for plugin in load_plugins(ENVIRONMENT, GAME)}
    found = {each.name for each in _journal if each.kind == ENVIRONMENT}
    found |= {env_id for env_id, spec in gymnasium.registry.items() if root_of(module_of(spec)) in roots}
    return tuple(sorted(found & gymnasium.registry.keys()))
