"""Inventory management of a store and of a serial supply chain, with optimal orders.

``chain`` moves units and counts money, ``demand`` holds the distribution of demand, ``optimum`` computes the best
orders by dynamic programming, ``env`` is the environment.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.inventory.env:Inventory"
SPECS: dict[str, Spec] = {
    "turngym/Inventory-v0": Spec(
        _ENTRY, {}, "Order for a store for 30 periods, with random demand and late deliveries."
    ),
    "turngym/InventoryChain-v0": Spec(
        _ENTRY, {"stages": 3}, "Order for a store, a warehouse and a factory that supply each other."
    ),
}
