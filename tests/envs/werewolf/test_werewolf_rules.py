"""The pure rules of Werewolf, its options, its roles, and who may speak."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from werewolf_games import A_ACTIONS, A_ROLES, B_ROLES, D, S, V, W, log_of, play, rules, started, texts

from turngym.envs.multiagent.registration import GAMES, make_game
from turngym.envs.multiagent.table import Table
from turngym.envs.werewolf.game import Werewolf
from turngym.envs.werewolf.rewards import SCALES, pay_result
from turngym.envs.werewolf.roles import usual_roles
from turngym.envs.werewolf.rules import ABSTAIN, leaders, mentioned, next_speaker, tally, winner
from turngym.errors import ConfigError


def test_the_winner_agrees_with_counting_heads() -> None:
    roles = [W, W, S, D, V, V]
    for size in range(1, 7):
        for living in itertools.combinations(range(6), size):
            wolves = len({0, 1} & set(living))
            others = len(living) - wolves
            by_hand = "village" if wolves == 0 else "werewolves" if wolves >= others else ""
            assert winner(roles, living) == by_hand


def test_the_tally_agrees_with_counting_ballots() -> None:
    draw = random.Random(0)
    for _ in range(500):
        ballots = {seat: draw.randrange(-1, 5) for seat in range(draw.randrange(1, 8))}
        by_hand = Counter(target for target in ballots.values() if target != ABSTAIN)
        counts = tally(ballots)
        assert counts == by_hand and list(counts) == sorted(counts)
        most = max(by_hand.values(), default=0)
        assert leaders(counts) == tuple(seat for seat in range(5) if most and by_hand[seat] == most)


@pytest.mark.parametrize("num_seats", range(5, 16))
def test_every_size_has_its_roles_and_a_game_to_play(num_seats: int) -> None:
    roles = usual_roles(num_seats)
    assert len(roles) == num_seats
    assert winner(roles, range(num_seats)) == ""
    table = Table(Werewolf(num_seats))
    table.reset(np.random.default_rng(num_seats))
    assert sorted(rules(table).roles) == sorted(roles)


def test_reference_sizes_have_the_reference_roles() -> None:
    counted = {n: [usual_roles(n).count(role) for role in (W, S, D, V)] for n in (5, 6, 7, 8, 9)}
    assert counted == {5: [1, 1, 1, 2], 6: [2, 1, 1, 2], 7: [2, 1, 1, 3], 8: [2, 1, 1, 4], 9: [3, 1, 1, 4]}


OPTIONS_OUT_OF_RANGE_ARE_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"num_seats": 4}, "werewolf needs 5 to 15 seats, got 4."),
    ({"num_seats": 16}, "werewolf needs 5 to 15 seats, got 16."),
    ({"num_seats": 7.0}, "num_seats of werewolf must be a whole number or None, got 7.0."),
    ({"roles": [W, S, D, V]}, "werewolf needs 5 to 15 seats, got 4."),
    ({"num_seats": 6, "roles": [W, S, D, V, V]}, "werewolf with 6 seats needs a list of 6 roles, got"),
    ({"roles": [W, S, D, V, "witch"]}, "werewolf has no role 'witch'. Known: doctor, seer, villager, werewolf."),
    ({"roles": [W, S, D, V, "vilager"]}, "Did you mean 'villager'?"),
    ({"roles": [W, S, S, V, V]}, "werewolf has at most one seer, got 2"),
    ({"roles": [V, S, D, V, V]}, "werewolf needs at least one werewolf and more others than werewolves"),
    ({"roles": [W, W, W, S, D, V]}, "werewolf needs at least one werewolf and more others than werewolves"),
    ({"tie": "lot"}, "tie of werewolf must be one of 'none', 'random', 'runoff', got 'lot'."),
    ({"talk_protocol": "seat_ordr"}, "Did you mean 'seat_order'?"),
    ({"talk_rounds": -1}, "talk_rounds of werewolf must be a whole number of at least 0, got -1."),
    ({"max_days": 0}, "max_days of werewolf must be a whole number of at least 1, got 0."),
    ({"bid_turns": True}, "bid_turns of werewolf must be a whole number of at least 0, got True."),
    ({"doctor_self": 1}, "doctor_self of werewolf must be True or False, got 1."),
    ({"exile": "majority", "tie": "random"}, "tie of werewolf must be 'none' with exile='majority'"),
    ({"seats": 7}, "werewolf has no option 'seats'."),
]


def test_options_out_of_range_are_refused() -> None:
    for options, message in OPTIONS_OUT_OF_RANGE_ARE_REFUSED:
        with pytest.raises(ConfigError) as refused:
            Werewolf(**options)
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roles": [W, S, D, V]}, "the roles must be"),
        ({"roles": [W, W, S, D, V]}, "the roles must be"),
        ({"role": B_ROLES}, "a game of werewolf has no option 'role'. Did you mean 'roles'?"),
    ],
)
def test_roles_that_are_not_the_tables_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        Table(Werewolf(5)).reset(np.random.default_rng(0), options)


def test_given_roles_change_no_other_chance() -> None:
    drawn = Table(Werewolf(7, talk_protocol="random"))
    drawn.reset(np.random.default_rng(3))
    given = Table(Werewolf(7, talk_protocol="random"))
    given.reset(np.random.default_rng(3), {"roles": rules(drawn).roles})
    for table in (drawn, given):
        while table.game.phase() == "night":
            table.expire(table.pending[0])
    assert drawn.pending == given.pending
    assert log_of(drawn) == log_of(given)


def test_roles_without_powers_play_too() -> None:
    table = started([V, W, V, V, V])
    assert table.pending == (1,)
    play(table, [(1, "kill player_0")])
    assert table.log[-1].text == "Day 1. player_0 was killed in the night."


def test_every_listed_game_begins_and_tells_its_rules() -> None:
    for game_id in [name for name in GAMES if "Werewolf" in name]:
        game = make_game(game_id)
        table = Table(game)
        table.reset(np.random.default_rng(0))
        texts_of_roles = {game.role(seat): game.instructions(seat) for seat in game.everyone}
        assert len(set(texts_of_roles.values())) == 4
        for seat in game.everyone:
            assert texts_of_roles[game.role(seat)] == game.instructions(seat), "equal for one role"


@pytest.mark.parametrize("options", [{}, {"reveal": "team", "talk_rounds": 0}])
def test_before_the_roles_are_dealt_the_rules_name_none(options: dict[str, Any]) -> None:
    game = Werewolf(7, **options)
    before = game.instructions(0)
    assert "Your role" not in before and "The werewolves win" in before and "the village when" in before
    assert game.instructions(6) == before
    game.begin(np.random.default_rng(0), {})
    shared = before.splitlines()
    for seat in game.everyone:
        own = game.instructions(seat).splitlines()
        assert own[1:-1] == shared[1:] and own[-1] == f"Your role: {game.role(seat)}."


@pytest.mark.parametrize("roles", [[W, S, D, V, V], [V, V, D, S, W]])
def test_the_rules_that_players_read_do_not_depend_on_who_sits_where(roles: list[str]) -> None:
    table = Table(Werewolf(5, roles))
    table.reset(np.random.default_rng(0), {"roles": roles})
    plain = Table(Werewolf(5))
    plain.reset(np.random.default_rng(0), {"roles": roles})
    assert [table.game.instructions(s) for s in range(5)] == [plain.game.instructions(s) for s in range(5)]


# Talk.


def night_over(**options: Any) -> Table:
    """Return the first morning of game A, on which everybody lives."""
    return play(started(A_ROLES, **options), A_ACTIONS[:4])


def test_talk_rounds_go_round() -> None:
    table = night_over(talk_rounds=2)
    spoke = []
    while table.game.phase() == "talk":
        spoke.append(table.pending[0])
        table.answer(table.pending[0], "say")
    assert spoke == [*range(7), *range(7)]


def test_without_talk_the_vote_comes_at_once() -> None:
    for protocol in ("seat_order", "random", "parallel"):
        assert night_over(talk_rounds=0, talk_protocol=protocol).game.phase() == "vote"
    assert night_over(bid_turns=0, talk_protocol="bidding").game.phase() == "vote"


def test_random_order_lets_everybody_speak_once_a_round_and_differs() -> None:
    orders = set()
    for seed in range(20):
        table = play(started(A_ROLES, seed, talk_protocol="random"), A_ACTIONS[:4])
        spoke = []
        while table.game.phase() == "talk":
            spoke.append(table.pending[0])
            table.answer(table.pending[0], "say")
        assert sorted(spoke) == list(range(7))
        orders.add(tuple(spoke))
    assert len(orders) > 15


def test_parallel_talk_is_heard_when_all_have_spoken() -> None:
    table = night_over(talk_protocol="parallel")
    assert table.pending == tuple(range(7))
    for seat in reversed(range(1, 7)):
        table.answer(seat, f"say I am number {seat}.")
    assert not texts(table, "[Day 1]")
    table.answer(0, "say")
    assert texts(table, "[Day 1]") == [
        "[Day 1] player_0 says nothing.",
        *[f"[Day 1] player_{seat}: I am number {seat}." for seat in range(1, 7)],
    ]


def bid(table: Table, bids: str) -> None:
    """Bid for all seats, one digit each."""
    for seat, amount in enumerate(bids):
        table.answer(seat, f"bid {amount}")


def test_the_highest_bid_speaks_and_bids_stay_secret() -> None:
    table = night_over(talk_protocol="bidding")
    bid(table, "0120043")
    assert table.pending == (5,)
    assert table.views[5].lines[-1] == "[bid] You bid 4."
    for seat in (0, 1, 2, 3, 4, 6):
        assert not any("bid 4" in line for line in table.views[seat].lines)


def test_equal_bids_go_to_whom_was_named_then_to_whom_spoke_least() -> None:
    table = night_over(talk_protocol="bidding", bid_turns=5)
    bid(table, "0000040")
    table.answer(5, "say What do you think, Player 2 and player_5?")
    bid(table, "1000033")
    assert table.pending == (5,), "player_6 bids as much, but was not named"
    table.answer(5, "say Nothing.")
    bid(table, "2000020")
    assert table.pending == (0,), "nobody was named, and player_5 has spoken twice"


def test_bidding_ends_when_all_bid_0_or_the_turns_are_used_up() -> None:
    table = night_over(talk_protocol="bidding", bid_turns=2)
    bid(table, "0000000")
    assert table.game.phase() == "vote"
    table = night_over(talk_protocol="bidding", bid_turns=2)
    for _ in range(2):
        bid(table, "1000000")
        table.answer(0, "say Hm.")
    assert table.game.phase() == "vote"


def test_a_draw_among_equal_bids_is_even() -> None:
    generator = np.random.default_rng(0)
    speakers = Counter(next_speaker({0: 1, 3: 2, 4: 2, 6: 2}, "", {3: 1, 4: 1, 6: 1}, generator) for _ in range(3000))
    assert set(speakers) == {3, 4, 6}
    assert min(speakers.values()) > 900


def test_names_in_speech_are_found_whole() -> None:
    assert mentioned("player_1, Player 12 and PLAYER3; not player_123 or multiplayer.") == {1, 12, 3}


# Rewards.


@pytest.mark.parametrize("variant", SCALES)
def test_a_draw_pays_no_result(variant: str) -> None:
    due = [0.0] * 5
    pay_result(due, SCALES[variant], B_ROLES, "")
    assert due == [0.0] * 5


def test_the_shared_variant_is_zero_sum() -> None:
    for side in ("village", "werewolves"):
        for num_seats in range(5, 16):
            due = [0.0] * num_seats
            pay_result(due, SCALES["zero_sum"], usual_roles(num_seats), side)
            assert sum(due) == pytest.approx(0, abs=1e-12)
            assert sum(abs(share) for share in due) == pytest.approx(2)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, ["7 players: 2 werewolf, 1 seer, 1 doctor, 3 villager", "in a tie nobody goes", "After day 10"]),
        ({"doctor_self": False, "doctor_repeat": False}, ["not itself and not the same player in two nights running"]),
        ({"talk_protocol": "bidding"}, ["By day up to 8 times the living bid"]),
        ({"talk_rounds": 0}, ["Then the living vote at once"]),
        ({"vote_protocol": "sequential"}, ["one after another in public"]),
        ({"exile": "majority"}, ["the votes of more than half of the living"]),
        ({"reveal": "team"}, ["The team of the dead is made known."]),
    ],
)
def test_the_instructions_tell_the_options(options: dict[str, Any], parts: list[str]) -> None:
    text = started(A_ROLES, **options).game.instructions(2)
    for part in parts:
        assert part in text
    assert text.endswith("Your role: villager.")
