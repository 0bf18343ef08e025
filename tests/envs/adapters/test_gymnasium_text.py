"""Any Gymnasium environment as a text environment: actions, observations, flags, snapshots, containment."""

import random
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.adapters.gymnasium_text import KNOWN, UNKNOWN_ACTION, GymnasiumText, plain_picture, value_text
from turngym.envs.adapters.replayed import BROKEN_ACTION
from turngym.envs.check import check
from turngym.envs.spaces import Unicode
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, SnapshotUnsupported, UnknownName


class Echo(gymnasium.Env[str, str]):
    """Says an action back, draws from both global generators, and has the faults that the adapter contains."""

    observation_space = Unicode()
    action_space: gymnasium.Space[Any] = Unicode()
    drift = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        random.seed(seed)
        np.random.seed(seed)
        self.count = 0
        return f"number {random.randrange(1000)}", {"legal_actions": ["go", "stop"]}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.count += 1
        if action == "break":
            raise ValueError("cannot read this")
        drawn = random.randrange(1000), int(np.random.randint(1000)), self.drift
        ends, cut = action in ("stop", "both"), action in ("cut", "both")
        info: dict[str, Any] = {"legal_actions": ["go", "stop"]}
        if action == "stop":
            info["is_success"] = self.count > 1
        return f"{self.count} {action} {drawn}", 1.0, ends, cut, info


class Drifting(Echo):
    """Shows something else every time it is played, whatever the seed."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        type(self).drift += 1
        return super().reset(seed=seed, options=options)


class Numbered(gymnasium.Env[Any, Any]):
    """Actions 5 to 7, of which a mask leaves two; an observation that is a dictionary."""

    observation_space = spaces.Dict({"place": spaces.Box(0, 9, (2,), np.int64), "lamp": spaces.Discrete(2)})
    action_space: gymnasium.Space[Any] = spaces.Discrete(3, start=5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._seen(0), {"action_mask": np.array([1, 0, 1], dtype=np.int8)}

    def _seen(self, action: int) -> dict[str, Any]:
        return {"place": np.array([action, 1]), "lamp": 0}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self._seen(action), float(action == 7), action == 7, False, {"action_mask": np.ones(3, dtype=np.int8)}


class Continuous(Numbered):
    action_space = spaces.Box(-1, 1, (2,))


TOYS: dict[str, Any] = {
    "Echo-v0": Echo,
    "Drifting-v0": Drifting,
    "Numbered-v0": Numbered,
    "Continuous-v0": Continuous,
}


@pytest.fixture(autouse=True, scope="module")
def toys() -> Iterator[None]:
    for name, kind in TOYS.items():
        gymnasium.register(f"adapted/{name}", entry_point=kind, max_episode_steps=30)
    yield
    for name in TOYS:
        del gymnasium.registry[f"adapted/{name}"]


@pytest.mark.parametrize(
    "options",
    [
        {"inner": "FrozenLake8x8-v1", "inner_options": {"is_slippery": False}},
        {"inner": "Blackjack-v1"},
        {"inner": "CliffWalking-v1", "max_turns": 20},
        {"inner": "Taxi-v4", "max_turns": 20},
        {"inner": "FrozenLake-v1", "view": "values", "actions": ("w", "s", "e", "n")},
        {"inner": "turngym/TowerOfHanoi-v0"},
        {"inner": "adapted/Echo-v0"},
        {"inner": "adapted/Numbered-v0", "solved_above": 0.5},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_it_keeps_every_promise(options: dict[str, Any]) -> None:
    """FrozenLake-v1 is the default, which is checked in other processes too, as every id is."""
    assert not check("turngym/Gymnasium-v0", options=options, episodes=2, in_process=True).failed


def test_the_known_words_fit_their_environments() -> None:
    for inner, words in KNOWN.items():
        env = GymnasiumText(inner=inner)
        assert env._names == words.actions
        assert all(name in env.instructions for name in words.actions)
        assert words.goal in env.instructions


def test_names_lead_to_the_actions_that_they_name() -> None:
    """Played beside the bare environment, by number."""
    generator = np.random.default_rng(0)
    for inner in KNOWN:
        text, bare = GymnasiumText(inner=inner, split="test"), gymnasium.make(inner)
        text.reset(seed=4)
        bare.reset(seed=text._seed)
        for _ in range(15):
            number = int(generator.integers(len(KNOWN[inner].actions)))
            name = KNOWN[inner].actions[number]
            _, reward, terminated, truncated, _ = text.step(f"  {name.upper()} ")
            _, *expected, _ = bare.step(number)
            assert [reward, terminated, truncated] == [float(expected[0]), *map(bool, expected[1:])]
            if terminated or truncated:
                break


def test_pictures_say_in_words_what_they_paint() -> None:
    env = GymnasiumText(inner="FrozenLake-v1", inner_options={"is_slippery": False})
    env.reset(seed=0)
    assert env.step("right")[0] == "(Right)\nS[F]FF\nFHFH\nFFFH\nHFFG".replace("(Right)", "  (Right)")
    taxi = GymnasiumText(inner="Taxi-v4").reset(seed=1)[0]
    assert taxi.count("(blue)") == taxi.count("(magenta)") == 1 and "\x1b" not in taxi


@pytest.mark.parametrize(
    ("painted", "plain"),
    [
        ("\x1b[42mA\x1b[0mB", "[A]B"),
        ("\x1b[35mR\x1b[0m", "R(magenta)"),
        ("\x1b[43m\x1b[34;1mY\x1b[0m\x1b[0m", "[Y]"),
        ("\n a \x1b[1m\n\n", " a"),
    ],
)
def test_colours_become_marks(painted: str, plain: str) -> None:
    assert plain_picture(painted) == plain


def test_values_become_text() -> None:
    assert value_text(np.int64(3)) == "3"
    assert value_text(np.array([0.123456789, 2.0])) == "0.123457 2"
    assert value_text((1, 2), ["only one name"]) == "1, 2"
    assert GymnasiumText(inner="Blackjack-v1").reset(seed=3)[0].startswith("your sum: ")


def test_both_flags_at_once_are_a_termination_and_the_inner_limit_truncates() -> None:
    env = GymnasiumText(inner="adapted/Echo-v0", solved_above=0.0)
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step("both")
    assert (terminated, truncated, info["success"]) == (True, False, 1)
    env.reset()
    _, _, terminated, truncated, info = env.step("cut")
    assert (terminated, truncated, info["success"]) == (False, True, 0)
    assert repr(env.restore(env.snapshot())[1]) == repr(info)
    env.reset()
    flags = [env.step("go")[2:4] for _ in range(30)]
    assert flags == [(False, False)] * 29 + [(False, True)]


def test_unreadable_actions_take_turns_of_the_inner_limit_and_cost_what_a_step_costs() -> None:
    env = GymnasiumText(inner="adapted/Echo-v0", solved_above=0.0, max_turns=1000)
    env.reset(seed=0)
    flags = [env.step(text)[2:4] for text in ("go", "break") * 15]
    assert flags == [(False, False)] * 29 + [(False, True)], "the environment was registered with 30 steps"
    taxi = GymnasiumText(inner="Taxi-v4")
    taxi.reset(seed=0)
    assert [taxi.step(text)[1] for text in ("", "fly", "dropoff")] == [-10.0] * 3
    shown = taxi.snapshot()
    assert taxi.restore(shown)[1]["score"] == -30.0
    with_own = GymnasiumText(inner="Taxi-v4", unreadable_reward=-0.5)
    with_own.reset(seed=0)
    assert with_own.step("fly")[1] == -0.5


def test_success_is_what_the_inner_environment_says_before_what_the_reward_says() -> None:
    env = GymnasiumText(inner="adapted/Echo-v0")
    env.reset(seed=0)
    assert env.step("stop")[-1]["success"] == 0, "is_success was False, though the reward was 1"
    env.reset()
    env.step("go")
    assert env.step("stop")[-1]["success"] == 1
    strict = GymnasiumText(inner="adapted/Numbered-v0", solved_above=1.0)
    strict.reset(seed=0)
    assert strict.step("7")[-1]["success"] == 0
    cliff = GymnasiumText(inner="CliffWalking-v1")
    cliff.reset(seed=0)
    for move in ("up", *["right"] * 11, "down"):
        *_, info = cliff.step(move)
    assert info["success"] == 1 and info["score"] == -13


@pytest.mark.parametrize("inner", ["CartPole-v1", "adapted/Numbered-v0"])
def test_an_episode_counts_as_solved_only_where_something_says_so(inner: str) -> None:
    """A reward for every turn that the pole stands would make each fall a success."""
    env = GymnasiumText(inner=inner)
    env.reset(seed=0)
    with pytest.warns(UserWarning, match=f"{inner} does not report whether .* pass solved_above=REWARD"):
        while not (played := env.step(env._names[-1]))[2]:
            assert played[-1]["success"] == -1
    assert played[1] > 0 and played[-1]["success"] == 0


def test_masks_narrow_the_legal_actions_and_numbers_begin_where_the_space_begins() -> None:
    env = GymnasiumText(inner="adapted/Numbered-v0")
    observation, info = env.reset(seed=0)
    assert observation == "place: 0 1, lamp: 0" and info["legal_actions"] == ("5", "7")
    observation, _, _, _, info = env.step("6")
    assert observation == "place: 6 1, lamp: 0" and info["legal_actions"] == ("5", "6", "7")
    assert env.step("8")[0] == UNKNOWN_ACTION and not env.step("")[-1]["action_is_valid"]


def test_the_global_generators_of_the_caller_stay_and_copies_do_not_share_them() -> None:
    first, second = (GymnasiumText(inner="adapted/Echo-v0") for _ in range(2))
    alone = [first.reset(seed=1)[0], *(first.step("go")[0] for _ in range(3))]
    random.seed(11)
    before = random.getstate()
    mixed = [first.reset(seed=1)[0]]
    second.reset(seed=2)
    for _ in range(3):
        second.step("go")
        mixed.append(first.step("go")[0])
    assert mixed == alone and random.getstate() == before


def test_an_action_that_breaks_the_inner_environment_is_answered_and_undone() -> None:
    env, twin = (GymnasiumText(inner="adapted/Echo-v0") for _ in range(2))
    env.reset(seed=3)
    twin.reset(seed=3)
    env.step("go")
    twin.step("go")
    observation, reward, terminated, truncated, info = env.step("break")
    assert (observation, reward, terminated, truncated) == (BROKEN_ACTION, 0.0, False, False)
    assert not info["action_is_valid"]
    assert env.step("go")[0] == twin.step("go")[0], "the count inside went back as well"


def test_what_does_not_replay_cannot_be_restored() -> None:
    env = GymnasiumText(inner="adapted/Drifting-v0")
    env.reset(seed=0)
    env.step("go")
    with pytest.raises(SnapshotUnsupported, match="showed something else"):
        env.restore(env.snapshot())


def test_snapshots_are_small_json_and_hold_no_inner_state() -> None:
    env = gymnasium.make("turngym/Gymnasium-v0", inner="Blackjack-v1")
    env.reset(seed=0)
    assert len(env.get_wrapper_attr("snapshot")()) < 2000


def test_it_plays_in_vectors_and_processes() -> None:
    vectors = [make_vec("turngym/Gymnasium-v0", 2, backend=name, inner="Taxi-v4") for name in ("sync", "process")]
    first, second = (vector.reset(seed=[1, 2]) for vector in vectors)
    assert first[0] == second[0]
    for vector in vectors:
        vector.close()


def test_after_close_a_reset_makes_it_anew() -> None:
    env = GymnasiumText(inner="Taxi-v4")
    first = env.reset(seed=5)
    env.close()
    env.close()
    assert repr(env.reset(seed=5)) == repr(first)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"inner": "FrozenLak-v1"}, UnknownName, "FrozenLake-v1"),
        ({"inner": "os:FrozenLake-v1"}, ConfigError, 'make "os:'),
        ({"inner": "adapted/Continuous-v0"}, ConfigError, "ActionWrapper"),
        ({"inner": "Blackjack-v1", "view": "picture"}, ConfigError, "view='values'"),
        ({"view": "image"}, ConfigError, "view of .* got 'image'"),
        ({"actions": ("a", "b")}, ConfigError, "4 different names"),
        ({"actions": ("a", "A", "b", "c")}, ConfigError, "4 different names"),
        ({"inner_options": {"ice": 1}}, ConfigError, "ice"),
        ({"solved_above": "high"}, ConfigError, "solved_above"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        GymnasiumText(**options)
