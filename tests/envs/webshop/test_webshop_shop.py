"""The generated shop and the files of the published one."""

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from turngym.envs.instances import split_of
from turngym.envs.webshop.catalogue import Catalogue, from_folder, procedural
from turngym.envs.webshop.files import nouns_of
from turngym.envs.webshop.generator import generate_products, goals_of
from turngym.envs.webshop.product import draw_ceiling
from turngym.envs.webshop.reward import reward
from turngym.errors import ConfigError

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "webshop"
needs_data = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the data of the published WebShop is not here")


def test_products_have_ids_of_their_own_and_fill_all_splits() -> None:
    products = generate_products(2000, 5)
    assert len({product.asin for product in products}) == 2000
    assert not {product.asin for product in products} & {product.asin for product in generate_products(100, 6)}
    shop = procedural(200, 5)
    assert all(shop.targets[split] for split in ("train", "dev", "test"))
    assert sum(map(len, shop.targets.values())) == 200
    assert all(split_of(product.asin) == split for split, found in shop.targets.items() for product in found)


def test_every_goal_of_a_generated_shop_is_met_by_its_product_and_found_by_the_search() -> None:
    shop = procedural(300, 1)
    for product in shop.products:
        goals = shop.goals(product)
        assert goals and len({goal.text for goal in goals}) == len(goals)
        for goal in goals:
            assert reward(product, goal.options, goal, product).total == 1.0
            assert goal.ceiling > product.price
            assert all(goal.options[name] in values for name, values in product.options.items())
    assert all(product in shop.search(product.title[:300]) for product in shop.products)


def test_another_shop_seed_is_another_shop() -> None:
    first, second = generate_products(50, 0), generate_products(50, 1)
    assert {product.title for product in first}.isdisjoint(product.title for product in second)
    assert goals_of(first[3], 0) == goals_of(generate_products(4, 0)[3], 0)


def test_a_ceiling_is_the_larger_of_two_of_the_next_four_tens() -> None:
    generator = np.random.default_rng(0)
    drawn = [draw_ceiling(generator, 24.5) for _ in range(3000)]
    shares = {ceiling: drawn.count(ceiling) / 3000 for ceiling in set(drawn)}
    assert shares.keys() == {40.0, 50.0, 60.0}
    for ceiling, share in ((40.0, 1 / 6), (50.0, 2 / 6), (60.0, 3 / 6)):
        assert abs(shares[ceiling] - share) < 0.04
    assert draw_ceiling(generator, 975.0) == 990.0 and draw_ceiling(generator, 980.0) == float("inf")
    assert draw_ceiling(generator, 20.0) > 30.0


def write_shop(folder: Path, ending: str = "") -> Path:
    """Write a small shop in the layout of the full release."""
    products = [
        {
            "asin": f"B{number}",
            "name": "Green Tea Cup",
            "pricing": "$10.99 to $1,200.00" if number else "",
            "small_description": ["Holds tea"],
            "full_description": "",
            "query": "Cups",
            "product_category": "Kitchen › Cups",
            "customization_options": {"Color": [{"value": "Red/White"}, {"value": " Dark\xa0 Blue "}]}
            if number
            else "",
        }
        for number in (0, 1, 1)
    ]
    asked = {
        "B1": {"attributes": ["easy clean"], "instruction": "Find a cup.", "instruction_attributes": ["easy clean"]}
    }
    openers = {"": open, ".gz": gzip.open, ".xz": lzma.open}
    for name, content in (("items_shuffle.json", products), ("items_ins_v2.json", asked)):
        with openers[ending](folder / f"{name}{ending}", "wt") as file:  # type: ignore[operator]
            json.dump(content, file)
    return folder


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_the_layout_of_the_full_release_is_read(tmp_path: Path, ending: str) -> None:
    shop = from_folder(str(write_shop(tmp_path, ending)))
    assert [product.asin for product in shop.products] == ["B0", "B1"]
    free, cup = shop.products
    assert free.price == 100.0 and 10.99 <= cup.price <= 1200 and cup.price == round(cup.price, 2)
    assert cup.options == {"color": ("red | white", "dark blue")} and free.options == {}
    assert cup.category == ("Kitchen", "Cups") and cup.query == "cups" and "tea" in cup.nouns
    assert shop.goals(free) == () and [product for found in shop.targets.values() for product in found] == [cup]
    assert [goal.options for goal in shop.goals(cup)] == [{"color": "red | white"}, {"color": "dark blue"}]
    assert shop.goals(cup)[0].instruction.startswith("Find a cup with color: red | white")


def test_nouns_beside_the_files_are_taken_as_they_are(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "nouns.json").write_text('{"B1": ["cup"]}')
    assert from_folder(str(tmp_path)).products[1].nouns == {"cup"}


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    shop = from_folder(str(write_shop(tmp_path)))
    assert from_folder(str(tmp_path)) is shop
    asked = json.loads((tmp_path / "items_ins_v2.json").read_text())
    (tmp_path / "items_ins_v2.json").write_text(json.dumps({**asked, "B0": asked["B1"]}))
    assert len(from_folder(str(tmp_path)).targets) == 3
    assert sum(map(len, from_folder(str(tmp_path)).targets.values())) == 2


@pytest.mark.parametrize("damage", ["", "[{]", '[{"name": "no id"}]', "7"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    write_shop(tmp_path)
    (tmp_path / "items_shuffle.json").write_text(damage)
    with pytest.raises(ConfigError, match=r"items_shuffle\.json is damaged"):
        from_folder(str(tmp_path))


def test_a_folder_without_files_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"it needs one of .*items_shuffle.json"):
        from_folder(str(tmp_path))


def test_small_words_adjectives_and_verbs_are_no_nouns() -> None:
    assert nouns_of("A beautiful 2-Pack of Coffee Mugs for the Kitchen") >= {"coffee", "kitchen"}
    assert nouns_of("A beautiful 2-Pack of Coffee Mugs").isdisjoint({"beautiful", "of", "a"})


@needs_data
def test_the_published_small_setting_has_its_goals() -> None:
    shop: Catalogue = from_folder(str(PUBLISHED))
    targets = [product for found in shop.targets.values() for product in found]
    goals = [(product, goal) for product in targets for goal in shop.goals(product)]
    assert (len(shop.products), len(targets)) == (1000, 415)
    assert len(goals) == 6910
    met = [reward(product, goal.options, goal, product) for product, goal in goals]
    short = [each for each in met if each.total < 1]
    assert all(each.type_factor == each.attributes == each.price == 1 > each.options for each in short)
    assert len(short) / len(goals) < 0.06  # option values that hide a colour word, as in the published rule
    assert all(product in shop.search(goal.instruction[:300]) for product, goal in goals[::7])
