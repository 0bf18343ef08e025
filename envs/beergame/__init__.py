"""The beer game: four stages of a supply chain order from each other, each with its own numbers alone.

``chain`` moves units and counts costs on the stocks of :mod:`turngym.envs.inventory`, ``optimum`` and ``levels``
compute the best orders of an agent that sees everything and of stages that do not, ``game`` is the game.
"""

from __future__ import annotations

from turngym.envs.registration import Spec

_GAME = "turngym.envs.beergame.game:BeerGame"

SPECS = {
    "turngym/BeerGame-v0": Spec(
        _GAME, {}, "Order for one of four stages of a supply chain, with random demand.", partner="base_stock"
    ),
    "turngym/BeerGameClassic-v0": Spec(
        _GAME,
        {"demand": "step"},
        "The beer game as in Sterman (1989): demand rises once, and nobody is told when.",
        partner="base_stock",
    ),
}
