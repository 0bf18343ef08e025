"""The report of a run as a page that is safe to open and shows what happened."""

import base64
import hashlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from page_reading import macros
from report_pages import ALL, Page, written
from synthetic_runs import NASTY, OBSERVATION, run_folder, trajectory

from turngym.agents.episodes.evaluate import summarise
from turngym.storage.files import read_jsonl
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.findings import turns_per_second
from turngym.trainers.report.run import headline
from turngym.trainers.settings.config import TrainConfig
from turngym.web.page import environment, spark


def test_what_a_model_wrote_cannot_become_part_of_the_page(tmp_path: Path) -> None:
    content, page = written(run_folder(tmp_path / "run", ALL))
    assert content.lower().count("<script") == page.tags.count("script") == 1  # the one that changes the theme
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "\x07" not in content and "\u202e" not in content
    shown = NASTY.replace("\x07", "␇").replace("\u202e", "\N{REPLACEMENT CHARACTER}")
    assert page.texts["pre"].count("\n" + shown) == 6  # three trajectories of two turns, whole and readable


def test_settings_and_metric_names_are_escaped_too(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", ALL, env='<img src=x onerror="alert(1)">', env_options={"<b>": "</td>"})
    folder.append_metrics({"iteration": 20, "<i>": "<u>"})
    content, page = written(folder)
    assert page.tags.count("img") == 1  # the learning curve
    assert {"b", "i", "u"} & set(page.tags) <= {"b"}
    assert page.row("env_options.<b>") == ["</td>"]
    assert page.row("<i>") == ["<u>"]
    assert "onerror=" not in content.replace("onerror=&#34;", "")


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    content, page = written(run_folder(tmp_path / "run", ALL))
    assert not re.search(r"https?://|//[a-z]|@import|url\(", re.sub(r"base64,[A-Za-z0-9+/=]+", "", content))
    assert not {"link", "iframe", "object"} & set(page.tags)
    assert all(value.startswith("data:") for _, name, value in page.attributes if name in ("src", "href"))
    (script,) = page.texts["script"]
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{known}'"
    assert ("meta", "content", policy) in page.attributes


def test_the_embedded_picture_is_the_learning_curve(tmp_path: Path) -> None:
    _, page = written(run_folder(tmp_path / "run", ALL), draws=True)
    (source,) = [value for element, name, value in page.attributes if (element, name) == ("img", "src")]
    picture = np.asarray(imread(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,")))))
    assert picture.shape[1] > picture.shape[0] > 400
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 10


def test_a_trajectory_is_shown_turn_by_turn(tmp_path: Path) -> None:
    _, page = written(run_folder(tmp_path / "run", ALL))
    first = page.texts["details"][
        page.texts["summary"].index("final 1: not solved, truncated, 2 turns, return -0.1, score 0, seed 7")
    ]
    assert re.findall(r"Turn \d", first) == ["Turn 1", "Turn 2"]
    assert "Action fly invalid, reward -0.1." in first
    assert "Action right, reward 0." in first
    assert "Log-probability −0.750 over 2 tokens" in page.texts["summary"]
    assert "-0.500 -0.250" in page.texts["code"]
    assert "the end" in first
    # A parser drops the first line break of a <pre>; the observation's own first line break must survive that.
    assert page.texts["pre"][0] == "\n" + OBSERVATION


def test_at_most_six_trajectories_are_shown_some_of_each_kind(tmp_path: Path) -> None:
    _, page = written(run_folder(tmp_path / "run", ALL))
    shown = [text.split(":")[0] for text in page.texts["summary"] if "solved" in text]
    assert shown == ["final 1", "warmup 1", "final 2", "warmup 2", "final 3", "warmup 3"]
    assert any(text.startswith("6 of 10 recorded trajectories") for text in page.texts["p"])


def test_a_fault_is_named(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {})
    folder.write_samples("final", [trajectory("i", 0, fault="worker died <2>")])
    folder.write_evaluation("final-sampled", summarise("e", [trajectory("i", 0, fault="x"), trajectory("j", 1)]))
    _, page = written(folder)
    assert "Fault: worker died <2>" in page.texts["p"]
    assert page.row("after training, sampled")[-1] == "1"


def test_progress_shows_key_metrics_and_all_of_the_last_iteration(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", ALL, iterations=20)
    _, page = written(folder)
    labels = [value for element, name, value in page.attributes if (element, name) == ("svg", "aria-label")]
    assert "entropy over iterations 0 to 19: from 1 to 0.05, between 0.05 and 1" in labels
    assert len(labels) == 7
    last = folder.metrics()[-1]
    assert page.row("train/grad_norm") == ["0.75"]
    assert page.row("turns_total") == [f"{last['turns_total']:,}"]
    assert f"{len(last)} metrics of the last iteration" in page.texts["summary"]
    assert page.row("rollout.groups") == ["32"]
    assert page.row("algorithm") == ["gigpo"]


def test_turns_per_second_are_those_of_each_iteration() -> None:
    totals = [(100, 10.0), (300, 20.0), (300, 20.0), (400, 60.0)]
    metrics = [{"iteration": i, "turns_total": t, "seconds_total": s} for i, (t, s) in enumerate(totals)]
    assert turns_per_second(metrics) == [(0, 10.0), (1, 20.0), (3, 2.5)]  # nothing passed in iteration 2


def test_metrics_that_are_not_numbers_are_left_out_of_the_drawings(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {}, iterations=3)
    folder.append_metrics({"iteration": 3, "loss/entropy": float("nan"), "train/grad_norm": float("inf")})
    _, page = written(folder)
    drawn = [value for element, name, value in page.attributes if (element, name) == ("polyline", "points")]
    assert drawn and not any("nan" in points or "inf" in points for points in drawn)
    assert page.row("loss/entropy") == ["not a number"]


def test_a_sparkline_spans_its_box_and_puts_more_above_less() -> None:
    parts = macros("turngym.web:parts.html")
    drawing = Page(parts.sparkline(spark([1.0, 3.0, 2.0]), 'a "label"'))
    (points,) = [value for _, name, value in drawing.attributes if name == "points"]
    (x0, y0), (_, y1), (x2, y2) = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert y1 < y2 < y0  # pixels count downwards
    assert (x0, x2) == (0.0, 160.0)
    assert ("svg", "aria-label", 'a "label"') in drawing.attributes
    Page(parts.sparkline(spark([5.0]), "one value"))


def test_the_headline_can_be_printed_as_json(tmp_path: Path) -> None:
    found = headline(run_folder(tmp_path / "run", ALL))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["modes"]["greedy"]["after"]["success"] == 1.0
    assert found["held_out"] == {"distinct": 40, "seen": 0, "shown": 12_345}
    assert found["missing"] == []


@pytest.mark.parametrize("text", ["<a href='x'>", "&amp;", '"', "\x00\x1b[31m", "\ud800", "\r\n\ttab", "\u2028"])
def test_escaped_text_can_stand_anywhere_in_a_page(text: str) -> None:
    content = environment().from_string('<p title="{{ text }}">{{ text }}</p>').render(text=text)
    content.encode("utf8")
    page = Page(content)
    assert page.tags == ["p"]
    assert page.texts["p"] == [page.attributes[0][2]]
    assert "\x00" not in content and "\x1b" not in content


def test_a_line_separator_inside_of_a_completion_does_not_cut_its_record(tmp_path: Path) -> None:
    """Python's splitlines cuts at U+2028 and U+0085, which JSON may hold as they are and a model may write."""
    folder = RunFolder.create(tmp_path / "run", TrainConfig())
    folder.write_samples("final", [trajectory("i", 1, completion="a\u2028b\x85c")] * 2)
    (records,) = folder.samples().values()
    assert [record["turns"][0]["completion"] for record in records] == ["a\u2028b\x85c"] * 2
    assert len(read_jsonl(folder.path / "samples" / "final.jsonl")) == 2
