"""Snapshots of tables, of PettingZoo's views and of vectors: every generator, every moment, nothing by halves."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from toy_games import Coins, Secret

from turngym.envs.multiagent import (
    Game,
    Player,
    SeatView,
    Table,
    TableVector,
    make_aec,
    make_game,
    make_parallel,
)
from turngym.envs.multiagent.hosted import PlayerError, begin_game
from turngym.errors import ConfigError
from turngym.types import JSONValue

GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


def generator(kind: str) -> np.random.Generator:
    return np.random.Generator(getattr(np.random, kind)(3))


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_snapshot_holds_a_generator_of_any_kind(kind: str) -> None:
    table, twin = Table(Coins(2, rounds=6)), Table(Coins(2, rounds=6))
    table.reset(generator(kind))
    for seat in (0, 1):
        table.answer(seat, "heads")
    twin.restore(table.snapshot())
    assert twin.snapshot() == table.snapshot() and type(twin.generator.bit_generator).__name__ == kind
    for one in (table, twin):
        while not one.is_over:
            one.answer(one.pending[0], "tails")
    assert twin.log == table.log and len({line.text for line in table.log}) > 3


def test_games_begun_by_seed_leave_the_callers_generator_alone_and_need_no_kind_of_it() -> None:
    table, fresh, given = Table(Coins()), Table(Coins()), generator("Philox")
    table.reset(given)
    before = str(given.bit_generator.state)
    begin_game(table, 5)
    begin_game(fresh, 5)
    assert table.snapshot() == fresh.snapshot() and str(given.bit_generator.state) == before


def test_a_generator_that_numpy_does_not_have_is_a_damaged_snapshot() -> None:
    table = Table(Coins())
    table.reset(generator("PCG64"))
    content = json.loads(table.snapshot())
    content["generator"]["bit_generator"] = "Generator"
    with pytest.raises(ConfigError, match=r"damaged snapshot .*no generator of the kind 'Generator'"):
        table.restore(json.dumps(content).encode())


def test_a_table_without_a_game_stays_without_one_after_a_damaged_snapshot() -> None:
    table, fresh = Table(Secret()), Table(Secret())
    table.reset(generator("PCG64"))
    content = json.loads(table.snapshot())
    del content["is_over"]
    with pytest.raises(ConfigError, match="damaged snapshot"):
        fresh.restore(json.dumps(content).encode())
    assert (fresh.pending, fresh.log, fresh.views[0].lines) == ((), [], [])


@pytest.mark.parametrize(("name", "seats"), [("asked", [1]), ("pending", [0]), ("asked", [])])
def test_a_snapshot_that_waits_for_others_than_it_asks_is_damaged(name: str, seats: list[int]) -> None:
    table = Table(Coins(2))
    table.reset(generator("PCG64"))
    before = table.snapshot()
    content = {**json.loads(before), name: seats}
    with pytest.raises(ConfigError, match="waits for"):
        table.restore(json.dumps(content).encode())
    assert table.snapshot() == before


def test_a_snapshot_that_asks_others_than_its_game_does_is_damaged() -> None:
    table = Table(make_game("turngym/PriceNegotiation-v0"))
    table.reset(generator("PCG64"))
    content = json.loads(table.snapshot())
    over = {"is_over": True, "pending": [], "asked": []}
    for wrong in (over, {"pending": [1], "asked": [1]}, {"state": {**content["state"], "is_over": True}}):
        with pytest.raises(ConfigError, match="in a game that asks"):
            table.restore(json.dumps({**content, **wrong}).encode())


def test_a_snapshot_of_another_table_names_what_differs() -> None:
    table = Table(Secret(), retries=2)
    table.reset(generator("PCG64"))
    with pytest.raises(ConfigError, match=r"a table with \{.*'retries': 2\}, not to one with \{'retries': 1"):
        Table(Secret()).restore(table.snapshot())
    with pytest.raises(ConfigError, match="has the format 7, not 1"):
        table.restore(table.snapshot().replace(b'"format": 1', b'"format": 7'))


def test_a_game_whose_agents_are_all_gone_can_be_restored() -> None:
    env = make_aec("toy_games:Secret")
    env.reset(seed=1)
    for agent in env.agent_iter():
        env.step(None if env.terminations[agent] else "1")
    twin = make_aec("toy_games:Secret")
    twin.restore(env.snapshot())
    assert twin.agents == env.agents == [] and twin.table.is_over and twin.infos == {}
    twin.reset(seed=1)
    assert twin.agents == ["player_0", "player_1"]


def test_what_is_no_snapshot_of_a_view_is_refused_before_anything_changes() -> None:
    env, both = make_aec("toy_games:Secret"), make_parallel("toy_games:Secret")
    env.reset(seed=1)
    both.reset(seed=2)
    before, content = env.snapshot(), json.loads(env.snapshot())
    bad = [{**content, "table": 3}, {**content, "agents": 3}, {**content, "sums": {}}]
    for snapshot in (both.snapshot(), *[json.dumps(one).encode() for one in bad]):
        with pytest.raises(ConfigError, match="not a snapshot of turngym's TableAEC"):
            env.restore(snapshot)
        assert env.snapshot() == before


class Forgetful(Player):
    """Cannot take up what it remembered."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        return "heads"

    def load(self, state: JSONValue) -> None:
        raise KeyError("lost")


def coins_with(player: Callable[[Game], Player] | str) -> TableVector:
    vector = TableVector(Coins, 2, lambda table, seat, role: "own" if seat == 2 else "a", scripted={"own": player})
    vector.reset(seed=0)
    vector.pending()
    return vector


def test_a_player_that_cannot_remember_leaves_no_half_restored_game() -> None:
    vector = coins_with(lambda game: Forgetful())
    snapshot = vector.snapshot(0)
    with pytest.raises(
        PlayerError, match=r"'Forgetful' at player_2 of coins raised KeyError: 'lost' \(test_table_snapshots"
    ):
        vector.restore(0, snapshot)
    assert {request.table for request in vector.pending()} == {1}
    vector.begin(0, seed=7)
    assert {request.table for request in vector.pending()} == {0, 1}


@pytest.mark.parametrize("missing", ["turns", "episode", "options", "open", "is_playing"])
def test_a_damaged_snapshot_of_a_table_changes_nothing(missing: str) -> None:
    vector = coins_with("random")
    vector.submit([(vector.pending()[0].request_id, "heads")])
    before, requests = vector.snapshot(0), vector.pending()
    content = json.loads(before)
    del content[missing]
    with pytest.raises(ConfigError, match=f"not a snapshot .*{missing}"):
        vector.restore(0, json.dumps(content).encode())
    assert vector.snapshot(0) == before and vector.pending() == requests


def test_an_answer_that_came_along_to_another_table_is_recorded_there() -> None:
    vector = coins_with("random")
    vector.submit([(vector.pending()[0].request_id, "heads")])
    vector.restore(1, vector.snapshot(0))
    while len(vector.drain_episodes()) < 2:
        vector.submit([(request.request_id, "tails") for request in vector.pending()])
    first = {record.request.table: record for record in reversed(vector.drain()) if record.text == "heads"}
    assert set(first) == {0, 1} and first[0].reward == first[1].reward
