"""Damaged snapshots: refused with the episode untouched, or accepted with an environment that works; never a crash."""

import json
import random
from typing import Any

import gymnasium
import pytest
from damaged_snapshots import fuzz, mutated
from fuzzing import fuzz_count
from kinds import kinds
from toy_envs import Counter

from turngym.envs.multiagent import Table, TableVector, make_aec, make_game, make_parallel
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.registration import specs
from turngym.errors import ConfigError, MissingExtra
from turngym.wrappers.wrapping import wrapping

COUNT = fuzz_count(10)
HEAVY = ("turngym.envs.web.", "turngym.envs.desktop.", "turngym.envs.tools.")
"""Environments that start a browser, a display or a sandbox at every restore."""
IDS = [id for id in kinds() if not specs()[id].extra and not specs()[id].entry_point.startswith(HEAVY)]


@pytest.mark.parametrize("env_id", IDS)
def test_damaged_snapshots_are_refused_or_leave_a_working_environment(env_id: str) -> None:
    try:
        row = fuzz(env_id, COUNT, seed=1)
    except MissingExtra as error:
        pytest.skip(str(error))
    assert row["broken"] == 0, row["examples"]
    assert row["refused"] > 0


class Brittle(Counter):
    """Takes anything, and finds out too late."""

    def load_state(self, state: Any) -> None:
        self.count = state["count"]
        for kind in (OverflowError, RecursionError, RuntimeError, AssertionError, EOFError):
            if state["count"] == kind.__name__:
                raise kind("too late")


def changed(snapshot: bytes, **parts: Any) -> bytes:
    return json.dumps({**json.loads(snapshot), **parts}).encode()


BAD: dict[str, dict[str, Any]] = {
    "generator": {"generator": {"bit_generator": "PCG64", "state": {"state": 10**400, "inc": 1}}},
    "negative generator": {"generator": {"bit_generator": "PCG64", "state": {"state": -1, "inc": 1}}},
    "overflow": {"state": {"count": "OverflowError"}},
    "recursion": {"state": {"count": "RecursionError"}},
    "runtime": {"state": {"count": "RuntimeError"}},
    "assertion": {"state": {"count": "AssertionError"}},
    "end": {"state": {"count": "EOFError"}},
    "turn": {"turn": True},
    "ended but running": {"success": 1},
    "a part too much": {"more": 1},
    "observation": {"observation": None},
    "count": {"state": {"count": None}},
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("wrapper", ["", "history:k=2"])
def test_a_refused_snapshot_changes_nothing(name: str, wrapper: str) -> None:
    """Whatever the state makes the environment raise, and with a wrapper around it too."""
    env: Any = Brittle()
    for wrap in wrapping(*([wrapper] if wrapper else [])):
        env = wrap(env)
    env.reset(seed=3)
    env.step("up")
    saved = env.snapshot()
    content = json.loads(saved)
    inner = json.dumps(content["inner"] if wrapper else content).encode()
    bad = changed(inner, **BAD[name])
    env.step("up")
    before = env.snapshot()
    with pytest.raises(ConfigError):
        env.restore(changed(saved, inner=json.loads(bad)) if wrapper else bad)
    assert env.snapshot() == before
    assert env.step("down")[4]["anchor"] == "1 of 3"
    env.restore(saved)
    assert env.snapshot() == saved


@pytest.mark.parametrize("bad", [b"[" * 200_000, b"9" * 5000, b"", b"\xff", None, 7, b'{"format": 1}'])
def test_what_is_no_snapshot_is_a_config_error(bad: Any) -> None:
    env = Counter()
    with pytest.raises(ConfigError, match="not a snapshot"):
        env.restore(bad)
    for wrap in wrapping("history:k=2"):
        with pytest.raises(ConfigError):
            wrap(Counter()).restore(bad)  # type: ignore[attr-defined]


def test_an_environment_without_an_episode_has_none_after_a_refusal() -> None:
    source = Brittle()
    source.reset(seed=0)
    env, twin = Brittle(), Brittle()
    for each in (env, twin):
        each.np_random = gymnasium.utils.seeding.np_random(5)[0]
    with pytest.raises(ConfigError):
        env.restore(changed(source.snapshot(), state={"count": "RuntimeError"}))
    with pytest.raises(RuntimeError, match="before an episode has started"):
        env.step("up")
    assert env.reset() == twin.reset() or str(env.reset()) == str(twin.reset())


def test_a_bad_house_does_not_break_the_next_snapshot() -> None:
    env: Any = gymnasium.make("turngym/Household-v0").unwrapped
    env.reset(seed=0)
    saved = env.snapshot()
    for damage in ([["fridge", 10**400]], [["fridge", 1]], [], None, [["fridge", True]]):
        content = json.loads(saved)
        content["state"]["game"][1] = damage
        with pytest.raises(ConfigError):
            env.restore(json.dumps(content).encode())
        assert env.snapshot() == saved
    env.restore(saved)
    assert env.snapshot() == saved


@pytest.mark.parametrize("game", ["turngym/KuhnPoker-v0", "turngym/Bargaining-v0", "turngym/Werewolf-v0"])
def test_damaged_snapshots_of_games_between_seats_are_refused_or_work(game: str) -> None:
    """Tables, PettingZoo's two views and vectors of tables."""
    table, draw = Table(make_game(game)), random.Random(3)
    saved = []
    for seed in range(3):
        begin_game(table, seed)
        for _ in range(3):
            saved.append(table.snapshot())
            if not table.is_over:
                table.answer(table.pending[0], "pass")
    for _ in range(60):
        table.restore(draw.choice(saved))
        before = table.snapshot()
        try:
            table.restore(mutated(draw, saved))
        except ConfigError:
            assert table.snapshot() == before
            continue
        again = table.snapshot()
        table.restore(again)
        assert table.snapshot() == again
        if not table.is_over:
            table.answer(table.pending[0], "anything")


@pytest.mark.parametrize("make", [make_aec, make_parallel])
def test_damaged_snapshots_of_pettingzoo_views_are_refused(make: Any) -> None:
    env, draw = make("turngym/KuhnPoker-v0"), random.Random(4)
    env.reset(seed=0)
    saved = env.snapshot()
    for _ in range(80):
        env.restore(saved)
        try:
            env.restore(mutated(draw, [saved]))
        except ConfigError:
            assert env.snapshot() == saved


def test_damaged_snapshots_of_a_vector_of_tables_are_refused() -> None:
    vector, draw = TableVector("turngym/KuhnPoker-v0", 2), random.Random(5)
    vector.reset(seed=1)
    vector.pending()
    saved = vector.snapshot(0)
    for _ in range(80):
        vector.restore(0, saved)
        before = vector.snapshot(0)
        try:
            vector.restore(0, mutated(draw, [saved]))
        except ConfigError:
            assert vector.snapshot(0) == before
