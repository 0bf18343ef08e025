"""``turngym list``: the components, and the page of an environment."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import load_env_creator
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import find_env, parse, require_text_env, text_env_ids
from turngym.benchmarks.cli.terminal.listing import SHELVES, Page, print_all, print_kind, print_page
from turngym.entries import shortened
from turngym.envs.own import FromFile
from turngym.envs.seat import SeatEnv
from turngym.envs.settings import Configured
from turngym.errors import UnknownName
from turngym.options import attribute_docs, constructor_signature
from turngym.plugins import OURS, Plugin, load_plugins, origin
from turngym.registry import Registry
from turngym.terminal.output import print_json

Kind = Literal[
    "all",
    "environments",
    "games",
    "algorithms",
    "agents",
    "styles",
    "verifiers",
    "suites",
    "wrappers",
    "players",
    "reward_models",
    "plugins",
]
Row = dict[str, Any]


@dataclass(frozen=True)
class Arguments:
    """List environments by family, and the other components.

    With the id of an environment, such as ``turngym list turngym/Sokoban-v0``, show its rules, its options with their
    defaults, and the start of an episode.

    Args:
        kind: Kind to list in full, or an environment or game: its id, `module:Class` or `path/to/file.py:Class`. The
            kinds are environments, games, algorithms, agents, styles, verifiers, suites, wrappers, players,
            reward_models and plugins.
        json: Print the list, or the options of the environment, as JSON.
    """

    kind: Positional[Kind | str] = "all"
    json: bool = False


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
        _row(name, f"Plays {', '.join(places)}.", "", (), next(iter(places.values())))
        for name, places in owners.items()
        if name not in PLAYERS
    ]
    return sorted(_registered(PLAYERS) + own, key=lambda row: str(row["name"]))


def reward_models() -> list[Row]:
    """Return what can follow ``--reward-model`` and ``turngym fit-reward --model``."""
    from turngym.trainers.reward_models import REWARD_MODELS

    return _registered(REWARD_MODELS)


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
    "plugins": plugins,
}


def options_of(name: str) -> list[Row]:
    """Return the options of an environment or game: name, allowed values, default and meaning."""
    from turngym.envs.multiagent.registration import GAMES, game_class

    load_plugins()
    if name in GAMES:
        return _option_rows(game_class(name), GAMES[name].kwargs)
    spec = gymnasium.spec(find_env(name))
    creator: Any = spec.entry_point
    if isinstance(creator, FromFile):
        creator = creator.creator
    elif isinstance(creator, str):
        creator = load_env_creator(creator)
    rows = _option_rows(creator, spec.kwargs)
    game = str(spec.kwargs.get("game"))
    if creator is SeatEnv and game in GAMES:
        known = {row["name"] for row in rows}
        rows += [row for row in _option_rows(game_class(game), GAMES[game].kwargs) if row["name"] not in known]
    return rows


def _option_rows(creator: Any, fixed: Mapping[str, Any]) -> list[Row]:
    is_declared = isinstance(creator, type) and issubclass(creator, Configured) and creator.takes_declared()
    allowed = creator.declared_kinds() if is_declared else {}
    texts = attribute_docs(creator.Options) if is_declared else {}
    signature = constructor_signature(creator) if isinstance(creator, type) else inspect.signature(creator)
    return [
        {
            "name": each.name,
            "value": allowed[each.name].words if each.name in allowed else "",
            "default": _default(fixed.get(each.name, each.default)),
            "meaning": re.sub(r":\w+:`[~!]?|`", "", texts.get(each.name, "")),
        }
        for each in signature.parameters.values()
        if each.name not in ("env_id", "render_mode") and each.kind is not each.VAR_KEYWORD
    ]


def _default(value: Any) -> str | None:
    return None if value is inspect.Parameter.empty else repr(value)


def page_of(name: str) -> Page:
    """Return what is shown about an environment or game."""
    from turngym.envs.multiagent.registration import GAMES
    from turngym.envs.registration import seat_id, specs

    options = options_of(name)
    is_game = name in GAMES
    env_id = seat_id(name) if is_game else find_env(name)
    known = {**specs(), **GAMES}
    spec = known.get(name if is_game else env_id)
    if spec is None:
        return Page(name, env_id, "", "", {}, (), options)
    same = [each for each, other in known.items() if (other.entry_point, is_game) == (spec.entry_point, each in GAMES)]
    absent = absent_packages(spec.extra)
    needs = f"turngym[{spec.extra}] ({_status(absent)})" if spec.extra else ""
    is_seat = spec.entry_point.endswith(":SeatEnv")
    others = () if is_seat else tuple(sorted(set(same) - {name, env_id}))
    return Page(name, env_id, spec.summary, needs, spec.kwargs, others, options, is_game)


def _status(absent: Sequence[str]) -> str:
    return f"missing: {', '.join(absent)}" if absent else "installed"


def main(argv: Sequence[str]) -> int:
    """Print the lists, or the page of an environment."""
    arguments = parse(Arguments, ["agents" if word == "backends" else word for word in argv], "list")
    kind = arguments.kind
    if kind != "all" and kind not in KINDS:
        _require_env(kind)
        if arguments.json:
            print_json({kind: options_of(kind)})
        else:
            print_page(page_of(kind))
        return 0
    wanted = KINDS if kind == "all" else {kind: KINDS[kind]}
    found = {each: rows() for each, rows in wanted.items()}
    if arguments.json:
        print_json(found)
    elif kind == "all":
        print_all(found)
    else:
        print_kind(kind, found[kind])
    return 0


def _require_env(name: str) -> None:
    """Refuse a name that is neither a kind nor an environment, with the nearest one.

    Raises:
        UnknownName: It is none of them.
        ConfigError: It is an environment of another kind.
    """
    from turngym.envs.multiagent.registration import GAMES

    load_plugins()
    if name in GAMES:
        return
    try:
        require_text_env(find_env(name, KINDS, "environment or kind of component"))
    except UnknownName:
        for kind, rows in KINDS.items():
            if any(row["name"] == name for row in rows()):
                raise UnknownName(f"{name!r} is one of the {kind}: `turngym list {kind}` describes them.") from None
        raise


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
