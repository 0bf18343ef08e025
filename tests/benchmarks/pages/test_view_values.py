"""Values of states by playouts in the viewer, and the commands that continue from a turn."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from browser import DESKTOP, OpenPage, browser, open_page

import turngym
from turngym.__main__ import main
from turngym.benchmarks import recorded_states
from turngym.benchmarks.pages.viewer.data import Viewer
from turngym.benchmarks.pages.viewer.runs import open_run, show_values
from turngym.errors import ConfigError

__all__ = ["browser", "open_page"]
LAKE = "turngym/FrozenLake-v0"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with playouts from every turn of its first episode."""
    folder = tmp_path_factory.mktemp("view") / "the base"
    turngym.evaluate(LAKE, "expert", episodes=2, out=folder)
    turngym.evaluate(recorded_states(f"{folder}:0@every"), "random", repeats=4, out=folder / "values")
    return folder


def forms(base: Path, values: Path | None = None) -> list[dict[str, Any]]:
    run = open_run(base)
    show_values(run, values)
    viewer = Viewer(run)
    run.search().wait_for()
    return [viewer.episode(index)["sides"][0] for index in range(len(run.known))]  # type: ignore[index]


def test_values_are_the_success_of_the_playouts_from_each_turn(base: Path) -> None:
    first, second = forms(base)
    rows = [json.loads(line) for line in (base / "values" / "episodes.jsonl").read_text("utf8").splitlines()]
    assert [each["turn"] for each in first["values"]] == list(range(len(first["turns"])))
    for each in first["values"]:
        mine = [row["success"] for row in rows if row["state"]["turn"] == each["turn"]]
        assert each["count"] == 4 == len(mine) and each["value"] == sum(mine) / 4
        assert 0 <= each["low"] <= each["value"] <= each["high"] <= 1
    assert second["values"] == [] and not second["notes"]


def test_the_name_of_an_episode_continues_it(base: Path) -> None:
    [place] = shlex.split(forms(base)[1]["from"])
    assert place == f"{base}:1.0" and len(recorded_states(f"{place}@1")) == 1


def test_playouts_of_another_recording_are_not_shown(base: Path, tmp_path: Path) -> None:
    turngym.evaluate(LAKE, "random", episodes=2, out=tmp_path / "other")
    first = forms(tmp_path / "other", base / "values")[0]
    assert first["values"] == [] and "continue another recording" in first["notes"][0]


def test_values_that_are_none_are_refused(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, message in ((base, "no episode that continues"), (tmp_path, "holds no playouts")):
        with pytest.raises(ConfigError, match=message):
            show_values(open_run(base), folder)
    file = base / "episodes.jsonl"
    with pytest.raises(ConfigError, match="leave out --values"):
        show_values(open_run(file), base / "values")
    assert main(["view", str(base), "--values", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 2
    assert "turngym eval --from" in capsys.readouterr().err


def test_hostile_values_are_read_as_data(base: Path, tmp_path: Path) -> None:
    lines = ["[]", '{"state": 3}', '{"label": "x", "state": {"task": 0, "attempt": 0, "turn": 1e99}}', "{" * 1000]
    good = '{"label": "%s", "status": "ok", "success": "<b>", "score": null, "state": %s}'
    state = {"task": 0, "attempt": 0, "turn": 0, "sha256": "x"}
    (tmp_path / "episodes.jsonl").write_text("\n".join([*lines, good % (LAKE, json.dumps(state))]))
    assert forms(base, tmp_path)[0]["values"] == []


@pytest.mark.integration
def test_the_curve_and_the_commands_are_in_the_page(base: Path, tmp_path: Path, open_page: OpenPage) -> None:
    assert main(["view", str(base), "--out", str(tmp_path / "page.html")]) == 0
    page = open_page(tmp_path / "page.html", size=DESKTOP)
    page.wait_for_selector("figure.values svg polyline")
    turns = len(forms(base)[0]["turns"])
    assert page.locator("figure.values circle").count() == turns
    page.locator("figure.values circle").nth(1).click()
    assert page.evaluate("document.activeElement.dataset.turn") == "1"
    card = page.locator('[data-turn="1"]')
    card.get_by_text("Continue from here").click()
    assert f"turngym play --from '{base}:0.0'@1" in card.inner_text()
    assert "of 4 playouts succeed" in card.inner_text()
