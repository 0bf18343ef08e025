"""A shop's catalogue: products by id, a search index, and the goals that it gives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from turngym.envs.instances import split_of
from turngym.envs.webshop.files import fingerprint, read_goals, read_products
from turngym.envs.webshop.generator import generate_products, goals_of
from turngym.envs.webshop.product import Goal, Product
from turngym.envs.webshop.search import Index
from turngym.types import SPLITS

PROCEDURAL = "procedural"


class Catalogue:
    """Products of one shop. Goals belong to the split of their product, so no split asks for another's products.

    Args:
        name: Name of the shop, part of every instance's text.
        products: Products.
        goals: Product -> its goals, made when they are first asked for.
        wanted: Ids of the products that give goals; all unless given.
    """

    def __init__(
        self,
        name: str,
        products: Sequence[Product],
        goals: Callable[[Product], tuple[Goal, ...]],
        wanted: Collection[str] | None = None,
    ) -> None:
        self.name = name
        self.products = tuple(products)
        self.by_asin = {product.asin.lower(): product for product in self.products}
        self._make_goals = goals
        self._goals: dict[str, tuple[Goal, ...]] = {}
        self._wanted = wanted

    @cached_property
    def index(self) -> Index:
        """The search index, built on first use."""
        return Index([_searched(product) for product in self.products])

    def search(self, query: str) -> tuple[Product, ...]:
        """Return the best products for a query, best first, 50 at most."""
        return tuple([self.products[place] for place in self.index.search(query)])

    def goals(self, product: Product) -> tuple[Goal, ...]:
        """Return the goals made from a product."""
        if product.asin not in self._goals:
            self._goals[product.asin] = self._make_goals(product)
        return self._goals[product.asin]

    @cached_property
    def targets(self) -> dict[str, tuple[Product, ...]]:
        """Split -> the products that its goals are made from."""
        found: dict[str, list[Product]] = {split: [] for split in SPLITS}
        for product in self.products:
            if self._wanted is None or product.asin in self._wanted:
                found[split_of(product.asin)].append(product)
        return {split: tuple(products) for split, products in found.items()}


def _searched(product: Product) -> str:
    options = " ".join(value for values in product.options.values() for value in values)
    return f"{product.title} {product.query} {' '.join(product.bullets)} {product.description} {options}"


@lru_cache(maxsize=8)
def procedural(products: int, shop_seed: int) -> Catalogue:
    """Return a generated shop; made once in a process."""
    return Catalogue(
        f"shop {shop_seed} of {products}",
        generate_products(products, shop_seed),
        lambda product: goals_of(product, shop_seed),
    )


def from_folder(folder: str) -> Catalogue:
    """Return the shop whose files lie in a folder; read once in a process, again if a file has changed.

    Raises:
        ConfigError: The folder has no catalogue that this environment can read.
    """
    path = Path(folder).expanduser().resolve()
    return _from_folder(path, fingerprint(path))


@lru_cache(maxsize=2)
def _from_folder(path: Path, mark: str) -> Catalogue:
    goals, wanted = read_goals(path)
    return Catalogue(f"files {mark}", read_products(path), goals, wanted)
