"""An answer that is not understood never pays: every game of seats has one rule, and lists of actions tell nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium
import pytest
from kinds import games_without_packages
from toy_games import Coins, Spies

from turngym.envs.multiagent import Table, make_game
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.seat import SeatEnv
from turngym.seeding import stream

SEAT_IDS = sorted(
    game_id.replace("-v", "Seat-v") for game_id in games_without_packages() if game_id.startswith("turngym/")
)


SPEECH = "turngym/PersuasionTalkSeat-v0"
"""Any text is an answer of its seller, which a buyer may follow: "x" is understood."""


def played(env: gymnasium.Env[Any, str], seed: int, text: str) -> dict[str, Any]:
    _, info = env.reset(seed=seed)
    is_over, total = False, 0.0
    while not is_over:
        _, reward, terminated, truncated, info = env.step(text)
        total, is_over = total + float(reward), terminated or truncated
    return {**info, "return": total}


def test_an_agent_that_writes_nothing_to_the_point_never_wins() -> None:
    """``x`` won 100 % of BargainingHiddenSeat, and doing nothing 119 of 200 games of TicTacToeSeat."""
    for text in ["", "x"]:
        for env_id in SEAT_IDS:
            if text and env_id == SPEECH:
                continue
            env = gymnasium.make(env_id)
            for seed in range(5):
                assert played(env, seed, text)["success"] == 0


def test_a_forfeit_pays_no_more_than_the_worst_legal_end() -> None:
    """From any moment of a game: what the seat has by then and gets for the forfeit, against legal play to the end."""
    for game_id in games_without_packages():
        table, draw = Table(make_game(game_id)), stream("forfeits", game_id)
        for seed in range(3):
            begin_game(table, seed)
            for _ in range(int(draw.integers(6))):
                answer_legally(table, draw)
            if table.is_over:
                continue
            seat, moment = table.pending[0], table.snapshot()
            table.expire(seat)
            play_out(table, draw)
            forfeited = table.returns[seat]
            assert seat not in table.winners() and table.info(seat)["success"] == 0
            for _ in range(3):
                table.restore(moment)
                play_out(table, draw)
                assert forfeited <= table.returns[seat] + 1e-9


@pytest.mark.parametrize("name", ["PublicGoods", "BeautyContest"])
def test_the_others_earn_what_the_default_action_brings_them(name: str) -> None:
    without, default = (Table(make_game(f"turngym/{name}-v0")) for _ in range(2))
    for table in (without, default):
        begin_game(table, 0)
    without.expire(0)
    default.answer(0, default.game.default(0))
    draws = [stream("others", name) for _ in range(2)]
    while len(without.pending) > 1:
        answer_legally(without, draws[0])
        answer_legally(default, draws[1])
    answer_legally(default, draws[1])
    rewards = without.answer(without.pending[0], str(default.actions[-1][1])).rewards
    assert rewards == (-1.0, *default.returns[1:]) and any(rewards[1:])


def answer_legally(table: Table, draw: Any) -> None:
    if table.pending:
        seat = table.pending[0]
        legal = table.views[seat].legal_actions
        table.answer(seat, legal[int(draw.integers(len(legal)))] if legal else "Hm.")


def play_out(table: Table, draw: Any) -> None:
    while table.pending:
        answer_legally(table, draw)


def test_every_seat_is_told_what_becomes_of_invalid_answers() -> None:
    for game_id in games_without_packages():
        for retries, words in ((0, "you forfeit the game"), (1, "asked again once"), (3, "asked again up to 3 times")):
            table = Table(make_game(game_id), retries=retries)
            begin_game(table, 0)
            for view in table.views:
                assert words in view.instructions and view.instructions.endswith("the game and lose.")


@pytest.mark.parametrize("name", ["TicTacToe", "SimpleNegotiationFive", "KuhnPoker"])
def test_the_place_of_an_action_in_the_list_is_drawn(name: str) -> None:
    table, firsts, orders = Table(make_game(f"turngym/{name}-v0")), Counter[str](), set()
    for seed in range(200):
        begin_game(table, seed)
        legal = table.views[table.pending[0]].legal_actions
        assert sorted(legal) == sorted(table.game.legal_actions(table.pending[0]))
        assert legal == table.views[table.pending[0]].legal_actions, "asked again, it is the same"
        firsts[legal[0]] += 1
        orders.add(legal)
    assert len(firsts) > 1 and max(firsts.values()) < 2.5 * 200 / len(legal) + 20


def test_both_seats_can_forfeit_at_once_in_any_order() -> None:
    found = []
    for order in ((0, 1), (1, 0)):
        table = Table(make_game("turngym/PrisonersDilemma-v0", rounds=3), retries=0)
        begin_game(table, 0)
        for seat in order:
            table.answer(seat, "?")
        found.append((table.returns, table.winners(), table.actions, table.log))
    assert found[0] == found[1] == ([0.0, 0.0], (), [(0, None), (1, None)], found[0][3])


def test_a_game_of_many_continues_without_the_seat_that_forfeits() -> None:
    table = Table(Spies(5, talk=False), retries=0)
    begin_game(table, 1, {"spy": 0})
    table.answer(0, "?")
    asked = []
    while table.pending:
        asked.append(table.pending[0])
        table.answer(table.pending[0], table.views[table.pending[0]].legal_actions[0])
    assert 0 not in asked and 0 not in table.winners() and table.returns[0] == -1.0


def test_nobody_is_left_when_all_have_forfeited() -> None:
    table = Table(Coins(3, rounds=1000), retries=0)
    begin_game(table, 0)
    for seat in range(3):
        table.answer(seat, "?")
    assert table.is_over and table.winners() == () and table.returns == [-1.0] * 3


def test_a_snapshot_keeps_who_has_forfeited_and_the_order_of_actions() -> None:
    table, other = Table(Spies(5)), Table(Spies(5))
    begin_game(table, 3)
    table.expire(table.pending[0])
    other.restore(table.snapshot())
    assert other.game.forfeited == table.game.forfeited != ()
    for one, two in zip(table.views, other.views, strict=True):
        assert one.legal_actions == two.legal_actions
    other.game.forfeited = ()
    assert other.snapshot() != table.snapshot()


def test_a_penalty_is_paid_beside_the_forfeit() -> None:
    env = SeatEnv("turngym/TicTacToe-v0", seat="player_0", invalid_penalty=0.25, retries=2)
    assert played(env, 0, "x")["return"] == -1.75
