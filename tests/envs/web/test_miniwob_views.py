"""What MiniWoB shows beside its own text: the accessibility tree, and pictures that are drawn when we say so."""

import asyncio
from typing import Any

import numpy as np
import pytest
from miniwob_pages import make, pool

from turngym.envs.web.driver.frames import can_be_steered
from turngym.envs.web.driver.tab import BrowserFault
from turngym.envs.web.driver.thread import BrowserThread, shared_pool
from turngym.envs.web.miniwob.env import MiniWoB
from turngym.envs.web.miniwob.tasks import pages_folder
from turngym.errors import ConfigError

pytestmark = pytest.mark.integration
__all__ = ["make", "pool"]  # fixtures


def test_the_tree_names_elements_by_the_numbers_of_the_page(make: Any) -> None:
    page, tree = make("login-user"), make("login-user", observation="tree")
    (shown, _), (seen, info) = page.reset(seed=1), tree.reset(seed=1)
    assert seen.splitlines()[0] == shown.splitlines()[0]
    assert [line.strip() for line in seen.splitlines()[1:]] == [
        *('paragraph', '[1] LabelText', 'StaticText "Username"', '[2] textbox'),
        *('paragraph', '[3] LabelText', 'StaticText "Password"', '[4] textbox', '[5] button "Login"'),
    ]  # fmt: skip
    assert info["anchor"] == seen.removeprefix("Task: ")
    assert tree.reset(seed=1) == (seen, info)
    tree.step('fill 2 "Ann"')
    saved = tree.snapshot()
    after = tree.step("focus 4")
    assert '[2] textbox value "Ann"' in after[0] and "[4] textbox focused" in after[0]
    tree.restore(saved)
    assert tree.step("focus 4") == after


def test_the_tree_follows_a_page_that_changes_and_hides_what_is_not_the_task_s(make: Any) -> None:
    env = make("click-menu", observation="tree")
    for seed in range(40):
        _, info = env.reset(seed=seed)
        if ">" in env.screen.goal:
            break
    while env._running:
        action = env.expert_action()
        assert action.startswith(("hover", "click"))
        assert f"[{action.split()[1]}]" in env._observation  # what the page shows can be told from the tree, too
        _, reward, _, _, info = env.step(action)
    assert reward == 1.0 and info["success"] == 1
    assert "Last reward" not in env._observation
    with pytest.raises(ConfigError, match=r"observation of .* got 'trees'"):
        make(observation="trees")


def test_pages_drawn_when_we_say_so_look_as_those_that_draw_by_themselves(make: Any) -> None:
    tasks = ("click-color", "choose-list", "email-inbox", "click-pie", "use-slider")
    steered, plain = (make(tasks, image=True, max_turns=4) for _ in range(2))
    plain._page.is_steered = False
    for task in tasks:
        for env in (steered, plain):
            env.names = (task,)
        (one, info), (other, _) = steered.reset(seed=3), plain.reset(seed=3)
        for action in (info["legal_actions"][-1], "scroll down", "hover 60,100", "drag 60,90 to 90,130"):
            assert one["text"] == other["text"]
            np.testing.assert_array_equal(one["image"], other["image"], err_msg=f"{task} before {action}")
            if not steered._running:
                break
            one, other = steered.step(action)[0], plain.step(action)[0]
    hosts = shared_pool().pool.browsers
    assert {host.is_steered for host in hosts} == {False, can_be_steered(shared_pool().pool.executable)}


@pytest.mark.parametrize("task", ["enter-date", "enter-time", "choose-list", "use-colorwheel"])
def test_no_list_or_calendar_of_the_browser_opens_over_the_page_and_stops_its_pictures(make: Any, task: str) -> None:
    env = make(task, image=True, max_turns=40)
    _, info = env.reset(seed=0)
    field = next(each for each in info["legal_actions"] if each.startswith(("click", "select")))
    number = int(field.split()[1])
    left, top, width, height = map(int, next(node for node in env._page._nodes if node.id == number).at)
    middle = top + height // 2
    for action in (f"click {number}", f"click {left + 8},{middle}", f"click {left + width - 8},{middle}"):
        for key in ("Space", "Enter", "Alt+ArrowDown", "F4"):
            for each in (action, f"press {key}"):
                observation, _, terminated, *_ = env.step(each)
                assert observation["image"].any()
                if terminated:
                    env.reset(seed=0)


def test_the_first_click_on_a_page_that_was_just_loaded_counts(make: Any) -> None:
    env = make("all")
    for seed in range(8):
        for task in ("odd-or-even", "click-test"):  # each is loaded anew
            env.names = (task,)
            env.reset(seed=seed)
        assert env.step(env.expert_action())[1] == 1.0, seed


def test_slots_of_one_browser_draw_side_by_side(make: Any) -> None:
    envs = [make("click-checkboxes", image=True, observation="tree", max_turns=12) for _ in range(4)]
    alone = make("click-checkboxes", image=True, observation="tree", max_turns=12)

    async def play(env: MiniWoB, seed: int) -> list[Any]:
        seen: list[Any] = [await env.async_reset(seed=seed)]
        while env._running:
            seen.append(await env.async_step(env.expert_action()))
        return seen

    async def together() -> list[list[Any]]:
        return await asyncio.gather(*(play(env, seed) for seed, env in enumerate(envs)))

    lost = shared_pool().pool.counts["browser_lost"]
    for seed, seen in enumerate(asyncio.run(together())):
        np.testing.assert_equal(seen, asyncio.run(play(alone, seed)))
        assert seen[-1][-1]["success"] == 1
    assert shared_pool().pool.counts["browser_lost"] == lost


def test_a_page_that_hangs_while_it_is_drawn_is_a_fault_and_its_neighbour_waits_for_its_end() -> None:
    thread = BrowserThread(timeout_seconds=4.0)
    folder = f"{pages_folder().as_uri()}/"

    async def scene() -> bytes:
        hung, neighbour = [await thread.pool.open([folder], is_steered=True) for _ in range(2)]
        for tab in (hung, neighbour):
            await tab.goto(f"{folder}miniwob/click-test.html")
        assert await neighbour.screenshot() == await hung.screenshot()
        await hung.ask("new IntersectionObserver(() => { for (;;); }).observe(document.body)")  # with the next frame

        async def see_it_through() -> None:
            with pytest.raises(BrowserFault, match="does not answer"):
                await hung.screenshot()
            await thread.pool.release(hung)

        _, picture = await asyncio.gather(see_it_through(), neighbour.screenshot())
        assert thread.pool.counts["hang"] == 1 and not neighbour.fault
        await neighbour.mouse("mouseMoved", 50, 50)
        await thread.pool.release(neighbour)
        return picture

    try:
        assert thread.run(scene()).startswith(b"\x89PNG")
    finally:
        thread.stop()
