"""The registry of multi-agent games: built from plain literals, so that listing imports no game."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.lookup import class_at
from turngym.envs.registration import NAMESPACE, Spec, games, seat_id
from turngym.errors import UnknownName, nearest
from turngym.loading import load_place, split_place
from turngym.plugins import GAME, load_plugins, require_uncontested

if TYPE_CHECKING:
    from turngym.envs.multiagent.pettingzoo.aec import TableAEC
    from turngym.envs.multiagent.pettingzoo.parallel import TableParallel


class _Games(Mapping[str, Spec]):
    """The games as they are registered now; plug-ins are loaded where an id is not turngym's, or all are asked for."""

    def __getitem__(self, game_id: str) -> Spec:
        if game_id not in games() and "/" in game_id and not game_id.startswith(f"{NAMESPACE}/"):
            load_plugins(GAME)
            require_uncontested(GAME, game_id)
        return games()[game_id]

    def __iter__(self) -> Iterator[str]:
        load_plugins(GAME)
        return iter(games())

    def __len__(self) -> int:
        load_plugins(GAME)
        return len(games())


GAMES: Mapping[str, Spec] = _Games()
"""Id -> entry point, options and summary of every game."""

TABLE_OPTIONS = ("retries", "invalid_penalty", "render_mode")
"""Arguments of :func:`make_aec` and :func:`make_parallel` besides the options of the game."""


def is_game(name: str) -> bool:
    """Return whether a name stands for a game between seats: an id of :data:`GAMES`, or your own class.

    >>> is_game("turngym/TicTacToe-v0"), is_game("turngym/Sokoban-v0")
    (True, False)
    """
    if name in GAMES or not split_place(name)[0]:
        return name in GAMES
    place, found = split_place(name)
    try:
        kind = getattr(load_place(place, name), found, None)
    except UnknownName:
        return False
    return isinstance(kind, type) and issubclass(kind, Game)


def require_no_seat(name: str) -> None:
    """Refuse the id of an environment that is one seat of a game where a game is asked for.

    Raises:
        UnknownName: It is one.
    """
    if whole := next((each for each in GAMES if seat_id(each) == name), ""):
        raise UnknownName(f"no game named {name!r}. It is one seat of {whole}: take {whole}.")


def make_game(game_id: str, **options: Any) -> Game:
    """Return the rules of a game, ready for a table.

    Args:
        game_id: An id of :data:`GAMES`, or ``"module:Class"`` or ``"path/to/file.py:Class"`` of your own.
        options: Options of the game, which replace those that the id stands for.

    Raises:
        UnknownName: There is no such game.
        ConfigError: The game has no such option, or not with that value.
    """
    spec = GAMES.get(game_id)
    if spec is None and ":" not in game_id:
        require_no_seat(game_id)
        raise UnknownName(f"no game named {game_id!r}. {nearest(game_id, GAMES)}")
    entry_point, defaults = (game_id, {}) if spec is None else (spec.entry_point, spec.kwargs)
    make: Callable[..., Game] = class_at(entry_point, Game)  # type: ignore[type-abstract]  # the base of it
    return make(**{**defaults, **options})


def game_refusal(game_id: Any, options: Mapping[str, Any]) -> str:
    """Return why an untrusted file may not use a game; empty if it may.

    >>> game_refusal("turngym/ConnectFour-v0", {"rows": 5}), game_refusal("os:path", {})
    ('', "the game 'os:path' is not registered here")
    """
    spec = GAMES.get(game_id) if isinstance(game_id, str) else None
    if spec is None:
        return f"the game {str(game_id)[:60]!r} is not registered here"
    reason = game_class(game_id).refusal(options, spec.kwargs)
    return f"{game_id}: {reason}" if reason else ""


def game_class(game_id: str) -> type[Game]:
    """Return the class of a game, registered or ``"module:Class"``."""
    spec = GAMES.get(game_id)
    place = game_id if spec is None else spec.entry_point
    kind: type[Game] = class_at(place, Game)  # type: ignore[type-abstract]  # the base of it
    return kind


def make_aec(game_id: str, **options: Any) -> TableAEC:
    """Return a game as a PettingZoo environment that asks one seat after the other.

    Args:
        game_id: As for :func:`make_game`.
        options: Options of the game, and ``retries``, ``invalid_penalty``, ``render_mode`` of the table.
    """
    from turngym.envs.multiagent.pettingzoo.aec import TableAEC

    of_table, of_game = _divide(options)
    return TableAEC(make_game(game_id, **of_game), **of_table)


def make_parallel(game_id: str, **options: Any) -> TableParallel:
    """Return a game as a PettingZoo environment that takes the answers of all seats that are asked at once.

    Args:
        game_id: As for :func:`make_game`.
        options: Options of the game, and ``retries``, ``invalid_penalty``, ``render_mode`` of the table.
    """
    from turngym.envs.multiagent.pettingzoo.parallel import TableParallel

    of_table, of_game = _divide(options)
    return TableParallel(make_game(game_id, **of_game), **of_table)


def _divide(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the table and those of the game."""
    of_table = {key: value for key, value in options.items() if key in TABLE_OPTIONS}
    return of_table, {key: value for key, value in options.items() if key not in TABLE_OPTIONS}
