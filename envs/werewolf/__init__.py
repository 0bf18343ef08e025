"""Werewolf: a hidden minority against a majority that can only talk and vote.

>>> from turngym.envs.werewolf import env
>>> table = env(num_seats=5)
>>> table.reset(seed=7)
>>> table.agents
['player_0', 'player_1', 'player_2', 'player_3', 'player_4']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turngym.envs.registration import Spec

if TYPE_CHECKING:
    from turngym.envs.multiagent.pettingzoo.aec import TableAEC
    from turngym.envs.multiagent.pettingzoo.parallel import TableParallel

_GAME_ID = "turngym/Werewolf-v0"
_GAME = "turngym.envs.werewolf.game:Werewolf"

SPECS = {
    "turngym/WerewolfSmall-v0": Spec(
        _GAME, {"num_seats": 5}, "Werewolf with 5 seats: one werewolf, a seer, a doctor and two villagers."
    ),
    _GAME_ID: Spec(_GAME, {}, "Werewolf with 7 seats: two werewolves, a seer, a doctor and three villagers."),
    "turngym/WerewolfBidding-v0": Spec(
        _GAME, {"talk_protocol": "bidding"}, "Werewolf with 7 seats that bid for the right to speak."
    ),
    "turngym/WerewolfLarge-v0": Spec(
        _GAME, {"num_seats": 9}, "Werewolf with 9 seats: three werewolves, a seer, a doctor and four villagers."
    ),
}


def env(**options: Any) -> TableAEC:
    """Return Werewolf as a PettingZoo environment that asks one seat after the other.

    Args:
        options: Those of :class:`turngym.envs.werewolf.game.Werewolf`, and ``retries``, ``invalid_penalty`` and
            ``render_mode`` of the table.
    """
    from turngym.envs.multiagent.registration import make_aec

    return make_aec(_GAME_ID, **options)


def parallel_env(**options: Any) -> TableParallel:
    """Return Werewolf as a PettingZoo environment that takes the answers of all seats that are asked at once.

    Args:
        options: As for :func:`env`.
    """
    from turngym.envs.multiagent.registration import make_parallel

    return make_parallel(_GAME_ID, **options)
