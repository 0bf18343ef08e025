"""The report of a run: right numbers and honest words."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from report_pages import AFTER, ALL, BEFORE, CONTROL, numbers, pair_interval, written
from synthetic_runs import run_folder, trajectory, write_evaluation

from turngym.agents.episodes.evaluate import summarise
from turngym.agents.intervals import Estimate
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.findings import held_out, read_run, success_difference, success_interval
from turngym.trainers.report.headline import control_sentence
from turngym.trainers.report.run import headline


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
    assert "supervised learning from the same 300 demonstrations instead: " in control_sentence(read_run(better))
    assert headline(run_folder(tmp_path / "none", {"final-sampled": AFTER}))["control_sentence"] == ""


def test_an_improvement_without_a_control_says_what_it_leaves_open(tmp_path: Path) -> None:
    gained = {"warmup-sampled": [0] * 40, "final-sampled": AFTER}
    run = read_run(run_folder(tmp_path / "run", gained))
    assert control_sentence(replace(run, config={**run.config, "control": True})) == ""
    assert control_sentence(replace(run, config={**run.config, "control": False})).startswith("No control was run")
    lost = read_run(run_folder(tmp_path / "lost", {"warmup-sampled": [1] * 40, "final-sampled": AFTER}))
    assert control_sentence(replace(lost, config={**lost.config, "control": False})) == ""


def test_the_tables_hold_the_numbers_of_the_evaluations(tmp_path: Path) -> None:
    _, page = written(run_folder(tmp_path / "run", ALL))
    success, episodes, score, reward_sum, turns, invalid, faults = page.row("after training, sampled")
    assert numbers(success)[0] == 60.0
    assert (episodes, invalid, faults) == ("40", "50.0 %", "0")  # one of the two turns of every episode is invalid
    assert score.startswith("0.60 [")
    assert reward_sum.startswith("0.50 [")  # an invalid action costs 0.1
    assert turns == "2.00 [no spread]"
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
        "2 of them are among the 3 that training showed, compared by hash. Those are not held-out instances." in content
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
        ("samples/final.jsonl", '{"turns": [{"logprobs": [-0.5, ""]}]}\n'),
        ("samples/final.jsonl", f'{{"turns": [{{"logprobs": [1{400 * "0"}]}}]}}\n'),
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
