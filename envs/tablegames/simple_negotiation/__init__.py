"""Trade of goods between two seats."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tablegames.simple_negotiation.game import (
        SimpleNegotiation,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.tablegames.simple_negotiation.game": ("SimpleNegotiation",)},
    )

__all__ = ["SimpleNegotiation"]
