"""Economies between seats: workers choose their labour, and a planner sets the taxes that they pay.

``taxes`` is a game of hours and tax rates, whose best choices ``labour`` computes; ``inequality`` measures incomes.
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
}
