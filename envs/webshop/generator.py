"""A shop made from random numbers: products with attributes and options, and goals that can be met."""

from __future__ import annotations

import itertools

import numpy as np

from turngym.envs.webshop.product import Goal, Product, draw_ceiling
from turngym.envs.webshop.shop_words import DEPARTMENTS, FEATURES, KINDS, REVIEWS, SYLLABLES, VALUES, Kind
from turngym.seeding import stream

_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_MOST_GOALS = 40
"""Goals of one product."""


def generate_products(count: int, shop_seed: int) -> tuple[Product, ...]:
    """Return the products of a shop; the first ones of a larger shop with the same seed are the same.

    >>> generate_products(2, 0) == generate_products(5, 0)[:2]
    True
    """
    return tuple(_product(stream("webshop product", shop_seed, number), shop_seed, number) for number in range(count))


def _product(generator: np.random.Generator, shop_seed: int, number: int) -> Product:
    kind = KINDS[int(generator.integers(len(KINDS)))]
    department = DEPARTMENTS[kind.path[0].lower()]
    attributes = _some(generator, department.attributes, int(generator.integers(3, 6)))
    extra = department.extras[int(generator.integers(len(department.extras)))]
    maker = _maker(generator)
    told = generator.permutation(attributes).tolist()
    title = f"{maker.title()} {kind.noun.title()}, {', '.join(one.title() for one in told[:2])}, for {extra.title()}"
    price = round(float(kind.cost * generator.uniform(0.5, 1.8)), 2)
    return Product(
        asin=_asin(shop_seed, number),
        title=title,
        category=(*kind.path, kind.noun.title()),
        query=kind.noun,
        description=f"Made by {maker.title()}, for {extra}. {told[-1].capitalize()}.",
        bullets=tuple(_sentence(generator, FEATURES, attribute, kind, maker) for attribute in told),
        attributes=attributes,
        options={name: _values(generator, name) for name in kind.options},
        prices=(price,),
        nouns=frozenset((*kind.noun.split(), *extra.split(), maker)),
        rating=round(float(generator.uniform(2.5, 5.0)), 1),
        reviews=tuple(
            _sentence(generator, REVIEWS, attributes[0], kind, maker) for _ in range(int(generator.integers(0, 4)))
        ),
    )


def _some(generator: np.random.Generator, choices: tuple[str, ...], count: int) -> tuple[str, ...]:
    return tuple(choices[place] for place in sorted(generator.permutation(len(choices))[:count].tolist()))


def _values(generator: np.random.Generator, name: str) -> tuple[str, ...]:
    return _some(generator, VALUES[name], min(len(VALUES[name]), int(generator.integers(2, 6))))


def _maker(generator: np.random.Generator) -> str:
    return "".join(SYLLABLES[int(generator.integers(len(SYLLABLES)))] for _ in range(3))


def _asin(shop_seed: int, number: int) -> str:
    """Return an id of ten characters that no two products of a shop share."""
    digits, left = [], number * 7_368_787 % 34**5  # a bijection on ids of five characters: the factor is a prime
    for _ in range(5):
        left, digit = divmod(left, 34)
        digits.append(_ALPHABET[digit])
    shop, code = shop_seed, []
    for _ in range(4):
        shop, digit = divmod(shop, 34)
        code.append(_ALPHABET[digit])
    return "B" + "".join(code) + "".join(digits)


def _sentence(
    generator: np.random.Generator, sentences: tuple[str, ...], attribute: str, kind: Kind, maker: str
) -> str:
    sentence = sentences[int(generator.integers(len(sentences)))]
    return sentence.format(attribute=attribute, noun=kind.noun, maker=maker.title()).replace("  ", " ")


def goals_of(product: Product, shop_seed: int) -> tuple[Goal, ...]:
    """Return the goals that a product gives: other attributes, option values and price ceilings, none twice.

    >>> goals = goals_of(generate_products(1, 0)[0], 0)
    >>> len(goals) > 1 and len({goal.text for goal in goals}) == len(goals)
    True
    """
    generator = stream("webshop goals", shop_seed, product.asin)
    combinations = [
        dict(zip(product.options, values, strict=True)) for values in itertools.product(*product.options.values())
    ]
    chosen = generator.permutation(len(combinations))[:_MOST_GOALS].tolist()
    found = {}
    for place in chosen or [0]:
        attributes = _some(generator, product.attributes, int(generator.integers(1, 4)))
        ceiling = draw_ceiling(generator, product.price)
        options = combinations[place]
        goal = Goal(
            product.asin, instruction(product.query, attributes, options, ceiling), attributes, options, ceiling
        )
        found[goal.text] = goal
    return tuple(found.values())


def instruction(noun: str, attributes: tuple[str, ...], options: dict[str, str], ceiling: float) -> str:
    """Return what the customer says.

    >>> instruction("mug", ("lead free",), {"color": "coral"}, 30.0)
    'Find me lead free mug with color: coral, and price lower than 30.00 dollars'
    """
    text = f"Find me {', '.join(attributes)} {noun}"
    if options:
        text += " with " + ", and ".join(f"{name}: {value}" for name, value in options.items())
    return text + (f", and price lower than {ceiling:.2f} dollars" if ceiling < float("inf") else "")
