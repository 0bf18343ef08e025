"""Beer game: known costs, optimum and levels, what seats see, players, and hostile answers."""

import json

import numpy as np
import pytest
from table_play import at_random, decisions, match, say, seen_by, started

from turngym.envs.beergame import SPECS
from turngym.envs.beergame.chain import NAMES, BeerChain, Start
from turngym.envs.beergame.game import LARGEST_ORDER, BeerGame, best_orders, step_demand
from turngym.envs.beergame.levels import best_levels, weekly_cost
from turngym.envs.beergame.optimum import Central, central
from turngym.envs.beergame.players import Anchoring
from turngym.envs.inventory.demand import draw, poisson
from turngym.envs.multiagent import make_game, make_player
from turngym.envs.multiagent.table import Table
from turngym.errors import ConfigError
from turngym.seeding import stream


class Parameters(Anchoring):
    """Sterman's rule with other parameters than his means."""

    smoothing, adjustment, supply_line, wanted = 0.25, 0.3, 0.15, 17.0


@pytest.mark.parametrize(
    ("player", "cost"),
    [("pass_on", 156.0), ("base_stock", 156.0), *[(f"base_stock:{level}", cost) for level, cost in
     [(20, 1196.0), (24, 156.0), (28, 384.0), (32, 624.0), (36, 876.0)]], ("anchoring", 917.0)],
)  # fmt: skip
def test_costs_of_known_players_in_the_classic_game(player: str, cost: float) -> None:
    assert match(make_game("turngym/BeerGameClassic-v0"), [player] * 4).game.metrics()["cost"] == cost


def test_orders_vary_more_the_further_they_are_from_customers() -> None:
    table = match(make_game("turngym/BeerGameClassic-v0"), [Parameters() for _ in NAMES])
    found = table.game.metrics()
    variances = [found["demand_variance"], *[found[f"order_variance_{name}"] for name in NAMES]]
    assert found["cost"] == 1130.0 and variances == sorted(variances)
    assert found["bullwhip"] == variances[-1] / variances[0] > 5


def simulated(best: Central, start: Start, demand: list[int]) -> float:
    chain, cost = BeerChain(start), 0
    for week, units in enumerate(demand):
        cost += sum(chain.advance(units).costs)
        assert not any(chain.backlog[1:])
        if week < len(demand) - 1:
            chain.placed = best.orders(chain, week)
    return cost / 1000


def test_the_optimum_is_the_mean_cost_of_its_orders() -> None:
    weeks, start, generator = 12, Start(4, 8), stream("optimum")
    best = central(start, [poisson(8.0)] * weeks)
    costs = [simulated(best, start, draw(poisson(8.0), weeks, generator)) for _ in range(300)]
    error = float(np.std(costs)) / len(costs) ** 0.5
    assert abs(float(np.mean(costs)) - best.cost) < 3 * error


def test_the_optimum_is_below_every_player_and_sees_the_classic_rise_come() -> None:
    best = best_orders("step", 8.0, 36)
    assert best.cost == simulated(best, Start(12, 4), step_demand(36)) == 132.0 < 156.0


@pytest.mark.parametrize("owing", [(1000,) * 4, (1000, 0, 0, 0)])
def test_no_level_close_to_the_best_ones_costs_less(owing: tuple[int, ...]) -> None:
    levels, generator = best_levels(8.0, owing), stream("levels")
    lowest = weekly_cost(levels, poisson(8.0), owing)
    for _ in range(60):
        other = [level + int(generator.integers(-2, 3)) for level in levels]
        assert weekly_cost(other, poisson(8.0), owing) >= lowest - 1e-9


def test_the_long_run_cost_is_that_of_long_games() -> None:
    levels, table, chain, paid = [27, 28, 28, 27], poisson(8.0), BeerChain(Start(4, 8)), []
    for units in draw(table, 10_000, stream("weeks")):
        paid.append(sum(chain.advance(units).costs))
        chain.placed = [levels[at] - chain.stock[at] + chain.backlog[at] - chain.on_order(at) for at in range(4)]
    assert float(np.mean(paid[50:])) == pytest.approx(weekly_cost(levels, table, [1000] * 4), rel=0.05)


def test_all_seats_have_the_same_return_and_see_others_costs_at_the_end_alone() -> None:
    table = match(BeerGame(weeks=12), ["base_stock", "anchoring", "random", "pass_on"], seed=3)
    cost = table.game.metrics()["cost"]
    assert table.returns == pytest.approx([-cost / 100] * 4)
    assert table.log[-1].text.startswith(f"The game is over. It cost {cost:g}: retailer ")
    assert all(len(line.to) == 1 for line in table.log[:-1])


def test_a_forfeit_loses_at_the_largest_cost() -> None:
    table = started(BeerGame(weeks=10))
    say(table, "8", "8", "8", "8")
    table.expire(2)
    for seat in (0, 1, 3):
        table.answer(seat, "8")
    assert table.is_over and table.winners() == () and table.info(0)["score"] == 0.0
    so_far = table.game.metrics()["cost"]
    assert table.returns == pytest.approx([-(so_far + 8 * 400) / 100] * 4)


def test_the_rules_say_who_pays_and_players_know_it() -> None:
    shared, alone = BeerGame(), BeerGame(backlog="customers")
    sentence = "Only the retailer pays for its backlog."
    assert sentence in alone.instructions(1) and sentence not in shared.instructions(1)
    table = match(alone, ["base_stock"] * 4)
    assert table.game.metrics()["cost_factory"] < match(shared, ["base_stock"] * 4).game.metrics()["cost_factory"]
    assert "not known how much" in make_game("turngym/BeerGameClassic-v0").instructions(0)


@pytest.mark.parametrize("text", ["8", "[8]", "I order 8.", '{"action": 8}', "[order 8 units]"])
def test_many_notations_of_an_order(text: str) -> None:
    assert started(BeerGame()).answer(0, text).action == "8"


HOSTILE = [
    "",
    "-1",
    "51",
    "8.5",
    "1e3",
    "nan",
    "٨",
    "\u200b8\u200b1",
    "9" * 5000,
    "\ud800",
    "[1] [2]",
    '{"action": {"units": 8}}',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_other_answers_are_refused_without_a_trace(text: str) -> None:
    table = started(BeerGame())
    before = [seen_by(table, seat) for seat in (1, 2, 3)]
    given = table.answer(0, text)
    assert not given.is_valid and [seen_by(table, seat) for seat in (1, 2, 3)] == before
    if len(text) < 100:
        assert given.reason.endswith("Name a whole number from 0 to 50.")


@pytest.mark.parametrize("demand", ["8", [8] * 11, [True] * 12, [-1] * 12, [10**9] * 12])
def test_impossible_demand_is_refused(demand: object) -> None:
    with pytest.raises(ConfigError, match="demand of beer_game must be a list of 12 whole numbers from 0 to 1000"):
        started(BeerGame(weeks=12), options={"demand": demand})


@pytest.mark.parametrize("name", ["base_stock:many", "base_stock:1000", "base_stock:-1"])
def test_other_levels_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="base_stock:N takes a whole number from 0 to 999"):
        make_player(name, BeerGame())


@pytest.mark.parametrize("game_id", SPECS)
def test_no_seat_sees_another_stage_or_what_customers_will_order(game_id: str) -> None:
    changed = 0
    for seed in range(3):
        table, generator = started(make_game(game_id, weeks=12), seed), stream("swap", seed)
        for _ in decisions(table, at_random(generator)):
            if len(table.pending) < 4:
                continue
            for seat in table.game.everyone:
                state, before = table.game.state(), seen_by(table, seat)
                has_changed = table.game.swap_hidden(seat, generator)
                assert has_changed == (table.game.state() != state) and seen_by(table, seat) == before
                changed += has_changed
                table.game.load(state)
    assert changed > 100


def test_states_continue_and_damaged_ones_are_refused() -> None:
    table, other = started(BeerGame(weeks=12), 5), Table(BeerGame(weeks=12))
    say(table, *["9"] * 10)
    other.restore(table.snapshot())
    rest = [str(seat + 5) for seat in range(34)]
    assert say(table, *rest) == say(other, *rest) and table.is_over and other.snapshot() == table.snapshot()
    state = json.loads(json.dumps(table.game.state()))
    for name, wrong in (("orders", []), ("demand", [8] * 11), ("weeks", [])):
        with pytest.raises(ValueError, match="weeks, "):
            table.game.load({**state, name: wrong})
    with pytest.raises(ValueError, match="the numbers"):
        table.game.load({**state, "demand": [-8] * 12})
    assert max(map(int, table.game.legal_actions(0))) == LARGEST_ORDER
