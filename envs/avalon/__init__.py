"""Avalon: a hidden minority that knows itself, teams that are voted on, and one seat that knows too much.

``roles`` has roles, who sees whom and the sizes of teams; ``game`` the rules; ``players`` the scripted players.

>>> from turngym.envs.multiagent.registration import make_aec
>>> table = make_aec("turngym/Avalon-v0", talk=False)
>>> table.reset(seed=7)
>>> len(table.agents)
5
"""

from __future__ import annotations

from turngym.envs.registration import Spec

_GAME = "turngym.envs.avalon.game:Avalon"

SPECS = {
    "turngym/Avalon-v0": Spec(_GAME, {}, "Avalon with 5 seats: teams are proposed, discussed, voted on, and betrayed."),
    "turngym/AvalonSilent-v0": Spec(_GAME, {"talk": False}, "Avalon with 5 seats and without discussion."),
    "turngym/AvalonLarge-v0": Spec(
        _GAME, {"num_seats": 8}, "Avalon with 8 seats: three of them evil, and a quest that needs two fails."
    ),
}
