"""Gather and build: utility, moves, houses, market, taxes, players, hidden talents, hostile answers."""

import json
from typing import Any

import pytest
from table_play import match, say, seen_by, started

from turngym.envs.economies.gather_and_build import GatherAndBuild
from turngym.envs.economies.settlement import Settlement, Talents, utility
from turngym.envs.multiagent.table import Table
from turngym.errors import ConfigError
from turngym.seeding import stream

SHORT = {"steps": 10, "tax_period": 5}


def grid(*, houses: dict[int, int] | None = None, **sources: str) -> Settlement:
    """Return a settlement with player_0 in the first cell, player_1 in the third, and sources such as ``_1="wood"``."""
    found = Settlement({int(cell[1:]): each for cell, each in sources.items()}, [0, 2], [Talents(1500, 60)] * 2)
    found.houses = houses or {}
    return found


def test_utility_is_the_published_one() -> None:
    assert utility(100, 50) == pytest.approx(33.232059, abs=5e-7)


@pytest.mark.parametrize(("luck", "units"), [(0.59, 2), (0.6, 1)])
def test_gathering_brings_one_unit_or_two(luck: float, units: int) -> None:
    found = grid(_7="wood")
    assert found.act(0, "south", luck) == [((0,), f"You gather {units} wood.")]
    assert found.held[0]["wood"] == units and found.labour == [8, 0] and found.board()[1][0] == "A"
    assert found.ground() == "A on t, B on ."
    assert found.act(0, "north", 0.0) == [] and found.board()[1][0] == "t" and found.labour == [12, 0]
    found.act(0, "south", 0.0)
    assert found.held[0]["wood"] == units
    found.regrow(1.0, stream("growth"))
    assert found.full == {7}


def test_moves_fail_at_borders_workers_and_houses_of_others() -> None:
    found = grid(houses={7: 1, 9: 1})
    assert found.allowed(0) == ("east", "stay") and found.allowed(1) == ("south", "west", "east", "stay")
    found.act(0, "east", 0.0)
    assert found.act(1, "west", 0.0) == [((1,), "The way is blocked.")] and found.positions == [1, 2]


def test_a_house_costs_wood_and_stone_and_pays_by_skill() -> None:
    found = grid()
    found.held[0] = {"wood": 1, "stone": 2}
    assert "build" in found.allowed(0)
    assert found.act(0, "build", 0.0) == [((), "player_0 builds a house in row 1, column 1.")]
    assert (found.coins, found.labour, found.held[0]) == ([1500, 0], [40, 0], {"wood": 0, "stone": 1})
    found.held[0]["wood"] = 1
    assert "build" not in found.allowed(0)


@pytest.mark.parametrize(
    ("orders", "price"),
    [
        ([(0, "sell wood 3"), (1, "buy wood 5")], 3),
        ([(1, "buy wood 5"), (0, "sell wood 3")], 5),
        ([(1, "buy wood 2"), (0, "sell wood 3")], 0),
        ([(0, "sell wood 3"), (0, "sell wood 6"), (1, "buy wood 5")], 0),
    ],
)
def test_orders_that_fit_are_traded_at_the_price_of_the_older_one(orders: list[tuple[int, str]], price: int) -> None:
    found = grid()
    found.held[0]["wood"], found.coins[1] = 1, 600
    news = [line for worker, order in orders for line in found.act(worker, order, 0.0)]
    assert found.coins == [100 * price, 600 - 100 * price] and found.held[1]["wood"] == (price > 0)
    assert news == ([((), f"player_0 sells wood to player_1 for {price}.")] if price else [])
    assert len(found.orders) == (0 if price else 2)


def test_what_is_offered_cannot_be_used_or_offered_again() -> None:
    found = grid()
    found.held[0], found.coins[0] = {"wood": 1, "stone": 1}, 400
    found.act(0, "sell wood 3", 0.0)
    assert "build" not in found.allowed(0) and "sell wood 5" in found.allowed(0)
    found.act(0, "buy stone 3", 0.0)
    assert "buy wood 1" in found.allowed(0) and "buy wood 2" not in found.allowed(0)
    assert "buy stone 4" in found.allowed(0)


@pytest.mark.parametrize(
    ("owner", "resting", "taking", "coins"),
    [(1, "buy wood 10", "sell wood 10", [1000, 0]), (0, "sell wood 2", "buy wood 5", [200, 800])],
)
def test_a_new_order_is_not_taken_after_what_covers_it_is_gone(
    owner: int, resting: str, taking: str, coins: list[int]
) -> None:
    table = started(GatherAndBuild(**SHORT))
    game: Any = table.game
    game.grid.coins, game.grid.held[0]["wood"] = [0, 1000], 1
    say(table, "0 0", *(["stay"] * 2 if owner else []))  # the other worker acts first in the second step from here
    for answers in ([(owner, resting), (1 - owner, "stay")], [(owner, resting), (1 - owner, taking)]):
        for seat, answer in sorted(answers):
            assert table.answer(seat, answer).is_valid
    assert game.grid.coins == coins and game.grid.held[1]["wood"] == 1 and game.grid.orders == []
    side, resource, price = resting.split()
    assert ((owner,), f"You can no longer {side} {resource} for {price}.") in table.log
    assert game.grid.labour[owner] == 1
    Table(GatherAndBuild(**SHORT)).restore(table.snapshot())


def test_coins_and_goods_stay_at_least_zero_under_hostile_trade() -> None:
    trades = refused = 0
    for seed in range(8):
        table, generator = started(GatherAndBuild(), seed), stream("hostile", seed)
        game: Any = table.game
        game.grid.coins = [int(each) for each in generator.integers(100, 1200, 2)]
        game.grid.held = [{"wood": 1, "stone": 1} for _ in range(2)]
        while table.pending:
            seat = table.pending[0]
            legal = table.views[seat].legal_actions
            orders = [each for each in legal if each.split()[0] in ("buy", "sell")] or legal
            say(table, orders[int(generator.integers(len(orders)))] if seat < 2 else "0 0")
            game.grid._require_possible()
        trades += game.trades
        refused += sum("You can no longer" in line.text for line in table.log)
    assert trades > 50 and refused > 5


def test_taxes_are_shared_and_welfare_is_equality_times_mean_coins() -> None:
    table = started(GatherAndBuild(steps=5, tax_period=5))
    game: Any = table.game
    say(table, "[50, 100]")
    game.grid.coins = [3000, 1000]
    rewards = [say(table, "stay", "stay") for _ in range(5)][-1][-1]
    assert game.grid.coins == [3000 - 2000 + 1250, 1000 - 500 + 1250] and table.is_over
    assert rewards[2] == pytest.approx(0.875 * 20 / 10) and table.info(2)["score"] == pytest.approx(17.5)
    told = [line.text for line in table.log if line.text.startswith("Taxes")]
    assert told[0] == "Taxes: you earned 30, paid 20 and got 12.5 back."
    assert told[2] == "Taxes: incomes were player_0 30, player_1 10; coins are now player_0 22.5, player_1 17.5."


def test_the_anchor_tells_steps_grounds_and_coins_that_differ() -> None:
    table = started(GatherAndBuild(**SHORT))
    game: Any = table.game
    say(table, "0 0")
    game.grid.coins[0], game.grid.houses = 298, {game.grid.positions[1]: 1}
    first = game.anchor(0)
    assert "2.98 coins, 2.98 of them" in first and first.split("\n")[8] == "A on ., B on b"
    assert "buy wood 2" in game.legal_actions(0) and "buy wood 3" not in game.legal_actions(0)
    say(table, "stay", "stay")
    assert game.anchor(0) == first.replace("Step 1 of 10.", "Step 2 of 10.") != first


def test_rewards_of_workers_add_up_to_the_utility_gained() -> None:
    table = match(GatherAndBuild(), ["greedy", "trader", "greedy"], seed=3)
    game: Any = table.game
    gained = [utility(game.grid.coins[seat] / 100, game.grid.labour[seat] / 4) for seat in (0, 1)]
    start = utility(0, 0)
    assert table.returns[:2] == pytest.approx([each - start for each in gained])
    assert [table.info(seat)["score"] for seat in (0, 1)] == pytest.approx(table.returns[:2])
    assert table.returns[2] == pytest.approx(table.info(2)["score"] / 10)
    assert sum(counts.unreadable + counts.illegal for counts in table.counts) == 0


def test_players_beat_random_play_and_stop_where_labour_costs_more() -> None:
    means = {
        name: sum(match(GatherAndBuild(), [name, "random", "greedy"], seed).returns[0] for seed in range(6)) / 6
        for name in ("greedy", "trader", "random")
    }
    assert min(means["greedy"], means["trader"]) > 5 > 0 > means["random"]


def test_planners_tax_where_incomes_differ() -> None:
    welfare = {}
    for name in ("greedy", "untaxed"):
        players = ["greedy", "greedy", name]
        games: list[Any] = [match(GatherAndBuild(), players, seed, {"pay": [10, 30]}).game for seed in range(4)]
        welfare[name] = sum(game.metrics()["welfare"] for game in games)
        assert all(game.rates == (30, 30) for game in games) or name == "untaxed"
    assert welfare["greedy"] > welfare["untaxed"]


def test_a_seat_that_forfeits_does_nothing_more() -> None:
    table = started(GatherAndBuild(**SHORT))
    table.expire(2)
    table.expire(0)
    say(table, *["stay"] * 10)
    assert table.is_over and table.returns[0] == pytest.approx(-0.21 * 10 * 10) and table.winners() == ()
    game: Any = table.game
    assert game.rates == (0, 0) and table.info(0)["score"] < table.returns[0]


@pytest.mark.parametrize(
    ("text", "action"),
    [("[go north]", "north"), ("STAY", "stay"), ('{"action": "wait"}', "stay"), ("I think [stay].", "stay")],
)
def test_many_notations_of_actions(text: str, action: str) -> None:
    table = started(GatherAndBuild(), options={"pay": [10, 30]})
    say(table, "0 0")
    game: Any = table.game
    game.grid.positions = [24, 0]
    assert table.answer(0, text).action == action


@pytest.mark.parametrize(
    "text", ["", "build", "sell wood 3", "buy wood 1", "sell wood 11", "\ud800", "[north] [stay]", "9" * 5000]
)
def test_other_actions_are_refused_without_a_trace(text: str) -> None:
    table = started(GatherAndBuild())
    say(table, "0 0")
    before = [seen_by(table, seat) for seat in (1, 2)]
    assert not table.answer(0, text).is_valid and [seen_by(table, seat) for seat in (1, 2)] == before


@pytest.mark.parametrize("pay", ["10", [10], [9, 10], [True, 10], [10.0, 10]])
def test_impossible_payments_are_refused(pay: object) -> None:
    with pytest.raises(ConfigError, match="pay of gather_and_build must be a list of 2 whole numbers from 10 to 30"):
        started(GatherAndBuild(), options={"pay": pay})
    with pytest.raises(ConfigError, match="tax_period of gather_and_build must divide 50, the steps, got 20"):
        GatherAndBuild(tax_period=20)


def test_no_seat_sees_the_talents_of_others() -> None:
    changed, generator = 0, stream("swap")
    table = started(GatherAndBuild(**SHORT))
    while table.pending:
        for seat in table.game.everyone:
            state, before = table.game.state(), seen_by(table, seat)
            changed += table.game.swap_hidden(seat, generator)
            assert seen_by(table, seat) == before
            table.game.load(state)
        legal = table.views[table.pending[0]].legal_actions
        say(table, legal[int(generator.integers(len(legal)))])
    assert changed > 50


def test_states_continue_and_damaged_ones_are_refused() -> None:
    table, other = started(GatherAndBuild(**SHORT), 5), Table(GatherAndBuild(**SHORT))
    say(table, "60 40", *["stay"] * 7)
    other.restore(table.snapshot())
    for one in (table, other):
        generator = stream("rest")
        while one.pending:
            legal = one.views[one.pending[0]].legal_actions
            say(one, legal[int(generator.integers(len(legal)))])
    assert table.is_over and other.snapshot() == table.snapshot()
    state = json.loads(json.dumps(table.game.state()))
    parts: dict[str, Any] = {
        "positions": [3, 3],
        "talents": [[1, 50]] * 2,
        "full": [60],
        "orders": [[0, "buy", "wood", 1]] * 2,
    }
    wrong: list[dict[str, Any]] = [
        {"rates": [5, 0]},
        {"rates": "00"},
        {"rates": ["0", "0"]},
        {"step": 11},
        {"base": [0]},
        {"is_set": True},
        *({"grid": {**state["grid"], "coins": [1000, 1000], k: v}} for k, v in parts.items()),
    ]
    for each in wrong:
        with pytest.raises(ValueError, match="the "):
            table.game.load({**state, **each})
