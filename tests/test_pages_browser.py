"""Pages in a real browser: both themes, a phone's width, the keyboard, and nothing asked from anywhere."""

from typing import Any

import pytest
from browser import OpenPage, Scheme, browser, open_page

from turngym.benchmarks.pages.shell import page
from turngym.html import Html, tag

pytestmark = pytest.mark.integration
__all__ = ["browser", "open_page"]  # fixtures

PLAIN = page("A page", tag("p", "text"), tag("p", "quiet text", class_="quiet"), subtitle="below the heading")


def background(opened: Any) -> str:
    return str(opened.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_follows_the_system_until_the_button_is_used(open_page: OpenPage, scheme: Scheme) -> None:
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
    other: Scheme = "dark" if scheme == "light" else "light"
    opened = open_page(PLAIN, scheme=scheme)
    assert background(opened) == colours[scheme]
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.id") == "theme"
    opened.keyboard.press("Enter")
    assert background(opened) == colours[other]
    opened.emulate_media(color_scheme=other)
    opened.emulate_media(color_scheme=scheme)
    assert background(opened) == colours[other], "a choice stays"
    opened.keyboard.press("Enter")
    assert background(opened) == colours[scheme]
    opened.emulate_media(color_scheme=other)
    assert background(opened) == colours[other], "whoever chose what the system has follows it again"


def test_without_scripts_there_is_no_button_and_the_theme_is_that_of_the_system(open_page: OpenPage) -> None:
    opened = open_page(PLAIN, javascript=False, scheme="dark")
    assert not opened.locator("#theme").is_visible()
    assert opened.locator("body").evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(20, 23, 27)"


def test_a_script_of_the_page_runs_and_one_that_came_in_does_not(open_page: OpenPage) -> None:
    injected = Html("<script>document.title = 'stolen'</script>")
    opened = open_page(page("mine", injected, script="document.title += '!';"))
    assert opened.title() == "mine!"
    assert len(open_page.problems) == 1 and "Content Security Policy" in open_page.problems[0]
    open_page.problems.clear()
