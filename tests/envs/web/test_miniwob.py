"""MiniWoB on the pool: turns, rewards, snapshots, coroutines, and what happens when browsers die under it."""

import asyncio
import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from miniwob_pages import make, pool

import turngym
from turngym.envs.web.driver.tab import BrowserFault
from turngym.envs.web.driver.thread import shared_pool
from turngym.envs.web.miniwob.env import MiniWoB
from turngym.envs.web.miniwob.oracles import ORACLES, WITHOUT_ORACLE
from turngym.envs.web.miniwob.tasks import TASKS, pages_folder
from turngym.errors import ConfigError, SnapshotUnsupported, UnknownName
from turngym.system.processes import descendants

pytestmark = pytest.mark.integration
__all__ = ["make", "pool"]  # fixtures


def solve(env: MiniWoB, seed: int) -> tuple[float, dict[str, Any], int]:
    _, info = env.reset(seed=seed)
    for turn in range(1, env.max_turns + 1):
        _, reward, terminated, truncated, info = env.step(env.expert_action())
        assert info["action_is_valid"]
        if terminated or truncated:
            return reward, info, turn
    raise AssertionError("unreachable")


def test_every_task_has_an_oracle_or_a_reason() -> None:
    assert len(TASKS) == len(set(TASKS)) == 130
    assert {*ORACLES, *WITHOUT_ORACLE} == set(TASKS) and not set(ORACLES) & set(WITHOUT_ORACLE)
    pages = {path.stem for path in (pages_folder() / "miniwob").glob("*.html")}
    assert pages == set(TASKS)


def test_the_observation_is_the_task_and_the_page(make: Any) -> None:
    env = make("login-user")
    observation, info = env.reset(seed=0)
    lines = observation.splitlines()
    assert lines[0].startswith('Task: Enter the username "')
    assert '[3] textbox value ""' in observation or '[2] textbox value ""' in observation
    assert info["success"] == -1 and info["legal_actions"] and "Task" not in info["anchor"]
    field = env.screen.nodes[1]
    observation, reward, terminated, _, info = env.step(f"fill {field.id} me")
    assert f'[{field.id}] textbox value "me"' in observation
    assert (reward, terminated, info["action_is_valid"]) == (0.0, False, True)


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("open the door", "Unknown action"),
        ("click 999", "there is no element 999"),
        ("back", "no page to go back to"),
        ("press NoSuchKey", "there is no key"),
        ("select 1 x", "no option|no element"),
        ("fill 6 x", "no text field|no element"),
    ],
)
def test_what_cannot_be_done_is_answered(make: Any, action: str, answer: str) -> None:
    env = make("login-user")
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step(action)
    assert any(part in observation for part in answer.split("|"))
    assert not info["action_is_valid"] and not terminated


@pytest.mark.parametrize("task", ["enter-date", "enter-time"])
def test_what_the_task_writes_can_be_filled_in_as_it_is(make: Any, task: str) -> None:
    env = make(task=task)
    observation, _ = env.reset(seed=3)
    wanted = re.search(r"\d+/\d+/\d+|\d+:\d+ [AP]M", observation)
    assert wanted is not None and env.step("fill 1 whenever")[4]["action_is_valid"] is False
    assert env.step(f"fill 1 {wanted[0]}")[4]["action_is_valid"] is True
    assert env.step("click 2")[4]["success"] == 1


def test_the_reward_is_the_page_s_and_decays_with_turns_only_if_asked_for(make: Any) -> None:
    plain, decaying = make("enter-text"), make("enter-text", time_decay=True, max_turns=9)
    assert solve(plain, 5)[0] == 1.0
    reward, info, turns = solve(decaying, 5)
    assert turns == 2 and info["success"] == 1 and info["score"] == 1.0
    assert reward == pytest.approx(1 - 1 / 10, abs=0.005)  # one turn of nine had passed, and the tenth ends the time
    plain.reset(seed=5)
    _, reward, terminated, _, info = plain.step(f"click {plain.screen.nodes[-1].id}")
    assert (reward, terminated, info["success"], info["score"]) == (-1.0, True, 0, -1.0)


def test_waiting_costs_no_time_outside_and_the_episode_is_cut_by_turns(make: Any) -> None:
    env = make("click-test-2", max_turns=3)
    env.reset(seed=0)
    flags = [env.step("wait")[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]


def test_seeds_decide_everything_and_nothing_stays_behind(make: Any) -> None:
    one, other = make("choose-date"), make("choose-date")
    played = []
    for env in (one, other):
        if env is other:
            solve(env, 99)  # leaves values and an open calendar behind
        first = env.reset(seed=3)
        played.append([first, *(env.step(env.expert_action()) for _ in range(3))])
    assert played[0] == played[1]


def test_a_branch_is_replayed_and_a_foreign_one_refused(make: Any) -> None:
    env, fresh = make("login-user"), make("login-user")
    env.reset(seed=4)
    env.step(env.expert_action())
    saved = env.snapshot()
    original = env.step(env.expert_action())
    for copy in (env, fresh):
        copy.restore(saved)
        assert copy.step(copy.expert_action()) == original
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        env.restore(saved.replace(b'"screen": "Enter', b'"screen": "Enters'))


def test_pictures_have_marks_and_match_the_page(make: Any) -> None:
    plain, marked = (make("click-color", image=True, marks=marks, width=340, height=220) for marks in (False, True))
    one, _ = plain.reset(seed=2)
    two, _ = marked.reset(seed=2)
    assert one["image"].shape == (220, 340, 3) and one["text"] == two["text"]
    for node in plain.screen.nodes:
        x, y = (int(value) for value in node.center)
        assert tuple(one["image"][y, x]) == node.color
    assert (one["image"] != two["image"]).any()
    assert plain.observation_space.contains(one)
    twin = make("click-color", render_mode="rgb_array", marks=False, width=340, height=220)
    twin.reset(seed=2)
    np.testing.assert_array_equal(twin.render(), one["image"])


def test_several_tasks_are_drawn_by_the_seed(make: Any) -> None:
    env = make(["click-test", "enter-text", "click-link"])
    drawn = set()
    for seed in range(12):
        env.reset(seed=seed)
        drawn.add(env.task)
    assert drawn == {"click-test", "enter-text", "click-link"}
    assert make("all").names == TASKS
    with pytest.raises(UnknownName, match="Did you mean 'click-button'"):
        make("click-buton")
    with pytest.raises(ConfigError, match="no task"):
        make([])
    with pytest.raises(ConfigError, match="width"):
        make(width=160)
    blind = make("hot-cold")
    blind.reset(seed=0)
    with pytest.raises(ConfigError, match="no oracle"):
        blind.expert_action()


def test_coroutines_give_what_the_plain_calls_give(make: Any) -> None:
    plain, other = make("click-checkboxes"), make("click-checkboxes")

    async def play() -> list[Any]:
        results: list[Any] = [await other.async_reset(seed=7)]
        while other._running:
            results.append(await other.async_step(other.expert_action()))
        results.append(await other.async_reset())
        await other.async_close()
        return results

    expected: list[Any] = [plain.reset(seed=7)]
    while plain._running:
        expected.append(plain.step(plain.expert_action()))
    expected.append(plain.reset())
    assert asyncio.run(play()) == expected


def test_a_browser_that_dies_between_turns_is_replaced_and_the_episode_goes_on(make: Any) -> None:
    twin, env = make("login-user"), make("login-user")
    twin.reset(seed=1)
    env.reset(seed=1)
    assert env.step(env.expert_action()) == twin.step(twin.expert_action())
    lost = shared_pool().pool.counts["browser_lost"]
    for host in list(shared_pool().pool.browsers):
        host.kill()
    for other in (env, twin):
        other.step(other.expert_action())
        assert other.step(other.expert_action())[1] == 1.0
    assert shared_pool().pool.counts["browser_lost"] > lost


def test_a_page_that_is_killed_faults_its_slot_alone(make: Any) -> None:
    vector = turngym.make_vec("turngym/MiniWoB-v0", 4, backend="asyncio", autoreset_mode="disabled", task="login-user")
    try:
        seeds = [10, 11, 12, 13]
        vector.reset(seed=seeds)
        vector.step(["wait"] * 4)
        envs = [worker.lane.slot._env for worker in vector._backend._workers]  # type: ignore[attr-defined]
        tab = envs[2]._page._tab

        async def crash() -> None:
            session = await tab.context.new_cdp_session(tab.page)
            asyncio.ensure_future(session.send("Page.crash")).add_done_callback(lambda done: done.exception())
            for _ in range(200):
                if tab.fault:
                    return
                await asyncio.sleep(0.05)

        shared_pool().run(crash())
        _, _, terminated, truncated, info = vector.step(["wait"] * 4)
        assert list(truncated) == [False, False, True, False] and not terminated.any()
        assert [bool(text) for text in info["fault"]] == [False, False, True, False]
        _, info = vector.reset(seed=seeds, options={"reset_mask": np.array([False, False, True, False])})
        assert not any(info["fault"])
        _, _, _, truncated, info = vector.step(["wait"] * 4)
        assert not truncated.any()
    finally:
        vector.close()


def test_closing_gives_the_page_back_and_a_forgotten_environment_does_so_too() -> None:
    env = MiniWoB("click-test")
    env.reset(seed=0)
    pool = shared_pool().pool
    tabs = sum(host.load for host in pool.browsers)
    env.close()
    env.close()
    assert sum(host.load for host in pool.browsers) == tabs - 1
    forgotten = MiniWoB("click-test")
    forgotten.reset(seed=0)
    del forgotten
    for _ in range(200):
        if sum(host.load for host in pool.browsers) == tabs - 1:
            break
        shared_pool().run(asyncio.sleep(0.05))
    assert sum(host.load for host in pool.browsers) == tabs - 1


def test_it_is_registered_with_gymnasium() -> None:
    env = gymnasium.make("turngym/MiniWoB-v0", task="click-test")
    try:
        env.reset(seed=0)
        assert env.step("click 1")[1] == 1.0
    finally:
        env.close()


def test_a_fault_in_plain_use_is_raised_and_the_next_reset_works(make: Any) -> None:
    env = make("click-test")
    env.reset(seed=0)
    tab = env._page._tab
    host = next(each for each in shared_pool().pool.browsers if tab in each.tabs)
    shared_pool().run(tab.page.close())
    with pytest.raises(BrowserFault):
        env.step("wait")
    assert host.browser.is_connected() and len(descendants(host.process)) > 1
    assert solve(env, 1)[0] == 1.0


@pytest.mark.parametrize("point", ["9" * 400 + ",1", "-" + "9" * 900 + ",5", "1," + "9" * 309, "99999999999,7"])
@pytest.mark.parametrize("action", ["click {}", "hover {}", "drag {} to 3,4", "drag 3,4 to {}"])
def test_points_without_end_are_answered_and_end_no_page(make: Any, action: str, point: str) -> None:
    env = make("enter-text")
    env.reset(seed=0)
    observation, _, terminated, _, _ = env.step(action.format(point))
    assert "textbox" in observation and not terminated


def test_what_is_copied_can_be_pasted_on_that_page_in_that_episode_alone(make: Any) -> None:
    env, other = make("enter-text"), make("enter-text")

    def field(which: MiniWoB, seed: int) -> int:
        which.reset(seed=seed)
        number = next(node.id for node in which.screen.nodes if node.is_field)
        which.step(f"focus {number}")
        return number

    number = field(env, 1)
    env.step(f"fill {number} hidden")
    for action in ("press Control+a", "press Control+x"):
        observation = env.step(action)[0]
    assert 'value ""' in observation
    assert 'value "hiddenhidden"' in [env.step("press Control+v")[0] for _ in range(2)][-1]
    field(other, 2)
    assert "hidden" not in other.step("press Control+v")[0], "another page"
    field(env, 3)
    assert "hidden" not in env.step("press Control+v")[0], "another episode"
