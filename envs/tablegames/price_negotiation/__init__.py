"""Negotiation over the price of a product."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tablegames.price_negotiation.game import (
        PriceNegotiation,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.tablegames.price_negotiation.game": ("PriceNegotiation",)},
    )

__all__ = ["PriceNegotiation"]
