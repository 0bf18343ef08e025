"""Rules and players that break, and snapshots of tables: one table's trouble is its own."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from table_views import Careless
from test_table_vector import answer
from toy_games import Coins, Secret

from turngym.envs.multiagent import Player, SeatView, TableVector
from turngym.errors import ConfigError, EpisodeOver
from turngym.types import INFO_TYPES


class Broken(Coins):
    """Raises where it is told to, in games whose first coin is heads."""

    where = "commit"

    def _break(self, where: str) -> None:
        if where == self.where and self.coins[:1] == [0]:
            raise RuntimeError(f"broken {where}")

    def read(self, seat: int, text: str) -> str:
        self._break("read")
        return super().read(seat, text)

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        self._break("commit")
        return super().commit(actions)

    def prompt(self, seat: int) -> str:
        self._break("prompt")
        return super().prompt(seat)

    def winners(self) -> tuple[int, ...]:
        self._break("winners")
        return super().winners()


class NeverBegins(Coins):
    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        raise RuntimeError("broken begin")


class Rude(Player):
    """Raises, or gives no text, in its second turn."""

    def __init__(self, what: object) -> None:
        self.what = what

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        self.turns = 0

    def act(self, view: SeatView) -> str:
        self.turns += 1
        if self.turns < 2:
            return "heads"
        if isinstance(self.what, Exception):
            raise self.what
        return self.what  # type: ignore[return-value]


class CannotBegin(Rude):
    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        raise OSError("no model")


def finished(vector: TableVector) -> TableVector:
    while vector.is_open:
        vector.submit([(request.request_id, answer(request)) for request in vector.pending()])
    return vector


@pytest.mark.parametrize("where", ["read", "commit", "prompt", "winners"])
def test_broken_rules_end_the_game_at_their_table_and_nowhere_else(where: str) -> None:
    def make(rules: type[Coins]) -> TableVector:
        vector = TableVector(rules, 12, "a", auto_reset=False)
        vector.reset(seed=1)
        return finished(vector)

    broken_rules = type("BrokenHere", (Broken,), {"where": where})
    vector, sound = make(broken_rules), make(Coins)
    expected = {record.table: record for record in sound.drain_episodes()}
    coins = [table.game.coins[0] for table in sound.tables if isinstance(table.game, Coins)]
    assert set(coins) == {0, 1}
    for record in vector.drain_episodes():
        if coins[record.table]:
            assert record.transcript_sha256 == expected[record.table].transcript_sha256
        else:
            assert (record.status, record.fault_seat) == ("env_error", -1)
            assert record.fault == f"RuntimeError: broken {where} (test_table_faults.py, line 25)"
            assert record.transcript_sha256 == ""
            assert record.seed == expected[record.table].seed and record.policies == ("a", "a", "a")
    steps = vector.drain()
    assert any(step.truncated for step in steps)
    for step in steps:
        assert step.truncated == (step.info["fault"] != "") and not (step.truncated and step.terminated)
        assert {key: type(value) for key, value in step.info.items()} == INFO_TYPES
    assert vector.stats() | sound.stats() != vector.stats() and vector.stats()["env_error"] == coins.count(0)


def test_a_table_goes_on_with_the_next_game_after_a_fault() -> None:
    vector = TableVector(Broken, 1, "a")
    vector.reset(seed=0)
    for _ in range(60):
        vector.submit([(request.request_id, answer(request)) for request in vector.pending()])
    statuses = [record.status for record in vector.drain_episodes()]
    assert {"ok", "env_error"} == set(statuses)


def test_rules_that_cannot_begin_are_recorded_once_per_call() -> None:
    vector = TableVector(NeverBegins, 2, "a")
    vector.reset(seed=0)
    assert vector.pending() == [] and vector.stats()["env_error"] == 2
    assert vector.pending() == [] and vector.stats()["env_error"] == 4
    assert {record.fault for record in vector.drain_episodes()} == {
        "RuntimeError: broken begin (test_table_faults.py, line 46)"
    }


@pytest.mark.parametrize(
    ("player", "message"),
    [
        (
            Rude(ValueError("no")),
            "the player 'Rude' at player_1 of coins raised ValueError: no (test_table_faults.py, line 63).",
        ),
        (Rude(None), "the player 'Rude' answered with NoneType instead of a text."),
        (Rude(b"heads"), "the player 'Rude' answered with bytes instead of a text."),
        (
            CannotBegin(0),
            "the player 'CannotBegin' at player_1 of coins raised OSError: no model (test_table_faults.py, line 69).",
        ),
    ],
)
def test_a_broken_player_ends_the_game_at_its_table_and_is_named(player: Player, message: str) -> None:
    def policy(table: int, seat: int, role: str) -> str | Player:
        return player if table == 1 and seat == 1 else "a"

    vector = TableVector(Coins, 3, policy, auto_reset=False)
    vector.reset(seed=1)
    one, broken, three = finished(vector).drain_episodes()
    assert (one.status, broken.status, three.status) == ("ok", "agent_error", "ok")
    assert (broken.fault, broken.fault_seat) == (message, 1)
    assert vector.stats()["agent_error"] == 1


def test_open_questions_of_a_table_that_broke_are_withdrawn() -> None:
    vector = TableVector(type("BrokenRead", (Broken,), {"where": "read"}), 8, "a", auto_reset=False)
    vector.reset(seed=1)
    vector.submit([(request.request_id, "heads") for request in vector.pending()])
    receipts = vector.submit([(request.request_id, "heads") for request in vector.pending()])
    broken = vector.stats()["env_error"]
    assert 0 < broken < 8
    assert sum(not receipt.is_taken for receipt in receipts) == 2 * broken
    assert len(vector.pending()) == 3 * (8 - broken)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TableVector("toy_games:Secret", 0), "num_tables must be a whole number of at least 1, got 0"),
        (lambda: TableVector("toy_games:Secret", 2, seat_policy=3), "seat_policy must be the name"),  # type: ignore[arg-type]
        (lambda: TableVector("toy_games:Secret", 2).reset([1]), "one entry per table: got 1 for 2"),
        (lambda: TableVector("toy_games:Secret", 2).reset(1, [None]), "options of reset.* got 1 for 2"),
        (lambda: TableVector("toy_games:Secret", 2).snapshot(2), "there is no table 2: the tables are 0 to 1"),
        (lambda: TableVector("toy_games:Secret", 2, retries=-1), "retries must be a whole number"),
    ],
)
def test_wrong_use_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_wrong_options_and_seatings_are_raised_and_not_recorded() -> None:
    vector = TableVector(Secret, 1)
    vector.reset(seed=0, options={"digits": 3})
    with pytest.raises(ConfigError, match="no option 'digits'"):
        vector.pending()
    strange = TableVector(Secret, 1, lambda table, seat, role: 3)  # type: ignore[arg-type,return-value]
    strange.reset(seed=0)
    with pytest.raises(ConfigError, match="must return the name of a policy or a Player, got 3"):
        strange.pending()


# Snapshots.


def careless(table: int, seat: int, role: str) -> str:
    return "outside" if seat % 2 == 0 else "inside"


def half_played(game: str, answers: int) -> TableVector:
    """Return a vector in the middle of a game: at a simultaneous decision some seats have answered."""
    vector = TableVector(
        game, 2, careless, scripted={"inside": lambda game: Careless()}, auto_reset=False, invalid_penalty=0.1
    )
    vector.reset(seed=2)
    vector.pending()
    for _ in range(answers):
        request = vector.pending()[-1]
        vector.submit([(request.request_id, answer(request))])
    return vector


def rest(vector: TableVector, table: int) -> tuple[Any, ...]:
    """Play a table to its end; return its record and its steps without ids."""
    while requests := [request for request in vector.pending() if request.table == table]:
        vector.submit([(request.request_id, answer(request)) for request in requests[-1:]])
    steps = [
        (s.request.seat, s.request.turn, s.request.observation, s.text, s.action, s.reward, s.terminated, s.info)
        for s in vector.drain()
        if s.request.table == table
    ]
    return [record for record in vector.drain_episodes() if record.table == table], steps


@pytest.mark.parametrize("game", ["toy_games:Secret", "toy_games:Coins", "toy_games:Spies"])
@pytest.mark.parametrize("answers", [0, 1, 2, 3, 4])
def test_a_branch_from_a_snapshot_is_the_game_that_would_have_been(game: str, answers: int) -> None:
    vector = half_played(game, answers)
    vector.drain()
    vector.drain_episodes()
    table = 1
    snapshot = vector.snapshot(table)
    assert vector.snapshot(table) == snapshot and json.loads(snapshot)["format"] == 1
    stale = [request for request in vector.pending() if request.table == table]
    original = rest(vector, table)
    for other in (vector, half_played(game, 0)):
        other.drain()
        other.drain_episodes()
        other.restore(table, snapshot)
        assert other.snapshot(table) == snapshot
        if other is vector:
            assert not any(receipt.is_taken for receipt in other.submit([(r.request_id, "x") for r in stale]))
        assert rest(other, table) == original


def test_a_game_can_be_branched_to_another_table() -> None:
    vector = half_played("toy_games:Spies", 2)
    vector.restore(0, vector.snapshot(1))
    assert vector.tables[0].log == vector.tables[1].log and vector.tables[0].returns == vector.tables[1].returns
    assert {request.table for request in vector.pending()} == {0, 1}


def test_a_restored_game_goes_on_to_the_next_game_of_its_series() -> None:
    vector = TableVector(lambda: Coins(2, rounds=1), 1, "a")
    vector.reset(seed=4)
    vector.pending()
    snapshot = vector.snapshot(0)
    seeds = []
    for _ in range(2):
        for _ in range(3):
            vector.submit([(request.request_id, "heads") for request in vector.pending()])
        seeds.append([(record.episode, record.seed) for record in vector.drain_episodes()])
        vector.restore(0, snapshot)
    assert seeds[0] == seeds[1] and len(set(seeds[0])) == 3


def damage(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def damaged(snapshot: bytes) -> bytes:
        content = json.loads(snapshot)
        change(content)
        return json.dumps(content).encode()

    return damaged


def rename_game(content: dict[str, Any]) -> None:
    content["hosted"]["table"] = content["hosted"]["table"].replace("secret", "chess")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda snapshot: b"{", "bytes that are not a snapshot"),
        (lambda snapshot: b"[]", "bytes that are not a snapshot"),
        (damage(lambda content: content.pop("hosted")), "bytes that are not a snapshot .*hosted"),
        (damage(lambda content: content["hosted"].pop("players")), "bytes that are not a snapshot"),
        (damage(lambda content: content.update(policies=["outside"] * 2)), "was taken with the players"),
        (damage(lambda content: content["hosted"].update(table="{}")), "not a snapshot of turngym"),
        (damage(rename_game), "this snapshot belongs to chess"),
    ],
)
def test_what_is_no_snapshot_of_this_table_is_refused(change: Callable[[bytes], bytes], message: str) -> None:
    vector = half_played("toy_games:Secret", 1)
    before = vector.snapshot(0)
    with pytest.raises(ConfigError, match=message):
        vector.restore(0, change(before))
    assert vector.snapshot(0) == before


def test_there_is_no_snapshot_before_the_first_game() -> None:
    vector = TableVector(Secret, 1)
    vector.reset(seed=0)
    with pytest.raises(EpisodeOver, match="before its first game: call pending"):
        vector.snapshot(0)
