"""Economies between seats: workers choose their labour, and a planner sets the taxes that they pay.

``taxes`` is a game of hours and tax rates, whose best choices ``labour`` computes; ``gather_and_build`` one of work on
the grid of ``settlement``; ``inequality`` measures incomes.
"""

from __future__ import annotations

from turngym.envs.registration import Spec

SPECS = {
    "turngym/Taxes-v0": Spec(
        "turngym.envs.economies.taxes:Taxes",
        {},
        "Four workers with hidden skills choose hours, and a planner sets the tax rates of two brackets.",
        partner="rational",
    ),
    "turngym/GatherAndBuild-v0": Spec(
        "turngym.envs.economies.gather_and_build:GatherAndBuild",
        {},
        "Two workers gather, trade and build houses on a grid, and a planner taxes what they earn.",
        partner="greedy",
    ),
}
