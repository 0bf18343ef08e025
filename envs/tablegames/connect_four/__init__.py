"""Connect Four."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tablegames.connect_four.game import (
        MARKS,
        AttentivePlayer,
        ConnectFour,
        MinimaxPlayer,
        PerfectPlayer,
        SmallConnectFour,
        seen,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.tablegames.connect_four.game": (
                "MARKS",
                "AttentivePlayer",
                "ConnectFour",
                "MinimaxPlayer",
                "PerfectPlayer",
                "SmallConnectFour",
                "seen",
            )
        },
    )

__all__ = ["MARKS", "AttentivePlayer", "ConnectFour", "MinimaxPlayer", "PerfectPlayer", "SmallConnectFour", "seen"]
