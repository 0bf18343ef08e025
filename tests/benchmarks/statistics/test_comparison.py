"""``turngym compare``: paired differences against slow recomputation, and tasks that cannot be paired."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.__main__ import main
from turngym.agents.intervals import cluster_bootstrap, wilson
from turngym.agents.recordings.submission import Submission, load_submission
from turngym.benchmarks.cli.compare import _table
from turngym.benchmarks.evaluation.comparison import METRICS, compare, verdict
from turngym.errors import ConfigError

LAKE, GUESS = "turngym/FrozenLake-v0", "turngym/GuessTheNumber-v0"


def evaluation(path: Path, env: str, agent: str, *words: str) -> Path:
    assert main(["eval", env, "--agent", agent, "--episodes", "10", *words, "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    path = tmp_path_factory.mktemp("compared")
    return {
        "random": evaluation(path / "random", LAKE, "random"),
        "again": evaluation(path / "again", LAKE, "random", "--repeats", "3"),
        "expert": evaluation(path / "expert", LAKE, "expert"),
        "nonsense": evaluation(path / "nonsense", LAKE, "scripted:nonsense"),
        "fewer": evaluation(path / "fewer", LAKE, "expert", "--episodes", "7"),
        "other": evaluation(path / "other", LAKE, "expert", "--seed", "1"),
        "guess": evaluation(path / "guess", GUESS, "expert"),
    }


def synthetic(first: Submission, label: str, successes: list[int], blocks: list[str] | None = None) -> Submission:
    """Return a submission with one environment of the given successes, one task each."""
    base = first.episodes[0]
    names = blocks or [str(task) for task in range(len(successes))]
    rows = [
        {**base, "label": label, "task": task, "seed": task, "success": won, "block_id": names[task]}
        for task, won in enumerate(successes)
    ]
    environment = {**first.config["environments"][0], "label": label, "seeds": list(range(len(successes)))}
    return dataclasses.replace(first, episodes=tuple(rows), config={**first.config, "environments": [environment]})


def joined(*parts: Submission) -> Submission:
    """Return one submission with the environments of several."""
    environments = [each for part in parts for each in part.config["environments"]]
    rows = tuple(row for part in parts for row in part.episodes)
    return dataclasses.replace(parts[0], episodes=rows, config={**parts[0].config, "environments": environments})


def test_differences_are_those_of_each_task(folders: dict[str, Path]) -> None:
    first, second = load_submission(folders["random"]), load_submission(folders["expert"])
    found = compare(first, second).environments[LAKE]
    for metric, field in METRICS.items():
        theirs = {row["seed"]: row[field] for row in second.episodes}
        differences = [float(theirs[row["seed"]] - row[field]) for row in first.episodes]
        expected = cluster_bootstrap(differences, [row["block_id"] for row in first.episodes])
        assert found.metrics[metric].value == pytest.approx(np.mean(differences))
        assert (found.metrics[metric].low, found.metrics[metric].high) == (expected.low, expected.high)
        assert found.second[metric] - found.first[metric] == pytest.approx(np.mean(differences))
    lost = sum(row["success"] == 0 for row in first.episodes)
    assert (found.gained, found.lost, found.equal) == (lost, 0, 10 - lost) and 0 < lost < 10


def test_the_other_order_gives_the_other_sign(folders: dict[str, Path]) -> None:
    first, second = load_submission(folders["random"]), load_submission(folders["expert"])
    one, other = compare(first, second).overall, compare(second, first).overall
    for metric in METRICS:
        assert one.metrics[metric].value == -other.metrics[metric].value
        assert one.metrics[metric].low == pytest.approx(-other.metrics[metric].high)
    assert (one.gained, one.lost) == (other.lost, other.gained)


def test_attempts_at_a_task_count_together(folders: dict[str, Path]) -> None:
    once, thrice = load_submission(folders["random"]), load_submission(folders["again"])
    found = compare(once, thrice).environments[LAKE]
    assert found.metrics["success"].count == found.metrics["success"].blocks == 10, "tasks, not attempts"
    assert found.second["success"] == pytest.approx(np.mean([row["success"] for row in thrice.episodes]))


def test_pairing_sees_what_two_separate_intervals_hide(folders: dict[str, Path]) -> None:
    base = load_submission(folders["random"])
    ease = np.random.default_rng(0).random(100)
    weaker = synthetic(base, "a", [int(x > 0.5) for x in ease])
    better = synthetic(base, "a", [int(x > 0.4) for x in ease])
    difference = compare(weaker, better).environments["a"].metrics["success"]
    apart = [wilson(sum(row["success"] for row in side.episodes), 100) for side in (weaker, better)]
    assert difference.low > 0 and apart[0][1] > apart[1][0]


def test_tasks_of_one_block_are_drawn_together(folders: dict[str, Path]) -> None:
    base = load_submission(folders["random"])
    blocks = [str(task // 10) for task in range(100)]
    won = [int(task // 10 < 3) for task in range(100)]
    sides = [[0] * 100, won]
    alone = compare(*(synthetic(base, "a", side) for side in sides)).environments["a"].metrics["success"]
    shared = compare(*(synthetic(base, "a", side, blocks) for side in sides)).environments["a"].metrics["success"]
    assert (alone.blocks, shared.blocks) == (100, 10) and shared.stderr > 2 * alone.stderr


def test_every_environment_weighs_the_same(folders: dict[str, Path]) -> None:
    base = load_submission(folders["random"])
    first = joined(synthetic(base, "a", [0] * 10), synthetic(base, "b", [0] * 40))
    second = joined(synthetic(base, "a", [1] * 5 + [0] * 5), synthetic(base, "b", [1] * 4 + [0] * 36))
    found = compare(first, second)
    parts = [found.environments[label].metrics["success"] for label in "ab"]
    assert found.overall.metrics["success"].value == pytest.approx((0.5 + 0.1) / 2)
    assert found.overall.metrics["success"].stderr == pytest.approx(
        (parts[0].stderr ** 2 + parts[1].stderr ** 2) ** 0.5 / 2
    )
    assert found.overall.gained == 9


def test_where_all_tasks_agree_the_interval_still_has_a_width(folders: dict[str, Path]) -> None:
    """Resampling equal differences gives no spread, which 25 tasks do not justify."""
    base = load_submission(folders["random"])
    never, always = synthetic(base, "a", [0] * 25), synthetic(base, "a", [1] * 25)
    unseen = 1 - wilson(25, 25)[0]
    for sides, low, high in (((never, never), -unseen, unseen), ((never, always), 1 - unseen, 1.0)):
        found = compare(*sides).overall.metrics["success"]
        assert (found.low, found.high) == pytest.approx((low, high)) and found.method == "Wilson"


@pytest.mark.parametrize(("gain", "digits"), [(0.25, 40), (0.1, 40), (-0.25, 40), (0.25, 4)])
def test_equal_differences_of_scores_are_undecided(
    gain: float, digits: int, folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every task was better by the same: an interval of no width lay above 0, and the verdict was sure."""
    base = synthetic(load_submission(folders["random"]), "a", [0] * digits)
    suite = {**base.config["suite"], "metric": "score"}
    sides = [
        dataclasses.replace(
            base,
            config={**base.config, "suite": suite},
            episodes=tuple({**row, "score": 0.3 * row["task"] + more} for row in base.episodes),
        )
        for more in (0.0, gain)
    ]
    found = compare(*sides)
    reason = "an interval needs 6 tasks" if digits < 6 else "the difference is the same on all tasks"
    assert "is undecided: " + reason in verdict(found)
    numbers = found.as_json()["overall"]["difference"]["score"]
    assert numbers["value"] == pytest.approx(gain) and numbers["ci_low"] is numbers["ci_high"] is None
    cells = [str(cell) for column in _table(found).columns for cell in column.cells]
    assert ("too few" if digits < 6 else "no spread") in cells


def test_a_verdict_is_only_given_where_the_interval_allows_it(folders: dict[str, Path]) -> None:
    base = load_submission(folders["random"])
    none, half, full = (synthetic(base, "a", [0] * (30 - n) + [1] * n) for n in (0, 15, 16))
    assert "did better than" in verdict(compare(none, half)) and "did worse than" in verdict(compare(half, none))
    assert "No difference" in verdict(compare(half, full)) and "says little" not in verdict(compare(half, full))
    few = verdict(compare(*(load_submission(folders[name]) for name in ("random", "expert"))))
    assert few.endswith("With 10 tasks this says little.")
    one = synthetic(base, "a", [0])
    assert verdict(compare(one, one)).endswith("With 1 task this says little.")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("fewer", "has 10 and 7 tasks, 7 of them the same"),
        ("other", "has 10 and 10 tasks, 0 of them the same"),
        ("guess", "the name of the suite is 'turngym/FrozenLake-v0' there and 'turngym/GuessTheNumber-v0' here"),
    ],
)
def test_other_tasks_are_refused(
    other: str, reason: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(folders["random"]), str(folders[other])]) == 2
    shown = capsys.readouterr().err
    assert reason in shown and "with the same --episodes, --seed and options." in shown


def test_other_rules_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "other-rules"
    path.mkdir()
    for file in folders["expert"].iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    config: dict[str, Any] = json.loads((path / "config.json").read_text("utf8"))
    config["environments"][0]["ruleset_hash"] = "0" * 64
    (path / "config.json").write_text(json.dumps(config), "utf8")
    with pytest.raises(ConfigError, match="had other rules"):
        compare(load_submission(folders["random"]), load_submission(path))


def test_a_damaged_folder_is_refused_with_the_way_to_see_more(folders: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.mkdir()
    for file in folders["expert"].iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    (path / "results.json").unlink()
    with pytest.raises(
        ConfigError, match=r"results\.json: the file is missing, as .* --resume continues it\): `turngym verify"
    ):
        load_submission(path)


def test_the_command_shows_the_table_or_json(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", str(folders["nonsense"]), str(folders["expert"])]
    assert main(words) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    row = next(row for row in rows if row and row[0] == "FrozenLake-v0")
    assert row[1:4] == ["0.0", "100.0", "+100.0"] and row[-1] == "10/0"
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["first"], found["second"], found["metric"]) == ("scripted:nonsense", "expert", "success")
    assert found["overall"]["difference"]["success"]["value"] == 1.0
    assert found["environments"][LAKE]["tasks"] == {"gained": 10, "lost": 0, "equal": 0}
