"""The limits of the pool of browsers: tabs, memory, and a browser that is not there."""

import shutil
from pathlib import Path

import pytest
from web_pages import Pages

from turngym.envs.web.driver.chromium import PROGRAMS, find_browser
from turngym.envs.web.driver.tab import BrowserFault
from turngym.envs.web.driver.thread import BrowserThread
from turngym.errors import ConfigError, MissingExtra

pytest.importorskip("playwright", reason="needs the optional package playwright")
if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
pytestmark = pytest.mark.integration


def test_too_many_tabs_are_refused(tmp_path: Path) -> None:
    thread = BrowserThread(max_tabs=1)
    made = Pages(thread, tmp_path)
    try:
        made.open()
        with pytest.raises(BrowserFault, match="raise max_tabs"):
            made.open()
    finally:
        thread.stop()


def test_a_browser_that_uses_too_much_memory_is_replaced(tmp_path: Path) -> None:
    thread = BrowserThread(memory_limit_mib=1)
    made = Pages(thread, tmp_path)
    try:
        first, second = made.open(), made.open()
        made.run(thread.pool.release(first))
        assert thread.pool.browsers[0].is_retired and made.said(second) == "quiet"
        third = made.open()
        assert thread.pool.counts["launched"] == 2
        made.run(thread.pool.release(second))
        assert len(thread.pool.browsers) == 1 and made.said(third) == "quiet"
    finally:
        thread.stop()


def test_limits_and_a_missing_browser_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="max_tabs of the browser pool must be above 0"):
        BrowserThread(max_tabs=0)
    monkeypatch.setenv("TURNGYM_CHROMIUM", "no-such-browser")
    with pytest.raises(MissingExtra, match="apt-get install chromium-headless-shell"):
        find_browser("a page")
