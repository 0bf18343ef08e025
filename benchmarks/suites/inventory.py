"""Inventory management, where the best orders are known."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("inventory")(
    Suite(
        name="inventory",
        version=1,
        description="Orders for a store for 30 periods, and for a store, a warehouse and a factory.",
        entries=(
            SuiteEntry("turngym/Inventory-v0", episodes=100),
            SuiteEntry("turngym/InventoryChain-v0", episodes=100),
        ),
        metric="score",
        protocol=(
            "Default options: 30 periods, 40 turns. Demand is that of the test split. The score is 0 for the expected "
            "profit without orders, and 1 for that of optimal orders."
        ),
    )
)
