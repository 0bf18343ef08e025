"""The sites as an environment: actions, pages, history, snapshots, answers to nonsense."""

import json
import random
import sys
from typing import Any

import pytest

from turngym.envs.website.env import WebSite
from turngym.envs.website.page import LONGEST, text_of
from turngym.envs.website.sites import SITES
from turngym.errors import ConfigError, MissingExtra, UnknownName


@pytest.fixture
def env() -> WebSite:
    made = WebSite(site="issues", kind="close")
    made.reset(seed=3)
    return made


def number(env: WebSite, label: str) -> int:
    return next(piece.number for piece in env.session.page.pieces if piece.label == label)


def act(env: WebSite, action: str) -> str:
    observation, *_, info = env.step(action)
    assert info["action_is_valid"], observation
    return observation


def test_the_observation_is_the_task_and_the_page(env: WebSite) -> None:
    observation, info = env.reset(seed=3)
    lines = observation.splitlines()
    assert lines[0].startswith('Task: Close the issue "') and lines[1] == "Issues"
    assert lines[2] == "[1] Issues [2] New [3] Labels [4] Milestones [5] People"
    assert lines[3] == '[6] search = "" [7] status = any {any, open, closed} [8] (Find)'
    assert lines[-1].startswith("page 1 of 4") and len(lines) == 11
    assert info["anchor"].startswith(observation)


def test_the_goal_is_on_every_page_or_on_the_first_only() -> None:
    for show_goal in (True, False):
        env = WebSite(show_goal=show_goal)
        observation, _ = env.reset(seed=0)
        assert observation.startswith("Task: ")
        assert act(env, "click 1").startswith("Task: ") == show_goal


def test_fields_lists_and_boxes_hold_what_is_entered_until_the_page_is_left(env: WebSite) -> None:
    act(env, "goto /issues/new")
    assert '[6] title = "two words"' in act(env, 'fill 6 "two words"')
    assert "[8] priority = urgent {" in act(env, "select 8 URGENT")
    act(env, "goto /issues/1/labels")
    place = env.session.page.pieces[5]
    before = place.value
    assert f"= {'no' if before == 'yes' else 'yes'}" in act(env, f"click {place.number}")
    assert f"{place.label} = yes" in act(env, f"check {place.number}")
    assert f"{place.label} = no" in act(env, f"uncheck {place.number}")
    assert '[6] title = ""' in act(env, "back")
    assert env.store.changes() == []


def test_enter_sends_the_form_of_the_field_filled_last(env: WebSite) -> None:
    *_, info = env.step("press Enter")
    assert not info["action_is_valid"]
    act(env, "fill 6 no such thing")
    assert "no issues" in act(env, "press Enter")
    act(env, "fill 6 x")
    act(env, "select 7 open")  # the caret is not in the field any more
    *_, info = env.step("press Enter")
    assert not info["action_is_valid"]


def test_back_leads_page_by_page_to_the_first(env: WebSite) -> None:
    pages = [text_of(env.session.page)]
    for label in ("Labels", "People", "People", "Milestones"):
        pages.append(text_of(env.session.page)) if act(env, f"click {number(env, label)}") else None
    back = [act(env, "back").partition("\n")[2] for _ in range(3)]
    assert [text.splitlines()[0] for text in back] == ["People", "Labels", "Issues"]
    observation, *_, info = env.step("back")
    assert not info["action_is_valid"] and "no page before" in observation


def test_a_page_seen_again_shows_what_has_changed_since(env: WebSite) -> None:
    act(env, "goto /labels")
    field = number(env, "name")
    act(env, f"fill {field} fresh")
    shown = act(env, f"click {number(env, 'Add label')}")
    assert "Created." in shown and "fresh 0 issues" in shown
    assert "fresh 0 issues" in act(env, "back")
    assert env.store.changes() == [("label", 6, (6, "fresh"))] and env._info()["progress"] == 0.0


@pytest.mark.parametrize(
    "action",
    [
        "",
        "buy",
        "click",
        "click 0",
        "click 999",
        "click 1 2",
        "fill 1 text",
        "fill 7 text",
        "select 7 sideways",
        "select 6 open",
        "check 6",
        "press F5",
        "press Enter",
        "back",
        "goto issues",
        "goto http://example.com/",
        "goto //example.com/issues",
        "goto /../issues",
        "goto /issues?status=open",
        "goto /%2e%2e",
        "click 1\ud800",
        "x" * 5000,
    ],
)
def test_nonsense_is_answered_and_changes_nothing(env: WebSite, action: str) -> None:
    before, state = env.session.page, env.session.state()
    observation, reward, terminated, truncated, info = env.step(action)
    assert not info["action_is_valid"] and (reward, terminated, truncated) == (0.0, False, False)
    assert env.session.page == before and env.session.state() == state and 0 < len(observation) < 1200


def test_any_text_can_be_filled_in_and_comes_out_as_one_short_line(env: WebSite) -> None:
    for text, expected in (
        ("a\tb  c\n d", "a b c d"),
        ("<b>&amp;\"'</b>", "<b>&amp;\"'</b>"),
        ("漢字 🙂\ud800\x00\u200b", "漢字 🙂"),
        ("y" * 500, "y" * LONGEST),
        ("", ""),
    ):
        act(env, f"fill 6 {text}")
        assert env.session.page.pieces[5].value == expected


def test_pages_that_are_not_there_say_so(env: WebSite) -> None:
    for path in (
        "/nothing",
        "/issues/999",
        "/issues/1/nothing",
        "/labels/0",
        "/mails/1",
        "/issues/99999999999999999999",
    ):
        assert "There is nothing here." in act(env, f"goto {path}")
    assert env.session.page.title == "Not found" and act(env, "click 1").splitlines()[1] == "Issues"


def test_every_path_and_form_of_every_site_stands_odd_requests() -> None:
    """Whatever is asked of the sites, they answer with a page or a path, and never with an error."""
    draw = random.Random(0)
    texts = ["", "x", "'; DROP TABLE issue; --", "%", "-1", "1e9", "12.345", "a@b", "yes", "open", "🙂" * 300]
    for name, site in SITES.items():
        env = WebSite(site=name)
        env.reset(seed=0)
        database = env.store.database
        names = ["title", "body", "status", "name", "text", "to", "price", "stock", "email", "code", "percent", "page"]
        for _ in range(400):
            values = {each: draw.choice(texts) for each in names if draw.random() < 0.6}
            path = draw.choice([*site.gets, *site.posts]).replace("#", str(draw.choice([0, 1, 2, 7, 500])))
            assert site.post(database, path, values).startswith("/")
            query = "&".join(f"{each}={value}" for each, value in values.items())
            page = site.get(database, f"{path}?{query}")
            assert page.pieces and page.title


def test_a_branch_from_a_snapshot_is_the_same_to_the_end() -> None:
    draw = random.Random(4)
    for seed in range(15):
        env, fresh = WebSite(), WebSite()
        _, info = env.reset(seed=seed)
        for _ in range(draw.randint(0, 25)):
            if info["success"] < 0:
                *_, info = env.step(draw.choice(info["legal_actions"]))
        saved = env.snapshot()
        assert len(saved) < 6000
        fresh.restore(saved)
        actions = [draw.choice(info["legal_actions"]) if info["legal_actions"] else "" for _ in range(1)]
        if info["success"] < 0:
            for action in (*actions, "back", "click 2", "fill 6 x"):
                assert env.step(action) == fresh.step(action)
                if env._success >= 0:
                    break
        assert env.snapshot() == fresh.snapshot() and env.store.changes() == fresh.store.changes()


@pytest.mark.parametrize(
    "damage",
    [
        {"instance": ["issues", 10**6, "close", 0]},
        {"instance": ["issues", 0, "reply", 0]},
        {"changes": [["person; DROP TABLE issue", 1, [1]]]},
        {"changes": [["issue", 1, [1, "too few"]]]},
        {"changes": [["label", 1, [2, "another"]]]},
        {"changes": [["label", 1, [1, None]]]},
        {"session": {"history": ["http://example.com/"], "entered": [], "focus": 0, "seen": []}},
        {"session": {"history": [], "entered": [], "focus": 0, "seen": []}},
        {"session": {"history": ["/issues"], "entered": [[1, "x"]], "focus": 0, "seen": []}},
        {"session": {"history": ["/issues"], "entered": [], "focus": 99, "seen": []}},
    ],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(env: WebSite, damage: dict[str, Any]) -> None:
    act(env, "fill 6 x")
    content = json.loads(env.snapshot())
    content["state"].update(damage)
    before = env._info()
    with pytest.raises(ConfigError, match="damaged snapshot"):
        env.restore(json.dumps(content).encode())
    assert env._info() == before


def test_the_expert_says_where_a_change_is_in_the_way(env: WebSite) -> None:
    act(env, "goto /milestones")
    act(env, f"fill {number(env, 'name')} another")
    act(env, f"click {number(env, 'Add milestone')}")
    with pytest.raises(ConfigError, match="nobody asked for"):
        for _ in range(30):
            assert env.step(env.expert_action())[-1]["success"] < 0
    assert env._info()["progress"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "options",
    [
        {"worlds": 0},
        {"worlds": True},
        {"mode": "both"},
        {"site": "bank"},
        {"site": "mail", "kind": "close"},
        {"show_goal": 1},
        {"kind": []},
        {"kind": ["close", "clothes"]},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, UnknownName)):
        WebSite(**options)


def test_a_browser_that_is_missing_is_named_with_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("uvicorn", "starlette", "playwright"):
        with monkeypatch.context() as patch, pytest.raises(MissingExtra, match=rf'{package}.*"turngym\[web\]"'):
            patch.setenv("TURNGYM_CHROMIUM", sys.executable)
            patch.setitem(sys.modules, package, None)
            WebSite(mode="browser")
    monkeypatch.setenv("TURNGYM_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(MissingExtra, match="apt-get install chromium-headless-shell"):
        WebSite(mode="browser")


def test_several_kinds_are_drawn_by_the_seed() -> None:
    env, drawn = WebSite(kind=("close", "reply")), set()
    for seed in range(20):
        env.reset(seed=seed)
        drawn.add((env._instance.site, env._instance.kind))
    assert drawn == {("issues", "close"), ("mail", "reply")} and env.settings["kind"] == ("close", "reply")
    fresh = WebSite(kind=["close", "reply"])
    assert fresh.restore(env.snapshot())[1] == env._info()


def test_one_world_is_enough_for_every_split() -> None:
    drawn = {}
    for split in ("train", "dev", "test"):
        env = WebSite(worlds=1, split=split)
        drawn[split] = {env.reset(seed=seed) and env.instance for seed in range(60)}
    assert not drawn["train"] & drawn["test"] and not drawn["dev"] & (drawn["train"] | drawn["test"])
    assert all(len(each) > 30 for each in drawn.values())
