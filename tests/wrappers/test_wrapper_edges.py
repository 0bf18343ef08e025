"""Wrappers: pairs in vectors, refused resets, unusual numbers and texts."""

import itertools
import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import toy_envs
from gymnasium import wrappers as theirs
from wrapped_envs import NAMES, REPEATABLE, made, policy

from turngym.envs.core import Outcome
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.errors import ConfigError
from turngym.types import INFO_TYPES
from turngym.wrappers import Wrapping, wrap
from turngym.wrappers.recording.replay import replay_jsonl

COUNTER = "toy/Counter-v0"
PAIRS = [pair for number, pair in enumerate(itertools.permutations(NAMES, 2)) if number % 3 == 0]
BACKENDS = [("thread", None), ("asyncio", None), ("process", 2)]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The recorder writes to the current folder unless it is told another one."""
    monkeypatch.chdir(tmp_path)
    yield


# Pairs, in vectors.


def everything(vector: TextVectorEnv, turns: int) -> list[list[Any]]:
    """Return for each slot all that it shows over several episodes, its instructions and its snapshot."""
    policies = [policy(slot) for slot in range(vector.num_envs)]
    observations, infos = vector.reset(seed=list(range(vector.num_envs)))
    shown: list[list[Any]] = [[repr(each)] for each in zip(observations, infos.rows, strict=True)]
    for _ in range(turns):
        actions = [act(None, info) for act, info in zip(policies, infos.rows, strict=True)]
        observations, rewards, terminations, truncations, infos = vector.step(actions)
        columns = observations, rewards.tolist(), terminations.tolist(), truncations.tolist(), infos.rows
        for slot, each in enumerate(zip(*columns, strict=True)):
            shown[slot].append(repr(each))
            wrong = {k: v for k, v in infos.rows[slot].items() if k in INFO_TYPES and type(v) is not INFO_TYPES[k]}
            assert not wrong and INFO_TYPES.keys() <= infos.rows[slot].keys()
    for slot, extra in enumerate(zip(vector.call("instructions"), vector.snapshot(), strict=True)):
        shown[slot] += list(extra)
    return shown


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("alone"))
        with make_vec(env_fns=[partial(made, COUNTER, *pair) for pair in PAIRS], autoreset_mode="SameStep") as vector:
            return everything(vector, 8)


@pytest.mark.parametrize(("backend", "workers"), BACKENDS)
def test_pairs_show_the_same_on_every_backend(in_one_process: Any, backend: str, workers: int | None) -> None:
    makers = [partial(made, COUNTER, *pair) for pair in PAIRS]
    with make_vec(env_fns=makers, backend=backend, num_workers=workers, autoreset_mode="SameStep") as vector:
        shown = everything(vector, 8)
        assert vector.stats()["faults"] == {}
    for pair, ours, alone in zip(PAIRS, shown, in_one_process, strict=True):
        assert ours == alone, pair


def test_a_snapshot_of_a_pair_goes_on_in_a_fresh_environment_as_the_original_does() -> None:
    """With something left over from another episode in the fresh one, which must not show."""
    for pair in PAIRS:
        env, fresh = made(COUNTER, *pair), made(COUNTER, *pair)
        act, info = policy(7), env.reset(seed=3)[1]
        for _ in range(3):
            if info["success"] < 0:
                info = env.step(act(None, info))[-1]
        fresh.reset(seed=9)
        fresh.step("nonsense")
        saved = env.get_wrapper_attr("snapshot")()
        restored = fresh.get_wrapper_attr("restore")(saved)[1]
        assert repr(restored) == repr(info), pair
        actions = ["up", "nonsense", "<action>up</action>"]
        for action in actions if info["success"] < 0 else []:
            ours, theirs_ = env.step(action), fresh.step(action)
            assert repr(ours) == repr(theirs_), pair
            if ours[2] or ours[3]:
                break
        assert env.get_wrapper_attr("snapshot")() == fresh.get_wrapper_attr("snapshot")(), pair


# Resets that are refused.


def test_a_refused_reset_leaves_the_level_that_is_played() -> None:
    levels = [{"goal": 3}, {"goal": 5}]
    env, twin = (wrap(gymnasium.make(COUNTER), "curriculum", levels=levels) for _ in range(2))
    for each in (env, twin):
        each.reset(seed=1)
        each.step("up")
    with pytest.raises(ConfigError, match="Did you mean 'task'"):
        env.reset(options={"level": 1, "tsk": 1})
    assert env.level == 0  # type: ignore[attr-defined]
    assert repr(env.step("up")) == repr(twin.step("up"))


def test_a_refused_reset_has_drawn_no_task() -> None:
    env, twin = (wrap(gymnasium.make(COUNTER), "success_filter", num_seeds=50) for _ in range(2))
    for each in (env, twin):
        each.reset(seed=1)
    for seed in (None, 7):
        with pytest.raises(ConfigError):
            env.reset(seed=seed, options={"tsk": 1})
    for _ in range(5):
        assert repr(env.reset()) == repr(twin.reset())


# Numbers that are none, and statistics of groups.


def odd_kind() -> type[toy_envs.Counter]:
    """Return a class that is made here and not imported, so that it travels to workers by value."""

    class Odd(toy_envs.Counter):
        """Gives the reward that the action names."""

        def apply_action(self, action: str) -> Outcome[str]:
            outcome = super().apply_action("down")
            return outcome._replace(reward=float(action))

    return Odd


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_reward_that_is_not_finite_is_passed_on_and_spoils_no_statistics(odd: str) -> None:
    """Clipping turned nan into the largest reward, and the statistics were gone for good."""
    env, twin = (wrap(odd_kind()(max_turns=50), "normalize_reward") for _ in range(2))
    for each in (env, twin):
        each.reset(seed=0)
        for reward in ("1", "3", "-2"):
            each.step(reward)
    given = env.step(odd)[1]
    assert math.isnan(given) if odd == "nan" else given == float(odd)
    assert env.step("2")[1] == twin.step("2")[1] and env.statistics == twin.statistics  # type: ignore[attr-defined]
    json.loads(env.get_wrapper_attr("snapshot")(), parse_constant=pytest.fail)


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_every_slot_has_statistics_of_its_own_so_groups_want_them_frozen(backend: str) -> None:
    """Members of a group start alike, but what their slots have seen before divides equal rewards differently."""

    def play(*, frozen: bool) -> list[float]:
        wrappers = [Wrapping("normalize_reward", {"frozen": frozen})]
        with make_vec(
            env_fns=[odd_kind()] * 2, wrappers=wrappers, backend=backend, autoreset_mode="Disabled"
        ) as vector:
            vector.reset(seed=[7, 7])
            for rewards in (["1", "5"], ["2", "-5"]):
                vector.step(rewards)
            vector.reset(seed=[8, 8])
            return [float(reward) for reward in vector.step(["2", "2"])[1]]

    live, frozen = play(frozen=False), play(frozen=True)
    assert live[0] != live[1] and frozen == [2.0, 2.0]


# Transcripts of any text, on every backend.

ODD_TEXTS = ["\ud800", "\udfff\ud83d", "\u2028\u2029\x85", "\x00\x1b[31m", '"\\{}', "é😀\n\r\n", "", "up"]


@pytest.mark.parametrize("backend", ["sync", "thread", "asyncio", "process"])
def test_any_text_is_recorded_and_replays_to_the_same_bytes(tmp_path: Path, backend: str) -> None:
    wrappers = [
        Wrapping("invalid_action", {"feedback": "legal"}),
        Wrapping("history"),
        Wrapping("record", {"folder": str(tmp_path / "files")}),
    ]
    with make_vec(COUNTER, 2, wrappers=wrappers, backend=backend, autoreset_mode="SameStep") as vector:
        vector.reset(seed=5)
        for turn in range(2 * len(ODD_TEXTS)):
            vector.step([ODD_TEXTS[turn % len(ODD_TEXTS)], ODD_TEXTS[(turn * 3 + 1) % len(ODD_TEXTS)]])
    files = sorted((tmp_path / "files").iterdir())
    assert len(files) == 2
    for file in files:
        assert replay_jsonl(file, is_trusted=True).encode() == file.read_bytes()


# Gymnasium's own wrappers, outside and inside.

THEIRS: dict[str, Any] = {
    "TimeLimit": lambda env: theirs.TimeLimit(env, 3),
    "RecordEpisodeStatistics": theirs.RecordEpisodeStatistics,
    "PassiveEnvChecker": theirs.PassiveEnvChecker,
    "ClipReward": lambda env: theirs.ClipReward(env, -1, 1),
    "TransformObservation": lambda env: theirs.TransformObservation(env, str, None),
    "TransformAction": lambda env: theirs.TransformAction(env, str, None),
    "Autoreset": theirs.Autoreset,
    "StickyAction": lambda env: theirs.StickyAction(env, 0.3),
}


@pytest.mark.parametrize("place", ["outside", "inside"])
@pytest.mark.parametrize("foreign", THEIRS)
def test_wrappers_of_gymnasium_leave_the_promises(foreign: str, place: str) -> None:
    for name in NAMES:
        ours, other = Wrapping(name, REPEATABLE.get(name, {})), THEIRS[foreign]
        envs = []
        for _ in range(2):
            plain = gymnasium.make(COUNTER, goal=9)
            envs.append(other(ours(plain)) if place == "outside" else ours(other(plain)))
        env, again = envs
        info = env.reset(seed=1)[1]
        for action in ("up", "nonsense", "up"):
            _, _, terminated, truncated, info = env.step(action)
            assert not (terminated and truncated)
        assert all(type(info[key]) is kind for key, kind in INFO_TYPES.items())
        if place == "inside" and foreign == "TimeLimit" and name != "record":
            assert truncated and info["success"] == 0 and info["legal_actions"] == ()
        again.reset(seed=8)
        restored = again.get_wrapper_attr("restore")(env.get_wrapper_attr("snapshot")())[1]
        if not truncated:
            assert repr(restored) == repr({key: info[key] for key in restored}), name
        assert env.get_wrapper_attr("instructions").startswith(toy_envs.Counter.instructions)
