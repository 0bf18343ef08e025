"""Simple negotiation: goods and trades against a plain ledger, reading offers, what stays private."""

import json
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from table_play import at_random, decisions, match, say, seen_by, started

from turngym.envs.multiagent.table import Table
from turngym.envs.tablegames.simple_negotiation import rules as rules
from turngym.envs.tablegames.simple_negotiation.game import SimpleNegotiation
from turngym.envs.tablegames.simple_negotiation.players import PlayerView, TraderPlayer, nearest_offer
from turngym.envs.tablegames.simple_negotiation.rules import Offer
from turngym.errors import ConfigError
from turngym.seeding import stream

TENS = {"quantities": [[10, 10], [10, 10]]}


def test_a_trade_moves_the_goods_and_the_larger_gain_wins() -> None:
    """4 wood for 3 gold: seat 0 (wood 5, gold 15) gains 45 - 20, seat 1 (wood 15, gold 5) gains 60 - 15."""
    table = started(SimpleNegotiation(turns=2), options=TENS)
    rewards = say(table, "[Offer: 4 Wood -> 3 Gold]", "[Accept]")
    assert rewards == [(0.0, 0.0), (-1.0, 1.0)]
    assert table.game.winners() == (1,)
    assert table.game.metrics() == {"gain_0": 25.0, "gain_1": 45.0, "efficiency": 70 / 200, "trades": 1.0}
    assert table.game.score(0) == 25 / 200
    assert table.views[0].lines[-1] == "Your goods gained 25 in worth: you lose."
    assert table.views[1].lines[-1] == "Your goods gained 45 in worth: you win."


def test_without_a_trade_the_game_is_a_draw() -> None:
    table = match(SimpleNegotiation(), ["trader", "refuser"], options=TENS)
    assert table.returns == [0.0, 0.0] and table.game.winners() == ()
    assert table.game.metrics()["efficiency"] == 0.0 and len(table.actions) == 10


def test_the_reward_can_be_the_relative_gain() -> None:
    table = started(SimpleNegotiation(turns=2, reward="gain"), options=TENS)
    assert say(table, "[Offer: 1 Wood -> 1 Gold]", "[Accept]")[-1] == (10 / 200, 10 / 200)


@pytest.mark.parametrize("goods", ["two", "five"])
@pytest.mark.parametrize("seed", range(6))
def test_random_games_agree_with_a_plain_ledger(goods: str, seed: int) -> None:
    game = SimpleNegotiation(goods=goods, turns=40)
    table, generator = started(game, seed), stream("ledger", seed)
    owned = [dict(zip(game.goods, row, strict=True)) for row in game.first]
    values = [dict(zip(game.goods, row, strict=True)) for row in game.values]
    offer: Offer | None = None
    trades = 0
    while table.pending:
        seat = table.pending[0]
        parts = [f"{count} {name} (worth {values[seat][name]} each)" for name, count in owned[seat].items()]
        assert game.anchor(seat).split("; ")[0] == "you have " + ", ".join(parts)
        legal = table.views[seat].legal_actions
        can = offer is not None and rules.covers(list(owned[seat].values()), offer.wants)
        assert ("accept" in legal) == can
        action = "accept" if can and generator.random() < 0.7 else legal[int(generator.integers(len(legal)))]
        if action == "accept" and offer is not None:
            trades += 1
            for name, give, want in zip(game.goods, offer.gives, offer.wants, strict=True):
                owned[seat][name] += give - want
                owned[1 - seat][name] -= give - want
        assert table.answer(seat, action).is_valid
        offer = rules.parsed_offer(action, game.goods)
    assert trades > 5 and game.metrics()["trades"] == trades
    for seat in (0, 1):
        worth = sum(count * values[seat][name] for name, count in owned[seat].items())
        assert game.metrics()[f"gain_{seat}"] == worth - rules.worth(game.first[seat], game.values[seat])
        assert min(owned[seat].values()) >= 0


def test_the_largest_joint_gain_is_that_of_every_division() -> None:
    counts, values = [(2, 3), (1, 2)], [(5, 15), (15, 5)]
    best = 0
    for first, second in product(range(4), range(6)):
        worth_0 = rules.worth((first, second), values[0]) - rules.worth(counts[0], values[0])
        worth_1 = rules.worth((3 - first, 5 - second), values[1]) - rules.worth(counts[1], values[1])
        best = max(best, worth_0 + worth_1)
    assert rules.best_joint_gain(counts, values) == best


def test_an_offer_lapses_unless_it_is_accepted_at_once() -> None:
    table = started(SimpleNegotiation(), options=TENS)
    say(table, "[Offer: 1 wood -> 1 gold]", "Let me think.")
    assert "player_1 denies the offer." in table.views[0].lines
    assert table.answer(0, "[Accept]").reason == "There is no offer to accept."
    assert table.game.anchor(0).endswith("no offer")


def test_a_counter_offer_denies_the_one_before() -> None:
    table = started(SimpleNegotiation(), options=TENS)
    say(table, "[Offer: 1 wood -> 1 gold]", "[Deny] rather [Offer: 2 gold -> 3 wood]")
    assert table.views[0].new_lines[1:] == [
        'player_1 says: "rather"',
        "player_1 denies the offer.",
        "player_1 offers 2 gold for 3 wood.",
    ]
    assert table.views[0].anchor.endswith("offered to you: 2 gold -> 3 wood")
    assert table.views[1].anchor.endswith("offered by you: 2 gold -> 3 wood")


def test_nobody_gives_what_it_does_not_have() -> None:
    table = started(SimpleNegotiation(), options={"quantities": [[5, 5], [6, 6]]})
    assert table.answer(0, "[Offer: 6 wood -> 1 gold]").reason == "You do not have 6 wood."
    say(table, "[Offer: 5 wood -> 7 gold]")
    assert {"deny", "offer 1 wood -> 1 gold"} <= set(table.views[1].legal_actions) - {"accept"}
    assert "accept" not in table.views[1].legal_actions
    assert table.answer(1, "accept").reason == "You do not have 7 gold: you cannot accept."
    assert table.counts[1].illegal == 1


MANY_WAYS_TO_TAKE_A_TURN: list[tuple[str, str]] = [
    ("[Offer: 2 Wood -> 1 Gold]", "offer 2 wood -> 1 gold"),
    ("[offer: 1 wood, 1 woods -> 1 GOLD]", "offer 2 wood -> 1 gold"),
    ("offer 2 wood -> 1 gold", "offer 2 wood -> 1 gold"),
    ("I offer 2 wood for 1 gold.", "offer 2 wood -> 1 gold"),
    ('{"action": "[Offer: 2 Wood -> 1 Gold]"}', "offer 2 wood -> 1 gold"),
    ("[Offer: 1 gold and 2 wood => 1 gold]", "offer 2 wood, 1 gold -> 1 gold"),
    ("[Pass]", "pass"),
    ("pass", "pass"),
    ("Hello there", "pass | Hello there"),
    ("Hi! [Offer: 2 wood -> 1 gold] Ok?", "offer 2 wood -> 1 gold | Hi! Ok?"),
    ('{"action": "pass", "message": "hm"}', "pass | hm"),
]


def test_many_ways_to_take_a_turn() -> None:
    for text, action in MANY_WAYS_TO_TAKE_A_TURN:
        assert started(SimpleNegotiation(), options=TENS).answer(0, text).action == action


WHAT_IS_NO_SINGLE_ACTION_IS_UNREADABLE: list[str] = [
    "",
    " \n",
    "[Offer: wood]",
    "[Offer: 0 wood -> 1 gold]",
    "[Offer: 1 wheat -> 1 gold]",
    "[Offer: 1 wood -> 1 gold] [Pass]",
    "[Offer: 1 wood -> 1 gold] [Offer: 2 wood -> 1 gold]",
    '{"message": "hello"}',
    "[Accept] [Offer: 1 wood -> 1 gold]",
]


def test_what_is_no_single_action_is_unreadable() -> None:
    for text in WHAT_IS_NO_SINGLE_ACTION_IS_UNREADABLE:
        table = started(SimpleNegotiation(), options=TENS)
        assert table.answer(0, text).action is None and table.counts[0].unreadable == 1


def test_speech_is_never_read_for_actions() -> None:
    table = started(SimpleNegotiation(), options=TENS)
    say(table, "[Offer: 1 wood -> 1 gold] and I say that you [Accepted] it:\nplayer_1 accepts the offer.")
    assert (
        table.actions == [(0, "offer 1 wood -> 1 gold | and I say that you (Accepted) it: player_1 accepts the offer.")]
        or table.counts[0].unreadable
    )
    assert table.game.metrics()["trades"] == 0.0


def test_without_talk_only_the_action_counts() -> None:
    table = started(SimpleNegotiation(talk=False), options=TENS)
    assert table.answer(0, "Hello there").action is None
    assert table.answer(0, "Please! [Offer: 1 wood -> 1 gold]").action == "offer 1 wood -> 1 gold"
    assert not any("Please" in line.text for line in table.log)


def test_values_of_the_five_goods_stay_within_a_fifth() -> None:
    found = [rules.drawn_values(stream("values", seed)) for seed in range(300)]
    for good, base in enumerate(rules.BASE_VALUES.values()):
        column = {values[good] for values in found}
        low, high = max(5, base - base // 5), min(40, base + base // 5)
        assert column == set(range(low, high + 1))


def test_the_other_seats_goods_and_values_are_nowhere_in_a_view() -> None:
    """Two games that differ only in what seat 1 has and values look the same to seat 0."""
    one = {"quantities": [[5, 5, 5, 5, 5]] * 2, "values": [[5, 10, 15, 25, 40]] * 2}
    two = {"quantities": [[5, 5, 5, 5, 5], [9, 8, 7, 25, 6]], "values": [[5, 10, 15, 25, 40], [6, 12, 18, 20, 33]]}
    tables = [started(SimpleNegotiation(goods="five"), options=options) for options in (one, two)]
    for text in ("[Offer: 2 wheat -> 1 ore]", "No. [Offer: 1 ore -> 3 sheep]", "[Accept] Good.", "[Pass]"):
        assert seen_by(tables[0], 0) == seen_by(tables[1], 0)
        for table in tables:
            assert table.answer(table.pending[0], text).is_valid
    assert seen_by(tables[0], 0) == seen_by(tables[1], 0)
    assert seen_by(tables[0], 1) != seen_by(tables[1], 1)


def test_other_hidden_goods_fit_what_the_seat_has_shown() -> None:
    """After swap_hidden every offer that was made could have been made, and every trade be done."""
    for seed in range(40):
        game = SimpleNegotiation(goods="five", turns=12)
        table, generator = started(game, seed), stream("swap", seed)
        for seat in decisions(table, at_random(generator)):
            state = game.state()
            game.swap_hidden(seat, generator)
            counts = list(game.first[1 - seat])
            pending: Offer | None = None
            for actor, action in table.actions:
                is_other = actor != seat
                if action == "accept" and pending is not None:
                    if is_other:
                        assert rules.covers(counts, pending.wants)
                    sign = 1 if is_other else -1
                    counts = [c + sign * (g - w) for c, g, w in zip(counts, pending.gives, pending.wants, strict=True)]
                pending = rules.parsed_offer(action or "", game.goods)
                if is_other and pending is not None:
                    assert rules.covers(counts, pending.gives)
            assert min(counts) >= 0
            game.load(state)


@pytest.mark.parametrize(
    "damage",
    [
        {"turn": 11},
        {"turn": 2.0},
        {"trades": 2},
        {"trades": 0},
        {"traded": [11, 0]},
        {"traded": [1]},
        {"shown": [[5, 26], [5, 5]]},
        {"shown": [[11, 5], [5, 5]]},
        {"first": [[4, 10], [10, 10]]},
        {"values": [[0, 15], [15, 5]]},
        {"offer": [[11, 0], [0, 1]]},
        {"offer": [[-1, 0], [0, 1]]},
        {"offer": [[1, 0]]},
        {"offer": [[1, 0], [0, 10**400]]},
        {"is_over": True},
        {"is_over": 0},
        {"earned": [1.0, -1.0]},
    ],
)
def test_a_damaged_state_is_refused(damage: dict[str, Any]) -> None:
    table = started(SimpleNegotiation(), options=TENS)
    say(table, "offer 2 wood -> 1 gold", "accept", "offer 1 wood -> 1 gold")
    content = json.loads(table.snapshot())
    other = Table(SimpleNegotiation())
    other.restore(json.dumps(content).encode())
    content["state"].update(damage)
    with pytest.raises(ConfigError, match="damaged snapshot"):
        other.restore(json.dumps(content).encode())


def test_traders_gain_both_where_values_are_opposite() -> None:
    for seed in range(10):
        table = match(SimpleNegotiation(reward="gain"), ["trader", "trader"], seed)
        assert min(table.returns) > 0
        assert table.game.metrics()["trades"] > 0


def test_a_trader_never_loses_worth() -> None:
    for seed, goods in product(range(15), ("two", "five")):
        table = match(SimpleNegotiation(goods=goods), ["trader", "random"], seed)
        assert table.game.metrics()["gain_0"] >= 0
        assert not any(counts.illegal or counts.unreadable for counts in table.counts)


def test_a_trader_goes_on_from_its_saved_memory() -> None:
    table = started(SimpleNegotiation(turns=20), options=TENS)
    trader = TraderPlayer()
    trader.begin(table.views[0], stream("trader"))
    offers = []
    for _ in range(8):
        other = TraderPlayer()
        other.begin(table.views[0], stream("other"))
        other.load(json.loads(json.dumps(trader.state())))
        offers.append(trader.act(table.views[0]))
        assert other.act(table.views[0]) == offers[-1]
        say(table, offers[-1], "deny")
    demands = []
    for text in offers:
        offer = rules.parsed_offer(text, table.game.goods)  # type: ignore[attr-defined]
        assert offer is not None
        demands.append(rules.worth(offer.wants, (5, 15)) / rules.worth(offer.gives, (5, 15)))
    assert demands == [3.0, 1.5, *demands[2:]] == sorted(demands, reverse=True)
    assert 1 < demands[-1] < 1.3


def test_the_traders_offer_is_the_nearest_of_all_small_ones() -> None:
    """By force over every offer of one good for another: the smallest ratio from the demand up."""
    generator = stream("offers")
    for _ in range(40):
        goods = tuple(rules.BASE_VALUES)
        counts, values = tuple(map(int, generator.integers(0, 9, 5))), rules.drawn_values(generator)
        demand = float(generator.choice([3.0, 1.5, 1.2, 1.05]))
        found = nearest_offer(PlayerView(goods, counts, values, None), demand)
        ratios = [
            Fraction(want * values[b], give * values[a])
            for a, b in product(range(5), repeat=2)
            for give, want in product(range(1, 6), repeat=2)
            if a != b and give <= counts[a] and want * values[b] >= demand * give * values[a]
        ]
        if found is None:
            assert not ratios
        else:
            assert Fraction(rules.worth(found.wants, values), rules.worth(found.gives, values)) == min(ratios)
            assert rules.covers(counts, found.gives)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goods": "three"}, r"goods of .* got 'three'"),
        ({"turns": 0}, "turns of simple_negotiation must be a whole number"),
        ({"talk": 1}, "must be True or False"),
        ({"reward": "gains"}, "Did you mean 'gain'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SimpleNegotiation(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantities": [[10, 10]]}, "two lists of 2 numbers"),
        ({"quantities": [[10, 10], [10, 26]]}, r"in \[5, 25\], got 26"),
        ({"values": [[1, 2], [0, 1]]}, r"in \[1, 1000\], got 0"),
        ({"values": 5}, "two lists"),
        ({"values": [5, 5]}, "two lists"),
        ({"values": ["ab", "cd"]}, "two lists"),
        ({"values": [[1, 2], [3, "4"]]}, "got '4'"),
    ],
)
def test_given_tables_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        started(SimpleNegotiation(), options=options)
