"""Pictures: the same facts as the text, in every vector, transcript and snapshot; and none of it without the option."""

import copy
import functools
import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

import turngym
from turngym.envs.check import check
from turngym.envs.core import Outcome, TextEnv
from turngym.envs.pictures import PictureEnv
from turngym.envs.spaces import Unicode
from turngym.envs.textgames import SPECS
from turngym.envs.transcript import replay, transcript
from turngym.errors import ConfigError

IDS = [
    "turngym/FifteenPuzzle-v0",
    "turngym/FrozenLake-v0",
    "turngym/Game2048Easy-v0",
    "turngym/Maze-v0",
    "turngym/MazeHard-v0",
    "turngym/MinesweeperEasy-v0",
    "turngym/Sokoban-v0",
]


class Counter(PictureEnv):
    """Counts to three; the picture has as many white rows as were counted. It notes how often it paints."""

    def __init__(self, side: int = 4, *, max_turns: int = 9, split: str = "train", env_id: str = "", **shown: Any):
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, **shown)
        self.painted = 0
        self.instructions = "Say anything three times."
        self.set_frame(side, side)
        self._side = side

    def begin(self, task: str | int | None) -> str:
        self._count = 0
        self.instance = str(self.np_random.integers(99))
        return "0"

    def apply_action(self, action: str) -> Outcome[str]:
        self._count += 1
        return Outcome(str(self._count), terminated=self._count == 3)

    def anchor(self) -> str:
        return str(self._count)

    def render_image(self) -> NDArray[np.uint8]:
        self.painted += 1
        picture = np.zeros((self._side, self._side, 3), np.uint8)
        picture[: self._count] = 255
        return picture

    def save_state(self) -> int:
        return self._count

    def load_state(self, state: Any) -> None:
        self._count = int(state)


def rows(picture: NDArray[np.uint8]) -> int:
    return int((picture[:, 0, 0] == 255).sum())


def test_without_the_option_it_is_a_text_environment_that_paints_nothing() -> None:
    env = Counter()
    assert env.observation_space == Unicode()
    assert env.reset(seed=0)[0] == "0" and env.step("go")[0] == "1"
    assert env.restore(env.snapshot())[0] == "1"
    assert env.painted == 0 and "image" not in env.settings


def test_without_the_option_a_step_is_that_of_a_text_environment() -> None:
    """Nothing stands between the caller and the base class, so pictures cost nothing where there are none."""
    assert Counter(render_mode="rgb_array").step.__func__ is TextEnv.step  # type: ignore[attr-defined]
    assert Counter(image=True).step.__func__ is not TextEnv.step  # type: ignore[attr-defined]


def test_with_the_option_text_and_picture_are_of_the_same_moment() -> None:
    env = Counter(image=True)
    observation, _ = env.reset(seed=0)
    assert env.observation_space == Dict(text=Unicode(), image=Box(0, 255, (4, 4, 3), np.uint8))
    assert observation in env.observation_space and rows(observation["image"]) == 0
    for count in (1, 2, 3):
        observation = env.step("go")[0]
        assert observation["text"] == str(count) and rows(observation["image"]) == count
    assert env.painted == 4


def test_a_snapshot_holds_the_text_alone_and_brings_the_picture_back() -> None:
    env, branch = Counter(image=True), Counter(image=True)
    env.reset(seed=0)
    env.step("go")
    snapshot = env.snapshot()
    assert json.loads(snapshot)["observation"] == "1" and len(snapshot) < 2000
    observation, _ = branch.restore(snapshot)
    assert rows(observation["image"]) == 1 and observation["text"] == "1"
    assert rows(branch.step("go")[0]["image"]) == 2


def test_a_snapshot_of_the_other_mode_is_refused() -> None:
    env = Counter()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="this snapshot belongs to"):
        Counter(image=True).restore(env.snapshot())


def test_render_gives_text_or_picture_as_the_mode_says() -> None:
    assert Counter().render() is None
    env = Counter(render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "0"
    env = Counter(render_mode="rgb_array")
    blank = env.render()
    assert isinstance(blank, np.ndarray) and blank.shape == (4, 4, 3) and not blank.any()
    env.reset(seed=0)
    env.step("go")
    picture = env.render()
    assert isinstance(picture, np.ndarray) and rows(picture) == 1


def test_unknown_render_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"cannot render 'human': pass one of \['ansi', 'rgb_array'\]"):
        Counter(render_mode="human")


@pytest.mark.parametrize("image", [1, None, "yes"])
def test_image_must_be_a_flag(image: object) -> None:
    with pytest.raises(ConfigError, match=r"image of .* must be True or False"):
        Counter(image=image)


@pytest.mark.parametrize("side", [0, 4097])
def test_a_picture_without_pixels_or_with_too_many_is_refused(side: int) -> None:
    with pytest.raises(ConfigError, match=f"1 to 4096 pixels a side, got {side} x {side}"):
        Counter(side)


def shown(env_id: str) -> Any:
    return gymnasium.make(env_id, image=True, render_mode="rgb_array")


@pytest.mark.parametrize("env_id", sorted(SPECS))
def test_pictures_of_every_game_have_the_declared_size_from_first_to_last(env_id: str) -> None:
    if not issubclass(type(gymnasium.make(env_id).unwrapped), PictureEnv):
        pytest.skip(f"{env_id} has no pictures")
    env = shown(env_id)
    shape = env.observation_space["image"].shape
    assert env.render().shape == shape and not env.render().any()
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        assert observation in env.observation_space and observation["image"].any()
        np.testing.assert_array_equal(env.render(), observation["image"])
        observation, _, terminated, truncated, _ = env.step(env.unwrapped.expert_action())
        over = terminated or truncated
    assert observation in env.observation_space
    np.testing.assert_array_equal(env.render(), observation["image"])


def test_a_copy_of_an_environment_with_pictures_paints_its_own() -> None:
    env = shown("turngym/Sokoban-v0").unwrapped
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    before = env.render()
    moved = twin.step(twin.expert_action())[0]["image"]
    assert (moved != before).any()
    np.testing.assert_array_equal(env.render(), before)


@pytest.mark.parametrize("env_id", ["turngym/FrozenLake-v0", "turngym/MinesweeperEasy-v0"])
def test_every_promise_holds_with_pictures_too(env_id: str) -> None:
    maker = functools.partial(gymnasium.make, env_id, image=True)
    assert not check(maker, episodes=1, in_process="Lake" in env_id).findings


@pytest.mark.parametrize("env_id", IDS)
def test_the_text_is_the_same_with_and_without_pictures(env_id: str) -> None:
    plain, shown = gymnasium.make(env_id), gymnasium.make(env_id, image=True)
    assert plain.reset(seed=5)[0] == shown.reset(seed=5)[0]["text"]
    over = False
    while not over:
        action = plain.get_wrapper_attr("expert_action")()
        text, *rest, info = plain.step(action)
        observation, *others, other_info = shown.step(action)
        assert observation["text"] == text and rest == others and info == other_info
        over = any(rest[1:])


@pytest.mark.parametrize("env_id", IDS)
def test_the_picture_changes_exactly_when_the_anchor_does(env_id: str) -> None:
    """The picture shows what the agent can know, no more and no less."""
    env = gymnasium.make(env_id, image=True)
    seen: dict[str, bytes] = {}
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            picture = observation["image"].tobytes()
            assert seen.setdefault(info["anchor"], picture) == picture
            legal = info["legal_actions"]
            observation, _, terminated, truncated, info = env.step(legal[seed % len(legal)])
            over = terminated or truncated
    assert len(set(seen.values())) == len(seen) > 5


def test_pictures_are_new_arrays_that_nobody_else_changes() -> None:
    env = gymnasium.make("turngym/Sokoban-v0", image=True)
    first = env.reset(seed=0)[0]["image"]
    kept = first.copy()
    second = env.step("no such move")[0]["image"]
    np.testing.assert_array_equal(second, kept)
    second[:] = 0
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(env.step("no such move")[0]["image"], kept)


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_vectors_stack_the_pictures_and_keep_the_texts(backend: str) -> None:
    single = gymnasium.make("turngym/FrozenLake-v0", image=True)
    vector = turngym.make_vec("turngym/FrozenLake-v0", 3, backend=backend, num_workers=1, image=True)
    try:
        observations, _ = vector.reset(seed=[4, 5, 5])
        assert observations in vector.observation_space and observations["image"].shape == (3, 64, 64, 3)
        np.testing.assert_array_equal(observations["image"][1], observations["image"][2])
        alone = single.reset(seed=5)[0]
        assert observations["text"][1] == alone["text"]
        np.testing.assert_array_equal(observations["image"][1], alone["image"])
        moved = vector.step(("up", "down", "left"))[0]
        np.testing.assert_array_equal(moved["image"][1], single.step("down")[0]["image"])
    finally:
        vector.close()


def test_text_views_let_pictures_and_plain_games_share_a_vector() -> None:
    makers = [
        functools.partial(gymnasium.make, "turngym/Maze-v0", image=True),
        functools.partial(gymnasium.make, "turngym/GuessTheNumber-v0"),
    ]
    vector = turngym.make_vec(env_fns=makers, observation="text")
    texts = vector.reset(seed=[0, 0])[0]
    assert texts[0] == gymnasium.make("turngym/Maze-v0").reset(seed=0)[0] and texts[1] == "from 1 to 100"
    vector.close()


def test_transcripts_name_pictures_by_hash_and_replay() -> None:
    env = gymnasium.make("turngym/Sokoban-v0", image=True)
    text = transcript(env, 0, ["up", "left", "?"])
    assert text.count("uint8[96, 96, 3] ") == 4 and replay(text) == text
    assert '"image": true' in text.split("\n")[0]
    assert '"image"' not in transcript(gymnasium.make("turngym/Sokoban-v0"), 0, ["up"]).split("\n")[0]
