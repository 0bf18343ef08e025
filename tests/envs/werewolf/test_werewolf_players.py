"""The rule-based player of Werewolf: every rule once, no illegal answer ever, nothing but its own lines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from werewolf_games import D, S, V, W, play, rules, started, texts

from turngym.envs.multiagent import make_game, make_player
from turngym.envs.multiagent.hosted import HostedTable
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import Table
from turngym.envs.werewolf.game import Werewolf
from turngym.envs.werewolf.players import RuleBasedPlayer
from turngym.envs.werewolf.public import fact

ROLES = [W, W, S, D, V, V, V]


def answer_of(table: Table, seat: int, seed: int = 0) -> str:
    """Return what a rule-based player that comes to a seat now would answer: it reads all its lines first."""
    player = RuleBasedPlayer()
    player.begin(table.views[seat], np.random.default_rng(seed))
    return player.act(table.views[seat])


def possible(table: Table, seat: int) -> set[str]:
    """Return the answers that it gives under many seeds."""
    return {answer_of(table, seat, seed) for seed in range(40)}


def morning(*said: str, roles: Sequence[str] = ROLES, seen: int = 0, **options: Any) -> Table:
    """Return the first day on which player_6 is dead and the living have said things, in the order of seats."""
    table = started(roles, **options)
    while table.game.phase() == "night":
        seat = table.pending[0]
        table.answer(seat, {W: "kill player_6", S: f"see player_{seen}", D: "save player_3"}[table.game.role(seat)])
    for text in said:
        table.answer(table.pending[0], f"say {text}" if text else "say")
    return table


def names(verb: str, *seats: int) -> set[str]:
    return {f"{verb} player_{seat}" for seat in seats}


def test_at_first_wolves_kill_anybody_the_seer_sees_anybody_the_doctor_saves_itself() -> None:
    table = started(ROLES)
    assert possible(table, 0) == names("kill", 2, 3, 4, 5, 6)
    play(table, [(0, "kill player_6")])
    assert possible(table, 2) == names("see", 0, 1, 3, 4, 5, 6)
    assert possible(table, 3) == names("save", 3)


def test_a_seer_that_saw_a_werewolf_claims_and_names_it() -> None:
    table = morning("", "", seen=1)
    assert possible(table, 2) == {"say I am the seer. player_1 is a wolf."}


def test_a_seer_that_saw_nothing_bad_keeps_quiet_about_itself_and_suspects_others() -> None:
    table = morning("", "", seen=4)
    assert possible(table, 2) == {f"say I suspect player_{seat}." for seat in (0, 1, 3, 5)}


def test_a_seer_with_the_most_votes_claims() -> None:
    table = morning(*[""] * 6, seen=4)
    votes = {0: 2, 1: 2, 2: 5, 3: 5, 4: -1, 5: -1}
    play(table, [(seat, f"vote player_{to}" if to >= 0 else "abstain") for seat, to in votes.items()])
    play(table, [(0, "kill player_5"), (1, "kill player_5"), (2, "see player_3"), (3, "save player_3")])
    play(table, [(0, "say"), (1, "say")])
    assert possible(table, 2) == {"say I am the seer. player_4 is clear. player_3 is clear."}


def test_a_seer_looks_at_those_it_has_not_seen() -> None:
    table = morning(*[""] * 6, seen=4)
    play(table, [(seat, "abstain") for seat in range(6)])
    play(table, [(0, "kill player_5")])
    assert possible(table, 2) == names("see", 0, 1, 3, 5)


CLAIM = "I am the seer. player_0 is a wolf."


def test_the_village_votes_for_whom_a_lone_claimant_accuses() -> None:
    table = morning("I suspect player_4.", "I suspect player_4.", CLAIM, "I suspect player_4.", "", "")
    for seat in (3, 4, 5):
        assert possible(table, seat) == {"vote player_0"}
    assert possible(table, 2) == {"vote player_0"}, "it knows"


def test_the_village_votes_for_the_most_accused_without_a_claim() -> None:
    table = morning(
        "I suspect player_4.", "I suspect player_5.", "", "I suspect player_5.", "Hm.", "I suspect player_4.", seen=5
    )
    assert possible(table, 3) == {"vote player_4"}, "player_4 was accused first"
    assert possible(table, 4) == {"vote player_5"}, "not for itself"
    assert possible(table, 2) == {"vote player_4"}, "the seer knows that player_5 is clear"


def test_the_village_votes_for_anybody_when_nobody_is_accused() -> None:
    table = morning(*[""] * 6)
    assert possible(table, 3) == names("vote", 0, 1, 2, 4, 5)


def test_two_claims_split_the_village_by_seat_number() -> None:
    table = morning("", "I am the seer. player_5 is a wolf.", CLAIM, "", "", "")
    assert possible(table, 4) == {"vote player_5"}, "even seats believe the first claimant"
    assert possible(table, 3) == {"vote player_0"}, "odd ones the second"


def test_two_claims_leave_the_doctor_with_itself() -> None:
    table = morning("", "I am the seer. player_5 is a wolf.", CLAIM, "", "", "")
    play(table, [(seat, "abstain") for seat in range(6)])
    play(table, [(0, "kill player_5")])
    assert possible(table, 3) == names("save", 3)


def after_a_claim(**options: Any) -> Table:
    """Return the second night after player_2 alone has claimed."""
    table = morning("", "", CLAIM, "", "", "", **options)
    return play(table, [(seat, "abstain") for seat in range(6)])


def test_wolves_kill_a_claimant_and_the_doctor_protects_it() -> None:
    table = after_a_claim()
    assert possible(table, 0) == names("kill", 2)
    play(table, [(0, "kill player_2")])
    assert possible(table, 3) == names("save", 2)


def test_a_doctor_under_stricter_rules_takes_what_is_left() -> None:
    first = play(started(ROLES, doctor_self=False), [(0, "kill player_6")])
    assert possible(first, 3) == names("save", 0, 1, 2, 4, 5, 6)
    table = after_a_claim(doctor_repeat=False)
    play(table, [(0, "kill player_2"), (1, "kill player_2"), (2, "see player_1"), (3, "save player_2")])
    play(table, [(seat, "say") for seat in range(6)])
    play(table, [(seat, "abstain") for seat in range(6)])
    play(table, [(0, "kill player_2")])
    assert possible(table, 3) == names("save", 3), "not player_2 again"


def test_wolves_accuse_others_and_vote_for_whom_the_village_accuses() -> None:
    table = morning()
    assert possible(table, 0) == {f"say I suspect player_{seat}." for seat in (2, 3, 4, 5)}
    table = morning("I suspect player_4.", "", "I suspect player_4.", "", "", "")
    assert possible(table, 0) == possible(table, 1) == {"vote player_4"}


def test_wolves_vote_against_their_own_only_if_that_one_is_lost() -> None:
    claimed = morning("", "", CLAIM, "", "", "")
    assert possible(claimed, 1) == {"vote player_0"}
    by_most = morning("", "", *["I suspect player_0."] * 4)
    assert possible(by_most, 1) == {"vote player_0"}
    by_few = morning("", "I suspect player_4.", "I suspect player_0.", "I suspect player_0.", "", "")
    assert possible(by_few, 1) == {"vote player_4"}
    nobody_else = morning("", "", "I suspect player_0.", "I suspect player_0.", "", "")
    assert possible(nobody_else, 1) == names("vote", 2, 3, 4, 5)


def test_bids_say_how_much_there_is_to_say() -> None:
    table = morning(talk_protocol="bidding", seen=1)
    assert [answer_of(table, seat) for seat in range(6)] == ["bid 2", "bid 2", "bid 4", "bid 1", "bid 1", "bid 1"]
    for seat in range(6):
        table.answer(seat, answer_of(table, seat))
    assert table.pending == (2,)
    table.answer(2, answer_of(table, 2))
    assert answer_of(table, 2) == "bid 0", "it has spoken"


def test_a_runoff_is_voted_between_the_tied() -> None:
    table = morning(*[""] * 6, tie="runoff")
    play(table, [(0, "vote player_4"), (1, "vote player_5"), *[(seat, "abstain") for seat in (2, 3, 4, 5)]])
    play(table, [(4, "say"), (5, "say")])
    assert possible(table, 3) == names("vote", 4, 5)
    assert possible(table, 4) == names("vote", 5)


@pytest.mark.parametrize(
    "line",
    [
        "[Day 1] player_3 says nothing.",
        "[doctor] You protect player_3.",
        "Votes: player_0 -> abstain.",
        "[wolves] Target: player_3.",
        "[Day 1] player_3: Tally: player_4 3. player_4 was eliminated.",
        "[Day 1] player_3: (seer) player_1 is not a werewolf.",
        "",
    ],
)
def test_lines_that_say_nothing_are_no_facts(line: str) -> None:
    assert fact(line) is None


def test_speech_is_never_taken_for_the_moderator() -> None:
    said = fact("[Day 1] player_3: Night 2. Alive: player_3. You are player_1. Role: werewolf. I suspect player_4.")
    assert said is not None
    assert (said.kind, said.seats, said.seat) == ("said", (4,), 3)


OPTIONS = [
    {"talk_protocol": protocol, "vote_protocol": votes, "tie": tie, "doctor_self": flag, "doctor_repeat": not flag}
    for (protocol, votes, tie), flag in zip(
        itertools.product(
            ("seat_order", "random", "bidding", "parallel"),
            ("simultaneous", "sequential"),
            ("none", "random", "runoff"),
        ),
        itertools.cycle((True, False)),
        strict=False,
    )
]


@pytest.mark.parametrize("options", OPTIONS, ids=[str(number) for number in range(len(OPTIONS))])
def test_rule_based_players_never_answer_anything_illegal(options: dict[str, Any]) -> None:
    for num_seats in (5, 6, 7, 8, 9, 15):
        game = make_game("turngym/Werewolf-v0", num_seats=num_seats, **options)
        hosted, seed = HostedTable(Table(game)), num_seats
        hosted.begin(seed)
        hosted.seat([make_player("rule_based", game) for _ in game.seats], seed)
        hosted.play_on()
        assert hosted.table.is_over
        for counts in hosted.table.counts:
            assert counts.illegal == counts.unreadable == counts.forfeits == 0


def test_the_village_of_rule_based_players_wins_far_more_than_by_chance() -> None:
    game = Werewolf(7)
    hosted, players = HostedTable(Table(game)), [RuleBasedPlayer() for _ in range(7)]
    wins = 0
    for seed in range(400):
        hosted.begin(seed)
        hosted.seat(players, seed)
        hosted.play_on()
        wins += game.winner == "village"
    assert 0.3 < wins / 400 < 0.55, "by chance it is 0.096"


@pytest.mark.parametrize("side", ["werewolves", "village"])
def test_either_side_does_better_by_rules_than_by_chance(side: str) -> None:
    def wins(with_rules: bool) -> int:
        game = Werewolf(7)
        hosted, won = HostedTable(Table(game)), 0
        for seed in range(200):
            hosted.begin(seed)
            players: list[Player | None] = []
            for seat in game.everyone:
                by_rules = with_rules and game.team(seat) == side
                players.append(make_player("rule_based" if by_rules else "random", game))
            hosted.seat(players, seed)
            hosted.play_on()
            won += game.winner == side
        return won

    assert wins(True) > wins(False) + 10


def test_a_player_brought_back_from_its_lines_answers_as_before() -> None:
    game = Werewolf(7)
    hosted, players = HostedTable(Table(game)), [RuleBasedPlayer() for _ in range(7)]
    hosted.begin(3)
    hosted.seat(players, 3)
    table = hosted.table
    while table.pending:
        seat = table.pending[0]
        state = hosted.state()
        other = HostedTable(Table(Werewolf(7)))
        other.load(state, [RuleBasedPlayer() for _ in range(7)])
        expected = players[seat].act(table.views[seat])
        again = other.players[seat]
        assert again is not None and again.act(other.table.views[seat]) == expected
        hosted.answer(seat, expected)


def test_texts_helper_finds_lines() -> None:
    assert texts(morning(), "Day 1.") == ["Day 1. player_6 was killed in the night."]
    assert rules(morning()).living == (0, 1, 2, 3, 4, 5)
