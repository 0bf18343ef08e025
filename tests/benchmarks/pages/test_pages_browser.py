"""Pages in a real browser: both themes, a phone's width, the keyboard, and nothing asked from anywhere."""

from pathlib import Path
from typing import Any

import pytest
from browser import DESKTOP, PHONE, OpenPage, Scheme, browser, open_page, too_faint, wider_than_the_screen
from markupsafe import Markup
from page_reading import macros
from submissions import HOSTILE, changed, play
from synthetic_runs import run_folder

from turngym.__main__ import main
from turngym.benchmarks.pages.tables import Cell, Column, Line, Table
from turngym.web.page import asset, page

pytestmark = pytest.mark.integration
__all__ = ["browser", "open_page"]  # fixtures

PARTS = macros("turngym.benchmarks.pages:parts.html")
PLAIN = page("A page", main=Markup('<p>text</p><p class="quiet">quiet text</p>'), subtitle="below the heading")


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
    injected = Markup("<script>document.title = 'stolen'</script>")
    opened = open_page(page("mine", main=injected, script="document.title += '!';"))
    assert opened.title() == "mine!"
    opened.context.close()
    assert len(open_page.problems) == 1 and "Content Security Policy" in open_page.problems[0]
    open_page.problems.clear()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give one page of each kind, made by the commands; names and words in them are long and hostile."""
    path = tmp_path_factory.mktemp("pages")
    long = "a_very_long_name_without_any_space_" * 3

    def rename(metadata: dict[str, Any]) -> None:
        metadata |= {"name": long, "contact": HOSTILE, "models": {"player_0": {"id": long, "revision": "0123abcd"}}}

    play(path / "all" / "random", "random", "--baselines", target="turngym-core", episodes=2)
    play(path / "all" / "expert", "expert", target="turngym-core", episodes=2)
    changed(path / "all" / "expert", path / "all" / "long", metadata=rename)
    play(path / "all" / "other", "random", episodes=4)
    (path / "gone").mkdir()
    found = {name: path / f"{name}.html" for name in ("leaderboard", "evaluation", "run")}
    command = ["leaderboard", str(path / "all"), str(path / "gone"), "--no-verify"]
    assert main([*command, "-o", str(found["leaderboard"])]) == 0
    assert main(["report", str(path / "all" / "random"), "-o", str(found["evaluation"])]) == 0
    run = run_folder(path / "run", {"warmup-sampled": [0, 1] * 8, "final-sampled": [1] * 16}, iterations=4)
    assert main(["report", str(run.path), "-o", str(found["run"])]) == 0
    players = ("random", "first_legal", f"{long}=rule_based")
    game = ["tournament", "turngym/Werewolf-v0", "--players", *players, "--blocks", "2"]
    assert main([*game, "--out", str(path / "t")]) == 0
    return {**found, "tournament": path / "t" / "page.html"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, (900, 700), PHONE], ids=["desktop", "tablet", "phone"])
@pytest.mark.parametrize("kind", ["leaderboard", "evaluation", "tournament", "run"])
def test_every_page_fits_and_can_be_read(
    open_page: OpenPage, pages: dict[str, Path], kind: str, size: tuple[int, int], scheme: Scheme
) -> None:
    opened = open_page(pages[kind], size=size, scheme=scheme)
    opened.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert wider_than_the_screen(opened) == []
    assert too_faint(opened) == []
    assert "alert(" not in str(opened.evaluate("[...document.scripts].map(each => each.textContent)"))


def column(opened: Any, number: int) -> list[str]:
    return [text.strip() for text in opened.locator(f"tbody tr:visible td:nth-child({number})").all_inner_texts()]


TABLE = page(
    "Table",
    main=PARTS.filter_box("filter")
    + PARTS.sortable_table(
        Table(
            "A table.",
            [Column("name", "ascending", is_number=False), Column("number"), Column("fixed", None)],
            [
                Line("a", [Cell("beta", "beta"), Cell("9", 9), Cell("x")]),
                Line("b", [Cell("alpha", "alpha"), Cell("–"), Cell("y")], "hidden word"),
                Line("c", [Cell("gamma", "gamma"), Cell("10", 10), Cell("z")]),
                Line("d", [Cell("delta", "delta"), Cell("−1", -1), Cell("w")]),
            ],
        )
    )
    + Markup('<p data-row="c">of gamma</p><p data-row="none">of nobody</p>'),
    script=asset("turngym.benchmarks.pages:tables.js"),
    style=asset("turngym.benchmarks.pages:tables.css"),
)


def test_a_table_is_sorted_by_the_keyboard_and_says_so(open_page: OpenPage) -> None:
    opened = open_page(TABLE)
    assert opened.locator("thead button").all_inner_texts() == ["name", "number"], "a fixed column has no button"
    opened.locator("thead button").nth(1).focus()
    opened.keyboard.press("Enter")
    head = opened.locator("th").nth(1)
    assert head.get_attribute("aria-sort") == "descending" and column(opened, 2) == ["10", "9", "−1", "–"]
    opened.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "ascending" and column(opened, 2) == ["−1", "9", "10", "–"]
    opened.keyboard.press("Shift+Tab")
    opened.keyboard.press("Enter")
    assert column(opened, 1) == ["alpha", "beta", "delta", "gamma"]
    assert [th.get_attribute("aria-sort") for th in opened.locator("th").all()] == ["ascending", None, None]


def test_the_keyboard_reaches_everything_in_order(open_page: OpenPage) -> None:
    opened = open_page(TABLE)
    reached = []
    for _ in range(5):
        opened.keyboard.press("Tab")
        reached.append(opened.evaluate("document.activeElement.textContent.trim() || document.activeElement.tagName"))
    assert reached[:2] == ["Dark theme", "INPUT"] and reached[3:] == ["name", "number"]
    assert opened.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", "focus is visible"


def test_the_filter_finds_rows_by_what_they_show_and_by_further_words(open_page: OpenPage) -> None:
    opened = open_page(TABLE)
    box, told = opened.locator("input[type=search]"), opened.locator("output")
    box.fill("GAM")
    assert column(opened, 1) == ["gamma"] and told.inner_text() == "1 of 4 shown"
    assert opened.get_by_text("of gamma").is_visible() and opened.get_by_text("of nobody").is_visible()
    box.fill("word alpha")
    assert told.inner_text() == "1 of 4 shown" and not opened.get_by_text("of gamma").is_visible()
    box.fill("nothing like it")
    assert told.inner_text() == "0 of 4 shown"
    box.fill("")
    assert told.inner_text() == "" and opened.locator("tbody tr:visible").count() == 4


def test_on_a_phone_a_list_sorts_in_place_of_the_heads(open_page: OpenPage) -> None:
    opened = open_page(TABLE, size=PHONE)
    assert not opened.locator("thead").is_visible()
    opened.get_by_label("Sort by").select_option("number")
    assert [text.split()[-1] for text in column(opened, 2)] == ["10", "9", "−1", "–"]


def test_without_scripts_all_rows_are_there_in_their_order(open_page: OpenPage, pages: dict[str, Path]) -> None:
    opened = open_page(TABLE, javascript=False)
    assert column(opened, 1) == ["beta", "alpha", "gamma", "delta"]
    assert not opened.locator("input").is_visible() and opened.locator("thead button").count() == 0
    board = open_page(pages["leaderboard"], javascript=False, size=PHONE)
    assert board.locator("table.board tbody tr:visible").count() == 4 and wider_than_the_screen(board) == []


def test_a_leaderboard_filters_bars_and_details_with_its_rows(open_page: OpenPage, pages: dict[str, Path]) -> None:
    opened = open_page(pages["leaderboard"])
    assert opened.locator("tbody tr:visible").count() == 4 and opened.locator(".facet li:visible").count() == 18
    opened.locator("input[type=search]").fill("expert baseline")
    assert opened.locator("tbody tr:visible").count() == 1 and opened.locator(".facet li:visible").count() == 6
    assert opened.locator("details[data-row]:visible").count() == 1


def test_the_name_of_a_submission_leads_to_what_is_known_of_it(open_page: OpenPage, pages: dict[str, Path]) -> None:
    opened = open_page(pages["leaderboard"])
    details = opened.locator("details[data-row]").first
    assert details.get_attribute("open") is None
    opened.locator("tbody tr a").first.focus()
    opened.keyboard.press("Enter")
    opened.wait_for_function("document.querySelector('details[data-row]').open")
    assert details.locator("dl").is_visible()


def test_the_probes_of_these_tests_find_what_they_look_for(open_page: OpenPage) -> None:
    wide = open_page(
        page("x", main=Markup('<p style="width:900px">wwwwwwwwww</p><p style="color:#999">faint</p>')), size=PHONE
    )
    assert wider_than_the_screen(wide) and [each["text"] for each in too_faint(wide)] == ["faint"]
    asking = open_page("<!doctype html><title>x</title><img src='http://127.0.0.1:9/x.png'>")
    asking.wait_for_load_state()
    asking.context.close()
    assert any("asks http://127.0.0.1:9/x.png" in problem for problem in open_page.problems)
    open_page.problems.clear()
