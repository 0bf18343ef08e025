"""What the benchmark of the shop counts: goals that the oracle meets, and goals that nobody can meet."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

from turngym.envs.webshop.env import WebShop
from turngym.envs.webshop.product import Goal, Product


def load(name: str) -> ModuleType:
    """Return a script of the benchmarks as a module."""
    path = Path(__file__).parents[3] / "benchmarks" / "studies" / "speed" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"speed_of_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = load("webshop")
SHIRT = Product(
    "S1",
    "Linen shirt",
    options={"color": ("navy", "l.brown7"), "size": ("small", "large")},
    prices=(30.0,),
    nouns=frozenset({"linen", "shirt"}),
)


def wish(**options: str) -> Goal:
    return Goal("S1", "a wish", (), options, 50.0)


def test_a_goal_can_be_met_where_some_choice_earns_1() -> None:
    assert bench.can_be_met(SHIRT, wish(color="navy", size="large"), SHIRT)
    assert bench.can_be_met(SHIRT, wish(color="brown"), SHIRT), "another value that is read as brown"
    assert not bench.can_be_met(SHIRT, wish(color="l.brown7"), SHIRT), "read as brown when it is chosen"
    assert not bench.can_be_met(SHIRT, wish(size="medium"), SHIRT)
    assert not bench.can_be_met(SHIRT, Goal("S1", "a wish", ("velvet",), {}, 50.0), SHIRT)
    assert not bench.can_be_met(SHIRT, Goal("S1", "a wish", (), {}, 20.0), SHIRT)


def test_the_oracle_meets_every_goal_of_a_generated_shop() -> None:
    count, short = bench.oracle(WebShop(products=50))
    assert count > 300 and short == []


def test_goals_of_a_folder_are_counted_and_the_values_named_that_nobody_can_choose(tmp_path: Path) -> None:
    values = ["navy", "l.brown7", "peppered"]
    product = {
        "asin": "S1",
        "name": "Linen shirt",
        "pricing": "$30.00",
        "customization_options": {"color": [{"value": value} for value in values]},
    }
    asked = {"S1": {"attributes": ["soft"], "instruction": "Find a shirt.", "instruction_attributes": ["soft"]}}
    (tmp_path / "items_shuffle.json").write_text(json.dumps([product]))
    (tmp_path / "items_ins_v2.json").write_text(json.dumps(asked))
    found = bench.published(tmp_path)
    assert (found["goals"], found["solved"], found["reachable"], found["unreachable"]) == (3, 1, 1, 2)
    assert [(each["value"], each["read_as"]) for each in found["values"]] == [
        ("l.brown7", "brown"),
        ("peppered", "red"),
    ]


def test_random_play_is_timed_step_by_step_and_summed_up() -> None:
    run = bench.play(WebShop(products=50), range(3))
    assert len(run["resets"]) == 3 and len(run["steps"]) >= 6 and run["seconds"] > 0
    cell = bench.summary([run, run])
    assert cell["steps"] == 2 * len(run["steps"]) and cell["steps_per_second"] == len(run["steps"]) / run["seconds"]
