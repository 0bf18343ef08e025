"""The sites in a real browser: the same as without one, apart from each other, and safe when the browser dies."""

import asyncio
import random
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import turngym
from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.tab import BrowserFault
from turngym.envs.web.driver.thread import close_shared_pool, shared_pool
from turngym.envs.website.env import WebSite
from turngym.envs.website.server import close_shared_server, shared_server

pytest.importorskip("playwright", reason="needs the optional package playwright")
pytest.importorskip("starlette", reason="needs the optional package starlette")
pytest.importorskip("uvicorn", reason="needs the optional package uvicorn")
if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
pytestmark = pytest.mark.integration
HOSTILE = "</span><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'&amp;"
TEXTS = ("two words", HOSTILE, "漢字 🙂 ü", "50% off; a=b&c+d", "", "x" * 300)


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    close_shared_pool()
    close_shared_server()


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[WebSite] = []

    def maker(**options: Any) -> WebSite:
        made.append(WebSite(mode="browser", **options))
        return made[-1]

    yield maker
    for env in made:
        env.close()


def some_action(draw: random.Random, env: WebSite, legal: tuple[str, ...]) -> str:
    """Return what the oracle does, a listed action, or something odd."""
    share, number = draw.random(), draw.randint(1, 14)
    if share < 0.45:
        return draw.choice(legal)
    if share < 0.75 and not env._verdict.unasked:
        return env.expert_action()
    odd = [f"fill {number} {draw.choice(TEXTS)}", f"click {number}", f"check {number}", f"select {number} open"]
    paths = [f"goto /{place}/{number}" for place in ("issues", "mails", "products", "nothing")]
    return draw.choice([*odd, *paths, "press Enter", "back", "goto http://example.com/"])


@pytest.mark.parametrize("site", ["issues", "mail", "shop"])
def test_browser_and_text_agree_over_120_steps(make: Any, site: str) -> None:
    """Three sites, 360 steps: equal observations, rewards, infos, pages, sessions and tables after every one."""
    plain, live, draw = WebSite(site=site), make(site=site), random.Random(site)
    steps, is_over = 0, True
    while steps < 120:
        if is_over:
            seed = draw.randrange(10**6)
            first, other = plain.reset(seed=seed), live.reset(seed=seed)
            assert first == other
            info = first[1]
        action = some_action(draw, plain, info["legal_actions"])
        here, there = plain.step(action), live.step(action)
        steps += 1
        assert here == there, action
        assert plain.session.page == live.session.page and plain.session.state() == live.session.state(), action
        assert plain.store.changes() == live.store.changes(), action
        info, is_over = here[-1], here[2] or here[3]


def test_what_an_agent_writes_never_becomes_part_of_a_page(make: Any) -> None:
    env = make(site="issues")
    env.reset(seed=0)
    for action in ("goto /issues/new", f"fill 6 {HOSTILE}", "click 11"):
        observation, *_ = env.step(action)
    assert HOSTILE in observation and "Created." in observation
    tab = env._tab._tab
    ask = "[document.title, document.querySelectorAll('script, img').length, document.querySelector('h1').textContent]"
    assert shared_pool().run(tab.ask(ask)) == ["Issue #25", 0, "Issue #25"]
    assert not tab.events


def test_slots_share_nothing_and_leave_the_server_with_their_end(make: Any) -> None:
    one, other = make(site="mail", kind="purge"), make(site="mail", kind="purge")
    first, _ = one.reset(seed=5)
    other.reset(seed=5)
    while one._running:
        one.step(one.expert_action())
    assert one.store.changes() and not other.store.changes()
    assert other.step("goto /folders/1")[0] == first
    base = one._tab._base
    assert base.startswith(f"http://127.0.0.1:{shared_server().port}/") and base != other._tab._base
    with urllib.request.urlopen(f"{base}/folders/1") as answer:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    one.close()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{base}/folders/1")


def test_a_tab_reaches_neither_another_slot_nor_another_host(make: Any) -> None:
    one, other = make(site="shop"), make(site="shop")
    one.reset(seed=1)
    other.reset(seed=1)
    for address in (f"{other._tab._base}/orders", "http://127.0.0.1:1/", "file:///etc/passwd"):
        with pytest.raises(BrowserFault):
            shared_pool().run(one._tab._tab.goto(address))
    script = f"fetch({other._tab._base + '/orders'!r}).then(() => 'reached', () => 'refused')"
    assert shared_pool().run(one._tab._tab.ask(script)) == "refused"


def test_an_episode_goes_on_in_another_browser_when_its_own_is_killed(make: Any) -> None:
    plain, live = WebSite(site="issues", kind="file"), make(site="issues", kind="file")
    results = [plain.reset(seed=2), live.reset(seed=2)]
    turns = 0
    while plain._running:
        if turns in (2, 3, 5):
            for host in list(shared_pool().pool.browsers):
                host.kill()
        action = plain.expert_action()
        results = [plain.step(action), live.step(action)]
        assert results[0] == results[1], action
        turns += 1
    assert results[0][1] == 1.0 and shared_pool().pool.counts["browser_lost"] >= 3


def test_a_change_is_not_made_twice_when_the_browser_ends_after_it(make: Any) -> None:
    env = make(site="issues", kind="plan")
    env.reset(seed=0)
    while not env.expert_action().startswith("click") or env.session.page.title != "Milestones":
        env.step(env.expert_action())
    slot, post = env._tab._slot, env._tab._slot.post

    def post_and_kill(path: str, values: dict[str, str]) -> str:
        target: str = post(path, values)
        for host in list(shared_pool().pool.browsers):
            host.kill()
        return target

    slot.post = post_and_kill
    observation, *_, info = env.step(env.expert_action())
    assert "Created." in observation and info["progress"] > 0 and len(env.store.changes()) == 1


def test_a_branch_from_a_snapshot_is_the_same_in_another_tab(make: Any) -> None:
    env, fresh = make(site="shop", kind="reprice"), make(site="shop", kind="reprice")
    env.reset(seed=3)
    while not env.session.entered or "Edit" not in env.session.page.title:
        env.step(env.expert_action())
    fresh.restore(env.snapshot())
    assert fresh.session.page == env.session.page and fresh.session.focus == env.session.focus > 0
    for action in (env.expert_action(), "press Enter"):
        assert env.step(action) == fresh.step(action)


def test_a_page_that_crashes_faults_its_slot_alone(make: Any) -> None:
    vector = turngym.make_vec("turngym/WebSiteMail-v0", 4, backend="asyncio", autoreset_mode="disabled", mode="browser")
    twin = turngym.make_vec("turngym/WebSiteMail-v0", 4, autoreset_mode="disabled")
    try:
        seeds = [10, 11, 12, 13]
        assert vector.reset(seed=seeds)[0] == twin.reset(seed=seeds)[0]
        assert vector.step(["click 2"] * 4)[0] == twin.step(["click 2"] * 4)[0]
        envs = [worker.lane.slot._env for worker in vector._backend._workers]  # type: ignore[attr-defined]
        tab = envs[2]._tab._tab

        async def crash() -> None:
            session = await tab.context.new_cdp_session(tab.page)
            asyncio.ensure_future(session.send("Page.crash")).add_done_callback(lambda done: done.exception())
            for _ in range(400):
                if tab.fault:
                    return
                await asyncio.sleep(0.05)

        shared_pool().run(crash())
        _, _, terminated, truncated, info = vector.step(["click 3"] * 4)
        assert list(truncated) == [False, False, True, False] and not terminated.any()
        assert [bool(text) for text in info["fault"]] == [False, False, True, False]
        vector.reset(seed=seeds, options={"reset_mask": np.array([False, False, True, False])})
        _, _, _, truncated, info = vector.step(["click 4"] * 4)
        assert not truncated.any() and not any(info["fault"])
    finally:
        vector.close()
        twin.close()


def test_closing_gives_tab_and_address_back_and_a_closed_environment_begins_anew(make: Any) -> None:
    env = make()
    first = env.reset(seed=0)
    tabs = sum(host.load for host in shared_pool().pool.browsers)
    env.close()
    env.close()
    assert sum(host.load for host in shared_pool().pool.browsers) == tabs - 1
    assert env.reset(seed=0) == first
