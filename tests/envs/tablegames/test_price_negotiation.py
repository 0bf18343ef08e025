"""Price negotiation: GLEE's vectors, perfect play against the whole tree, the game at a table."""

import json
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from table_play import match, say, started

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.table import Table
from turngym.envs.tablegames.price_negotiation import PriceNegotiation, rules
from turngym.errors import ConfigError

PERFECT = ["subgame_perfect", "subgame_perfect"]


@pytest.mark.parametrize(
    ("price", "gains", "fairness"), [(100, (0.2, 0.2), 1.0), (120, (0.4, 0.0), 0.84), (70, (-0.1, 0.5), 0.64)]
)
def test_the_vectors_of_glee(price: int, gains: tuple[float, float], fairness: float) -> None:
    """Values .8 and 1.2: the price 100 gains both .2 and is fair, 120 gives all to the seller."""
    table = started(PriceNegotiation(), options={"values": [80, 120]})
    rewards = say(table, f'{{"product_price": {price}, "message": "Hi"}}', '{"decision": "AcceptOffer"}')
    assert rewards[-1] == pytest.approx(gains) and table.is_over
    assert table.game.metrics() == pytest.approx(
        {
            "efficiency": 1.0,
            "fairness": fairness,
            "self_gain_0": gains[0],
            "self_gain_1": gains[1],
            "agreement": 1.0,
            "round": 1.0,
        }
    )


@pytest.mark.parametrize(("values", "efficiency"), [([80, 120], 0.0), ([100, 100], 1.0), ([120, 80], 1.0)])
@pytest.mark.parametrize("answers", [("price 90", "BuyFromJhon"), ("90", "reject", "$95", "no")])
def test_without_a_trade_nobody_gains(values: list[int], efficiency: float, answers: tuple[str, ...]) -> None:
    table = started(PriceNegotiation(max_rounds=2), options={"values": values})
    assert set(say(table, *answers)) == {(0.0, 0.0)} and table.is_over and table.game.winners() == ()
    metrics = table.game.metrics()
    assert (metrics["efficiency"], metrics["fairness"], metrics["agreement"]) == (efficiency, 1.0, 0.0)


def tree_gains(values: tuple[int, int], last: int, step: int, most: int) -> tuple[int, int]:
    """Gains from the whole tree: every price and answer; a seat that is indifferent agrees."""
    gains = (0, 0)
    for number in range(last, 0, -1):
        proposer = (number - 1) % 2
        ends = []
        for price in range(0, most + 1, step):
            agreed = price - values[0], values[1] - price
            accepted = agreed[1 - proposer] >= max(0, gains[1 - proposer])
            waiting = gains if gains[1 - proposer] >= 0 else (0, 0)
            ends.append((agreed if accepted else waiting, accepted))
        gains = max(ends, key=lambda end: (end[0][proposer], end[1]))[0]
    return gains


@pytest.mark.parametrize("last", [1, 2, 3, 10])
def test_perfect_players_gain_what_the_whole_tree_says(last: int) -> None:
    for seller, buyer in product((80, 100, 120), repeat=2):
        table = match(PriceNegotiation(max_rounds=last), PERFECT, 0, {"values": [seller, buyer]})
        expected = tree_gains((seller, buyer), last, 10, 200)
        assert table.returns == pytest.approx([each / 100 for each in expected])
        assert table.game.metrics()["efficiency"] == 1.0 and len(table.actions) == 2


def test_without_a_last_round_perfect_players_share_the_surplus() -> None:
    table = match(PriceNegotiation(max_rounds=30), PERFECT, 0, {"values": [80, 150]})
    assert table.actions == [(0, "price 115"), (1, "accept")]


def test_the_best_last_offer_to_an_unknown_buyer_is_the_best_of_all_prices() -> None:
    values = [80, 100, 120, 150]
    for own, seat in product(values, (rules.SELLER, rules.BUYER)):
        price, expected = rules.best_price(own, values, seat)
        all_gains = [
            Fraction(rules.gain(each, own, seat) * sum(rules.gain(each, v, 1 - seat) >= 0 for v in values), 4)
            for each in range(201)
        ]
        assert expected == max(all_gains) == all_gains[price]


def test_values_are_told_to_those_who_may_know_them() -> None:
    open_game = started(PriceNegotiation(), options={"values": [80, 120]})
    assert open_game.views[1].lines == [
        "You are player_1, the buyer. The product is worth 120 to you, and 80 to player_0."
    ]
    hidden = started(PriceNegotiation(complete_information=False), options={"values": [80, 120]})
    assert hidden.views[0].lines == ["You are player_0, the seller. The product is worth 80 to you."]
    assert "values 80 and 80/100/120/150" in hidden.views[0].anchor


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("I offer $1,200.", "price 1200"),
        ("[Price: 900]", "price 900"),
        ('{"price": "1,000.0"}', "price 1000"),
        ("100", "price 100"),
        ("price 50 | Please.", "price 50"),
        ("price 2001", "illegal"),
        ('{"price": 10.5}', "unreadable"),
        ("nothing below a fortune", "unreadable"),
        ('{"price": -4}', "unreadable"),
    ],
)
def test_what_is_read_as_a_price(text: str, action: str) -> None:
    game = PriceNegotiation(unit=1000)
    table = started(game)
    try:
        read = game.read(0, text)
    except InvalidAction as error:
        read = error.kind
    assert read == action and table.pending == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 7}, "step of price_negotiation must divide the unit of 100, got 7"),
        ({"seller_values": []}, "at least one number"),
        ({"buyer_values": [2.5]}, r"a number in \[0, 2\]"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PriceNegotiation(**options)


@pytest.mark.parametrize("values", [[80], [80, 201], "80", [0.8, 1.2]])
def test_values_that_are_no_two_prices_are_refused(values: object) -> None:
    with pytest.raises(ConfigError, match=r"two whole numbers in \[0, 200\]"):
        started(PriceNegotiation(), options={"values": values})


@pytest.mark.parametrize(
    "change",
    [
        *[{"round": each} for each in (-5, 0, 11, 10**9, True, "x")],
        *[{"offer": each} for each in (-3, 10**9, 1.5, True, "90")],
        {"agreed": [1]},
        {"agreed": 90},
        {"is_over": "no"},
        {"is_over": True, "agreed": 90},
        {"is_over": True, "agreed": 90, "earned": [float("nan"), 0.3]},
        {"earned": [0.1, 0.3]},
    ],
)
def test_states_that_no_game_reaches_are_refused(change: dict[str, Any]) -> None:
    table, other = started(PriceNegotiation(), options={"values": [80, 120]}), Table(PriceNegotiation())
    say(table, "price 100", "reject", "price 90")
    content = json.loads(table.snapshot())
    content["state"].update(change)
    with pytest.raises(ConfigError, match="damaged snapshot"):
        other.restore(json.dumps(content).encode())
    with pytest.raises(ValueError, match=r"the |round"):
        PriceNegotiation().load(content["state"])
    for answer in ("accept", "leave"):
        other.restore(table.snapshot())
        say(other, answer)
        Table(PriceNegotiation()).restore(other.snapshot())
