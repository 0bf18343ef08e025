"""Rows of ``turngym list``: the registered components of each kind."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium

from turngym.benchmarks.cli.options.parsing import text_env_ids
from turngym.benchmarks.cli.terminal.listing import SHELVES
from turngym.entries import shortened
from turngym.plugins import OURS, Plugin, load_plugins, origin
from turngym.registry import Registry

Row: TypeAlias = dict[str, Any]


def environments() -> list[Row]:
    """Return the registered environments."""
    from turngym.envs.registration import games, module_of_env, seat_id, specs

    ids = text_env_ids()  # first of all, because it loads the plug-ins
    known = specs()
    seats = {seat_id(name): spec.entry_point for name, spec in games().items()}
    rows = []
    for env_id in ids:
        spec = known.get(env_id)
        summary = spec.summary if spec else f"Registered by {gymnasium.spec(env_id).entry_point}."
        absent = absent_packages(spec.extra) if spec else ()
        row = _row(env_id, summary, spec.extra if spec else "", absent, module_of_env(env_id))
        rows.append(row | {"family": _family(seats.get(env_id) or module_of_env(env_id))})
    return rows


def games() -> list[Row]:
    """Return the games between seats, by the ids that tables and tournaments take."""
    from turngym.envs.multiagent.registration import GAMES

    return [
        _row(name, spec.summary, spec.extra, absent_packages(spec.extra), spec.entry_point)
        | {"family": _family(spec.entry_point)}
        for name, spec in sorted(GAMES.items())
    ]


def _family(module: str) -> str:
    """Return the heading under which an environment or game is listed; for that of a plug-in, its package."""
    return SHELVES[module.split(".")[2]] if origin(module) == OURS else origin(module)


def algorithms() -> list[Row]:
    """Return the training methods, by what they compare, with what each needs at its defaults."""
    from turngym.trainers.algorithms import ALGORITHMS, LEARNERS

    return [
        row | _kind_of_method(row["name"], registry)
        for registry in (ALGORITHMS, LEARNERS)
        for row in _registered(registry)
    ]


def _kind_of_method(name: str, methods: Mapping[str, Any]) -> Row:
    """Return the family and the needs of a training method."""
    if name not in methods:
        return {"family": "Packages missing", "needs": []}
    from turngym.trainers.algorithms import build
    from turngym.trainers.algorithms.base.modifier import Modifier
    from turngym.trainers.core.algorithm import Algorithm, Need

    algorithm = build(name)
    needs = algorithm.needs
    if isinstance(algorithm, Modifier):
        family, needs = "Modifiers (after a method, as in grpo+tis)", needs - algorithm.innermost.needs
    elif Need.SITUATIONS in needs:
        family = "Methods that solve an abstraction of a game"
    elif Need.TEACHER_LOGPROBS in needs:
        family = "Methods that learn from a teacher"
    elif Need.GROUPS in needs:
        family, needs = "Methods that compare the episodes of a group", needs - {Need.GROUPS}
    elif needs & {Need.VALUES, Need.JOINT_VIEWS} or type(algorithm).modules is not Algorithm.modules:
        family = "Methods with a critic"
    else:
        family = "Methods without groups and critic"
    return {"family": family, "needs": sorted(need.value.replace("_", " ") for need in needs)}


def agents() -> list[Row]:
    """Return what can follow ``--agent``."""
    from turngym.agents.players import AGENTS

    return _registered(AGENTS)


def styles() -> list[Row]:
    """Return the styles of prompting."""
    from turngym.agents.prompting.styles import STYLES

    return _registered(STYLES)


def verifiers() -> list[Row]:
    """Return what chooses the best of several attempts."""
    from turngym.agents.verifiers import VERIFIERS

    return _registered(VERIFIERS)


def suites() -> list[Row]:
    """Return the suites."""
    from turngym.benchmarks.suites import SUITES

    return [
        _row(name, str(getattr(suite, "description", "")), "", (), SUITES.module(name))
        for name, suite in SUITES.items()
    ]


def wrappers() -> list[Row]:
    """Return the wrappers."""
    from turngym.wrappers import WRAPPERS

    return _registered(WRAPPERS)


def players() -> list[Row]:
    """Return the players that can take a seat of any game, and those of single games with the games they are for."""
    from turngym.envs.multiagent import PLAYERS
    from turngym.envs.multiagent.registration import GAMES, game_class

    owners: dict[str, dict[str, str]] = {}
    for game in sorted(GAMES):
        if not absent_packages(GAMES[game].extra):
            for name, place in game_class(game).players.items():
                owners.setdefault(name, {})[game] = place
    own = [
        _row(name, _about_player(places), "", (), next(iter(places.values())))
        for name, places in owners.items()
        if name not in PLAYERS
    ]
    return sorted(_registered(PLAYERS) + own, key=lambda row: str(row["name"]))


def _about_player(places: Mapping[str, str]) -> str:
    """Return what each of the players with a name does and plays."""
    games: dict[str, list[str]] = {}
    for game, place in places.items():
        games.setdefault(place, []).append(game)
    shown = []
    for place, played in games.items():
        module, _, attribute = place.partition(":")
        shown.append(f"{_summary(getattr(importlib.import_module(module), attribute))} Plays {', '.join(played)}.")
    return " ".join(shown)


def reward_models() -> list[Row]:
    """Return what can follow ``--reward-model`` and ``turngym fit-reward --model``."""
    from turngym.trainers.reward_models import REWARD_MODELS

    return _registered(REWARD_MODELS)


def curricula() -> list[Row]:
    """Return what can follow ``--curriculum``."""
    from turngym.trainers.curricula import CURRICULA

    return _registered(CURRICULA)


def plugins() -> list[Row]:
    """Return the plug-ins, those that could not be loaded too."""
    return [
        _row(plugin.name, _registers(plugin), "", (), plugin.value) | {"origin": plugin.label, "error": plugin.error}
        for plugin in load_plugins()
    ]


def _registers(plugin: Plugin) -> str:
    """Return a sentence about what a plug-in brings."""
    if plugin.error:
        return f"Could not be loaded: {plugin.error.rstrip('.')}."
    counts = Counter(kind for kind, _ in plugin.added)
    found = [f"{count} {kind if count == 1 else kind + 's'}" for kind, count in sorted(counts.items())]
    return f"Registers {', '.join(found) or 'nothing'}."


KINDS: dict[str, Callable[[], list[Row]]] = {
    "environments": environments,
    "games": games,
    "algorithms": algorithms,
    "agents": agents,
    "styles": styles,
    "verifiers": verifiers,
    "suites": suites,
    "wrappers": wrappers,
    "players": players,
    "reward_models": reward_models,
    "curricula": curricula,
    "plugins": plugins,
}


def absent_packages(extra: str) -> tuple[str, ...]:
    """Return the packages of an extra of turngym that are not installed.

    >>> absent_packages("")
    ()
    """
    if not extra:
        return ()
    return tuple(name for name in _packages(extra) if not _is_installed(name))


def _packages(extra: str) -> list[str]:
    found = []
    try:
        requirements = importlib.metadata.requires("turngym") or []
    except importlib.metadata.PackageNotFoundError:  # run from a checkout that was not installed
        requirements = []
    for requirement in requirements:
        condition = re.search(r"""extra\s*==\s*["']([\w.-]+)["']""", requirement)
        if condition and condition[1] == extra:
            found.append(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
    return found


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _row(name: str, summary: str, extra: str, absent: Sequence[str], module: str) -> Row:
    row = {"name": name, "summary": shortened(summary), "extra": extra, "installed": not absent, "absent": list(absent)}
    return row | {"origin": origin(module)}


def _registered(registry: Registry[Any]) -> list[Row]:
    """Return what a registry holds, and the modules that it could not import for want of a package."""
    rows = [_row(name, _summary(item), "", (), registry.module(name)) for name, item in registry.items()]
    absent = [
        _row(name, f"Not shown: it needs the package {package}.", registry.extra, [package], registry.package)
        for name, package in registry.missing().items()
    ]
    return sorted(rows + absent, key=lambda row: str(row["name"]))


def _summary(item: Any) -> str:
    """Return the first line of a component's docstring, of a function what it returns."""
    line = (inspect.getdoc(item) or "").partition("\n")[0].removeprefix("Return ")
    return line[:1].upper() + line[1:]
