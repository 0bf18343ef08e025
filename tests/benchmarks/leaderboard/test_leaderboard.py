"""Leaderboards: who is in which table, places as ranges, scales, and folders that are left out."""

import itertools
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from submissions import ENV, HOSTILE, changed, play, rows_of, write_rows

from turngym.agents.intervals import Estimate, cluster_bootstrap, share
from turngym.agents.verifiers import Verdict
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.leaderboard.entries import Entry, expand, read_entries
from turngym.benchmarks.leaderboard.table import (
    _json,
    build_leaderboard,
    distinctions,
    ends_of,
    interquartile_mean,
    rank_ranges,
)
from turngym.benchmarks.pages.leaderboard import leaderboard_page
from turngym.benchmarks.statistics.estimates import equal_weight_mean
from turngym.benchmarks.suites import Suite, SuiteEntry
from turngym.benchmarks.verification.verify import Verification, verify
from turngym.errors import ConfigError

ENDS = st.integers(0, 12).map(float)
INTERVALS = st.lists(st.tuples(ENDS, ENDS).map(lambda pair: (min(pair), max(pair))), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with three submissions on the same tasks, the one of the random agent with its baselines."""
    path = tmp_path_factory.mktemp("played")
    play(path / "random", "random", "--baselines")
    play(path / "expert", "expert")
    play(path / "left", "scripted:left,left,left")
    return path


def surely_ahead(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] > other[1]


@settings(max_examples=60)
@given(INTERVALS)
def test_rank_ranges_are_the_places_over_all_orders_that_the_intervals_allow(
    intervals: Sequence[tuple[float, float]],
) -> None:
    places: list[set[int]] = [set() for _ in intervals]
    for order in itertools.permutations(range(len(intervals))):
        pairs = itertools.combinations(order, 2)
        if not any(surely_ahead(intervals[later], intervals[earlier]) for earlier, later in pairs):
            for place, index in enumerate(order, 1):
                places[index].add(place)
    assert rank_ranges(intervals) == [(min(each), max(each)) for each in places]


@given(INTERVALS, st.randoms(use_true_random=False))
def test_rank_ranges_hold_the_place_by_value_and_follow_their_rows(
    intervals: list[tuple[float, float]], random: Random
) -> None:
    middles = [(low + high) / 2 for low, high in intervals]
    for middle, (best, worst) in zip(middles, rank_ranges(intervals), strict=True):
        assert best <= 1 + sum(other > middle for other in middles) <= worst
    shuffled = list(range(len(intervals)))
    random.shuffle(shuffled)
    found = rank_ranges([intervals[index] for index in shuffled])
    assert found == [rank_ranges(intervals)[index] for index in shuffled]


def test_equal_intervals_share_all_places_and_none_gives_none() -> None:
    assert rank_ranges([(0.2, 0.4)] * 4) == [(1, 4)] * 4
    assert rank_ranges([]) == []
    assert rank_ranges([(0.2, 0.4), (0.4, 0.6)]) == [(1, 2), (1, 2)], "intervals that touch overlap"


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30))
def test_the_interquartile_mean_is_that_of_four_copies_without_a_quarter_at_each_end(values: list[float]) -> None:
    copies = sorted(values * 4)
    assert interquartile_mean(values) == pytest.approx(fmean(copies[len(values) : -len(values)]), abs=1e-9)


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, (high - low) / 2 / 1.959963984540054, low, high, 10, 10, "")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 0.3)), min_size=2, max_size=6))
def test_with_symmetric_intervals_the_mean_has_that_of_its_standard_error(pairs: list[tuple[float, float]]) -> None:
    found = equal_weight_mean([estimate(value, value - half, value + half) for value, half in pairs])
    half = 1.959963984540054 * found.stderr
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20))
def test_the_mean_of_shares_stays_a_share_and_keeps_a_width(tasks: list[tuple[int, int]]) -> None:
    found = equal_weight_mean(
        [share([1.0] * won + [0.0] * lost or [1.0], range(won + lost or 1)) for won, lost in tasks]
    )
    assert -1e-12 <= found.low <= found.value <= found.high <= 1 + 1e-12 and found.high - found.low > 0.01


def test_submissions_on_the_same_tasks_share_a_table_the_best_first(played: Path) -> None:
    board = build_leaderboard(*read_entries([played]))
    (group,) = board.groups
    assert {row.name for row in group.entries} == {"random", "expert", "scripted:left,left,left"}
    assert group.entries[0].name == "expert"
    assert [row.mean.value for row in group.entries] == sorted((row.mean.value for row in group.entries), reverse=True)
    assert group.suite == ENV and group.tasks == 6 and group.families == {} and board.left_out == ()
    assert {row.status for row in group.entries} == {"not checked"}


def test_the_numbers_are_those_of_the_results_file(played: Path) -> None:
    rows, _ = read_entries([played])
    for row in rows:
        told = row.submission.results
        assert row.mean.value == told["mean"]["value"] and row.mean.low == told["mean"]["ci_low"]
        assert row.usage.as_json() == told["usage"]
        assert row.mean_of("turns").value == told["environments"][ENV]["turns"]["value"]
        assert row.invalid_actions == told["environments"][ENV]["invalid_actions"]["value"]


def test_the_scale_comes_from_baselines_and_makes_random_0_and_the_expert_100(played: Path) -> None:
    (group,) = build_leaderboard(*read_entries([played])).groups
    means = {row.name: group.normalised_mean(row) for row in group.entries}
    assert means["random"] is not None and means["random"].value == pytest.approx(0)
    assert means["expert"] is not None and means["expert"].value == pytest.approx(100)
    (alone,) = build_leaderboard(*read_entries([played / "left"])).groups
    assert alone.scale == {} and alone.normalised_mean(alone.entries[0]) is None


def test_a_submission_that_calls_itself_a_baseline_moves_no_scale(played: Path, tmp_path: Path) -> None:
    fake = changed(played / "left", tmp_path / "fake", config=lambda config: config.update(agent="expert"))
    write_rows(fake, [{**row, "seat_map": {"player_0": "expert"}} for row in rows_of(fake)])
    folders = [played / "random", played / "expert"]
    (before,) = build_leaderboard(*read_entries(folders)).groups
    (after,) = build_leaderboard(*read_entries([*folders, fake])).groups
    assert len(after.entries) == 3 and after.scale == before.scale != {}


def test_checked_submissions_have_a_scale_of_baselines_that_the_check_played(played: Path) -> None:
    for is_played in (False, True):
        board = build_leaderboard(*read_entries([played], partial(verify, replay=0, baselines=is_played)))
        (group,) = board.groups
        assert len(group.entries) == 3 and bool(group.scale) == is_played


def test_other_tasks_versions_options_and_rules_get_tables_of_their_own(played: Path, tmp_path: Path) -> None:
    others = [
        play(tmp_path / "seed", "random", "--seed", "3"),
        play(tmp_path / "fewer", "random", episodes=4),
        play(tmp_path / "option", "random", "--option", "slippery=true"),
        play(tmp_path / "env", "random", target="turngym/GuessTheNumber-v0"),
        changed(played / "random", tmp_path / "rules", config=lambda c: c["environments"][0].update(ruleset_hash="x")),
        changed(played / "random", tmp_path / "version", config=lambda c: c["suite"].update(version=7)),
        changed(played / "random", tmp_path / "protocol", config=lambda c: c["suite"].update(protocol="cheat")),
        changed(played / "random", tmp_path / "metric", config=lambda c: c["suite"].update(metric="score")),
    ]
    board = build_leaderboard(*read_entries([played, *others]))
    assert sorted(len(group.entries) for group in board.groups) == [1] * len(others) + [3]
    for group in board.groups:
        assert len({json.dumps(row.submission.config["environments"]) for row in group.entries}) == 1
    versions = [(group.suite, group.version) for group in board.groups]
    assert versions == sorted(versions, key=lambda each: (each[0], -each[1])), "the newest version first"


def test_families_are_those_of_the_suite_and_a_suite_names_only_what_it_has(tmp_path: Path) -> None:
    core = play(tmp_path / "core", "random", target="turngym-core", episodes=1)
    (group,) = build_leaderboard(*read_entries([core])).groups
    assert len(group.families) == 6 and sorted(sum(group.families.values(), ())) == sorted(group.labels)
    grids = [group.entries[0].results[f"turngym/{name}"].success for name in ("FrozenLake-v0", "Maze-v0", "Sokoban-v0")]
    assert group.entries[0].mean_of("success", group.families["grids"]) == equal_weight_mean(grids)
    with pytest.raises(ConfigError, match="families"):
        Suite("s", 0, "", (SuiteEntry(ENV),), families={"f": ("turngym/Absent-v0",)})


def test_who_played_not_all_has_no_rank_and_stands_last(played: Path, tmp_path: Path) -> None:
    half = changed(played / "expert", tmp_path / "half")
    write_rows(half, rows_of(half)[:3])
    twice = changed(played / "expert", tmp_path / "twice")
    write_rows(twice, rows_of(twice) * 2)
    (group,) = build_leaderboard(*read_entries([half, twice, played])).groups
    assert [row.is_complete for row in group.entries] == [True] * 3 + [False] * 2
    assert group.ranks[3:] == (None, None) and None not in group.ranks[:3]


def test_a_folder_of_folders_stands_for_them_and_each_is_taken_once(played: Path) -> None:
    assert [path.name for path in expand([played, played / "left", played / "." / "left"])] == [
        "expert",
        "left",
        "random",
    ]
    assert list(expand([played / "nowhere"])) == [played / "nowhere"]


def test_a_folder_that_cannot_be_shown_is_named_and_stops_nothing(played: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "file").write_text("no folder")
    torn = changed(played / "left", tmp_path / "torn")
    (torn / "episodes.jsonl").write_text("{")
    odd = changed(played / "left", tmp_path / "odd")
    write_rows(odd, [{**row, "seats": {"player_0": {"cost": "much"}}} for row in rows_of(odd)])
    unplayed = changed(played / "left", tmp_path / "unplayed")
    write_rows(unplayed, [])
    paths = [played, empty, tmp_path / "file", tmp_path / "nowhere", torn, odd, unplayed]
    board = build_leaderboard(*read_entries(paths))
    assert len(board.groups) == 1 and len(board.groups[0].entries) == 3
    reasons = {each.folder.name: each.reason for each in board.left_out}
    assert list(reasons) == ["empty", "file", "nowhere", "torn", "odd", "unplayed"]
    assert (
        "not JSON" in reasons["torn"]
        and "not finished" in reasons["unplayed"]
        and "cost must be a number" in reasons["odd"]
    )


def test_a_rejected_submission_is_left_out_with_the_names_of_what_is_wrong(played: Path, tmp_path: Path) -> None:
    forged = changed(played / "left", tmp_path / "forged", results=lambda r: r["mean"].update(value=0.99))
    rows, left_out = read_entries([played / "left", forged], lambda path: verify(path, seed=0))
    assert [row.status for row in rows] == ["replayed"]
    assert [(each.folder.name, each.findings) for each in left_out] == [("forged", ("aggregate",))]


def test_a_check_that_breaks_is_no_end_of_the_page(played: Path) -> None:
    def broken(path: Path) -> Verification:
        raise ZeroDivisionError("the check itself")

    rows, left_out = read_entries([played], broken)
    assert rows == [] and len(left_out) == 3 and "the check itself" in left_out[0].reason


def test_as_json_holds_what_the_page_shows_and_no_number_that_json_lacks(played: Path) -> None:
    found = json.loads(json.dumps(build_leaderboard(*read_entries([played])).as_json(), allow_nan=False))
    (table,) = found["tables"]
    first = table["rows"][0]
    assert first["name"] == "expert" and first["ranks"][0] == 1 and first["environments"].keys() == {ENV}
    assert found["version"] == 1 and table["scale"][ENV]["expert"] > table["scale"][ENV]["random"]
    turns = {row["name"]: row["turns"] for row in table["rows"]}
    assert turns["expert"]["ci_low"] is not None, "tasks take the expert different numbers of turns"
    equal = _json(cluster_bootstrap([0.5] * 10, range(10)))
    assert equal["value"] == 0.5 and equal["ci_low"] is equal["ci_high"] is None
    assert build_leaderboard([]).as_json() == {"version": 1, "tables": [], "left_out": []}


def test_what_a_verifier_chose_is_told_and_a_verdict_of_another_shape_stops_nothing(
    played: Path, tmp_path: Path
) -> None:
    play(tmp_path / "tries", "random", "--repeats", "3")
    rows = rows_of(tmp_path / "tries")
    write_rows(tmp_path / "tries", [{**row, "verifier": Verdict(row["success"]).as_json()} for row in rows])
    broken = changed(tmp_path / "tries", tmp_path / "broken")
    write_rows(broken, [{**row, "verifier": [HOSTILE]} for row in rows])
    (row, *others), left_out = read_entries([tmp_path / "tries", broken, played])
    solved = {(each["task"]) for each in rows if each["success"]}
    assert row.repeated["chosen_of_3"].value == row.repeated["pass@3"].value == pytest.approx(len(solved) / 6)
    assert "best of 3 %" in leaderboard_page(build_leaderboard([row]))
    assert len(others) == 3 and [each.folder.name for each in left_out] == ["broken"]


def test_a_time_that_cannot_be_read_keeps_a_folder_out(played: Path, tmp_path: Path) -> None:
    def spoil(metadata: dict[str, str]) -> None:
        metadata["played"] = "yesterday"

    (_, (left_out,)) = read_entries([changed(played / "left", tmp_path / "late", metadata=spoil)])
    assert "played must be a time in ISO format, got 'yesterday'" in left_out.reason
    ((sound,), _) = read_entries([played / "left"])
    assert sound.seconds >= 0


def test_the_time_of_an_entry_leaves_out_its_baselines(played: Path, tmp_path: Path) -> None:
    """An agent that needs 4 seconds was shown with the 39 that the expert needed after it."""

    def dated(metadata: dict[str, str], is_old: bool = False) -> None:
        metadata["started"] = "2026-01-01T10:00:00+00:00"
        metadata["played"] = "2026-01-01T10:00:04+00:00"
        metadata["finished"] = "2026-01-01T10:00:43+00:00"
        if is_old:
            del metadata["played"]

    ((row,), _) = read_entries([changed(played / "left", tmp_path / "timed", metadata=dated)])
    assert isinstance(row, Entry) and row.seconds == 4
    old = changed(played / "left", tmp_path / "old", metadata=lambda metadata: dated(metadata, is_old=True))
    assert read_entries([old])[0][0].seconds == 43


def test_tables_of_one_suite_say_in_what_they_differ(played: Path, tmp_path: Path) -> None:
    def other_option(config: Any) -> None:
        config["environments"][0]["options"]["size"] = 5

    def other_rules(config: Any) -> None:
        config["environments"][0]["ruleset_hash"] = "0" * 64

    folders = [
        played / "left",
        changed(played / "left", tmp_path / "size", config=other_option),
        changed(played / "left", tmp_path / "rules", config=other_rules),
    ]
    groups = build_leaderboard(*read_entries(folders)).groups
    told = {group.entries[0].folder.name: words for group, words in zip(groups, distinctions(groups), strict=True)}
    assert len(groups) == 3 and "size 5" in told["size"] and "rules 00000000" in told["rules"]
    assert "size" not in told["rules"] and all(told.values()) and len(set(told.values())) == 3
    alone = {group.entries[0].folder.name: distinctions([group]) for group in groups}
    assert alone == {"left": [""], "size": ["size 5"], "rules": [""]}


def test_a_table_of_one_environment_names_its_options_even_alone(tmp_path: Path) -> None:
    evaluate("turngym/FrozenLake-v0", "random", episodes=2, options={"view": "grid"}, out=tmp_path / "grid")
    board = build_leaderboard(*read_entries([tmp_path / "grid"]))
    assert distinctions(board.groups) == ['view "grid"']
    assert "turngym/FrozenLake-v0, version 0: view &#34;grid&#34;" in leaderboard_page(board)


def test_a_number_without_an_interval_may_have_any_rank() -> None:
    """Scores that were the same on all tasks had a rank of their own."""
    equal, spread = (cluster_bootstrap(values, range(10)) for values in ([0.5] * 10, [0.1] * 5 + [0.2] * 5))
    assert rank_ranges([ends_of(equal), ends_of(spread)]) == [(1, 2), (1, 2)]
    assert rank_ranges([ends_of(spread), (0.3, 0.4)]) == [(2, 2), (1, 1)]
