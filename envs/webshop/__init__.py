"""A web shop: search, compare, choose options, buy.

``env`` is the environment, ``pages`` what it shows, ``reward`` the pure reward; ``generator`` makes the shop that comes
with turngym, ``files`` reads the published one from a folder of the user's. ``html``, ``server`` and ``browser`` show
the same pages in a real browser.
"""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/WebShop-v0": Spec(
        "turngym.envs.webshop.env:WebShop", {}, "Search a shop for what a customer asks, and buy it.", "webshop"
    ),
}
