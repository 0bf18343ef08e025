"""The shop in a real browser: step by step what the text mode is, and what happens when the browser breaks."""

import asyncio
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from web_pages import hang

import turngym
from turngym.envs.web.driver import thread as browsers
from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.tab import BrowserFault
from turngym.envs.web.driver.thread import BrowserThread, close_shared_pool, shared_pool
from turngym.envs.webshop.env import WebShop
from turngym.errors import ConfigError
from turngym.system.processes import OncePerProcess

pytest.importorskip("playwright", reason="needs the optional package playwright")
if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
pytestmark = pytest.mark.integration
PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "webshop"
ODD = (
    "search[  Red \t MUG \n & <b>100%</b>+cotton? ]",
    "search[é ✔ 👩🏽‍🚀 日本 \u2028 \x00 \ud800 'quotes' \"too\" \\]",
    "search[" + "word " * 200 + "]",
    "search[]",
    "click[]",
    "click[description]",
    "click[nothing like this]",
    "buy it",
)


@pytest.fixture(scope="module", autouse=True)
def pool() -> Iterator[None]:
    yield
    close_shared_pool()


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[WebShop] = []

    def maker(**options: Any) -> WebShop:
        made.append(WebShop(**{"products": 120, "mode": "browser", **options}))
        return made[-1]

    yield maker
    for env in made:
        env.close()


def agree(one: WebShop, other: WebShop, seed: int, actions: Any) -> int:
    """Play an episode in both, demand that all that is told is equal, and return the number of turns."""
    (shown, info), told = one.reset(seed=seed), other.reset(seed=seed)
    assert (shown, info) == told
    for turn in range(1, one.max_turns + 1):
        action = actions(info)
        shown, reward, terminated, truncated, info = one.step(action)
        assert (shown, reward, terminated, truncated, info) == other.step(action)
        assert one.purchase() == other.purchase() if one._view.asin else one._view == other._view
        if terminated or truncated:
            return turn
    raise AssertionError("unreachable")


@pytest.mark.parametrize("show_goal", [True, False])
def test_a_random_walk_reads_in_the_browser_as_in_the_text(make: Any, show_goal: bool) -> None:
    options: dict[str, Any] = {"show_goal": show_goal, "max_turns": 60}
    browser, text = make(**options), WebShop(products=120, **options)
    draw = random.Random(show_goal)

    def choose(info: dict[str, Any]) -> str:
        if draw.random() < 0.15:
            return draw.choice(ODD)
        rest = [action for action in info["legal_actions"] if action != "click[buy now]" or draw.random() < 0.1]
        return str(draw.choice(rest))

    assert sum(agree(browser, text, seed, choose) for seed in range(3)) >= 60


def test_the_oracle_is_paid_the_same_and_1(make: Any) -> None:
    browser, text = make(split="test"), WebShop(products=120, split="test")
    for seed in range(4):
        agree(browser, text, seed, lambda info: text.expert_action())
        assert text._info()["score"] == browser._info()["score"] == 1.0


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the data of the published WebShop is not here")
def test_published_products_read_the_same_too(make: Any) -> None:
    options: dict[str, Any] = {"catalogue": str(PUBLISHED), "max_turns": 25}
    browser, text, draw = make(**options), WebShop(**options), random.Random(5)
    for seed in range(2):
        agree(browser, text, seed, lambda info: draw.choice(info["legal_actions"]))
        agree(browser, text, seed, lambda info: text.expert_action())


def test_the_page_is_a_picture_too(make: Any) -> None:
    env = make(image=True, width=400, height=300)
    observation, _ = env.reset(seed=0)
    assert observation["image"].shape == (300, 400, 3) and env.observation_space.contains(observation)
    assert observation["text"] == WebShop(products=120).reset(seed=0)[0]
    after, *_ = env.step("search[tea]")
    assert (after["image"] != observation["image"]).any()
    refused, *_ = env.step("search[tea]")
    np.testing.assert_array_equal(refused["image"], after["image"])
    saved = env.snapshot()
    np.testing.assert_array_equal(env.restore(saved)[0]["image"], after["image"])
    plain = make(render_mode="rgb_array", width=400, height=300)
    plain.reset(seed=0)
    np.testing.assert_array_equal(plain.render(), observation["image"])


def test_coroutines_give_what_the_plain_calls_give(make: Any) -> None:
    plain, other = WebShop(products=120), make()

    async def play() -> list[Any]:
        results: list[Any] = [await other.async_reset(seed=7)]
        results.append(await other.async_step("nonsense"))
        while other._running:
            results.append(await other.async_step(other.expert_action()))
        results.append(await other.async_reset())
        await other.async_close()
        return results

    expected: list[Any] = [plain.reset(seed=7), plain.step("nonsense")]
    while plain._running:
        expected.append(plain.step(plain.expert_action()))
    expected.append(plain.reset())
    assert asyncio.run(play()) == expected


def test_a_branch_goes_on_where_it_was_saved(make: Any) -> None:
    env, fresh = make(), make()
    env.reset(seed=4)
    env.step(env.expert_action())
    env.step(env.expert_action())
    saved = env.snapshot()
    original = [env.step(env.expert_action()) for _ in range(2)]
    env.reset(seed=5)
    for copy in (env, fresh):
        copy.restore(saved)
        assert [copy.step(copy.expert_action()) for _ in range(2)] == original


def test_a_browser_that_dies_is_replaced_and_the_episode_goes_on(make: Any) -> None:
    browser, text = make(), WebShop(products=120)
    lost = shared_pool().pool.counts["browser_lost"]

    def kill_and_choose(info: dict[str, Any]) -> str:
        for host in list(shared_pool().pool.browsers):
            host.kill()
        return text.expert_action()

    assert agree(browser, text, 1, kill_and_choose) >= 3
    assert shared_pool().pool.counts["browser_lost"] > lost


def test_a_page_that_leaves_the_shop_is_a_fault_and_reaches_nothing(make: Any) -> None:
    env, other = make(), make()
    other.reset(seed=1)
    foreign = other._tab._start  # the pages of another environment are foreign too
    for target in ("http://example.com/", "http://127.0.0.1:9/", f"{foreign}start"):
        env.reset(seed=0)
        tab, before = env._tab._tab, shared_pool().pool.counts["navigation"]
        shared_pool().run(tab.ask(f"void (location.href = {target!r})"))
        for _ in range(400):
            if tab._left:
                break
            shared_pool().run(asyncio.sleep(0.05))
        with pytest.raises(BrowserFault, match="the page went to chrome-error"):
            env.step(env.expert_action())
        assert shared_pool().pool.counts["navigation"] == before + 1
    assert env.reset(seed=0)[0] == WebShop(products=120).reset(seed=0)[0]
    assert other.step(other.expert_action())[4]["action_is_valid"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrowserThread]:
    """Shared browsers that take a page for hung after six seconds."""
    close_shared_pool()
    thread = BrowserThread(timeout_seconds=6.0)
    monkeypatch.setattr(browsers, "_shared", OncePerProcess(lambda: thread))
    yield thread
    thread.stop()


def test_a_page_that_hangs_faults_its_slot_alone(impatient: BrowserThread) -> None:
    vector = turngym.make_vec(
        "turngym/WebShop-v0", 3, backend="asyncio", autoreset_mode="disabled", mode="browser", products=120
    )
    try:
        seeds = [10, 11, 12]
        vector.reset(seed=seeds)
        envs = [worker.lane.slot._env for worker in vector._backend._workers]  # type: ignore[attr-defined]
        impatient.run(hang(envs[1]._tab._tab))
        _, _, terminated, truncated, info = vector.step([env.expert_action() for env in envs])
        assert list(truncated) == [False, True, False] and not terminated.any()
        assert [bool(text) for text in info["fault"]] == [False, True, False]
        assert impatient.pool.counts["hang"] >= 1
        _, info = vector.reset(seed=seeds, options={"reset_mask": np.array([False, True, False])})
        assert not any(info["fault"])
        _, _, _, truncated, info = vector.step(["click[back to search]"] * 3)
        assert not truncated.any() and list(info["action_is_valid"]) == [True, False, True]
    finally:
        vector.close()


def test_closing_ends_the_visit_and_options_of_the_browser_are_checked() -> None:
    env = WebShop(products=120, mode="browser")
    env.reset(seed=0)
    tabs = sum(host.load for host in shared_pool().pool.browsers)
    env.close()
    env.close()
    assert sum(host.load for host in shared_pool().pool.browsers) == tabs - 1
    assert env.reset(seed=0)[0] == WebShop(products=120).reset(seed=0)[0]
    env.close()
    wrong: list[dict[str, Any]] = [{"width": 100}, {"height": 5000}, {"mode": "brower"}]
    for options in wrong:
        with pytest.raises(ConfigError):
            WebShop(**{"mode": "browser", **options})


def test_it_is_an_option_of_the_registered_id() -> None:
    env = gymnasium.make("turngym/WebShop-v0", mode="browser")
    try:
        assert env.reset(seed=0)[0] == gymnasium.make("turngym/WebShop-v0").reset(seed=0)[0]
    finally:
        env.close()
