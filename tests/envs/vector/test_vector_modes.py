"""Vectors mean what Gymnasium's mean: modes, infos, masks, options."""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import Picture, Reused

from turngym.envs.spaces import UnicodeTuple
from turngym.envs.vector import Infos, TextVectorEnv, make_vec
from turngym.errors import ConfigError, EpisodeOver
from turngym.types import INFO_TYPES

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]
BACKENDS = ["sync", "thread", "asyncio", "process"]


def assert_same(ours: Any, theirs: Any) -> None:
    """Fail unless two values are equal in type, dtype and content, nan included."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key])
    elif isinstance(theirs, np.ndarray) and theirs.dtype != object:
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    elif isinstance(theirs, np.ndarray | tuple):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    else:
        assert type(ours) is type(theirs)
        assert ours == theirs or (ours != ours and theirs != theirs)


def scripted(turn: int, count: int) -> list[str]:
    """Return actions that end the slots' episodes at different turns."""
    return ["up" if (turn + slot) % (slot + 2) else "down" for slot in range(count)]


@pytest.fixture
def theirs() -> Iterator[list[SyncVectorEnv]]:
    opened: list[SyncVectorEnv] = []
    yield opened
    for vector in opened:
        vector.close()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_everything_equals_gymnasium_in_each_mode(
    mode: AutoresetMode, backend: str, theirs: list[SyncVectorEnv]
) -> None:
    """A learner written for Gymnasium's vectors would otherwise see other episodes here."""
    theirs.append(SyncVectorEnv([lambda: gymnasium.make("toy/Counter-v0")] * 3, autoreset_mode=mode))
    ours = make_vec("toy/Counter-v0", 3, backend=backend, num_workers=2, autoreset_mode=mode)
    assert_same(ours.reset(seed=5), theirs[0].reset(seed=5))
    ended = 0
    for turn in range(40):
        actions = scripted(turn, 3)
        mine, other = ours.step(actions), theirs[0].step(actions)
        assert_same(mine, other)
        done = mine[2] | mine[3]
        ended += int(done.sum())
        if mode is AutoresetMode.DISABLED and done.any():
            assert_same(ours.reset(options={"reset_mask": done}), theirs[0].reset(options={"reset_mask": done.copy()}))
    assert ended > 6
    ours.close()


@pytest.mark.parametrize("mode", MODES[:2])
def test_foreign_environments_with_sparse_nested_infos_equal_gymnasium(
    mode: AutoresetMode, theirs: list[SyncVectorEnv]
) -> None:
    theirs.append(SyncVectorEnv([Picture] * 2, autoreset_mode=mode))
    ours = make_vec(env_fns=[Picture] * 2, autoreset_mode=mode)
    assert_same(ours.reset(seed=1), theirs[0].reset(seed=1))
    for _ in range(9):
        mine, other = ours.step(["look", "look"]), theirs[0].step(("look", "look"))
        assert_same(mine[1:], other[1:])
        np.testing.assert_array_equal(mine[0]["image"], other[0]["image"])
        assert tuple(mine[0]["text"]) == tuple(other[0]["text"])


def test_numeric_environments_equal_gymnasium(theirs: list[SyncVectorEnv]) -> None:
    theirs.append(SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 3))
    ours = make_vec("CartPole-v1", 3)
    assert_same(ours.reset(seed=3), theirs[0].reset(seed=3))
    for turn in range(60):
        actions = np.array([turn % 2, 0, 1])
        assert_same(ours.step(actions), theirs[0].step(actions))


def test_a_subset_is_stepped_in_the_order_given() -> None:
    vector, twin = make_vec("toy/Counter-v0", 4), make_vec("toy/Counter-v0", 4)
    vector.reset(seed=0)
    twin.reset(seed=0)
    whole = twin.step(["up"] * 4)
    observations, rewards, terminations, truncations, infos = vector.step(["up", "up"], indices=[3, 1])
    assert observations == (whole[0][3], whole[0][1])
    assert len(rewards) == len(terminations) == len(truncations) == 2
    assert list(infos["anchor"]) == [whole[4]["anchor"][3], whole[4]["anchor"][1]]
    observations, *_ = vector.step(["up", "up"], indices=[0, 2])  # the others have not been stepped meanwhile
    assert observations == (whole[0][0], whole[0][2])
    nothing = vector.step([], indices=[])
    assert nothing[0] == () and nothing[1].dtype == np.float64 and nothing[4].rows == []


def test_members_of_a_group_start_alike() -> None:
    vector = make_vec("toy/Counter-v0", 4)
    observations, _ = vector.reset(seed=[7, 7, 7, 8])
    assert len(set(observations[:3])) == 1 and observations[3] != observations[0]
    options = {"slot_options": [{"task": 1}, None, {"task": 2}, {}]}
    assert [text.split(",")[0] for text in vector.reset(seed=1, options=options)[0]] == [
        "count 1",
        "count 0",
        "count 2",
        "count 0",
    ]
    assert vector.reset(options={"task": 2})[1].rows[3]["anchor"] == "2 of 3"


def test_a_masked_reset_leaves_the_others_alone() -> None:
    vector = make_vec("toy/Counter-v0", 3, autoreset_mode="disabled")
    vector.reset(seed=0)
    before = vector.step(["up"] * 3)[0]
    options = {"reset_mask": np.array([False, True, False])}
    observations, infos = vector.reset(seed=[9, 9, 9], options=options)
    assert observations[0] == before[0] and observations[2] == before[2] and observations[1] != before[1]
    assert list(infos["_anchor"]) == [False, True, False] and infos.rows[0] == {}
    assert "reset_mask" in options  # the caller's dict stays as it was


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_first_ready_stepping_gives_the_same_episodes(backend: str, mode: AutoresetMode) -> None:
    """Each slot's transcript must not depend on when its answers were fetched."""
    vector = make_vec("toy/Counter-v0", 3, backend=backend, num_workers=2, autoreset_mode=mode)
    twin = make_vec("toy/Counter-v0", 3, autoreset_mode=mode)
    for each in (vector, twin):
        each.reset(seed=2)
    texts: list[list[Any]] = [[] for _ in range(3)]
    turns = [0, 0, 0]
    vector.send(scripted(0, 3))
    while min(turns) < 12:
        slots, observations, rewards, terminations, truncations, infos = vector.recv(min_ready=1)
        for position, slot in enumerate(slots):
            row = infos.rows[position]
            texts[slot].append((observations[position], rewards[position], row))
            turns[slot] += 1
            if mode is AutoresetMode.DISABLED and (terminations[position] or truncations[position]):
                vector.reset(seed=[turns[slot]] * 3, options={"reset_mask": np.arange(3) == slot})
            vector.send([scripted(turns[slot], 3)[slot]], [slot])
    vector.close()
    for turn in range(12):
        observations, rewards, terminations, truncations, infos = twin.step(scripted(turn, 3))
        for slot in range(3):
            assert texts[slot][turn] == (observations[slot], rewards[slot], infos.rows[slot])
        done = terminations | truncations
        if mode is AutoresetMode.DISABLED and done.any():
            twin.reset(seed=[turn + 1] * 3, options={"reset_mask": done})


def test_gymnasium_make_vec_gives_our_vector() -> None:
    vector = gymnasium.make_vec("turngym/GuessTheNumber-v0", num_envs=3, low=1, high=9)
    assert isinstance(vector, TextVectorEnv) and vector.num_envs == 3
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert vector.observation_space == UnicodeTuple(3) == vector.action_space
    assert vector.call("settings")[1]["high"] == 9
    observations, _ = vector.reset(seed=0)
    assert observations in vector.observation_space
    assert vector.spec is not None and "TextVectorEnv(turngym/GuessTheNumber-v0" in repr(vector)


def test_gymnasium_vector_wrappers_accept_the_infos() -> None:
    inner = make_vec("toy/Counter-v0", 2)
    vector = gymnasium.wrappers.vector.DictInfoToList(gymnasium.wrappers.vector.RecordEpisodeStatistics(inner))
    vector.reset(seed=0)
    for _ in range(2):
        vector.step(["up", "down"])
    infos: Any = vector.step(["up", "down"])[4]
    assert infos[0]["episode"]["l"] == 3 and infos[0]["success"] == 1
    assert "episode" not in infos[1]


def test_mixed_vectors_need_equal_spaces_or_text() -> None:
    with pytest.raises(ConfigError, match='observation="text"'):
        make_vec(["toy/Counter-v0", "toy/Picture-v0"])
    with pytest.raises(ConfigError, match="shows no text"):
        make_vec("CartPole-v1", observation="text")
    vector = make_vec(["toy/Counter-v0", "toy/Picture-v0"], observation="text")
    assert vector.reset(seed=0)[0][1] == "turn 0"
    assert vector.step(["up", "up"])[0][1] == "turn 1"
    same = make_vec(["toy/Counter-v0", "turngym/GuessTheNumber-v0"], num_envs=2)
    assert same.call("env_id") == ("toy/Counter-v0", "turngym/GuessTheNumber-v0")


def test_calls_snapshots_and_attributes_reach_chosen_slots() -> None:
    vector = make_vec("toy/Counter-v0", 3, wrappers=[gymnasium.wrappers.OrderEnforcing])
    vector.reset(seed=0)
    assert vector.call("expert_action") == ("up", "up", "up")
    assert len(set(vector.call("instance_hash", indices=[0, 2]))) == 2
    assert vector.call("add", 2, indices=[1]) == (2,)
    with pytest.raises(ConfigError, match="hide an episode"):
        vector.call("reset")
    vector.set_attr("goal", [5, 6, 7])
    assert vector.get_attr("goal") == (5, 6, 7)
    with pytest.raises(ConfigError, match="3 values"):
        vector.set_attr("goal", [1])


def test_a_snapshot_can_be_restored_into_another_slot() -> None:
    vector = make_vec("toy/Counter-v0", 3, autoreset_mode="disabled")
    vector.reset(seed=0)
    vector.step(["up"] * 3)
    saved = vector.snapshot(indices=[1])
    ahead = [vector.step(["up"], [1])[0] for _ in range(2)]
    with pytest.raises(EpisodeOver):
        vector.step(["up"], [1])
    ended = vector.snapshot([1])
    observations, infos = vector.restore(saved * 2, indices=[1, 2])
    assert observations[0] == observations[1] and infos.rows[0]["anchor"] == "1 of 3"
    again = [vector.step(["up", "up"], [1, 2])[0] for _ in range(2)]
    assert again == [texts * 2 for texts in ahead]
    vector.restore(ended, [0])  # an episode that had ended stays so
    with pytest.raises(EpisodeOver):
        vector.step(["up"], [0])
    with pytest.raises(ConfigError, match="not a snapshot"):
        vector.restore([b"{}"], [0])
    with pytest.raises(ConfigError, match="one snapshot per slot"):
        vector.restore(ended)


def test_infos_are_built_late_and_behave_as_a_dict() -> None:
    rows: list[dict[str, Any]] = [{"score": 1.0, "name": "a"}, {"score": 2.0}]
    infos = Infos(rows)
    assert infos.rows is rows and not dict.__len__(infos)  # nothing is built yet
    assert dict(Infos(rows)).keys() == infos.keys() == {"score", "_score", "name", "_name"}
    assert {**Infos(rows)}.keys() == infos.keys() and len(Infos(rows)) == 4 and "score" in Infos(rows)
    assert list(Infos(rows).get("name", ())) == ["a", None]
    for other in (pickle.loads(pickle.dumps(infos)), copy.deepcopy(infos), copy.copy(Infos(rows))):
        assert_same(dict(other), dict(infos))
        assert other.rows == rows
    infos["extra"] = 1
    assert pickle.loads(pickle.dumps(infos))["extra"] == 1 and "extra" in repr(infos)
    assert infos.pop("extra") == 1 and not {"extra"} & set(infos | {})


def test_the_info_columns_are_typed_as_in_the_table() -> None:
    infos = make_vec("toy/Counter-v0", 2).reset(seed=0)[1]
    kinds = {bool: np.bool_, int: np.int64, float: np.float64}
    assert [key for key in infos if not key.startswith("_")] == list(INFO_TYPES)
    for key, kind in INFO_TYPES.items():
        assert infos[key].dtype == kinds.get(kind, object)


def test_counts_are_kept() -> None:
    vector = make_vec("toy/Counter-v0", 2)
    vector.reset(seed=0)
    for _ in range(4):
        vector.step(["up", "down"])
    counts = {"steps": 7, "resets": 3, "faults": {}, "workers_replaced": 0, "abandoned": 0}
    assert counts.items() <= vector.stats().items()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_environments_may_reuse_their_observations_and_infos(mode: AutoresetMode, backend: str) -> None:
    """Otherwise the last observation of an episode would be the first of the next one, on some backends."""
    with make_vec(env_fns=[Reused] * 2, backend=backend, autoreset_mode=mode) as vector:
        for sends in (False, True):
            require_kept(vector, mode, sends=sends)


def require_kept(vector: TextVectorEnv, mode: AutoresetMode, *, sends: bool) -> None:
    """Play one episode, and demand that what was shown stays as it was."""
    first, infos = vector.reset(seed=0)
    kept = [(first, infos, 0)]
    for turn in range(1, 4):
        actions = np.zeros(2, np.int64)
        if sends:
            vector.send(actions)
            _, observation, _, terminated, _, infos = vector.recv(2)
        else:
            observation, _, terminated, _, infos = vector.step(actions)
        kept.append((observation, infos, 0 if mode is AutoresetMode.SAME_STEP and turn == 3 else turn))
    assert terminated.all()
    if mode is AutoresetMode.SAME_STEP:
        for last, info in zip(infos["final_obs"], infos.rows, strict=True):
            assert last["board"].tolist() == last["parts"][0].tolist() == [3, 3]
            assert info["final_info"]["turn"] == 3 and info["final_info"]["nested"]["seen"].tolist() == [3, 3]
    for observation, infos, turn in kept:
        assert observation["board"].tolist() == [[turn] * 2] * 2 and infos["seen"].tolist() == [[turn] * 2] * 2
        assert [row["turn"] for row in infos.rows] == [turn] * 2
