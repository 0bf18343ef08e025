"""Avalon: a hidden minority that knows itself, teams that are voted on, and one seat that knows too much.

``roles`` has roles, who sees whom and the sizes of teams; ``game`` the rules; ``players`` the scripted players.

>>> from turngym.envs.avalon import env
>>> table = env(talk=False)
>>> table.reset(seed=7)
>>> len(table.agents)
5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turngym.envs.registration import Spec

if TYPE_CHECKING:
    from turngym.envs.multiagent.pettingzoo.aec import TableAEC
    from turngym.envs.multiagent.pettingzoo.parallel import TableParallel

_GAME_ID = "turngym/Avalon-v0"
_GAME = "turngym.envs.avalon.game:Avalon"

SPECS = {
    _GAME_ID: Spec(_GAME, {}, "Avalon with 5 seats: teams are proposed, discussed, voted on, and betrayed."),
    "turngym/AvalonSilent-v0": Spec(_GAME, {"talk": False}, "Avalon with 5 seats and without discussion."),
    "turngym/AvalonLarge-v0": Spec(
        _GAME, {"num_seats": 8}, "Avalon with 8 seats: three of them evil, and a quest that needs two fails."
    ),
}


def env(**options: Any) -> TableAEC:
    """Return Avalon as a PettingZoo environment that asks one seat after the other.

    Args:
        options: Those of :class:`turngym.envs.avalon.game.Avalon`, and ``retries``, ``invalid_penalty`` and
            ``render_mode`` of the table.
    """
    from turngym.envs.multiagent.registration import make_aec

    return make_aec(_GAME_ID, **options)


def parallel_env(**options: Any) -> TableParallel:
    """Return Avalon as a PettingZoo environment that takes the answers of all seats that are asked at once.

    Args:
        options: As for :func:`env`.
    """
    from turngym.envs.multiagent.registration import make_parallel

    return make_parallel(_GAME_ID, **options)
