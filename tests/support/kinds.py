"""One id of each kind of environment, an easy one where there is one: presets differ from it in options alone."""

from __future__ import annotations

import functools

from turngym.envs.multiagent import GAMES
from turngym.envs.registration import games, specs


@functools.cache
def kinds() -> dict[str, str]:
    """Return one id of each class of environments, and of seats of each class of games -> that class."""
    first: dict[str, str] = {}
    for env_id, spec in sorted(specs().items(), key=lambda item: ("Easy" not in item[0], item[0])):
        game = games().get(spec.kwargs.get("game", ""))
        first.setdefault(game.entry_point if game else spec.entry_point, env_id)
    return {env_id: kind for kind, env_id in first.items()}


def games_without_packages() -> list[str]:
    """Return the ids of the games that need no further package."""
    return sorted(game_id for game_id, spec in GAMES.items() if not spec.extra)
