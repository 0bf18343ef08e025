"""Games between seats: seeds, ids, options, rewards and names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from kinds import games_without_packages
from toy_games import Coins, Secret

from turngym.envs.multiagent import (
    Player,
    SeatView,
    Table,
    TableVector,
    make_aec,
    make_game,
    make_parallel,
    make_player,
)
from turngym.envs.multiagent.players import SILENCE
from turngym.envs.multiagent.registration import is_game
from turngym.envs.seat import SeatEnv
from turngym.errors import ConfigError, UnknownName
from turngym.seeding import stream

# Seeds, ids, options.


@pytest.mark.parametrize("seed", ["a", 1.5, True, "7"])
def test_a_seed_is_a_whole_number_in_every_view(seed: Any) -> None:
    vector = TableVector(Coins, 2)
    for begin in (
        lambda: make_aec("toy_games:Coins").reset(seed=seed),
        lambda: make_parallel("toy_games:Coins").reset(seed=seed),
        lambda: vector.reset(seed=[0, seed]),
        lambda: vector.begin(0, seed),
    ):
        with pytest.raises(ConfigError, match="a seed is a whole number, got"):
            begin()


def test_seeds_and_ids_may_be_numbers_of_numpy() -> None:
    def logs(seed: Any) -> list[Any]:
        vector = TableVector(Coins, 2, auto_reset=False)
        vector.reset(seed=seed)
        while vector.is_open:
            vector.submit([(np.int64(one.request_id), "heads") for one in vector.pending()])  # type: ignore[misc]
        return [table.log for table in vector.tables]

    assert logs(np.int64(3)) == logs(3) and logs(np.array([4, 5])) == logs([4, 5])


def test_an_id_that_is_no_number_is_refused_before_any_answer_is_taken() -> None:
    vector = TableVector(Coins, 1)
    vector.reset(seed=0)
    request = vector.pending()[0]
    for wrong in ([1], "1", True, None):
        with pytest.raises(TypeError, match="a request id is a number"):
            vector.submit([(request.request_id, "heads"), (wrong, "heads")])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="a request id is a number"):
            vector.expire([request.request_id, wrong])  # type: ignore[list-item]
    assert request in vector.pending() and vector.stats()["taken"] == 0
    with pytest.raises(ConfigError, match="limit of pending"):
        vector.pending(limit=-1)


@pytest.mark.parametrize("penalty", [float("inf"), float("nan"), -0.1, True, "much"])
def test_a_penalty_is_a_finite_number(penalty: Any) -> None:
    with pytest.raises(ConfigError, match="invalid_penalty must be"):
        Table(Secret(), invalid_penalty=penalty)


def test_tables_after_one_with_wrong_options_begin_when_asked_again() -> None:
    vector = TableVector(Coins, 3)
    vector.reset(seed=0, options=[None, {"odd": 1}, None])
    with pytest.raises(ConfigError, match="no option 'odd'"):
        vector.pending()
    assert {request.table for request in vector.pending()} == {0, 2}


def test_a_seating_that_raises_leaves_its_table_without_a_game() -> None:
    def seating(table: int, seat: int, role: str) -> str:
        if table == 1:
            raise LookupError("no seat")
        return "a"

    vector = TableVector(Coins, 2, seating, auto_reset=False)
    vector.reset(seed=0)
    with pytest.raises(LookupError, match="no seat"):
        vector.pending()
    while requests := vector.pending():
        vector.submit([(request.request_id, "heads") for request in requests])
    assert not vector.is_open and [record.table for record in vector.drain_episodes()] == [0]


def test_abandoned_games_leave_nothing_open() -> None:
    vector = TableVector(Coins, 3, lambda table, seat, role: "own" if seat else "a", scripted={"own": "random"})
    vector.reset(seed=0)
    requests = vector.pending()
    vector.submit([(requests[0].request_id, "heads")])
    vector.abandon()
    assert not (vector.is_open or vector.pending() or vector.drain() or vector.drain_episodes())
    assert not any(receipt.is_taken for receipt in vector.submit([(one.request_id, "heads") for one in requests]))
    vector.begin(1, seed=4)
    assert [request.table for request in vector.pending()] == [1]


def test_one_player_cannot_be_in_two_games_at_once_but_in_one_after_the_other() -> None:
    shared = make_player("random", Coins())
    for tables, seats, where in ((1, (0, 2), "seat 0 of table 0 and at seat 2 of table 0"), (2, (1,), "1 of table 1")):
        vector = TableVector(Coins, tables, lambda table, seat, role, seats=seats: shared if seat in seats else "a")  # type: ignore[misc]
        vector.reset(seed=0)
        with pytest.raises(ConfigError, match=f"one RandomPlayer cannot play at .*{where} at once: give every seat"):
            vector.pending()
    places = [0, 1, 2]
    moving = TableVector(Coins, 1, lambda table, seat, role: shared if seat == places[0] else "a")
    moving.reset(seed=0)
    while places:
        for _ in range(3):
            moving.submit([(request.request_id, "heads") for request in moving.pending()])
        places.pop(0)
    assert [record.policies.index("random") for record in moving.drain_episodes()] == [0, 1, 2]
    pool = [make_player("random", Coins()) for _ in range(3)]
    scripted = TableVector(Coins, 4, lambda table, seat, role: pool[seat], auto_reset=False)
    scripted.reset(seed=0)
    assert scripted.pending() == [] and len(scripted.drain_episodes()) == 4


# Rewards.


class Generous(Secret):
    """Pays both seats for every turn, whoever took it."""

    name = "generous"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        return [1 + reward for reward in super().commit(actions)]


def test_what_a_seat_earns_before_its_first_answer_counts_with_that_answer() -> None:
    vector = TableVector(Generous, 3, invalid_penalty=0.25, auto_reset=False)
    vector.reset(seed=0)
    for number in range(100):
        requests = vector.pending()
        vector.submit([(request.request_id, "" if number % 4 == 1 else "1") for request in requests])
    steps, records = vector.drain(), vector.drain_episodes()
    assert len(records) == 3
    for record in records:
        sums = [sum(s.reward for s in steps if (s.request.table, s.request.seat) == (record.table, n)) for n in (0, 1)]
        assert sums == list(record.returns) and min(sums) >= 3.5
    env = SeatEnv(f"{__name__}:Generous", seat="player_1", opponents="honest")
    env.reset(seed=0)
    rewards = [float(env.step("1")[1]) for _ in range(2)]
    assert sum(rewards) == env.table.returns[1] and rewards[0] >= 3


@pytest.mark.parametrize("game_id", [*games_without_packages(), "toy_games:Spies", "toy_games:Coins"])
def test_cumulative_rewards_and_steps_add_up_to_the_returns_of_the_table(game_id: str) -> None:
    env = make_aec(game_id, invalid_penalty=0.5)
    env.reset(seed=4)
    sums, draw = dict.fromkeys(env.possible_agents, 0.0), stream("texts", game_id)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        sums[agent] += reward
        legal = info["legal_actions"]
        text = "\ud800?" if draw.random() < 0.2 else legal[int(draw.integers(len(legal)))] if legal else SILENCE
        env.step(None if terminated or truncated else text)
    assert list(sums.values()) == pytest.approx(env.table.returns, abs=1e-9)


# Names.


class Nameless(Secret):
    name = ""


class Demanding(Player):
    """Has an option without a default."""

    def __init__(self, what: object) -> None:
        self.what = what

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        return ""


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: make_player(":x", Secret()), UnknownName, "no player ':x'. Write it as 'module:Class'"),
        (lambda: make_player("..x:y", Secret()), UnknownName, "no player '..x:y'"),
        (lambda: make_player(f"{__name__}:", Secret()), UnknownName, "Write it as 'module:Class'"),
        (lambda: make_player(f"{__name__}:Demanding", Secret()), ConfigError, "option without a default .*'what'"),
        (lambda: make_player("turngym.envs.multiagent:Player", Secret()), ConfigError, "not complete: define act, be"),
        (lambda: make_game(":x"), UnknownName, "no game ':x'. Write it as 'module:Class'"),
        (lambda: make_game("turngym.envs.multiagent:Game"), ConfigError, "not complete: define anchor, asked"),
        (lambda: make_game(f"{__name__}:Nameless"), ConfigError, "Nameless needs a name: a class attribute"),
    ],
)
def test_a_wrong_path_of_a_class_is_explained(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_what_is_no_path_is_no_game() -> None:
    assert not any(map(is_game, (":X", "..x:Y", "x y:Z", "toy_games:", "no_such_module:X")))
    assert is_game("toy_games:Spies")


def test_an_action_for_an_agent_that_does_not_exist_is_named() -> None:
    env = make_parallel("toy_games:Coins")
    env.reset(seed=0)
    with pytest.raises(UnknownName, match=r"coins has no agent 'player0'\. Did you mean 'player_0'"):
        env.step({"player0": "heads"})
