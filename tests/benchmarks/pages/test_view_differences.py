"""Two runs side by side: which episodes belong together, where they part, and which differ most."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from view_runs import evaluation, tournament, written

from turngym.benchmarks.pages.viewer.data import Viewer
from turngym.benchmarks.pages.viewer.differences import differing_turn, pairs
from turngym.benchmarks.pages.viewer.jsonl import Place
from turngym.benchmarks.pages.viewer.runs import open_run
from turngym.benchmarks.pages.viewer.summaries import Summary, first_difference, trace_of

ACTIONS = st.lists(st.sampled_from(["up", "down", "", "left\n", "\ud800"]), max_size=5)
EPISODES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1), ACTIONS), max_size=6)


def summaries(episodes: list[tuple[int, int, int, list[str]]], name: str = "env") -> list[Summary]:
    place = Place(0, 1, 1)
    return [
        Summary(k, 0, place, name, "env", str(seed), attempt=attempt, success=success, trace=trace_of(actions))
        for k, (seed, attempt, success, actions) in enumerate(episodes)
    ]


@given(ACTIONS, ACTIONS)
def test_traces_part_where_the_actions_do(first: list[str], second: list[str]) -> None:
    turn = first_difference(trace_of(first), trace_of(second))
    if turn is None:
        assert first == second
    else:
        assert first[:turn] == second[:turn] and first[turn : turn + 1] != second[turn : turn + 1]


@given(ACTIONS, ACTIONS, st.booleans())
def test_turns_part_where_anything_differs_that_both_recorded(first: list[str], second: list[str], seen: bool) -> None:
    one: list[dict[str, Any]] = [{"action": action, "reward": 0.0} for action in first]
    other: list[dict[str, Any]] = [{"action": action, "seen": "x"} for action in second]
    assert differing_turn(one, other) == first_difference(trace_of(first), trace_of(second))
    if seen and one and other:
        one[0]["seen"] = "y"
        assert differing_turn(one, other) == 0
    assert differing_turn(one, one) is None


@given(EPISODES, EPISODES)
def test_every_episode_is_in_one_pair_with_one_of_its_task(first: Any, second: Any) -> None:
    one, other = summaries(first), summaries(second)
    found = pairs(one, other)
    assert sorted(pair.first.index for pair in found if pair.first) == [each.index for each in one]
    assert sorted(pair.second.index for pair in found if pair.second) == [each.index for each in other]
    for pair in found:
        if pair.first and pair.second:
            assert (pair.first.seed, pair.first.attempt) == (pair.second.seed, pair.second.attempt)
            assert pair.turn == first_difference(pair.first.trace, pair.second.trace)
    alone = [pair.any for pair in found if not (pair.first and pair.second)]
    for each in alone:  # as many as one side has more of
        mine, theirs = ([e for e in side if (e.seed, e.attempt) == (each.seed, each.attempt)] for side in (one, other))
        assert len(mine) != len(theirs)


@given(EPISODES, EPISODES)
def test_what_differs_most_comes_first_whichever_run_is_named_first(first: Any, second: Any) -> None:
    found, turned = (pairs(*map(summaries, order)) for order in ((first, second), (second, first)))
    assert [pair.distance() for pair in found] == sorted((pair.distance() for pair in found), reverse=True)
    assert [pair.distance() for pair in found] == [pair.distance() for pair in turned]


def test_a_run_equals_itself(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run")
    viewer = Viewer(open_run(run), open_run(run))
    assert viewer.rows(0, 10)["rows"] == []  # nothing before all is found: the order would change
    viewer.search()
    for each in viewer.runs:
        each.wait_for()
    rows = viewer.rows(0, 10)["rows"]
    assert len(rows) == 6 and not any(row["apart"] for row in rows)
    assert all(viewer.episode(n)["differs"] is None for n in range(6))  # type: ignore[index]
    assert viewer.rows(0, 10, "different")["found"] == 0 and viewer.rows(0, 10, "equal")["found"] == 6
    assert viewer.episode(6) is None


def test_two_agents_are_compared_task_by_task_and_attempt_by_attempt(tmp_path: Path) -> None:
    viewer = Viewer(open_run(evaluation(tmp_path / "a")), open_run(evaluation(tmp_path / "b", "expert")))
    viewer.search()
    for run in viewer.runs:
        run.wait_for()
    rows = viewer.rows(0, 10)["rows"]
    assert len(rows) == 6 and all(None not in row["sides"] for row in rows)
    for n, row in enumerate(rows):
        episode = viewer.episode(n)
        assert episode is not None
        turn, (first, second) = episode["differs"], episode["sides"]
        assert first["replay"]["command"] == second["replay"]["command"] and row["seed"] in first["replay"]["command"]
        if turn is not None:
            same = [first["turns"][k]["action"] == second["turns"][k]["action"] for k in range(turn)]
            assert all(same)
    changed = [row["sides"][0]["success"] != row["sides"][1]["success"] for row in rows]
    assert changed == sorted(changed, reverse=True)


def test_games_are_paired_by_their_match(tmp_path: Path) -> None:
    games = tournament(tmp_path / "games")
    viewer = Viewer(open_run(games), open_run(games))
    viewer.search()
    for run in viewer.runs:
        run.wait_for()
    assert {(row["sides"][0]["task"], row["apart"]) for row in viewer.rows(0, 99)["rows"]} == {
        (summary.task, False) for summary in viewer.runs[0].known
    }


def test_runs_of_other_names_are_paired_by_environment_and_seed(tmp_path: Path) -> None:
    turns = [{"action": "up"}]
    for name in ("a", "b"):
        lines = [{"env": "e", "seed": seed, "turns": turns} for seed in (1, 2, 2)]
        written(tmp_path / name / f"of-{name}.jsonl", *lines)
    viewer = Viewer(open_run(tmp_path / "a"), open_run(tmp_path / "b"))
    viewer.search()
    for run in viewer.runs:
        run.wait_for()
    assert [None not in row["sides"] for row in viewer.rows(0, 10)["rows"]] == [True] * 3
