"""Taxes: published figures of hours and rates, players, scores, hidden skills, hostile answers."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from table_play import match, say, seen_by, started

from turngym.envs.economies.inequality import equality, gini
from turngym.envs.economies.labour import LONGEST, Economy, effort, free_hours, saez_rate, weights
from turngym.envs.economies.tax_players import Seen, likely_skills
from turngym.envs.economies.taxes import Taxes
from turngym.envs.multiagent import make_player
from turngym.envs.multiagent.table import Table
from turngym.errors import ConfigError
from turngym.seeding import stream

SKILLS = [10, 20, 40, 80, 120]


def flat(rate: float, kept: float) -> tuple[list[float], list[float], list[float]]:
    """Return hours, incomes and linear utilities under a flat rate whose taxes are shared equally."""
    hours = [free_hours(skill, kept) for skill in SKILLS]
    incomes = [skill * each for skill, each in zip(SKILLS, hours, strict=True)]
    share = rate * sum(incomes) / len(SKILLS)
    return hours, incomes, [(1 - rate) * z + share - effort(each) for z, each in zip(incomes, hours, strict=True)]


@pytest.mark.parametrize(
    ("rate", "first", "total", "by_income"),
    [(0.0, 31.83, 13959.3, 3.5714), (0.2, 29.68, 13852.2, 6.749), (0.5, 25.94, 13200.3, 11.5155),
     (0.8, 21.15, 11651.3, 16.2819)],
)  # fmt: skip
def test_five_workers_choose_the_known_hours(rate: float, first: float, total: float, by_income: float) -> None:
    kept = 1 - rate + rate / 5
    hours, incomes, utilities = flat(rate, kept)
    assert hours[0] == pytest.approx(first, abs=0.005) and sum(utilities) == pytest.approx(total, abs=0.05)
    assert sum(u / z for u, z in zip(utilities, incomes, strict=True)) == pytest.approx(by_income, abs=5e-5)
    best = Economy(5).best_hours(SKILLS, (round(100 * rate),) * 2)
    assert all(abs(whole - free) < 1 for whole, free in zip(best, hours, strict=True))


def test_the_formula_of_saez_is_the_best_rate_on_a_grid() -> None:
    shares = weights(SKILLS)

    def welfare(rate: float) -> float:
        return float(np.dot(shares, flat(rate, 1 - rate)[2]))

    grid = np.arange(0, 1, 0.001).tolist()
    assert max(grid, key=welfare) == pytest.approx(0.651)
    assert saez_rate(flat(0.6512, 1 - 0.6512)[1], shares) == pytest.approx(0.6512, abs=5e-5)


def test_known_welfare_of_rates() -> None:
    """Of brackets on a 5 % grid the known optimum is (100, 75); a flat rate of 83 % brings 10,722.7, none 3,534.9."""
    economy, shares = Economy(5), weights(SKILLS)

    def welfare(rates: tuple[int, int]) -> float:
        return economy.welfare(SKILLS, economy.period(SKILLS, economy.best_hours(SKILLS, rates), rates).utilities)

    near = product(range(80, 101, 5), range(60, 96, 5))
    assert max(near, key=welfare) == (100, 75) and welfare((100, 75)) == pytest.approx(11192.0, abs=0.1)
    for rate, known in ((0.83, 10722.7), (0.0, 3534.9)):
        assert float(np.dot(shares, flat(rate, 1 - 0.8 * rate)[2])) == pytest.approx(known, abs=0.05)


@pytest.mark.parametrize(("shares_own", "is_log"), [(True, False), (False, True)])
@pytest.mark.parametrize("rates", [(0, 0), (100, 70), (20, 90)])
def test_best_hours_are_those_of_a_plain_search(shares_own: bool, is_log: bool, rates: tuple[int, int]) -> None:
    economy, skills, others = Economy(3, (0, 2000), shares_own, is_log), [11, 47, 120], [5, 50, 95]
    best = economy.best_hours(skills, rates)
    for seat in range(3):
        choices = [[*others[:seat], hours, *others[seat + 1 :]] for hours in range(LONGEST + 1)]
        found = [economy.period(skills, each, rates).utilities[seat] for each in choices]
        assert found.index(max(found)) == best[seat]


@pytest.mark.parametrize(("floors", "is_log", "is_weighted"), [((0,), True, False), ((0, 2000), False, True)])
def test_best_rates_are_those_of_a_plain_search(floors: tuple[int, ...], is_log: bool, is_weighted: bool) -> None:
    economy, skills, found = Economy(3, floors, True, is_log, is_weighted), [11, 47, 120], {}
    for rates in economy.all_rates:
        period = economy.period(skills, economy.best_hours(skills, rates), rates)
        found[rates] = economy.welfare(skills, period.utilities)
    best = max(found, key=lambda rates: found[rates])
    assert economy.best_rates(skills) == (best, found[best])


@pytest.mark.parametrize("skills", [[10, 12, 15, 18], [10, 10, 10, 11], [13, 13, 14, 14]])
def test_of_rates_that_bring_the_same_the_first_are_best(skills: list[int]) -> None:
    """No income reaches the third bracket, so that its rate changes nothing."""
    assert Economy(4, (0, 1000, 4000)).best_rates(skills)[0][2] == 0


def test_equal_weights_of_linear_utility_want_no_taxes() -> None:
    assert Economy(4, is_weighted=False).best_rates([10, 20, 60, 120])[0] == (0, 0)
    assert min(Economy(4, is_weighted=False, is_log=True).best_rates([10, 20, 60, 120])[0]) > 0


def test_inequality_of_known_amounts() -> None:
    assert gini([10, 20, 70]) == 0.6 and equality([5, 5, 5]) == 1.0 and gini([0, 0]) == 0.0


def test_planners_infer_skills_and_reach_the_best_rates() -> None:
    table = match(Taxes(workers=5, periods=12), ["rational"] * 6, options={"skills": SKILLS})
    game = table.game
    assert isinstance(game, Taxes) and game.rounds[-1].rates == game.economy.best_rates(SKILLS)[0] == (100, 70)
    assert [round(table.info(seat)["score"], 3) for seat in range(6)] == [1.0] * 5 + [0.986]
    assert table.winners() == tuple(range(6))
    saez = match(Taxes(workers=5), ["rational"] * 5 + ["saez"], options={"skills": SKILLS}).game
    steady = match(Taxes(workers=5), ["steady"] * 6, options={"skills": SKILLS}).game
    assert steady.score(5) < saez.score(5) < 0.98 and 0 < steady.score(2) < 1 and steady.score(0) == 0.0
    assert likely_skills(Economy(2), [Seen((50, 50), (0, 10**6))]) == [10, 120]


@pytest.mark.parametrize(
    ("options", "rate", "fewest", "most"),
    [
        ({"welfare": "utilitarian"}, 50, 18, 20),
        ({"welfare": "utilitarian", "utility": "log"}, 50, 20, 20),
        ({"brackets": "flat"}, 80, 16, 20),
        ({}, 80, 8, 16),
    ],
)
def test_constant_rates_succeed_with_the_options_that_the_page_names(
    options: dict[str, str], rate: int, fewest: int, most: int
) -> None:
    """In 300 games the shares are 99, 100, 90 and 61 %; the bounds are two standard errors of 20 games away."""
    won, game = 0, Taxes(**options)
    for seed in range(20):
        game.begin(stream("constant", seed), {})
        while game.asked():
            if game.is_set:
                hours = game.economy.best_hours(game.skills, game.rates)
                game.commit({seat: str(hours[seat]) for seat in game.workers})
            else:
                game.commit({game.planner: " ".join([str(min(rate, each + 20)) for each in game.rates])})
        won += game.planner in game.winners()
    assert fewest <= won <= most


def test_rewards_are_utilities_and_mean_welfare() -> None:
    table = started(Taxes(workers=2, periods=1), options={"skills": [40, 80]})
    rewards = say(table, "50 50", "50", "60")[-1]
    assert rewards == pytest.approx((2.25806, 3.26344, 2.5343), abs=1e-4) and table.is_over
    assert table.log[-1] == ((2,), "Period 1: incomes were player_0 2000, player_1 4800. Welfare: 5068.7.")
    assert table.game.metrics()["mean_income"] == 3400.0
    others = started(Taxes(workers=2, periods=1, rebate="others"), options={"skills": [40, 80]})
    assert sum(say(others, "50 50", "50", "60")[-1][:2]) == pytest.approx(sum(rewards[:2]))


def test_a_worker_that_forfeits_does_not_work_and_a_planner_keeps_the_rates() -> None:
    table = started(Taxes(workers=2, periods=3), options={"skills": [40, 80]})
    say(table, "[60 70]", "40", "50")
    table.expire(2)
    table.expire(0)
    say(table, "50", "50")
    game: Any = table.game
    first = game._course.periods[0].utilities
    earned = game.economy.welfare([40, 80], first) / 2000
    assert table.is_over and table.returns[2] == pytest.approx(earned - 10.0)
    assert table.returns[0] == pytest.approx(first[0] / 1000 - 10.0)
    assert game.rounds[1:] == [((60, 70), (0, 50))] * 2
    assert table.info(0)["score"] == table.info(2)["score"] == 0.0 and table.info(1)["success"] == 0


@pytest.mark.parametrize("text", ["60 40", "[60%, 40%]", '{"action": [60, 40]}', '{"action": "60/40"}'])
def test_many_notations_of_rates(text: str) -> None:
    assert started(Taxes()).answer(4, text).action == "60 40"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("80 40", "A rate may change by at most 20: the rates are 50 50, and you said 80 40."),
        *[(text, "No action was found in your answer. Name 2 multiples of 10 from 0 to 100, such as [50 50].")
          for text in ("", "55 40", "60", "-10 40", "60 40 40", "nan 40", "\ud800", "9" * 5000, '{"action": 60}')],
    ],
)  # fmt: skip
def test_other_rates_are_refused(text: str, reason: str) -> None:
    assert started(Taxes()).answer(4, text).reason == reason


def test_other_hours_are_refused() -> None:
    table = started(Taxes())
    say(table, "50 50")
    assert table.answer(0, "101").reason == "No action was found in your answer. Name a whole number from 0 to 100."
    assert table.answer(0, "[Work 40 hours]").action == "40"


@pytest.mark.parametrize("skills", ["10", [10] * 3, [9] * 4, [121] * 4, [True] * 4, [10.0] * 4])
def test_impossible_skills_are_refused(skills: object) -> None:
    with pytest.raises(ConfigError, match="skills of taxes must be a list of 4 whole numbers from 10 to 120"):
        started(Taxes(), options={"skills": skills})
    with pytest.raises(ConfigError, match="'rational' plays taxes and takes no argument"):
        make_player("rational:2", Taxes())


def test_no_seat_sees_the_skills_of_others() -> None:
    changed, generator = 0, stream("swap")
    for seed in range(3):
        table = started(Taxes(periods=3), seed)
        while table.pending:
            for seat in table.game.everyone:
                state, before = table.game.state(), seen_by(table, seat)
                has_changed = table.game.swap_hidden(seat, generator)
                assert has_changed == (table.game.state() != state) and seen_by(table, seat) == before
                changed += has_changed
                table.game.load(state)
            legal = table.views[table.pending[0]].legal_actions
            say(table, legal[int(generator.integers(len(legal)))])
        incomes = [line for line in table.log if "incomes were" in line.text]
        assert len(incomes) == 3 and all(line.to == (4,) for line in incomes)
    assert changed > 100


def test_states_continue_and_damaged_ones_are_refused() -> None:
    table, other = started(Taxes(periods=2), 5), Table(Taxes(periods=2))
    say(table, "60 40", "9", "8", "7", "6", "70 30", "5")
    other.restore(table.snapshot())
    rest = ["50", "60", "70"]
    assert say(table, *rest) == say(other, *rest) and table.is_over and other.snapshot() == table.snapshot()
    state = json.loads(json.dumps(table.game.state()))
    wrong = {"skills": [1] * 4, "rates": [100, 100], "is_set": True, "rounds": [[[60, 40], [101, 0, 0, 0]]]}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=r"the |rounds"):
            table.game.load({**state, name: value})
    with pytest.raises(ValueError, match=r"the rates \[70, 30\] before they are set"):
        table.game.load({**state, "rates": [70, 30], "rounds": [], "is_set": False})


@pytest.mark.parametrize("largest", [10, 20])
@pytest.mark.parametrize("periods", [1, 2, 6])
def test_a_planner_that_moves_as_fast_as_it_may_reaches_the_score_of_one(periods: int, largest: int) -> None:
    table = started(Taxes(workers=5, periods=periods, largest_change=largest), options={"skills": SKILLS})
    game = table.game
    assert isinstance(game, Taxes)
    wanted, rates = game.economy.best_rates(SKILLS)[0], (50, 50)
    for _ in range(periods):
        rates = (min(wanted[0], rates[0] + largest), min(wanted[1], rates[1] + largest))
        say(table, f"{rates[0]} {rates[1]}", *map(str, game.economy.best_hours(SKILLS, rates)))
    assert game.score(5) == pytest.approx(1.0, abs=1e-12)


def test_workers_read_a_rate_of_one_digit() -> None:
    game: Any = match(Taxes(workers=2, periods=6, brackets="flat", welfare="utilitarian"), ["rational"] * 3).game
    assert game.rounds[-1].rates == (0,) and game.score(0) == game.score(1) == 1.0
