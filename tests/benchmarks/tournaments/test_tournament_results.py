"""The numbers of a tournament, against counts by hand."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turngym.agents.intervals import share, wilson
from turngym.benchmarks.pages.tournament import write_tournament_page
from turngym.benchmarks.statistics.bradley_terry import Comparison
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.results import comparisons, differences, player_numbers, results, win_matrix
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.benchmarks.tournaments.seats import Usage
from turngym.benchmarks.tournaments.tables import tables_of
from turngym.errors import ConfigError

PLAN = {"game": "g", "ruleset_hash": "r", "pairing": "sides", "sides": "apart", "seed": 0}


def game(players: str, teams: str, won: str, block: int = 0, **more: Any) -> dict[str, Any]:
    """Return the record of a game: one letter for the player and one for the team of each seat, and who won."""
    seats = [f"player_{seat}" for seat in range(len(players))]
    winners = [seat for seat, team in zip(seats, teams, strict=True) if team in won]
    content = {
        "block_id": block,
        "seat_map": dict(zip(seats, players, strict=True)),
        "teams": dict(zip(seats, teams, strict=True)),
        "roles": dict(zip(seats, teams.upper(), strict=True)),
        "winners": winners,
        "scores": {seat: 2.0 * (seat in winners) for seat in seats},
        "returns": {seat: -1.0 for seat in seats},
        "metrics": {},
        "length": 4,
        "status": "ok",
        "fault": "",
        "seats": {seat: _usage(1) for seat in seats},
    }
    return {**content, **more}


def _usage(calls: int, **more: int) -> dict[str, float]:
    zeros = {"answers": 0, "parse_failures": 0, "illegal": 0, "forfeits": 0, "latency": 0.5}
    return {**zeros, **{key: 0 for key in Usage.__slots__}, "calls": calls, **more}


def test_two_teams_are_one_comparison_and_a_team_of_one_player_is_that_player() -> None:
    assert comparisons(game("aabbb", "wwvvv", "v", 3)) == [Comparison((("b", "v"),), (("a", "w"),), 1.0, 3)]
    assert comparisons(game("abc", "wvv", "w")) == [Comparison((("b", "v"), ("c", "v")), (("a", "w"),), 0.0)]


@pytest.mark.parametrize(("won", "points"), [("", 0.5), ("vw", 0.5), ("v", 1.0), ("w", 0.0)])
def test_nobody_or_everybody_winning_is_a_draw(won: str, points: float) -> None:
    [found] = comparisons(game("ab", "vw", won))
    assert found.points == points


def test_many_teams_weigh_as_much_as_two() -> None:
    found = comparisons(game("abcd", "0123", "2"))
    assert len(found) == 6 and {one.weight for one in found} == {1 / 3}
    points = {(one.first[0][0], one.second[0][0]): one.points for one in found}
    assert points == {("a", "b"): 0.5, ("a", "c"): 0, ("a", "d"): 0.5, ("b", "c"): 0, ("b", "d"): 0.5, ("c", "d"): 1}
    for player in "abcd":
        of_player = [one.weight for one in found if player in (one.first[0][0], one.second[0][0])]
        assert sum(of_player) == pytest.approx(1)


def test_where_sides_are_alike_a_player_against_itself_says_nothing() -> None:
    assert comparisons(game("aa", "01", "1"), is_alike=True) == []
    assert len(comparisons(game("aa", "01", "1"))) == 1
    assert comparisons(game("ab", "01", "1"), is_alike=True) == [Comparison((("a", ""),), (("b", ""),), 0.0)]


def test_a_game_whose_teams_are_unknown_compares_nobody_but_is_counted() -> None:
    broken = {**game("ab", "vw", ""), "teams": {}, "roles": {}, "status": "env_error", "fault": "no rules"}
    assert comparisons(broken) == []
    found = results({**PLAN, "players": {"a": "a", "b": "b"}}, [broken])
    assert found["ratings"] is None and found["n_games"] == found["env_errors"] == 1
    assert found["players"]["a"]["all"]["win"]["value"] == 0


def test_players_of_a_cooperative_game_are_compared_by_their_partners() -> None:
    def shared(players: str, score: float, block: int) -> dict[str, Any]:
        return game(players, "vw", "vw" if score > 3 else "", block, scores={"player_0": score, "player_1": score})

    games = [shared("aa", 1.0, 0), shared("ab", 4.0, 0), shared("ba", 2.0, 0), shared("bb", 5.0, 0)]
    found = results({**PLAN, "sides": "together", "players": {"a": "a", "b": "b"}}, games)
    means = [(each["players"], each["score"]["value"], each["win"]["value"]) for each in found["partners"]]
    assert means == [(["b"], 5.0, 1.0), (["a", "b"], 3.0, 0.5), (["a"], 1.0, 0.0)]
    assert found["ratings"] is None and found["win_matrix"] == found["differences"] == []


def test_a_cooperative_game_has_a_table_and_a_page_by_partners(tmp_path: Path) -> None:
    plan = TournamentPlan("turngym/HanabiSmall-v0", {"random": "random", "certain": "certain"}, blocks=2)
    found, records = play_tournament(plan, folder=tmp_path / "hanabi")
    assert len(records) == 8
    assert [each["players"] for each in found["partners"]] == [["certain"], ["certain", "random"], ["random"]]
    [(_, table)] = tables_of(found)
    assert list(table.columns[0].cells) == ["certain alone", "certain with random", "random alone"]
    page = write_tournament_page(tmp_path / "hanabi").read_text("utf8")
    assert "certain with random" in page and "have no ratings" in page
    with pytest.raises(ConfigError, match="sides must be together"):
        replace(plan, sides="apart").settled()


def test_the_win_matrix_counts_both_directions() -> None:
    games = [game("ab", "vw", won, block) for block, won in enumerate("vvw")] + [game("ab", "vw", "", 3)]
    cells = {(c["player"], c["side"], c["opponent"]): c for c in win_matrix([x for g in games for x in comparisons(g)])}
    mine, theirs = cells["a", "v", "b"], cells["b", "w", "a"]
    assert (
        (mine["wins"], mine["draws"], mine["losses"])
        == (2, 1, 1)
        == (theirs["losses"], theirs["draws"], theirs["wins"])
    )
    assert mine["points"]["value"] == 2.5 / 4 == 1 - theirs["points"]["value"]
    assert mine["points"]["n_games"] == 4 == mine["points"]["n_blocks"] and len(cells) == 2
    assert mine["points"]["method"] == "cluster bootstrap"


def test_plain_wins_have_wilsons_interval_and_shared_blocks_a_wider_one() -> None:
    values = [1.0] * 15 + [0.0] * 35
    alone = share(values, range(50))
    assert (alone.low, alone.high) == pytest.approx(wilson(15, 50)) and alone.method == "Wilson"
    assert alone.stderr == pytest.approx(math.sqrt(0.3 * 0.7 / 50))
    shared = share(values, [i // 5 for i in range(50)])
    assert shared.method == "cluster bootstrap" and shared.high - shared.low > 1.5 * (alone.high - alone.low)
    sure = share([1.0] * 50, [i // 5 for i in range(50)])
    assert sure.low == pytest.approx(wilson(10, 10)[0]), "ten blocks, not fifty"
    assert sure.high == sure.value == 1.0
    assert share([0.0] * 4, range(4)).low == 0.0


def test_numbers_of_a_player_are_parted_by_side_and_role_and_leave_out_games_with_itself() -> None:
    games = [
        game("aab", "vvw", "v", 0, metrics={"m": 1.0, "n": None}),
        game("bba", "vvw", "v", 0, metrics={"m": 3.0, "n": None}),
        game("aba", "vvw", "w", 1, metrics={"m": 5.0, "n": 7.0}),
        game("aaa", "vvw", "w", 1, metrics={"m": 100.0}),
    ]
    found = player_numbers("a", games, is_alike=False)
    assert found["all"]["win"]["value"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert found["all"]["win"]["n_games"] == 3 and found["all"]["win"]["n_blocks"] == 2
    assert found["all"]["m"]["value"] == 3 and found["by_role"]["V"]["return"]["value"] == -1
    assert found["all"]["n"]["value"] == 7 and found["all"]["n"]["n_games"] == 1, "the others have none"
    assert found["by_side"]["v"]["win"]["value"] == 0.5 == found["by_side"]["w"]["win"]["value"]
    assert found["by_side"]["v"]["m"]["value"] == 3 and found["by_role"].keys() == {"V", "W"}
    assert found["all"]["length"]["higher_is_better"] is False
    assert found["usage"]["calls"] == 5 and found["usage"]["latency_per_call"] == 0.5
    assert player_numbers("a", games, is_alike=True)["by_side"] == {}
    assert player_numbers("z", games, is_alike=False)["all"] == {}


def test_a_draw_is_a_game_that_no_side_or_every_side_won() -> None:
    games = [game("ab", "vw", won, block) for block, won in enumerate(["", "vw", "v", "v", "w"])]
    found = player_numbers("a", games, is_alike=False)
    assert found["all"]["draw"]["value"] == found["by_side"]["v"]["draw"]["value"] == 2 / 5
    assert found["all"]["win"]["value"] == 3 / 5, "both sides reached their goal in one of the draws"
    assert "draw" not in player_numbers("a", games, is_alike=False, is_shared=True)["all"]


@pytest.mark.parametrize(("teams", "is_averaged"), [("vw", False), ("01", True)])
def test_scores_of_sides_with_names_are_not_averaged(teams: str, is_averaged: bool) -> None:
    found = results({**PLAN, "players": {"a": "a", "b": "b"}}, [game("ab", teams, teams[0])])
    (_, table), (_, by_side), *_ = tables_of(found)
    heads = [str(column.header) for column in table.columns]
    assert ("score" in heads) == is_averaged == ("score" in found["players"]["a"]["all"])
    assert "draw %" in heads and "return" in found["players"]["a"]["by_side"][teams[0]]
    assert [str(column.header) for column in by_side.columns][-2:] == ["draw %", "score"]


def test_rates_are_shares_of_calls() -> None:
    seats = {"player_0": _usage(3, forfeits=1, parse_failures=2, tokens_out=30), "player_1": _usage(1)}
    found = player_numbers("a", [game("ab", "vw", "v", seats=seats)] * 2, is_alike=False)["usage"]
    assert found["forfeits_per_call"] == pytest.approx(1 / 3) and found["parse_failures_per_call"] == pytest.approx(
        2 / 3
    )
    assert found["tokens_out_per_call"] == 10 and (found["forfeits"], found["calls"]) == (2, 6)


def test_differences_are_paired_by_block() -> None:
    games = []
    for block in range(40):  # the luck of a block hits both alike, and a is a little better
        won = "vw" if block % 2 else ("v" if block % 20 == 0 else "")
        games += [game("ab", "vw", won, block), game("ba", "wv", won, block)]
    [found] = differences(["a", "b"], games)
    assert (found["first"], found["second"]) == ("a", "b")
    assert found["win"]["value"] == pytest.approx(2 / 40) and found["win"]["n_blocks"] == 40
    assert found["win"]["ci_high"] - found["win"]["ci_low"] < 0.2
    assert differences(["a", "z"], games) == []


def test_everything_can_be_computed_again_from_the_stored_records() -> None:
    plan = TournamentPlan("turngym/KuhnPoker-v0", {"random": "random", "first_legal": "first_legal"}, 10)
    found, records = play_tournament(plan)
    content = plan.settled().content()
    assert results(content, records, anchor="random") == found
    assert results(content, records[::-1], anchor="random")["ratings"] == found["ratings"]
    moved = results(content, records, anchor="first_legal", anchor_elo=1000)["ratings"]["players"]
    gap = found["ratings"]["players"]["first_legal"]["elo"]["value"]
    assert moved["first_legal"]["elo"]["value"] == 1000
    assert moved["random"]["elo"]["value"] == pytest.approx(1000 - gap)
