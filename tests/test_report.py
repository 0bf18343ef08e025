"""The report of a run: right numbers, honest words, and a page that is safe to open."""

import base64
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from synthetic_runs import NASTY, OBSERVATION, run_folder, trajectory, write_evaluation

from turngym.agents.evaluate import summarise
from turngym.agents.intervals import Estimate
from turngym.files import read_jsonl
from turngym.html import VOID, sparkline, tag
from turngym.trainers.config import TrainConfig
from turngym.trainers.findings import held_out, read_run, success_difference, success_interval, turns_per_second
from turngym.trainers.headline import control_sentence
from turngym.trainers.report import headline, write_report
from turngym.trainers.run_folder import RunFolder

BEFORE = [0, 0, 1, 0, 1] * 8  # 16 of 40
AFTER = [1, 0, 1, 1, 0] * 8  # 24 of 40: two of five gained, one of five lost
CONTROL = [0, 1, 1, 0, 0] * 8  # 16 of 40
ALL = {
    "warmup-sampled": BEFORE,
    "warmup-greedy": BEFORE,
    "final-sampled": AFTER,
    "final-greedy": [1] * 40,
    "control-sampled": CONTROL,
    "control-greedy": CONTROL,
}


class Page(HTMLParser):
    """Checks that every element is closed in order, and collects tables, texts and attributes."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.places: list[int] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")
            self.places.append(len(self.texts[tag]) - 1)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag
        self.places.pop()

    def handle_data(self, data: str) -> None:
        for element, place in zip(self.open, self.places, strict=True):
            self.texts[element][place] += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.replace("\N{NO-BREAK SPACE}", " ")

    def row(self, first: str) -> list[str]:
        (found,) = [row[1:] for row in self.rows if row[0] == first]
        return found


def written(folder: RunFolder) -> tuple[str, Page]:
    target = write_report(folder)
    assert target == folder.path / "report.html"
    content = target.read_text("utf8")
    return content, Page(content)


def pair_interval(after: Sequence[int], before: Sequence[int]) -> tuple[float, float]:
    """Return the exact-enough interval of a mean difference by another bootstrap than the one under test."""
    differences = np.array(after, float) - np.array(before, float)
    means = np.random.default_rng(5).choice(differences, size=(20_000, len(differences))).mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def numbers(text: str) -> list[float]:
    return [float(found.replace("−", "-")) for found in re.findall(r"[+−]?\d+\.\d", text)]


def test_the_headline_says_what_changed_with_its_interval(tmp_path: Path) -> None:
    after = [1] * 10 + AFTER[10:]  # a clear change: 8 of the first 10 gained or kept
    found = headline(run_folder(tmp_path / "run", {"warmup-sampled": [0] * 40, "final-sampled": after}))
    share, (low, high) = 100 * sum(after) / 40, pair_interval(after, [0] * 40)
    assert found["verdict"] == "better"
    assert found["sentence"].startswith("Success on 40 held-out instances went from 0.0 % to ")
    assert numbers(found["sentence"]) == pytest.approx(
        [0, share, share, 100 * low, 100 * high], abs=2.6
    )  # one instance is 2.5 points


def test_an_interval_that_includes_zero_is_no_improvement(tmp_path: Path) -> None:
    after = [1, 0, 1, 0, 1, 1, 0, 1] * 5  # 25 of 40
    before = [0, 1, 0, 1, 1, 1, 0, 1] * 5  # 25 of 40, ten each way
    found = headline(run_folder(tmp_path / "run", {"warmup-sampled": before, "final-sampled": after}))
    assert found["verdict"] == "unclear"
    assert found["sentence"].startswith("This run does not show an improvement: success on 40 held-out instances")
    assert "the interval includes 0" in found["sentence"]


def test_a_rise_within_the_noise_is_no_improvement_either(tmp_path: Path) -> None:
    """The mean rises by 5 points; only the interval tells that this is nothing."""
    found = headline(
        run_folder(tmp_path / "run", {"warmup-sampled": [0, 1] * 20, "final-sampled": [1, 0] * 19 + [1, 1]})
    )
    difference = found["modes"]["sampled"]["after_minus_before"]
    assert difference["estimate"]["value"] > 0
    assert found["sentence"].startswith("This run does not show an improvement")


def test_a_few_changed_instances_are_too_few_to_tell(tmp_path: Path) -> None:
    """Four gained of 40, none lost: the bootstrap excludes 0, an exact sign test (p = 0.125) shows nothing."""
    after = [1] * 4 + [0] * 36
    found = headline(run_folder(tmp_path / "run", {"warmup-greedy": [0] * 40, "final-greedy": after}))
    assert found["modes"]["greedy"]["after_minus_before"]["estimate"]["low"] > 0
    assert found["verdict"] == "unclear"
    assert "only 4 instances came out differently, too few to tell" in found["sentence"]


def test_a_loss_is_called_a_loss(tmp_path: Path) -> None:
    found = headline(run_folder(tmp_path / "run", {"warmup-sampled": [1] * 40, "final-sampled": AFTER}))
    assert found["verdict"] == "worse"
    assert found["sentence"].startswith(
        "Training made the policy worse: success on 40 held-out instances fell from 100.0 %"
    )
    assert "−40.0 points" in found["sentence"]


def test_the_control_is_compared_as_honestly(tmp_path: Path) -> None:
    same = run_folder(tmp_path / "same", {"final-sampled": AFTER, "control-sampled": AFTER})
    assert control_sentence(read_run(same)).startswith("Training cannot be told apart from the control")
    worse = run_folder(tmp_path / "worse", {"final-sampled": [0] * 40, "control-sampled": AFTER})
    assert control_sentence(read_run(worse)).startswith("Training did worse than the control")
    better = run_folder(tmp_path / "better", {"final-sampled": [1] * 40, "control-sampled": AFTER})
    assert control_sentence(read_run(better)).startswith("Training did better than the control")
    assert headline(run_folder(tmp_path / "none", {"final-sampled": AFTER}))["control_sentence"] == ""


def test_the_tables_hold_the_numbers_of_the_evaluations(tmp_path: Path) -> None:
    _, page = written(run_folder(tmp_path / "run", ALL))
    success, episodes, score, reward_sum, turns, invalid, faults = page.row("after training, sampled")
    assert numbers(success)[0] == 60.0
    assert (episodes, invalid, faults) == ("40", "50.0 %", "0")  # one of the two turns of every episode is invalid
    assert score.startswith("0.60 [")
    assert reward_sum.startswith("0.50 [")  # an invalid action costs 0.1
    assert turns == "2.00 [2.00, 2.00]"
    points, interval, instances, gained_lost, verdict = page.row("after training − before training, sampled")
    low, high = pair_interval(AFTER, BEFORE)
    assert (points, instances, gained_lost) == ("+20.0", "40", "16 / 8")
    assert numbers(interval) == pytest.approx([100 * low, 100 * high], abs=2.6)  # one instance is 2.5 points
    assert verdict == ("better" if low > 0 else "no difference shown: the interval includes 0")
    assert page.row("after training − control, greedy")[0] == "+60.0"


def test_certain_success_keeps_an_honest_interval(tmp_path: Path) -> None:
    """40 of 40 do not prove 100 %: Wilson's interval begins at n / (n + z**2)."""
    _, page = written(run_folder(tmp_path / "run", ALL))
    assert numbers(page.row("after training, greedy")[0]) == [100.0, round(100 * 40 / (40 + 1.96**2), 1), 100.0]
    recorded = Estimate(0.6, 0.1, 0.4, 0.8, 40, 40, "cluster bootstrap")
    assert success_interval(recorded) == (0.4, 0.8)


def test_pairs_are_matched_by_instance_and_not_by_position(tmp_path: Path) -> None:
    records = [dict(r) for r in summarise("e", [trajectory(f"i{k}", k % 2) for k in range(40)]).episodes]
    found = success_difference(records, records[::-1])
    assert found is not None
    assert (found.estimate.value, found.gained, found.lost, found.unmatched) == (0.0, 0, 0, 0)
    by_position = [int(a["success"] != b["success"]) for a, b in zip(records, records[::-1], strict=True)]
    assert sum(by_position) == 40  # what matching by position would have called a difference


def test_instances_that_one_side_lacks_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {"final-sampled": [1] * 40})
    write_evaluation(folder, "warmup-sampled", [0] * 40, first_instance=10)
    found = headline(folder)
    assert found["modes"]["sampled"]["after_minus_before"]["estimate"]["count"] == 30
    assert found["sentence"].endswith("20 instances that only one of the two played: left out.")


def test_evaluations_without_a_common_instance_show_nothing(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {"final-sampled": [1] * 40})
    write_evaluation(folder, "warmup-sampled", [0] * 40, first_instance=100)
    assert "cannot be paired" in headline(folder)["sentence"]
    assert "does not show an improvement" in headline(folder)["sentence"]


def test_held_out_instances_are_compared_with_those_of_training(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", ALL)
    _, page = written(folder)
    clean = (
        "40 distinct instances were evaluated; 0 of them are among the 12,345 that training showed, compared by hash."
    )
    assert clean in page.texts["p"]
    folder.write_instances(["i3", "i7", "other"])
    assert held_out(read_run(folder)) == (40, 2, 3)
    content, _ = written(folder)
    assert (
        "2 of them are among the 3 that training showed, compared by hash. Those are no held-out instances." in content
    )
    assert "40 evaluated instances" in headline(folder)["sentence"]
    assert "40 held-out instances" not in content


def test_greedy_evaluations_serve_where_sampled_ones_are_absent(tmp_path: Path) -> None:
    found = headline(
        run_folder(tmp_path / "run", {"warmup-greedy": [0] * 40, "final-greedy": AFTER, "final-sampled": AFTER})
    )
    assert found["mode"] == "greedy"
    assert "with greedy actions" in found["sentence"]


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ({}, "This run has no evaluation on held-out instances"),
        ({"final-sampled": AFTER}, "60.0 % after training with sampled actions. Nothing was evaluated that way before"),
        ({"warmup-greedy": BEFORE}, "40.0 % before training with greedy actions. Nothing was evaluated that way after"),
        ({"control-sampled": CONTROL}, "Only the control was evaluated"),
    ],
)
def test_missing_evaluations_are_said_in_words(tmp_path: Path, outcomes: Mapping[str, list[int]], words: str) -> None:
    folder = run_folder(tmp_path / "run", outcomes)
    _, page = written(folder)
    assert any(words in text for text in page.texts["p"])
    absent = [f"evaluation {name}: not in this run." for name in ALL if name not in outcomes]
    assert [text for text in page.texts["li"] if text.startswith("evaluation")] == sorted(absent, key=absent.index)
    assert headline(folder)["verdict"] is None


def test_a_complete_run_has_nothing_missing(tmp_path: Path) -> None:
    content, page = written(run_folder(tmp_path / "run", ALL))
    assert "What is missing" not in content
    assert "li" not in page.tags


def test_an_empty_folder_still_gets_a_report(tmp_path: Path) -> None:
    """Not even settings: the page must be written, and list what it lacks."""
    _, page = written(RunFolder(tmp_path))
    lacking = ("config.json", "metrics.jsonl", *(f"evaluation {name}" for name in ALL), "samples", "instances.json")
    for name in lacking:
        assert any(text.startswith(name) and "not in this run" in text for text in page.texts["li"]), name
    assert "img" not in page.tags
    assert "There is no learning curve." in page.texts["p"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("metrics.jsonl", "nonsense\n{}\n"),
        ("evaluations/final-sampled.json", '{"success": 1}'),
        ("evaluations/final-sampled.episodes.jsonl", "{}\n{}\n"),
        ("samples/final.jsonl", '{"turns": 5}\n'),
        ("instances.json", "5"),
    ],
)
def test_a_damaged_file_is_named_and_breaks_nothing(tmp_path: Path, file: str, content: str) -> None:
    folder = run_folder(tmp_path / "run", ALL)
    (folder.path / file).write_text(content)
    _, page = written(folder)
    (damaged,) = page.texts["li"]
    assert damaged.split(",")[0].split(":")[0].removeprefix("evaluation ").split(".")[0] in file
    assert "damaged (" in damaged


def test_an_evaluation_without_its_episodes_is_shown_but_not_paired(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", ALL)
    (folder.path / "evaluations" / "warmup-sampled.episodes.jsonl").unlink()
    _, page = written(folder)
    assert page.row("before training (warm-up), sampled")[0].startswith("40.0 %")
    assert page.row("after training − before training, sampled")[0] == "unknown: both are needed"
    assert any("nothing can be paired" in text for text in page.texts["li"])


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
    assert "onerror=" not in content.replace("onerror=&quot;", "")


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
    _, page = written(run_folder(tmp_path / "run", ALL))
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
    drawing = Page(sparkline([1.0, 3.0, 2.0], 'a "label"'))
    (points,) = [value for _, name, value in drawing.attributes if name == "points"]
    (x0, y0), (_, y1), (x2, y2) = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert y1 < y2 < y0  # pixels count downwards
    assert (x0, x2) == (0.0, 160.0)
    assert ("svg", "aria-label", 'a "label"') in drawing.attributes
    Page(sparkline([5.0], "one value"))


def test_the_headline_can_be_printed_as_json(tmp_path: Path) -> None:
    found = headline(run_folder(tmp_path / "run", ALL))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["modes"]["greedy"]["after"]["success"] == 1.0
    assert found["held_out"] == {"distinct": 40, "seen": 0, "shown": 12_345}
    assert found["missing"] == []


@pytest.mark.parametrize("text", ["<a href='x'>", "&amp;", '"', "\x00\x1b[31m", "\ud800", "\r\n\ttab", "\u2028"])
def test_escaped_text_can_stand_anywhere_in_a_page(text: str) -> None:
    content = tag("p", text, title=text)
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
