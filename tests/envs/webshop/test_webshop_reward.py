"""The reward of a purchase: a table of cases worked by hand from the published rule, and its properties."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.webshop.generator import generate_products, goals_of
from turngym.envs.webshop.product import Goal, Product
from turngym.envs.webshop.reward import base_colour, has_option, noun_overlap, reward, type_factor, visible_reward
from turngym.envs.webshop.shop_words import VALUES

SHIRT = Product(
    "S1",
    "Linen Shirt with Long Sleeve",
    ("Clothing", "Men", "Shirts"),
    "mens shirts",
    "Feels cool in summer.",
    ("Machine washable at 40 degrees",),
    ("long sleeve", "machine wash", "button closure"),
    {"color": ("navy", "light blue"), "size": ("small", "large")},
    (30.0,),
    frozenset({"linen", "shirt", "sleeve"}),
)
BOTH = {"color": "light blue", "size": "large"}
RIGHT = {"color": "light blue", "size": "large"}


def shirt(**changes: Any) -> Product:
    return Product(**{**{name: getattr(SHIRT, name) for name in Product.__dataclass_fields__}, **changes})


def goal(attributes: str = "", options: dict[str, str] | None = None, ceiling: float = 50.0) -> Goal:
    wanted = tuple(part for part in attributes.split(",") if part)
    return Goal("S1", "a wish", wanted, options or {}, ceiling)


# what is asked for, what is chosen, what is bought -> reward
CASES: dict[str, tuple[Goal, dict[str, str], Product, float]] = {
    # one term: the price
    "nothing asked but a price kept": (goal(), {}, SHIRT, 1.0),
    "nothing asked and the price too high": (goal(ceiling=20.0), {}, SHIRT, 0.0),
    "a price that equals the ceiling": (goal(ceiling=30.0), {}, SHIRT, 1.0),
    "a cent above the ceiling": (goal(ceiling=30.0), {}, shirt(prices=(30.01,)), 0.0),
    "no ceiling": (goal(ceiling=float("inf")), {}, shirt(prices=(9999.0,)), 1.0),
    "a product without a price costs 100": (goal(ceiling=100.0), {}, shirt(prices=()), 1.0),
    "100 is too much for 90": (goal(ceiling=90.0), {}, shirt(prices=()), 0.0),
    # attributes: (found + price) / (asked + 1)
    "an own attribute": (goal("long sleeve"), {}, SHIRT, 1.0),
    "an own attribute in other words' order": (goal("sleeve long"), {}, SHIRT, 1.0),
    "an own attribute in capitals with a hyphen": (goal("Long-Sleeve"), {}, SHIRT, 1.0),
    "extra words on one side": (goal("button closure front"), {}, SHIRT, 1.0),
    "a typing error that leaves it similar": (goal("buton closure"), {}, SHIRT, 1.0),
    "words of the features": (goal("washable at 40"), {}, SHIRT, 1.0),
    "words of the description": (goal("cool in summer"), {}, SHIRT, 1.0),
    "words of the title": (goal("linen shirt"), {}, SHIRT, 1.0),
    "capitals do not hide words of the title": (goal("LINEN"), {}, SHIRT, 1.0),
    "an attribute it lacks": (goal("wrinkle free"), {}, SHIRT, 1 / 2),
    "half of a word pair is not enough": (goal("short sleeve"), {}, SHIRT, 1 / 2),
    "one of two": (goal("long sleeve,wrinkle free"), {}, SHIRT, 2 / 3),
    "two of three": (goal("long sleeve,wrinkle free,machine wash"), {}, SHIRT, 3 / 4),
    "three of three, too dear": (goal("long sleeve,linen,machine wash", ceiling=20), {}, SHIRT, 3 / 4),
    "none of two, too dear": (goal("wool,velvet", ceiling=20), {}, SHIRT, 0.0),
    # options: (chosen + price) / (asked + 1)
    "the colour asked for": (goal(options={"color": "navy"}), {"color": "navy"}, SHIRT, 1.0),
    "another colour": (goal(options={"color": "navy"}), {"color": "light blue"}, SHIRT, 1 / 2),
    "no option chosen": (goal(options={"color": "navy"}), {}, SHIRT, 1 / 2),
    "a shade is asked for and chosen": (goal(options={"color": "light blue"}), {"color": "light blue"}, SHIRT, 1.0),
    "a shade of the base colour asked for": (goal(options={"color": "blue"}), {"color": "light blue"}, SHIRT, 1.0),
    "another shade of the same base colour": (
        goal(options={"color": "light blue"}),
        {"color": "dark blue"},
        SHIRT,
        1.0,
    ),
    "both options": (goal(options=RIGHT), BOTH, SHIRT, 1.0),
    "one of two options": (goal(options=RIGHT), {"color": "light blue"}, SHIRT, 2 / 3),
    "the wrong size": (goal(options=RIGHT), {"color": "light blue", "size": "small"}, SHIRT, 2 / 3),
    "the right value under another name": (goal(options={"size": "large"}), {"style": "large"}, SHIRT, 1.0),
    "a size that contains the size asked for": (goal(options={"size": "large"}), {"size": "x-large"}, SHIRT, 1 / 2),
    "words that the size asked for contains": (
        goal(options={"size": "x-large"}),
        {"size": "large"},
        SHIRT,
        1.0,
    ),
    "numbers are told apart": (goal(options={"size": "10"}), {"size": "12"}, SHIRT, 1 / 2),
    "a colour word inside of a longer word hides it": (
        goal(options={"scent": "sandalwood"}),
        {"scent": "sandalwood"},
        SHIRT,
        1 / 2,
    ),
    "an option more than asked for": (goal(options={"size": "large"}), BOTH, SHIRT, 1.0),
    "capitals in what is chosen": (goal(options={"size": "large"}), {"size": "LARGE"}, SHIRT, 1.0),
    # all of it
    "everything": (goal("long sleeve,machine wash", RIGHT), BOTH, SHIRT, 1.0),
    "everything but one attribute": (goal("long sleeve,wool", RIGHT), BOTH, SHIRT, 4 / 5),
    "everything but one option": (goal("long sleeve,linen", RIGHT), {"size": "large"}, SHIRT, 4 / 5),
    "everything but the price": (goal("long sleeve,linen", RIGHT, 20), BOTH, SHIRT, 4 / 5),
    "nothing but the price": (goal("wool,velvet", RIGHT), {}, SHIRT, 1 / 5),
    # the kind of thing: the whole is multiplied
    "no shared noun": (goal("long sleeve"), {}, shirt(nouns=frozenset({"mug"})), 0.0),
    "no shared noun, whatever the query": (goal(), {}, shirt(nouns=frozenset()), 0.0),
    "one of three nouns and the same query": (goal(), {}, shirt(nouns=frozenset({"shirt", "wool"})), 1.0),
    "another query and category, but a third of the nouns": (
        goal(),
        {},
        shirt(nouns=frozenset({"shirt"}), query="x", category=("y",)),
        1.0,
    ),
}


def test_a_case_worked_by_hand() -> None:
    for name in CASES:
        wish, chosen, bought, expected = CASES[name]
        assert reward(bought, chosen, wish, SHIRT).total == pytest.approx(expected, abs=1e-12)


def test_there_are_at_least_forty_worked_cases() -> None:
    assert len(CASES) + len(KINDS) >= 50


MANY = frozenset(f"noun{i}" for i in range(20))
KINDS = [  # query and category of what is bought, nouns shared of 20 -> factor
    ("same", ("A", "B"), 20, 1.0),
    ("same", ("C", "D"), 5, 1.0),
    ("other", ("A", "B"), 4, 1.0),
    ("other", ("B", "A", "Z"), 2, 1.0),
    ("other", ("A", "C"), 4, 0.5),
    ("other", ("A", "A"), 3, 0.5),
    ("other", ("C", "D"), 4, 0.5),
    ("other", ("C", "D"), 5, 1.0),
    ("other", ("C", "D"), 2, 0.5),
    ("other", ("C", "D"), 1, 0.1),
    ("same", ("A", "B"), 1, 0.1),
    ("same", ("A", "B"), 0, 0.0),
]


def test_the_factor_of_the_kind_of_thing() -> None:
    for query, category, shared, factor in KINDS:
        wanted = Product("W", "w", ("A", "B"), "same", nouns=MANY)
        bought = Product("P", "p", category, query, nouns=frozenset(sorted(MANY)[:shared]) | {"more"})
        assert noun_overlap(bought, wanted) == shared / 20
        assert type_factor(bought, wanted) == factor
        assert reward(bought, {}, Goal("W", "w", ceiling=200.0), wanted).total == factor


def test_a_title_without_nouns_counts_as_little_overlap() -> None:
    wanted = Product("W", "w", ("A",), "same")
    assert type_factor(Product("P", "p", ("B",), "same"), wanted) == 1.0
    assert type_factor(Product("P", "p", ("B",), "other"), wanted) == 0.5


def test_base_colours_are_taken_in_the_order_of_the_alphabet() -> None:
    assert base_colour("white and black") == "black"
    assert base_colour("large") == "large"


PRODUCTS = generate_products(300, 3)


@settings(max_examples=60)
@given(st.integers(0, 299), st.integers(0, 299), st.integers(0, 10**6))
def test_the_reward_is_between_0_and_1_and_the_right_purchase_earns_1(first: int, second: int, pick: int) -> None:
    wanted, other = PRODUCTS[first], PRODUCTS[second]
    goals = goals_of(wanted, 3)
    wish = goals[pick % len(goals)]
    assert reward(wanted, wish.options, wish, wanted).total == 1.0
    assert visible_reward(wanted, wish.options, wish) == 1.0
    found = reward(other, wish.options, wish, wanted)
    assert 0 <= found.total <= found.type_factor <= 1
    fewer = dict(list(wish.options.items())[1:])
    assert reward(other, fewer, wish, wanted).total <= found.total


def test_the_values_of_a_generated_option_are_told_apart() -> None:
    for name in VALUES:
        for asked in VALUES[name]:
            assert [value for value in VALUES[name] if has_option(name, asked, [value])] == [asked]
