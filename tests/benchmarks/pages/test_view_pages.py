"""The viewer in a real browser: both themes, a phone, keys, tabs of seats, two runs side by side, hostile files."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import DESKTOP, PHONE, OpenPage, Scheme, browser, open_page, too_faint, wider_than_the_screen
from view_runs import HOSTILE, evaluation, hostile_record, recording, tournament, written

from turngym.benchmarks.pages.viewer.data import Viewer
from turngym.benchmarks.pages.viewer.file import write_page
from turngym.benchmarks.pages.viewer.runs import open_run
from turngym.benchmarks.pages.viewer.server import ViewerServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["browser", "open_page"]
pytestmark = pytest.mark.integration

SCREENS = [(scheme, size) for scheme in ("light", "dark") for size in (DESKTOP, PHONE)]


@contextmanager
def served(*paths: Path, query: str = "") -> Iterator[str]:
    """Serve a run, or two, and give the address."""
    viewer = Viewer(*map(open_run, paths))
    viewer.search()
    with ViewerServer(viewer, query=query) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.address
        finally:
            server.shutdown()
            thread.join()


def page_of(tmp_path: Path, *paths: Path) -> Path:
    write_page(Viewer(*map(open_run, paths)), tmp_path / "page.html")
    return tmp_path / "page.html"


def shown(page: "Page") -> "Page":
    """Wait until an episode stands in the page."""
    page.wait_for_selector('#episode[aria-busy="false"] h2')
    return page


def has_rows(page: "Page", count: int) -> None:
    """Wait until the list has so many rows; the page's policy forbids waiting for a condition in its own script."""
    from playwright.sync_api import expect

    expect(page.locator("#rows button")).to_have_count(count, timeout=30_000)


def focused_turn(page: "Page") -> str | None:
    found: str | None = page.evaluate("document.activeElement.getAttribute('data-turn')")
    return found


def trained(path: Path) -> Path:
    """Write the samples of a run, with tokens and advantages."""
    said, numbers = ["<action>", "up", "</action>"], [-0.01, -1.2, -0.3]
    turn = {"observation": "#_P", "completion": "<action>up</action>", "action": "up", "reward": 0.5}
    turn |= {"prompt": "<|user|>#_P", "tokens": said, "logprobs": numbers, "advantages": [0.5, -1.0, 0.25]}
    sample = {"env": "turngym/Sokoban-v0", "seed": 3, "success": 1, "score": 1.0, "turns": [turn, turn]}
    written(path / "samples" / "iteration-000010.jsonl", sample, {**sample, "seed": 4, "success": 0})
    written(path / "config.json", {"env": "turngym/Sokoban-v0"})
    return path


def test_a_call_links_to_its_caller(open_page: OpenPage, tmp_path: Path) -> None:
    turn = {"observation": "Ready.", "action": "go", "reward": 0.0}
    main = {
        "env": "turngym/Delegation-v0",
        "seed": 3,
        "turns": [turn],
        "agent": "player_0",
        "role": "main",
        "episode": 6,
    }
    call = {**main, "agent": "player_1", "role": "sub", "episode": 7, "caller": 6, "caller_turn": 0}
    page = shown(open_page(page_of(tmp_path, written(tmp_path / "samples.jsonl", main, call))))
    assert page.locator("[data-caller]").count() == 0
    page.locator("#rows button").nth(1).click()
    page.wait_for_selector('#episode[data-n="1"]')
    assert "Called by player_0 main in turn 1." in page.inner_text("#episode")
    page.locator("[data-caller]").click()
    page.wait_for_selector('#episode[data-n="0"]')


@pytest.mark.parametrize(("scheme", "size"), SCREENS)
def test_every_kind_of_run_fits_the_screen_in_both_themes(
    open_page: OpenPage, tmp_path: Path, scheme: Scheme, size: tuple[int, int]
) -> None:
    guesses, expert = evaluation(tmp_path / "a"), evaluation(tmp_path / "b", "expert")
    runs = [(guesses,), (tournament(tmp_path / "t"),), (trained(tmp_path / "r"),), (guesses, expert)]
    for run in runs:
        page = shown(open_page(page_of(tmp_path, *run), size=size, scheme=scheme))
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert wider_than_the_screen(page) == [] and too_faint(page) == []
        facts = page.locator("#episode .facts").first
        names, values = facts.locator("dt").all_inner_texts(), facts.locator("dd").all_inner_texts()
        assert dict(zip(names, values, strict=True))["environment"].startswith("turngym/")
        assert "[object" not in page.locator("body").inner_text()


def test_a_served_run_is_read_with_keys_alone(open_page: OpenPage, tmp_path: Path) -> None:
    with served(evaluation(tmp_path / "run")) as address:
        page = shown(open_page(address))
        assert page.locator("#rows button").count() == 6
        first = page.locator("#episode h2").inner_text()
        for expected in ("0", "1"):
            page.keyboard.press("j")
            assert focused_turn(page) == expected
        page.keyboard.press("k")
        assert focused_turn(page) == "0"
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("ArrowRight")
        page.wait_for_selector('#episode[data-n="1"][aria-busy="false"]')
        assert page.locator("#episode h2").inner_text() == first  # another attempt at the same task
        assert page.locator('#rows [aria-current="true"]').get_attribute("data-n") == "1"
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector('#episode[data-n="0"][aria-busy="false"]')
        page.keyboard.press("/")
        page.keyboard.type("seed:13")
        has_rows(page, 2)
        assert "2 episodes found" in page.locator("#found").inner_text()
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        assert focused_turn(page) == "0"


def test_playing_again_shows_the_rules(open_page: OpenPage, tmp_path: Path) -> None:
    with served(evaluation(tmp_path / "run")) as address:
        page = shown(open_page(address))
        assert page.get_by_text("Rules", exact=True).count() == 0
        page.keyboard.press("r")
        page.get_by_text("Rules", exact=True).wait_for()
        assert page.locator("[data-replay]").count() == 0


def test_pictures_that_the_agent_saw_are_shown(open_page: OpenPage, tmp_path: Path) -> None:
    run = recording(tmp_path / "run", "turngym/Sokoban-v0", image=True, max_turns=4)
    with served(run) as address:
        page = shown(open_page(address))
        page.wait_for_selector(".turn img")
        assert page.evaluate("[...document.images].every(each => each.complete && each.naturalWidth > 10)")
    page = shown(open_page(page_of(tmp_path, run)))
    page.wait_for_selector(".turn img")


def test_tokens_tell_their_numbers_when_they_are_pointed_at_or_focused(open_page: OpenPage, tmp_path: Path) -> None:
    page = shown(open_page(page_of(tmp_path, trained(tmp_path / "r"))))
    turn = page.locator(".turn").first
    spans, readout = turn.locator(".tokens span"), turn.locator(".readout")
    assert spans.all_inner_texts() == ["<action>", "up", "</action>"] and "over 3 tokens" in readout.inner_text()
    spans.nth(1).hover()
    assert readout.inner_text() == "Token 2 of 3 “up”: log-probability −1.2 (30.1 %), advantage −1."
    colours = "spans => spans.map(each => getComputedStyle(each).backgroundColor)"
    by_logprob = spans.evaluate_all(colours)
    assert len(set(by_logprob)) == 3
    turn.locator("select").select_option("advantage")
    assert spans.evaluate_all(colours) != by_logprob
    assert spans.evaluate_all("spans => spans.map(each => each.classList.contains('minus'))") == [False, True, False]
    spans.nth(0).focus()
    assert page.evaluate("document.querySelectorAll('.turn:first-of-type .tokens [tabindex=\"0\"]').length") == 1
    page.keyboard.press("ArrowRight")
    assert "Token 2 of 3" in readout.inner_text() and page.locator("#episode").get_attribute("data-n") == "0"


def test_tabs_of_seats_show_what_each_seat_saw(open_page: OpenPage, tmp_path: Path) -> None:
    games = tournament(tmp_path / "games")
    record = json.loads((games / "episodes.jsonl").read_text().splitlines()[0])
    with served(games) as address:
        page = shown(open_page(address))
        tabs = page.locator('[role="tab"]')
        assert tabs.count() == 6 and tabs.first.get_attribute("aria-selected") == "true"
        assert page.locator(".turn").count() == len(record["actions"])
        tabs.first.focus()
        for seat in range(5):
            page.keyboard.press("ArrowRight")
            name = f"player_{seat}"
            assert (
                page.locator('[role="tab"][aria-selected="true"]').inner_text() == f"{name} ({record['roles'][name]})"
            )
            told = page.locator(".line").all_inner_texts()
            assert sum("You are player_" in line for line in told) == 1
            assert any(f"You are {name}." in line for line in told)
            actions = page.locator(".turn .act code").all_inner_texts()
            assert actions == [action for acting, action in record["actions"] if acting == seat]
        assert page.locator("#episode").get_attribute("data-n") == "0"  # arrows stayed within the tabs


def test_two_runs_stand_side_by_side_with_their_first_difference_marked(open_page: OpenPage, tmp_path: Path) -> None:
    with served(evaluation(tmp_path / "a"), evaluation(tmp_path / "b", "expert")) as address:
        page = shown(open_page(address))
        assert page.locator("#rows .badge", has_text="different").count() >= 1
        rows = page.locator(".pair").filter(has=page.locator(".turn[data-turn]"))
        mark = page.locator("#first-difference")
        number = int(mark.inner_text().rpartition(" ")[2])
        following = page.evaluate(
            "document.getElementById('first-difference').nextElementSibling.querySelector('.turn').dataset.turn"
        )
        assert following == str(number - 1)
        for turn in range(number - 1):
            first, second = rows.nth(turn).locator(".act code").all_inner_texts()
            assert first == second and rows.nth(turn).locator(".differs").count() == 0
        page.keyboard.press("d")
        assert page.evaluate("document.activeElement.id") == "first-difference"
        left, right = (rows.first.locator(".turn").nth(k).bounding_box() for k in range(2))
        assert left and right and abs(left["y"] - right["y"]) < 2 and right["x"] > left["x"] + left["width"] - 1


def test_a_task_that_one_run_has_not_stands_alone(open_page: OpenPage, tmp_path: Path) -> None:
    turns = [{"observation": "x", "action": "up"}]
    first, second = ([{"env": "e", "seed": seed, "turns": turns} for seed in seeds] for seeds in ((1, 2), (2, 3)))
    runs = written(tmp_path / "a.jsonl", *first), written(tmp_path / "b.jsonl", *second)
    page = shown(open_page(page_of(tmp_path, *runs)))
    assert page.locator("#rows .badge").all_inner_texts() == ["one side", "one side", "equal"]
    assert page.locator(".absent").all_inner_texts() == ["B b.jsonl has no such episode."]
    for n in (1, 2):
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f'#episode[data-n="{n}"][aria-busy="false"]')
    assert "Both are the same" in page.locator("#episode").inner_text()
    page.fill("#filter", "equal")
    has_rows(page, 1)


def test_a_server_that_has_ended_is_told_about(open_page: OpenPage, tmp_path: Path) -> None:
    with served(evaluation(tmp_path / "run")) as address:
        page = shown(open_page(address))
        page.context.set_offline(True)
        page.fill("#filter", "failed")
        page.locator("#found", has_text="The server does not answer").wait_for()
        assert page.locator(".turn").count() > 0
    told = [each for each in open_page.problems if "ERR_INTERNET_DISCONNECTED" in each]
    assert told == open_page.problems and told
    open_page.problems.clear()


def test_side_by_side_becomes_one_below_the_other_on_a_phone(open_page: OpenPage, tmp_path: Path) -> None:
    runs = evaluation(tmp_path / "a"), evaluation(tmp_path / "b", "expert")
    page = shown(open_page(page_of(tmp_path, *runs), size=PHONE))
    first = page.locator(".pair").filter(has=page.locator(".turn[data-turn]")).first
    above, below = (first.locator(".turn").nth(k).bounding_box() for k in range(2))
    assert above and below and below["y"] >= above["y"] + above["height"]


@pytest.mark.parametrize("is_served", [True, False])
def test_hostile_texts_are_shown_and_never_run(open_page: OpenPage, tmp_path: Path, is_served: bool) -> None:
    long = {"env": "e", "seed": 9, "turns": [{"observation": "x" * 1_000_000, "action": HOSTILE * 2000}]}
    deep = "[" * 50_000
    file = written(tmp_path / "run.jsonl", hostile_record(), "{broken " + HOSTILE, deep, long, '{"half": "', end="")

    def check(page: "Page") -> None:
        assert page.locator("#rows button").count() == 5
        for n in range(5):
            page.locator("#rows button").nth(n).click()
            page.wait_for_selector(f'#episode[data-n="{n}"][aria-busy="false"]')
            assert wider_than_the_screen(page) == []
            page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
            texts = page.locator("body").inner_text()
            assert not set(texts) & set("\x00\x1b\u202e\u202c")
            if n == 0:
                assert "onerror=\"document.title='run'\"" in texts and "␀" in texts
            if n == 3:
                page.get_by_role("button", name="Show all 1,000,000 characters").click()
                assert len(page.locator(".turn pre").first.inner_text()) == 1_000_000
        assert page.title() != "run" and page.locator("#viewer b, #viewer img, #viewer script").count() == 0

    if is_served:
        with served(file) as address:
            check(shown(open_page(address, size=PHONE)))
    else:
        check(shown(open_page(page_of(tmp_path, file), size=PHONE)))


def test_a_written_page_filters_without_a_server(open_page: OpenPage, tmp_path: Path) -> None:
    page = shown(open_page(page_of(tmp_path, trained(tmp_path / "r"))))
    assert page.locator("#rows button").count() == 2
    page.fill("#filter", "failed seed:4")
    has_rows(page, 1)
    page.fill("#filter", "nothing like it")
    has_rows(page, 0)
    assert page.locator("#found").inner_text() == "0 episodes found"


def test_a_long_list_is_loaded_piece_by_piece(open_page: OpenPage, tmp_path: Path) -> None:
    lines: list[Any] = [{"env": "e", "seed": k, "turns": [{"action": str(k)}]} for k in range(180)]
    with served(written(tmp_path / "run.jsonl", *lines)) as address:
        page = shown(open_page(f"{address}#120", allow=(address,)))
        assert page.locator("#episode .act code").inner_text() == "120"
        page.locator("#found", has_text=re.compile("^180 episodes$")).wait_for()
        assert page.locator("#rows button").count() == 50
        page.click("#more")
        has_rows(page, 100)


def test_a_long_episode_is_shown_piece_by_piece(open_page: OpenPage, tmp_path: Path) -> None:
    ups = [{"observation": str(k), "action": "up"} for k in range(450)]
    downs = [{"observation": str(k), "action": "up" if k < 350 else "down"} for k in range(450)]
    first, second = ({"env": "e", "seed": 1, "turns": turns, "final_observation": "end"} for turns in (ups, downs))
    one = written(tmp_path / "a.jsonl", first)
    page = shown(open_page(page_of(tmp_path, one)))
    assert page.locator(".turn[data-turn]").count() == 200
    page.locator('[data-turn="199"]').focus()
    page.keyboard.press("j")
    assert focused_turn(page) == "200" and page.locator(".turn[data-turn]").count() == 400
    page.get_by_role("button", name="Show more, 50 are left").click()
    assert page.locator(".turn[data-turn]").count() == 450 and page.locator(".pieces > button:visible").count() == 0
    page = shown(open_page(page_of(tmp_path, one, written(tmp_path / "b.jsonl", second))))
    assert page.locator("#first-difference").inner_text() == "First difference: turn 351"


def test_without_scripts_the_page_says_what_it_needs(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(page_of(tmp_path, trained(tmp_path / "r")), javascript=False)
    assert "scripts are off" in page.locator("noscript").inner_text()
