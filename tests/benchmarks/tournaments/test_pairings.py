"""Schedules: everybody meets everybody, at every seat, on the same seeds."""

from collections import Counter
from itertools import combinations, pairwise

import pytest
from tournament_games import HighDigits

from turngym.benchmarks.tournaments.pairings import PAIRINGS, Match, fitting_pairing, game_seed, schedule, teams_of
from turngym.envs.multiagent import Table, make_game
from turngym.envs.multiagent.hosted import begin_game
from turngym.errors import ConfigError, UnknownName

POOL = ["a", "b", "c"]


def matches(pairing: str, blocks: int = 4, players: list[str] = POOL, game: str = "") -> list[Match]:
    rules = make_game(game) if game else HighDigits()
    return list(schedule(rules, players, pairing, blocks, seed=7))


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_every_block_has_one_seed_of_its_own_and_every_game_a_key_of_its_own(pairing: str) -> None:
    found = matches(pairing)
    assert {(match.block, match.seed) for match in found} == {(block, game_seed(7, block)) for block in range(4)}
    assert len({match.seed for match in found}) == 4
    assert len({match.key for match in found}) == len(found)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_more_blocks_change_no_game_before(pairing: str) -> None:
    assert matches(pairing, 6)[: len(matches(pairing, 4))] == matches(pairing, 4)


def test_sides_pit_each_player_as_one_team_against_each_as_the_other() -> None:
    found = matches("sides")
    for block in range(4):
        seatings = [match.players for match in found if match.block == block]
        teams = teams_of(HighDigits(), game_seed(7, block))
        pairs = []
        for seating in seatings:
            sides = {team: {seating[s] for s in range(5) if teams[s] == team} for team in ("few", "many")}
            assert all(len(members) == 1 for members in sides.values()), "a team is one player"
            pairs.append((*sides["few"], *sides["many"]))
        assert sorted(pairs) == [(i, j) for i in POOL for j in POOL]


def test_the_teams_are_those_of_the_game_that_is_played() -> None:
    assert len({teams_of(HighDigits(), seed) for seed in range(20)}) > 3, "else this says nothing"
    for seed in range(20):
        table = Table(HighDigits())
        begin_game(table, seed)
        assert teams_of(HighDigits(), seed) == tuple(table.game.team(seat) for seat in range(5))


def test_pairs_alternate_and_come_to_every_seat_equally_often() -> None:
    found = [match for match in matches("pairs") if match.block == 0]
    for i, j in combinations(POOL, 2):
        own = [match.players for match in found if set(match.players) == {i, j}]
        for seat in range(5):
            held = Counter(seating[seat] for seating in own)
            assert held[i] == held[j] > 0
        for seating in own:
            neighbours = [a == b for a, b in pairwise((*seating, seating[0]))]
            assert sum(neighbours) == 1, "five seats cannot alternate all the way round"


def test_two_players_of_a_game_for_two_change_seats() -> None:
    found = matches("pairs", 2, ["a", "b"], "turngym/KuhnPoker-v0")
    assert [match.players for match in found] == [("a", "b"), ("b", "a")] * 2
    assert [match.players for match in matches("sides", 1, ["a", "b"], "turngym/KuhnPoker-v0")] == [
        ("a", "a"),
        ("a", "b"),
        ("b", "a"),
        ("b", "b"),
    ]


@pytest.mark.parametrize("players", [["a", "b"], POOL, [*"abcdefgh"]])
def test_mixed_tables_rotate_a_drawn_lineup_through_every_seat(players: list[str]) -> None:
    found = matches("mixed", 30, players)
    lineups = set()
    for block in range(30):
        own = [match.players for match in found if match.block == block]
        lineups.add(own[0])
        shares = Counter(own[0])
        assert max(shares.values()) - min(shares[player] for player in shares) <= 1
        assert len(shares) == min(len(players), 5)
        if len(own) == 5:
            for seat in range(5):
                assert Counter(seating[seat] for seating in own) == shares, "each as often there as in the lineup"
    assert len(lineups) > 5
    assert {player for lineup in lineups for player in lineup} == set(players)


def test_two_teams_are_paired_by_side_and_other_games_by_player() -> None:
    assert fitting_pairing(HighDigits(), are_sides_alike=False) == "sides"
    assert fitting_pairing(HighDigits(), are_sides_alike=True) == "pairs"
    assert fitting_pairing(make_game("turngym/TicTacToe-v0"), are_sides_alike=False) == "sides"


def test_wrong_schedules_are_explained() -> None:
    with pytest.raises(UnknownName, match=r"no pairing named 'side'\. Did you mean 'sides'"):
        matches("side")
    with pytest.raises(ConfigError, match="needs two players at least, got 1"):
        matches("pairs", players=["a"])

    class Alone(HighDigits):
        name = "alone"

        def team(self, seat: int) -> str:
            return str(seat)

    with pytest.raises(ConfigError, match="'sides' needs two teams, alone has 5: pass 'pairs' or 'mixed'"):
        list(schedule(Alone(), POOL, "sides", 1, 0))
