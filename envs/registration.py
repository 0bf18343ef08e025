"""Registration of every environment with Gymnasium, from tables of literals; imports no environment."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator, parse_env_id, registry

from turngym.entries import declared
from turngym.errors import ConfigError, TurngymError
from turngym.plugins import (
    ENVIRONMENT,
    GAME,
    PluginWarning,
    is_contested,
    is_registered,
    module_of,
    note,
    require_uncontested,
    taken,
)

if TYPE_CHECKING:
    from turngym.envs.settings import Declared

FAMILIES = (
    "turngym.envs.textgames",
    "turngym.envs.household",
    "turngym.envs.textworlds",
    "turngym.envs.webshop",
    "turngym.envs.search",
    "turngym.envs.tools",
    "turngym.envs.web",
    "turngym.envs.desktop",
    "turngym.envs.website",
    "turngym.envs.service",
    "turngym.envs.sql",
    "turngym.envs.ask",
    "turngym.envs.inventory",
    "turngym.envs.rules",
    "turngym.envs.apps",
    "turngym.envs.adapters",
)
GAME_FAMILIES = (
    "turngym.envs.werewolf",
    "turngym.envs.avalon",
    "turngym.envs.tablegames",
    "turngym.envs.hanabi",
    "turngym.envs.socialgames",
    "turngym.envs.pathfinding",
    "turngym.envs.beergame",
    "turngym.envs.economies",
    "turngym.envs.wordgames",
    "turngym.envs.delegation",
    "turngym.envs.open_spiel",
    "turngym.envs.petting_zoo",
    "turngym.envs.text_arena",
)
"""Packages whose ``SPECS`` list games between seats; each game also has a seat id."""
NAMESPACE = "turngym"
_GROUP = "turngym.environments"
"""Entry points whose names are ids, and whose values are classes."""
_ID = re.compile(r"[A-Za-z0-9_./:-]+")


class Spec(NamedTuple):
    """One line of a family's table.

    Args:
        entry_point: ``"module:Class"``, imported on first ``make``.
        kwargs: Options implied by the id.
        summary: One sentence for ``turngym list``.
        extra: The extra that the environment needs; empty for none.
        partner: Default player of the other seats in the single-seat environment; empty for random play.
    """

    entry_point: str
    kwargs: Mapping[str, Any]
    summary: str
    extra: str = ""
    partner: str = ""


_added: dict[str, Spec] = {}
_added_games: dict[str, Spec] = {}
_modules: dict[str, str] = {}
_announced: dict[str, EnvSpec] = {}


def specs() -> dict[str, Spec]:
    """Return id -> spec of all families, and of plug-ins loaded so far."""
    found: dict[str, Spec] = {}
    for family in FAMILIES:
        found.update(importlib.import_module(family).SPECS)
    for game_id, spec in games().items():
        found[seat_id(game_id)] = _seat(game_id, spec)
    return found | _added


def games() -> dict[str, Spec]:
    """Return id -> spec of every multi-agent game; the entry point is the rules, not an environment."""
    return _own_games() | _added_games


@cache
def _own_games() -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    for family in GAME_FAMILIES:
        found.update(importlib.import_module(family).SPECS)
    return found


def _seat(game_id: str, spec: Spec) -> Spec:
    options = {"game": game_id, "opponents": spec.partner} if spec.partner else {"game": game_id}
    return Spec("turngym.envs.seat:SeatEnv", options, f"One seat of: {spec.summary}", spec.extra)


def seat_id(game_id: str) -> str:
    """Return the id of the single-agent environment for one seat of a game.

    >>> seat_id("turngym/Werewolf-v0")
    'turngym/WerewolfSeat-v0'
    """
    name, dash, version = game_id.rpartition("-v")
    return f"{name}Seat{dash}{version}"


def register_all() -> None:
    """Register every environment under ``turngym/``; calling it twice has no effect.

    Gymnasium's order and checker wrappers stay off, because the environments check this themselves and have their own
    turn limit. So ``gymnasium.make`` returns the environment and not a wrapper.
    """
    for env_id, spec in specs().items():
        if env_id not in registry:
            _register(env_id, spec)


def register_declared() -> None:
    """Register environments declared in the metadata of installed packages, without importing these.

    An id declared by two packages is left to :func:`turngym.plugins.load_plugins`, which names both.
    """
    found: dict[str, set[str]] = {}
    for env_id, place in declared(_GROUP):
        found.setdefault(env_id, set()).add(place)
    for env_id, (place, *others) in found.items():
        try:
            _require_own(env_id, place, "")
        except ConfigError as error:
            warnings.warn(f"an installed package declares no environment: {error}", PluginWarning, stacklevel=2)
            continue
        if not others and env_id not in registry:
            _register(env_id, Spec(place, {}, ""))
            _announced[env_id] = registry[env_id]
            note(place, ENVIRONMENT, env_id, partial(registry.pop, env_id, None))


def _register(env_id: str, spec: Spec) -> None:
    gymnasium.register(
        env_id,
        entry_point=spec.entry_point,
        vector_entry_point="turngym.envs.vector:make_vec",
        order_enforce=False,
        disable_env_checker=True,
        kwargs={"env_id": env_id, **spec.kwargs},
    )


def register_env(
    env_id: str,
    entry_point: str | type[gymnasium.Env[Any, Any]],
    *,
    summary: str,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Register a custom environment; repeated registration has no effect.

    Args:
        env_id: Its id, with your own namespace: ``"locks/Picker-v0"``.
        entry_point: A :class:`turngym.envs.TextEnv`, or ``"module:Class"`` of one, imported on first ``make``.
        summary: One sentence for ``turngym list``.
        options: Options that the id stands for.

    Raises:
        ConfigError: The id is malformed, or taken.

    >>> register_env("turngym/Picker-v0", "locks.game:Picker", summary="Pick a lock.")
    Traceback (most recent call last):
    turngym.errors.ConfigError: the namespace turngym is for what comes with it, got 'turngym/Picker-v0': take your own.
    """
    if isinstance(entry_point, type):
        entry_point = f"{entry_point.__module__}:{entry_point.__qualname__}"
    _require_own(env_id, entry_point, summary)
    spec = Spec(entry_point, dict(options or {}), summary)
    if _added.get(env_id) != spec:
        _add(env_id, spec, entry_point)


def register_game(game_id: str, entry_point: str, *, summary: str, options: Mapping[str, Any] | None = None) -> None:
    """Register a custom multi-agent game and its single-seat environment; repeated registration has no effect.

    Args:
        game_id: Its id, with your own namespace: ``"cards/Snap-v0"``. A seat of it is ``"cards/SnapSeat-v0"``.
        entry_point: ``"module:Class"`` of a :class:`turngym.envs.multiagent.Game`, imported on first use.
        summary: One sentence for ``turngym list``.
        options: Options that the id stands for.

    Raises:
        ConfigError: The id is malformed, or it or that of its seat is taken.

    >>> register_game("cards/Snap", "cards.snap:Snap", summary="Be the first to say snap.")
    Traceback (most recent call last):
    turngym.errors.ConfigError: an id is written namespace/Name-v0, got 'cards/Snap'.
    """
    _require_own(game_id, entry_point, summary)
    spec, known = Spec(entry_point, dict(options or {}), summary), _added_games.get(game_id)
    if known == spec:
        return
    require_uncontested(GAME, game_id)
    if known is not None:
        taken(ENVIRONMENT, seat_id(game_id), known.entry_point, entry_point)
        error = taken(GAME, game_id, known.entry_point, entry_point)
        if is_contested(GAME, game_id):
            del _added_games[game_id]
        raise error
    _add(seat_id(game_id), _seat(game_id, spec), entry_point)
    _added_games[game_id] = spec
    note(entry_point, GAME, game_id, lambda: _added_games.pop(game_id, None))


def id_problem(env_id: str) -> str:
    r"""Return why an id may be mistaken for another one; empty if not.

    >>> id_problem("locks/Picker-v0"), id_problem("turngym/Sokoban-v0"), id_problem("TurnGym/Sokoban-v0")
    ('', '', "the namespace of 'TurnGym/Sokoban-v0' looks like turngym, which is for what comes with it")
    >>> id_problem("turngym/S\u043ekoban-v0")
    "an id has only ASCII letters, digits and _ . - / :, got 'turngym/S\\u043ekoban-v0'"
    """
    if not _ID.fullmatch(env_id):
        return f"an id has only ASCII letters, digits and _ . - / :, got {env_id[:80]!a}"
    namespace = env_id.rpartition("/")[0]
    if namespace != NAMESPACE and re.sub("[^a-z0-9]", "", namespace.partition(":")[0].lower()) == NAMESPACE:
        return f"the namespace of {env_id[:80]!r} looks like {NAMESPACE}, which is for what comes with it"
    return ""


def module_of_env(env_id: str) -> str:
    """Return the module of a registered environment; for a seat, that of the game."""
    return _modules.get(env_id) or module_of(registry[env_id])


def _require_own(env_id: str, entry_point: str, summary: str) -> None:
    """Raise unless all have their form, and the namespace is not turngym's."""
    try:
        namespace, _, version = parse_env_id(env_id)
    except (gymnasium.error.Error, TypeError):
        namespace = version = None
    if not namespace or version is None:
        raise ConfigError(f"an id is written namespace/Name-v0, got {env_id!r}.")
    if problem := id_problem(env_id):
        raise ConfigError(f"{problem}.")
    if namespace == NAMESPACE:
        raise ConfigError(f"the namespace turngym is for what comes with it, got {env_id!r}: take your own.")
    if not isinstance(summary, str):
        raise ConfigError(f"the summary of {env_id!r} is a sentence, got a {type(summary).__name__}.")
    module, _, name = entry_point.partition(":")
    if not name or not all(map(str.isidentifier, (*module.split("."), name))):
        raise ConfigError(f"the entry point of {env_id!r} is written module:Class, got {entry_point!r}.")


def _add(env_id: str, spec: Spec, module: str) -> None:
    """Register an environment that a module brings."""
    require_uncontested(ENVIRONMENT, env_id)
    announced = _announced.get(env_id)
    if announced is not None and registry.get(env_id) is announced and module_of(announced) == module:
        del registry[env_id]
    if env_id in registry:
        raise taken(ENVIRONMENT, env_id, module_of_env(env_id), module)

    def undo() -> None:
        for table in (_added, _modules, registry):
            table.pop(env_id, None)

    _register(env_id, spec)
    _added[env_id], _modules[env_id] = spec, module
    note(module, ENVIRONMENT, env_id, undo)


def is_foreign(env_id: str) -> bool:
    """Return whether an id has a namespace other than turngym's.

    Environments from files and modules have such ids.

    >>> is_foreign("vault/Vault-v0"), is_foreign("turngym/Sokobann-v0"), is_foreign("turngym-core")
    (True, False, False)
    """
    try:
        namespace, _, version = parse_env_id(env_id)
    except gymnasium.error.Error:
        return False
    return namespace not in (None, NAMESPACE) and version is not None


def env_refusal(env_id: Any, options: Mapping[str, Any]) -> str:
    """Return why an untrusted file may not use an environment; empty if it may.

    Args:
        env_id: Environment named by the file; imported only if already registered.
        options: Its options.

    >>> env_refusal("turngym/Sokoban-v0", {"size": 6, "view": "grid"}), env_refusal("os:path", {})
    ('', "the environment 'os:path' is not registered here")
    >>> env_refusal("turngym/OpenEnv-v0", {"url": "http://127.0.0.1"})
    'turngym/OpenEnv-v0: OpenEnv is not declared safe for files of others to ask for'
    """
    kind, reason = _declared(env_id)
    if kind is None:
        return reason
    reason = kind.refusal(options, registry[env_id].kwargs)
    return f"{env_id}: {reason}" if reason else ""


def env_misfit(env_id: Any, options: Mapping[str, Any]) -> str:
    """Return why these options are invalid for an environment; empty if valid, or if the environment is unknown.

    >>> env_misfit("turngym/Sokoban-v0", {"size": 6}), env_misfit("turngym/Sokoban-v0", {"size": "huge"})
    ('', "turngym/Sokoban-v0: the option size='huge' is none that Sokoban takes")
    """
    kind, _ = _declared(env_id)
    reason = "" if kind is None else kind.misfit(options, registry[env_id].kwargs)
    return f"{env_id}: {reason}" if reason else ""


def _declared(env_id: Any) -> tuple[type[Declared] | None, str]:
    """Return the class of an environment, or None and why no file may ask for it."""
    from turngym.envs.settings import Declared  # here, because it costs `import turngym` time

    try:
        if not isinstance(env_id, str) or not is_registered(env_id):
            return None, f"the environment {str(env_id)[:80]!r} is not registered here"
        spec = registry[env_id]
        kind = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    except (TurngymError, ImportError) as error:
        return None, f"the environment {str(env_id)[:80]!r} cannot be made here: {error}"
    if not (isinstance(kind, type) and issubclass(kind, Declared)):
        return None, f"{env_id} is not declared safe for files of others to ask for"
    return kind, ""
