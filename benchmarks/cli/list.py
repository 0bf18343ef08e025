"""``turngym list``: what can be chosen."""

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
from rich import box
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import find_env, parse, text_env_ids
from turngym.entries import shortened
from turngym.envs.own import FromFile
from turngym.envs.seat import SeatEnv
from turngym.envs.settings import Configured
from turngym.options import attribute_docs, constructor_signature
from turngym.plugins import OURS, Plugin, load_plugins, origin
from turngym.registry import Registry
from turngym.terminal.console import Console
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
    """List available components with their origin, requirements and installation status.

    With the id of an environment, such as ``turngym list turngym/Sokoban-v0``, list its options.

    Args:
        kind: Kind of component to list.
        json: Print the list as JSON.
    """

    kind: Positional[Kind] = "all"
    json: bool = False


def environments() -> list[Row]:
    """Return the registered environments."""
    from turngym.envs.registration import module_of_env, specs

    ids = text_env_ids()  # first of all, because it loads the plug-ins
    known = specs()
    rows = []
    for env_id in ids:
        spec = known.get(env_id)
        summary = spec.summary if spec else f"Registered by {gymnasium.spec(env_id).entry_point}."
        absent = absent_packages(spec.extra) if spec else ()
        rows.append(_row(env_id, summary, spec.extra if spec else "", absent, module_of_env(env_id)))
    return rows


def games() -> list[Row]:
    """Return the games between seats, by the ids that tables and tournaments take."""
    from turngym.envs.multiagent.registration import GAMES

    return [
        _row(name, spec.summary, spec.extra, absent_packages(spec.extra), spec.entry_point)
        for name, spec in sorted(GAMES.items())
    ]


def algorithms() -> list[Row]:
    """Return the training methods."""
    from turngym.trainers.algorithms import ALGORITHMS

    return _registered(ALGORITHMS)


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


def _show_options(name: str, as_json: bool) -> int:
    rows = options_of(name)
    if as_json:
        print_json({name: rows})
        return 0
    table = Table(title=escape(name), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("option", "value", "default"):
        table.add_column(column)
    table.add_column("meaning", ratio=1)
    for row in rows:
        table.add_row(*(escape(str(row[key] or "")) for key in ("name", "value", "default", "meaning")))
    Console(highlight=False).print(table)
    return 0


def main(argv: Sequence[str]) -> int:
    """Print the tables."""
    names = [word for word in argv if not word.startswith("-") and ("/" in word or ":" in word)]
    if names:
        rest = [word for word in argv if word != names[0]]
        return _show_options(names[0], parse(Arguments, rest, "list").json)
    arguments = parse(Arguments, ["agents" if word == "backends" else word for word in argv], "list")
    wanted = KINDS if arguments.kind == "all" else {arguments.kind: KINDS[arguments.kind]}
    found = {kind: rows() for kind, rows in wanted.items()}
    if arguments.json:
        print_json(found)
        return 0
    console = Console(highlight=False)
    for kind, rows in found.items():
        if rows or arguments.kind != "all":
            console.print(_table(kind, rows))
    return 0


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


def _table(kind: str, rows: Sequence[Row]) -> Table:
    table = Table(title=kind, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it is", ratio=1)
    has_needs = any(row["extra"] for row in rows)
    if has_needs:
        table.add_column("needs", max_width=24)
    is_mixed = any(row["origin"] != OURS for row in rows)
    if is_mixed:
        table.add_column("from", max_width=30)
    for row in rows:
        more = [_needs(row)] if has_needs else []
        table.add_row(
            escape(row["name"]), escape(row["summary"]), *more, *([escape(row["origin"])] if is_mixed else [])
        )
    return table


def _needs(row: Row) -> str:
    if not row["extra"]:
        return ""
    if row["installed"]:
        return f"turngym\\[{row['extra']}] [green](installed)[/green]"
    return f"turngym\\[{row['extra']}] [red](missing: {', '.join(row['absent'])})[/red]"
