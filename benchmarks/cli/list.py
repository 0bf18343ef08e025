"""``turngym list``: the components, and the page of an environment or suite."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import load_env_creator
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import find_env, parse, require_text_env
from turngym.benchmarks.cli.terminal.components import KINDS, Row, absent_packages
from turngym.benchmarks.cli.terminal.listing import (
    Page,
    print_all,
    print_component,
    print_kind,
    print_page,
    print_suite,
    suite_fields,
)
from turngym.benchmarks.suites import find_suite
from turngym.envs.own import FromFile, nearest_env
from turngym.envs.seat import SeatEnv
from turngym.envs.settings import Configured
from turngym.errors import UnknownName
from turngym.loading import split_place
from turngym.options import attribute_docs, constructor_signature
from turngym.plugins import load_plugins
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
    "curricula",
    "plugins",
]


@dataclass(frozen=True)
class Arguments:
    """List environments by family, and the other components.

    With the id of an environment, such as ``turngym list turngym/Sokoban-v0``, show its rules, its options with their
    defaults, and the start of an episode; with the name of a suite, its environments, metric and protocol; with that
    of a training method, its settings.

    Args:
        kind: Kind to list in full, or an environment or game: its id, `module:Class` or `path/to/file.py:Class`; or a
            suite, a training method or another component. The kinds are environments, games, algorithms, agents,
            styles, verifiers, suites, wrappers, players, reward_models,
            curricula and plugins.
        json: Print it as JSON.
    """

    kind: Positional[Kind | str] = "all"
    json: bool = False


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
        _show(kind, arguments.json)
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


def _show(name: str, as_json: bool) -> None:
    """Print the page of a suite, environment or game."""
    load_plugins()
    suite = find_suite(name)
    if suite is None and (kind := _kind_of(name)):
        _show_component(kind, name, as_json)
        return
    if as_json:
        print_json({name: options_of(name) if suite is None else suite_fields(suite)})
    elif suite is None:
        print_page(page_of(name))
    else:
        print_suite(suite)


def _kind_of(name: str) -> str:
    """Return the kind of a component that is no environment or game; empty for these.

    Raises:
        UnknownName: It is none of them.
        ConfigError: It is an environment of another kind.
    """
    from turngym.envs.multiagent.registration import GAMES

    if name in GAMES:
        return ""
    try:
        require_text_env(find_env(name))
        return ""
    except UnknownName as error:
        kinds = {str(row["name"]): kind for kind, rows in KINDS.items() for row in rows()}
        if kind := kinds.get(name):
            return kind
        if split_place(name)[0]:
            raise
        from turngym.trainers.algorithms import ALGORITHMS

        written = ALGORITHMS.written(name)
        hint = f"As a training method write {written!r}." if written else nearest_env(name, (*KINDS, *kinds))
        raise UnknownName(f"no environment, component or kind named {name!r}. {hint}") from error


def _show_component(kind: str, name: str, as_json: bool) -> None:
    """Print what is known of a component, and the settings of a training method."""
    row = next(row for row in KINDS[kind]() if row["name"] == name)
    settings = _settings(kind, name)
    if as_json:
        print_json({name: row | {"kind": kind, "settings": settings}})
    else:
        print_component(kind, row, settings)


def _settings(kind: str, name: str) -> list[Row]:
    """Return the settings of a training method or curriculum: name, default and meaning."""
    from turngym.trainers.algorithms import parts
    from turngym.trainers.curricula import CURRICULA

    if kind == "algorithms":
        prefix, config = f"{name}.", parts(name)[-1][1]
    elif kind == "curricula":
        prefix, config = "", CURRICULA[name].Config
    else:
        return []
    texts = attribute_docs(config)
    return [
        {"name": f"{prefix}{each.name}", "value": "", "default": repr(each.default), "meaning": texts.get(each.name)}
        for each in dataclasses.fields(config)
    ]
