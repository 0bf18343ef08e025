"""The page of what was learnt is made of the committed figures and of nothing else."""

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

import learning_page


def _run(seconds: float, **success: float) -> dict[str, Any]:
    evaluations = {stage.replace("_", "-"): {"success": {"value": value}} for stage, value in success.items()}
    return {"training_seconds": seconds, "evaluations": evaluations}


def test_a_row_pairs_the_seeds_and_shows_a_control_only_where_there_was_one(tmp_path: Path) -> None:
    runs = {
        "quickstart-lake-seed1": _run(60, warmup_sampled=0.2, final_sampled=0.5, control_sampled=0.3),
        "quickstart-lake-seed0": _run(120, warmup_sampled=0.4, final_sampled=0.6, control_sampled=0.4),
        "quickstart-lake-seed2": _run(180, warmup_sampled=0.3, final_sampled=0.55, control_sampled=0.2),
    }
    command = "python benchmarks/learning/quickstart.py"
    (tmp_path / "quickstart.json").write_text(json.dumps({"command": command, "runs": runs}))
    _, _, row = learning_page.table("sampled", tmp_path)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == [
        *("gigpo", "3", "2.0", "30.0", "55.0", "+25.0 [12.6, 37.4]", "30.0", "+25.0 [3.5, 46.5]"),
        "`python benchmarks/studies/learning/quickstart.py`",
    ]
    _, _, greedy = learning_page.table("greedy", tmp_path)
    assert [cell.strip() for cell in greedy.strip("|").split("|")][5:10] == [""] * 5


def test_self_play_shows_intervals_within_what_is_possible(tmp_path: Path) -> None:
    last = {"mean": 0.03, "low": -0.01, "high": 0.07}
    kuhn = {"command": "python kuhn.py", "runs": {"table": {"magnet": {"last": last, "seeds": [1, 2, 3]}}}}
    (tmp_path / "kuhn_magnet.json").write_text(json.dumps(kuhn))
    *_, row = learning_page.self_play_table(tmp_path)
    assert row == (
        "| Kuhn poker | table, magnet | exploitability of the last policy | 3 |  | 0.030 [0.000, 0.070] "
        "| `python kuhn.py` |"
    )


def test_board_games_have_a_row_for_each_seat_whether_exact_or_played_out(tmp_path: Path) -> None:
    exact = {
        stage: {
            seat: {"drawn_against_perfect": {"mean": mean, "low": 0.1, "high": 0.95, "seeds": [1, 2, 3]}}
            for seat in "01"
        }
        for stage, mean in (("before", 0.2), ("after", 0.9))
    }
    side = {"before": {"mean": 0.3}, "after": {"mean": 0.6, "low": 0.5, "high": 0.7}, "seeds": {"0": {}, "1": {}}}
    games = {"tic-tac-toe": exact, "connect-four": {"perfect": {"0": side, "1": side}}}
    (tmp_path / "board_population.json").write_text(json.dumps({"command": "python boards.py", "games": games}))
    _, _, *rows = learning_page.self_play_table(tmp_path)
    assert [row.split(" | ")[0:1] + row.split(" | ")[3:6] for row in rows] == [
        ["| Tic-Tac-Toe", "3", "20.0", "90.0 [10.0, 95.0]"],
        ["| Tic-Tac-Toe", "3", "20.0", "90.0 [10.0, 95.0]"],
        ["| Connect-Four", "2", "30.0", "60.0 [50.0, 70.0]"],
        ["| Connect-Four", "2", "30.0", "60.0 [50.0, 70.0]"],
    ]


def test_a_study_without_a_file_is_listed_with_its_command_until_it_has_one(tmp_path: Path) -> None:
    named = "| SearchQA, two hops | embedded | `python benchmarks/studies/learning/worlds.py searchqa-two-hops` |"
    before = learning_page.missing_table(tmp_path)
    assert named in before and len(before) == 2 + len(learning_page.STUDIES)
    files = re.findall(r"benchmarks/\S+\.(?:py|toml)", "\n".join(before))
    assert len(files) == len(learning_page.STUDIES) and all((learning_page.ROOT / file).is_file() for file in files)
    (tmp_path / "worlds-searchqa-two-hops.json").write_text("{}")
    assert [row for row in before if row not in learning_page.missing_table(tmp_path)] == [named]


def test_the_committed_page_is_that_of_the_committed_figures() -> None:
    assert (learning_page.RESULTS / learning_page.PAGE).read_text("utf8") == learning_page.page()


def test_committed_figures_name_no_folder_of_the_machine_that_computed_them() -> None:
    files = sorted(learning_page.RESULTS.rglob("*.json"))
    assert len(files) > 50
    found = {file.name: re.findall(r'"(?:/[^"/\s]+){2,}"', file.read_text("utf8")) for file in files}
    assert {name: paths for name, paths in found.items() if paths} == {}
