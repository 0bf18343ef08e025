"""Every registered wrapper keeps every promise of the environment inside, alone and on top of the others."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from wrapped_envs import NAMES, REPEATABLE, made, policy

from turngym.envs.check import CheckFailed, check
from turngym.envs.transcript import transcript
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.options import constructor_signature
from turngym.seeding import stream
from turngym.types import INFO_TYPES
from turngym.wrappers import WRAPPERS, Wrapping, wrap
from turngym.wrappers.core import TextWrapper
from turngym.wrappers.recording.replay import replay_transcript

GAMES = ("turngym/TowerOfHanoi-v0", "turngym/GuessTheNumber-v0", "turngym/Sokoban-v0")
LASTING = {"curriculum", "normalize_reward", "success_filter"}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The recorder writes to the current folder unless it is told another one."""
    monkeypatch.chdir(tmp_path)
    yield


SHUFFLED = tuple(NAMES[i] for i in stream("wrapper order", 0).permutation(len(NAMES)))


def test_every_wrapper_is_on_the_base_and_knows_its_name() -> None:
    assert len(NAMES) >= 12
    for name, kind in WRAPPERS.items():
        assert issubclass(kind, TextWrapper) and kind.name == name
        required = [p for p in constructor_signature(kind).parameters.values() if p.default is p.empty]
        assert [p.name for p in required] == ["env"], f"{name} cannot be made by its name alone"


@pytest.mark.parametrize("env_id", GAMES[:2])
@pytest.mark.parametrize("name", NAMES)
def test_the_check_finds_nothing(name: str, env_id: str) -> None:
    assert not check(partial(made, env_id, name), episodes=2, in_process=True).failed


@pytest.mark.parametrize("order", [SHUFFLED, SHUFFLED[::-1]], ids=["shuffled", "reversed"])
def test_all_of_them_on_top_of_each_other_keep_the_promises(order: tuple[str, ...]) -> None:
    """Each wrapper is inside each other one in one of the orders."""
    assert not check(partial(made, "turngym/GuessTheNumber-v0", *order), episodes=1, in_process=True).failed
    assert not check(partial(made, "toy/Counter-v0", *order), episodes=1, in_process=True).failed


def test_all_of_them_are_the_same_in_another_process() -> None:
    assert not check(partial(made, "turngym/TowerOfHanoi-v0", *NAMES), episodes=1).failed


def test_only_live_statistics_make_an_episode_depend_on_earlier_ones() -> None:
    with pytest.raises(CheckFailed) as caught:
        check(lambda **options: wrap(gymnasium.make(GAMES[2], **options), "normalize_reward"), in_process=True)
    assert caught.value.report.failed == ("reset-forgets",)


@pytest.mark.parametrize("name", NAMES)
def test_what_lasts_is_declared(name: str) -> None:
    env = made("toy/Counter-v0", name)
    assert isinstance(env, TextWrapper)
    assert env.has_lasting == (name in LASTING)


@pytest.mark.parametrize("name", NAMES)
def test_a_reset_clears_what_an_episode_left_behind(name: str) -> None:
    """The declared state after a reset is that of a fresh wrapper, after a whole episode and after a part of one."""
    env = made("toy/Counter-v0", name)
    assert isinstance(env, TextWrapper)
    env.reset(seed=3)
    fresh = repr(env.state)
    for actions in (["down"], ["nonsense", "up", "up", "up"]):
        env.reset(seed=4)
        for action in actions:
            env.step(f"<action>{action}</action>" if name == "parse_action" else action)
        env.reset(seed=3)
        assert repr(env.state) == fresh


@pytest.mark.parametrize("name", NAMES)
def test_instructions_are_kept_and_the_contract_is_passed_on(name: str) -> None:
    inner = gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=9)
    env = wrap(inner, name)
    assert isinstance(env, TextWrapper)
    env.reset(seed=1)
    assert env.instructions.startswith(inner.get_wrapper_attr("instructions"))
    assert env.env_id == "turngym/GuessTheNumber-v0" and env.settings["high"] == 9
    assert env.instance_hash == inner.get_wrapper_attr("instance_hash") and env.tasks() == ()
    assert env.turn == 0 and env.max_turns == 10
    info = env.step(env.expert_action())[-1]
    assert info["action_is_valid"] and env.turn == 1
    assert {key: type(value) for key, value in info.items()} == INFO_TYPES
    assert env.resample_hidden() in (True, False)


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_makes_the_wrapped_environment_again(name: str) -> None:
    env = made("turngym/TowerOfHanoi-v0", name, discs=2)
    again = gymnasium.make(env.spec)  # type: ignore[arg-type]  # wrappers share the environment's spec
    assert str(again) == str(env) and again.get_wrapper_attr("settings")["discs"] == 2
    assert transcript(again, 5, policy(5)) == transcript(env, 5, policy(5))


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_names_the_wrappers_and_replays(name: str) -> None:
    text = transcript(made("turngym/Sokoban-v0", name), 2, policy(2))
    assert replay_transcript(text, is_trusted=True) == text


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_wrappers_fit_outside_and_inside(name: str) -> None:
    plain = made("turngym/TowerOfHanoi-v0", name)
    inside = wrap(
        gymnasium.wrappers.OrderEnforcing(gymnasium.make("turngym/TowerOfHanoi-v0")),
        Wrapping(name, REPEATABLE.get(name, {})),
    )
    outside = gymnasium.wrappers.OrderEnforcing(made("turngym/TowerOfHanoi-v0", name))
    texts = [transcript(env, 1, policy(1)) for env in (plain, inside, outside)]
    assert texts[0] == texts[1] == texts[2]
    snapshot = outside.get_wrapper_attr("snapshot")()
    assert inside.get_wrapper_attr("restore")(snapshot)[0] == outside.get_wrapper_attr("restore")(snapshot)[0]


def test_a_picture_stays_beside_a_changed_text() -> None:
    env = wrap(
        gymnasium.make("turngym/Sokoban-v0", image=True), "history", "invalid_action", "anchor:source=observation"
    )
    first, _ = env.reset(seed=0)
    second, *_ = env.step("nonsense")
    assert second in env.observation_space and "Your action: nonsense" in second["text"]
    np.testing.assert_array_equal(first["image"], second["image"])
    view = make_vec("turngym/Sokoban-v0", 1, wrappers=[Wrapping("history")], observation="text", image=True)
    assert view.reset(seed=0)[0] == (first["text"],)


def play(vector: TextVectorEnv, turns: int) -> list[str]:
    """Return everything that a vector shows, over several episodes of every slot."""
    policies = [policy(100 + slot) for slot in range(vector.num_envs)]
    observations, infos = vector.reset(seed=list(range(vector.num_envs)))
    seen = [repr((observations, infos.rows))]
    for _ in range(turns):
        actions = [act(None, info) if info else "up" for act, info in zip(policies, infos.rows, strict=True)]
        observations, rewards, terminations, truncations, infos = vector.step(actions)
        numbers = rewards.tolist(), terminations.tolist(), truncations.tolist()
        seen.append(repr((observations, *numbers, infos.rows)))
    return seen


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_backends_show_the_same_with_a_wrapper_in_every_slot(mode: str) -> None:
    """One slot per wrapper and one for all of them, with autoreset over several episodes."""
    makers = [partial(made, "toy/Counter-v0", name) for name in NAMES] + [partial(made, "toy/Counter-v0", *NAMES)]
    shown = []
    for backend, workers in (("sync", None), ("process", 2)):
        with_backend = make_vec(env_fns=makers, backend=backend, num_workers=workers, autoreset_mode=mode)
        shown.append(play(with_backend, 25))
        assert with_backend.stats()["faults"] == {}
        with_backend.close()
    assert shown[0] == shown[1]


def test_a_subset_of_slots_can_be_stepped_under_wrappers() -> None:
    wrappers = [Wrapping("history", {"k": 1}), Wrapping("turn_limit", {"limit": 2})]
    vector = make_vec("toy/Counter-v0", 3, wrappers=wrappers, autoreset_mode="Disabled")
    vector.reset(seed=0)
    vector.step(["up"], [1])
    observations, _, _, truncations, infos = vector.step(["up", "up"], [2, 1])
    assert truncations.tolist() == [False, True] and [row["success"] for row in infos.rows] == [-1, 0]
    assert observations[0].startswith("Turn 1:") and observations[1].startswith("Turn 2:")
    assert vector.call("max_turns") == (2, 2, 2)
    assert all("Earlier turns" in text and "2 turns" in text for text in vector.call("instructions"))


def test_a_snapshot_moves_between_slots_of_backends() -> None:
    wrappers = [Wrapping("history"), Wrapping("invalid_action"), Wrapping("progress_reward")]
    here = make_vec("toy/Counter-v0", 1, wrappers=wrappers)
    there = make_vec("toy/Counter-v0", 1, wrappers=wrappers, backend="process")
    here.reset(seed=3)
    here.step(["nonsense"])
    snapshots = here.snapshot()
    here.reset(seed=8)
    shown, other = here.restore(snapshots), there.restore(snapshots)
    assert "no valid action" in shown[0][0] and shown[0] == other[0] and repr(shown[1].rows) == repr(other[1].rows)
    ours, theirs = here.step(["up"]), there.step(["up"])
    assert ours[0] == theirs[0] and ours[1] == theirs[1] and repr(ours[-1].rows) == repr(theirs[-1].rows)
    there.close()


def test_what_lasts_outlives_the_death_of_a_worker() -> None:
    """The slot that is stepped faults and begins anew; the other one continues with level, statistics and tasks."""
    wrappers = [Wrapping(name) for name in sorted(LASTING)]
    options: dict[str, Any] = {"goal": 50, "max_turns": 4, "wrappers": wrappers, "autoreset_mode": "SameStep"}
    with make_vec("toy/Faulty-v0", 2, backend="process", num_workers=1, **options) as vector:
        vector.reset(seed=[1, 2])
        for _ in range(6):
            vector.step(["up", "up"])
        vector.step(["kill", "up"])
        tasks, statistics = vector.get_attr("task"), vector.get_attr("statistics")
        assert vector.stats()["workers_replaced"] == 1
    with make_vec("toy/Faulty-v0", 2, **options) as alone:
        alone.reset(seed=[1, 2])
        for _ in range(7):
            alone.step(["up", "up"])
        assert (tasks[1], statistics[1]) == (alone.get_attr("task")[1], alone.get_attr("statistics")[1])
    assert statistics[0]["size"] == 0 and statistics[1]["size"] == 7
