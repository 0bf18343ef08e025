"""The shop as an environment: pages, clicks, answers to nonsense, the oracle."""

import random
from typing import Any

import pytest

from turngym.envs.webshop import pages
from turngym.envs.webshop.env import WebShop
from turngym.envs.webshop.pages import View
from turngym.errors import ConfigError


@pytest.fixture
def env() -> WebShop:
    made = WebShop(products=200)
    made.reset(seed=4)
    return made


def open_target(env: WebShop) -> dict[str, Any]:
    """Walk to the page of the product that is asked for."""
    info: dict[str, Any] = {}
    while env._view.asin != env.goal.asin.lower():
        *_, info = env.step(env.expert_action())
    return info


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_oracle_earns_1_on_every_task(split: str) -> None:
    env = WebShop(split=split)
    for seed in range(60):
        _, info = env.reset(seed=seed)
        total = 0.0
        while info["success"] < 0:
            _, reward, terminated, _, info = env.step(env.expert_action())
            total += reward
            assert info["action_is_valid"]
        assert terminated and total == info["score"] == 1.0 and info["success"] == 1


def test_the_oracle_finds_its_way_back_from_anywhere() -> None:
    env, draw = WebShop(products=120, max_turns=100), random.Random(0)
    for seed in range(40):
        _, info = env.reset(seed=seed)
        for _ in range(draw.randint(1, 12)):
            action = draw.choice([each for each in info["legal_actions"] if each != "click[buy now]"])
            *_, info = env.step(action)
        while info["success"] < 0:
            *_, info = env.step(env.expert_action())
        assert info["success"] == 1


def test_random_play_is_far_from_the_oracle() -> None:
    env, draw, scores = WebShop(), random.Random(1), []
    for seed in range(200):
        _, info = env.reset(seed=seed)
        truncated = False
        while info["success"] < 0 and not truncated:
            *_, truncated, info = env.step(draw.choice(info["legal_actions"]))
        scores.append(info["score"])
    assert 0.02 < sum(scores) / 200 < 0.35


def test_results_come_in_pages_of_ten(env: WebShop) -> None:
    observation, *_ = env.step("search[for women]")
    assert observation.count("$") == 10 and "[next >]" in observation and "[< prev]" not in observation
    second, *_ = env.step("click[Next >]")
    assert "page 2 of 5" in second and second.count("$") == 10 and "[< prev]" in second
    assert env.step("click[< prev]")[0] == observation
    assert env.step("click[back to search]")[0].endswith("[search]")


def test_a_search_without_results_leads_back(env: WebShop) -> None:
    observation, *_, info = env.step("search[xyzzy]")
    assert "0 products" in observation and info["legal_actions"] == ("click[back to search]",)


def test_an_item_shows_its_options_and_details(env: WebShop) -> None:
    open_target(env)
    product = env.shop.by_asin[env.goal.asin.lower()]
    for detail, words in (("description", product.description), ("features", product.bullets[0])):
        observation, *_ = env.step(f"click[{detail}]")
        assert words in observation
        env.step("click[< prev]")
    name, value = next(iter(product.options.items()))[0], next(iter(product.options.values()))[0]
    observation, *_ = env.step(f"click[{value.upper()}]")
    assert f"[{value}] (chosen)" in observation and env._view.chosen == {name: value}


def test_choosing_again_replaces_a_choice_and_leaving_the_page_forgets_it(env: WebShop) -> None:
    open_target(env)
    product = env.shop.by_asin[env.goal.asin.lower()]
    name, (first, second, *_) = next((name, values) for name, values in product.options.items() if len(values) > 1)
    env.step(f"click[{first}]")
    env.step(f"click[{second}]")
    assert env._view.chosen == {name: second}
    env.step("click[< prev]")
    env.step(f"click[{product.asin}]")
    assert env._view.chosen == {}


def test_progress_is_what_the_pages_let_a_purchase_hope_for(env: WebShop) -> None:
    assert env._info()["progress"] == 0.0
    info = open_target(env)
    before = info["progress"]
    assert 0 < before < 1
    while (action := env.expert_action()) != "click[buy now]":
        *_, info = env.step(action)
        assert info["progress"] > before
        before = info["progress"]
    assert before == 1.0 and env.purchase().total == 1.0
    assert env.step("click[buy now]")[1] == 1.0


@pytest.mark.parametrize(
    "action",
    [
        "",
        "buy",
        "click",
        "click[]",
        "click[nothing like this]",
        "search[]",
        "search[  \n]",
        "[search]",
        "click[buy now]",
    ],
)
def test_nonsense_is_answered_and_changes_nothing(env: WebShop, action: str) -> None:
    before = env._view
    observation, reward, terminated, truncated, info = env.step(action)
    assert not info["action_is_valid"] and (reward, terminated, truncated) == (0.0, False, False)
    assert env._view == before == View() and observation


def test_searching_away_from_the_search_page_is_refused(env: WebShop) -> None:
    env.step("search[tea]")
    observation, *_, info = env.step("search[coffee]")
    assert not info["action_is_valid"] and "back to search" in observation


def test_a_long_answer_is_cut_before_it_is_repeated(env: WebShop) -> None:
    env.step("search[" + "word " * 10_000 + "]")
    assert len(env._view.query) <= 300
    observation, *_ = env.step("click[" + "x" * 10_000 + "]")
    assert len(observation) < 1000


def test_what_no_keyboard_writes_is_a_blank_in_a_search(env: WebShop) -> None:
    env.step("search[\x00green\u2028tea\ud800 \xa0 é]")
    assert env._view.query == "green tea é"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"image": True}, "in a browser only"), ({"mode": "browse"}, "Did you mean 'browser'"), ({"image": 1}, "True or")],
)
def test_pictures_need_a_browser_and_modes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WebShop(**options)


def test_the_text_records_nothing_of_the_browser_and_cannot_be_painted(env: WebShop) -> None:
    assert set(env.settings) == {"catalogue", "products", "shop_seed", "show_goal", "max_turns", "split"}
    assert env.metadata["render_modes"] == ["ansi"]
    with pytest.raises(ConfigError, match="cannot render"):
        WebShop(render_mode="rgb_array")
    with pytest.raises(ConfigError, match="in a browser only"):
        env.render_image()


def test_the_wish_is_on_every_page_or_on_the_first_only() -> None:
    for show_goal in (True, False):
        env = WebShop(products=100, show_goal=show_goal)
        observation, _ = env.reset(seed=0)
        assert env.goal.instruction in observation
        observation, *_ = env.step("search[tea]")
        assert observation.startswith("Customer: ") == show_goal


def test_a_purchase_cannot_be_judged_where_nothing_is_shown(env: WebShop) -> None:
    with pytest.raises(ConfigError, match="nothing to buy"):
        env.purchase()


@pytest.mark.parametrize(
    "options", [{"products": 10}, {"shop_seed": -1}, {"catalogue": "/nowhere"}, {"products": True}]
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        WebShop(**options)


def test_clickables_are_distinct_and_shown(env: WebShop) -> None:
    draw = random.Random(2)
    info: dict[str, Any] = env._info()
    for _ in range(300):
        links = pages.clickables(env.shop, env._view)
        assert len(set(links)) == len(links)
        text = pages.text(env.shop, env._view)
        assert all(f"[{link}]" in text for link in links)
        action = draw.choice([each for each in info["legal_actions"] if each != "click[buy now]"])
        *_, truncated, info = env.step(action)
        if truncated:
            _, info = env.reset()
