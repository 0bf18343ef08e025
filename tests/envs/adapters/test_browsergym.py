"""The adapter of BrowserGym, on its MiniWoB tasks in real browsers; it runs where the old playwright is installed."""

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.adapters.browsergym import BrowserGym
from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.errors import MissingExtra, UnknownName
from turngym.system.processes import descendants

pytest.importorskip("browsergym.miniwob", reason="needs the optional package browsergym-miniwob", exc_type=ImportError)
if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
pytestmark = pytest.mark.integration
QUICK = {"pre_observation_delay": 0.05, "slow_mo": 0}


@pytest.fixture(scope="module")
def login() -> Iterator[BrowserGym]:
    made = BrowserGym(task="browsergym/miniwob.login-user", task_options=QUICK, max_turns=6)
    yield made
    made.close()


def fills(legal: tuple[str, ...]) -> list[str]:
    return [action for action in legal if action.startswith("fill(")]


def solve(env: BrowserGym, info: dict[str, Any]) -> Any:
    """Fill in the name, the password, press the button: the listed actions in their order."""
    legal = info["legal_actions"]
    env.step(fills(legal)[0])
    env.step(fills(legal)[3])
    return env.step(legal[-1])


def test_a_task_is_solved_by_its_own_calls(login: BrowserGym) -> None:
    observation, info = login.reset(seed=1)
    lines = observation.splitlines()
    assert lines[0].startswith('Task: Enter the username "') and "[20] button 'Login', clickable" in observation
    assert "file:" not in observation and str(Path.home()) not in observation
    assert info["legal_actions"][0] == "noop()" and len(fills(info["legal_actions"])) == 4
    _, reward, terminated, truncated, info = solve(login, info)
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["success"], info["score"], info["progress"], info["legal_actions"]) == (1, 1.0, 1.0, ())
    _, info = login.reset(seed=1)
    _, reward, terminated, _, info = login.step(info["legal_actions"][-1])  # nothing filled in
    assert (reward, terminated, info["success"]) == (0.0, True, 0)


def test_the_seed_decides_and_a_branch_is_replayed(login: BrowserGym) -> None:
    first = login.reset(seed=3)
    assert login.reset(seed=4)[0] != first[0]
    assert login.reset(seed=3) == first
    after = login.step(fills(first[1]["legal_actions"])[0])
    saved = login.snapshot()
    original = login.step("noop(10)")
    assert login.restore(saved) == (after[0], after[4])
    assert login.step("noop(10)") == original


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("click('999')", 'Could not find element with bid "999"'),
        ("please click the button", "empty action"),
        ("import os", "empty action"),
        ("python('1')", "Invalid action type 'python'"),
        ("click('16') click('19')", "only single-actions"),
        ("upload_file('16', '/etc/hostname')", "Invalid action type 'upload_file'"),
        ("goto('file:///etc/hostname')", "http://"),
        ("goto(url=' file:///etc/hostname')", "http://"),
        ("goto('view-source:file:///etc/hostname')", "http://"),
    ],
)
def test_what_cannot_be_done_is_answered_and_no_file_is_read(login: BrowserGym, action: str, answer: str) -> None:
    if not login._running or login.turn > 4:
        login.reset(seed=1)
    observation, reward, terminated, truncated, info = login.step(action)
    assert observation.startswith("That cannot be done: ") and answer in observation.splitlines()[0]
    assert (reward, terminated, truncated, info["action_is_valid"]) == (0.0, False, False, False)
    assert Path("/etc/hostname").read_text().strip() not in observation.replace("/etc/hostname", "")
    assert "[20] button 'Login'" in observation


def test_turns_truncate(login: BrowserGym) -> None:
    login.reset(seed=1)
    flags = [login.step("noop(1)")[2:4] for _ in range(6)]
    assert flags == [(False, False)] * 5 + [(False, True)]


def test_browsers_that_were_killed_are_replaced_at_the_next_reset(login: BrowserGym) -> None:
    first = login.reset(seed=2)
    for process in descendants(os.getpid())[1:]:
        if _is_browser(process):
            os.kill(process, signal.SIGKILL)
    with pytest.raises(Exception, match=r"closed|crash|Target"):
        login.step("noop(1)")
    assert login.reset(seed=2) == first


def _is_browser(process: int) -> bool:
    with contextlib.suppress(OSError):
        told = Path("/proc", str(process))
        return "chrom" in (told / "comm").read_text() and "--type" not in (told / "cmdline").read_text()
    return False


def test_it_is_registered_and_what_is_missing_is_named() -> None:
    env = gymnasium.make("turngym/BrowserGym-v0", task="browsergym/miniwob.click-test", task_options=QUICK)
    try:
        _, info = env.reset(seed=0)
        assert env.step(info["legal_actions"][-1])[1] == 1.0
    finally:
        env.close()
    with pytest.raises(UnknownName, match=r"Did you mean 'browsergym/miniwob\.click-test'"):
        BrowserGym(task="browsergym/miniwob.click-tset")
    with pytest.raises(MissingExtra, match="browsergym-webarena"):
        BrowserGym(task="browsergym/webarena.1")
    with pytest.raises(UnknownName, match="no set of actions named 'bids'"):
        BrowserGym(actions=["bids"])
