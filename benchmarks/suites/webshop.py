"""Wishes for products that training never asks for, in the generated shop."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("webshop")(
    Suite(
        name="webshop",
        version=1,
        description="500 wishes in the generated shop of 1,000 products, for products of the test split.",
        entries=(SuiteEntry("turngym/WebShop-v0", episodes=500),),
        metric="score",
        protocol=(
            "Default options, 15 turns, one attempt at each wish. The score is the published reward of the purchase, 0 "
            "without one. Wishes are made from products of the test split; all splits shop in the same catalogue."
        ),
    )
)
