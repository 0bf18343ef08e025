"""The second rule-based player of Werewolf: every rule once, legal answers only, and it beats random play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from werewolf_games import D, S, V, W, play, started

from turngym.envs.multiagent import make_game, make_player
from turngym.envs.multiagent.hosted import HostedTable
from turngym.envs.multiagent.table import Table
from turngym.envs.werewolf.ballot_reader import BallotReader
from turngym.envs.werewolf.game import Werewolf

ROLES = [V, S, W, D, V]


def possible(table: Table, seat: int) -> set[str]:
    """Return its answers under many seeds."""
    found = set()
    for seed in range(40):
        player = BallotReader()
        player.begin(table.views[seat], np.random.default_rng(seed))
        found.add(player.act(table.views[seat]))
    return found


def votes(*seats: int) -> set[str]:
    return {f"vote player_{seat}" for seat in seats}


def day(seen: int, killed: int, protocol: str = "sequential") -> Table:
    """Return the first day, on which the living vote one after another."""
    table = started(ROLES, talk_rounds=0, vote_protocol=protocol)
    nights = {W: f"kill player_{killed}", S: f"see player_{seen}", D: "save player_3"}
    return play(table, [(seat, nights[table.game.role(seat)]) for seat in table.pending])


def test_the_night() -> None:
    table = started(ROLES, talk_rounds=0)
    assert possible(table, 1) == {f"see player_{seat}" for seat in (0, 2, 3, 4)}
    assert possible(table, 2) == {f"kill player_{seat}" for seat in (0, 1, 3, 4)}
    assert possible(table, 3) == {"save player_3"}


def test_the_village_joins_the_most_ballots_but_the_seer_what_it_knows() -> None:
    table = day(seen=2, killed=3)
    assert possible(table, 0) == votes(1, 2, 3, 4), "nothing has been said yet"
    play(table, [(0, "vote player_4")])
    assert possible(table, 1) == votes(2)
    play(table, [(1, "vote player_2")])
    assert possible(table, 2) == votes(4), "a werewolf joins ballots against others"
    play(table, [(2, "vote player_4")])
    assert possible(table, 3) == votes(4)
    play(table, [(3, "vote player_4")])
    assert possible(table, 4) == votes(2), "never itself"


def test_the_village_suspects_its_accusers_and_werewolves_kill_theirs() -> None:
    table = day(seen=0, killed=3, protocol="simultaneous")
    cast = {0: 4, 1: 2, 2: 0, 3: -1, 4: -1}
    play(table, [(seat, f"vote player_{to}" if to >= 0 else "abstain") for seat, to in cast.items()])
    assert possible(table, 2) == {"kill player_1"}
    assert possible(table, 1) == {f"see player_{seat}" for seat in (2, 3, 4)}
    play(table, [(2, "kill player_3"), (1, "see player_3"), (3, "save player_3")])
    assert possible(table, 0) == votes(2) and possible(table, 4) == votes(0)
    assert possible(table, 1) == votes(2, 4), "the seer has seen two to be clear"


@pytest.mark.parametrize(
    "options",
    [
        {"num_seats": 5, "talk_rounds": 0, "vote_protocol": "sequential"},
        {"talk_protocol": "bidding", "tie": "runoff", "doctor_self": False, "doctor_repeat": False},
        {"num_seats": 9, "exile": "majority", "vote_protocol": "sequential"},
    ],
)
def test_it_never_answers_anything_illegal(options: dict[str, Any]) -> None:
    game = make_game("turngym/Werewolf-v0", **options)
    hosted = HostedTable(Table(game))
    for seed in range(6):
        hosted.begin(seed)
        hosted.seat([make_player("ballot_reader", game) for _ in game.seats], seed)
        hosted.play_on()
        assert hosted.table.is_over
        for counts in hosted.table.counts:
            assert counts.illegal == counts.unreadable == counts.forfeits == 0


@pytest.mark.parametrize("side", ["werewolves", "village"])
def test_either_side_does_better_by_it_than_by_chance(side: str) -> None:
    def wins(name: str) -> int:
        game = Werewolf(5, talk_rounds=0, vote_protocol="sequential")
        hosted, won = HostedTable(Table(game)), 0
        for seed in range(200):
            hosted.begin(seed)
            hosted.seat([make_player(name if game.team(seat) == side else "random", game) for seat in range(5)], seed)
            hosted.play_on()
            won += game.winner == side
        return won

    assert wins("ballot_reader") > wins("random") + 10
