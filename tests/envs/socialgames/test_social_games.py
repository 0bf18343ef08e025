"""Games in which all seats name a number at once: payoffs, equilibria, players, views."""

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from table_play import at_random, decisions, match, seen_by, started

from turngym.envs.multiagent import make_aec, make_game, make_parallel, make_player
from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree
from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.table import Table
from turngym.envs.socialgames import SPECS
from turngym.envs.socialgames.beauty_contest import BeautyContest
from turngym.envs.socialgames.numbers import NumberGame
from turngym.envs.socialgames.public_goods import PublicGoods
from turngym.errors import ConfigError
from turngym.seeding import stream


def answered(game: NumberGame, *rounds: list[int]) -> Table:
    table = started(game)
    for numbers in rounds:
        for seat, number in enumerate(numbers):
            table.answer(seat, f"[{number}]")
    return table


def test_public_goods_pay_givers_less_and_all_more() -> None:
    table = answered(PublicGoods(rounds=2), [20, 20, 20, 20], [0, 20, 20, 20])
    assert table.returns == [76.0, 56.0, 56.0, 56.0] and table.winners() == (0,)
    assert table.log[-1].text == "Round 2: player_0 0 (44), player_1 20 (24), player_2 20 (24), player_3 20 (24)."
    assert table.info(0)["score"] == 38.0 and table.game.metrics() == {"mean_number": 17.5, "mean_payoff": 30.5}


def test_nobody_wins_where_all_earn_the_same() -> None:
    assert answered(PublicGoods(rounds=1), [5, 5, 5, 5]).winners() == ()


def test_the_closest_to_two_thirds_of_the_mean_share_a_point() -> None:
    table = answered(BeautyContest(num_seats=3, rounds=2), [100, 50, 30], [10, 20, 10])
    assert table.returns == [0.5, 0.5, 1.0] and table.winners() == (2,)


@pytest.mark.parametrize(
    "game", [PublicGoods(num_seats=2, rounds=1, endowment=4), BeautyContest(num_seats=2, rounds=1)]
)
def test_zero_is_an_equilibrium_of_one_round(game: NumberGame) -> None:
    tree = game_tree(game)
    policy = tree.policy({tree.seats[each.seat]: {each.name: {"0": 1.0}} for each in tree.sets})
    assert evaluate_policy(tree, policy).exploitability == pytest.approx(0.0, abs=1e-12)
    assert evaluate_policy(tree, tree.uniform()).exploitability > 0.2


def test_players_reason_and_reciprocate() -> None:
    goods, contest = PublicGoods(rounds=3), BeautyContest(num_seats=5, rounds=2)
    match(goods, ["conditional", "giver", "equilibrium", "conditional"])
    assert goods.numbers == [[20, 20, 0, 20], [13, 20, 0, 13], [11, 20, 0, 11]]
    match(contest, ["level:0", "level:1", "level", "equilibrium", "last_target"])
    assert contest.numbers == [[50, 33, 22, 0, 33], [50, 33, 22, 0, 12]]
    for level in ("two", "21", "0030000000"):
        with pytest.raises(ConfigError, match=f"level:K takes a whole number from 0 to 20, got '{level}'"):
            make_player(f"level:{level}", BeautyContest())


@pytest.mark.parametrize("text", ["7", "[7]", "I give 7.", '{"action": 7}', "[Give 7]"])
def test_many_notations_of_a_number(text: str) -> None:
    assert started(PublicGoods()).answer(0, text).action == "7"


def test_other_answers_are_refused() -> None:
    reason = "No action was found in your answer. Name a whole number from 0 to 20."
    for answer in ("[21]", "[.5]", ",5", '{"action": ".5"}'):
        assert started(PublicGoods()).answer(0, answer).reason == reason
    with pytest.raises(ConfigError, match="multiplier of public_goods must be above 1 and below 2"):
        PublicGoods(num_seats=2, multiplier=2.5)


def test_a_seat_that_forfeits_gives_nothing_and_has_not_won() -> None:
    table = started(PublicGoods(rounds=2))
    table.expire(0)
    for seat in (1, 2, 3, 1, 2, 3):
        table.answer(seat, "20")
    assert table.is_over and table.returns == [-1.0, 48.0, 48.0, 48.0] and table.winners() == (1, 2, 3)
    low, high = table.game.score_range
    assert table.info(0)["score"] == low == 0.0 and table.info(1)["score"] < high


def test_winners_do_not_depend_on_rounding() -> None:
    rounds = [4, 2, 18, 2], [18, 18, 2, 4], [2, 4, 4, 18]
    table = answered(PublicGoods(rounds=3), *rounds)
    assert table.winners() == () and table.info(0)["score"] == table.info(3)["score"] == 24.8


@pytest.mark.parametrize("game_id", SPECS)
def test_choices_stay_hidden_until_all_are_made_and_states_continue(game_id: str) -> None:
    table, other = started(make_game(game_id), 1), Table(make_game(game_id))
    first = table.pending[0]
    before = [seen_by(table, seat) for seat in table.game.everyone if seat != first]
    table.answer(first, "3")
    assert [seen_by(table, seat) for seat in table.game.everyone if seat != first] == before
    other.restore(table.snapshot())
    for seat in decisions(table, at_random(stream("play"))):
        assert 0 <= table.info(seat)["progress"] < 1
    for seat, action in table.actions:
        if seat in other.pending and not other.is_over:
            other.answer(seat, str(action))
    game = make_game(game_id)
    game.load(json.loads(json.dumps(table.game.state())))
    assert game.state() == table.game.state() and table.info(0)["progress"] == 1


@contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(NumPy|numpy|[Oo]bservation|Action space for each agent).*")
        yield


@pytest.mark.parametrize("game_id", ["turngym/PublicGoods-v0", "turngym/BeautyContestOnce-v0"])
def test_both_views_pass_pettingzoos_tests(game_id: str) -> None:
    with quiet():
        api_test(make_aec(game_id), num_cycles=60)
        seed_test(lambda: make_aec(game_id), num_cycles=30)
        parallel_api_test(make_parallel(game_id), num_cycles=60)
        parallel_seed_test(lambda: make_parallel(game_id), num_cycles=30)


@pytest.mark.parametrize(
    ("answer", "reason", "kind"),
    [
        ("11", "11 is not a legal action now. Answer a number from 0 to 10.", "illegal"),
        ("[accept]", "accept is not a legal action now. Answer a number from 0 to 10.", "illegal"),
        ("hello", "No action was found in your answer. Answer a number from 0 to 10.", "unreadable"),
    ],
)
def test_what_is_wrong_with_an_offer_is_said(answer: str, reason: str, kind: str) -> None:
    game = make_game("turngym/Ultimatum-v0")
    game.begin(np.random.default_rng(0), {})
    with pytest.raises(InvalidAction) as caught:
        game.read(0, answer)
    assert (caught.value.reason, caught.value.kind) == (reason, kind)


@pytest.mark.parametrize("name", ["Ultimatum", "Trust", "PublicGoods", "BeautyContest"])
def test_rules_of_one_round_speak_of_one(name: str) -> None:
    rules = make_game(f"turngym/{name}-v0", rounds=1).instructions(0)
    assert "one round: " in rules and "In each" not in rules and "change roles" not in rules
