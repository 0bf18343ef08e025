"""Text environments seen as numbers: what is shown is a function of what can be known, and actions keep their texts."""

from itertools import product
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.adapters.numeric import Menu, NumericEnv, NumericView, character_vector, ngram_vector
from turngym.errors import ConfigError
from turngym.seeding import stream
from turngym.wrappers import wrap

GAMES = ["turngym/FrozenLake-v0", "turngym/TicTacToeSeat-v0", "turngym/GuessTheNumber-v0", "turngym/TowerOfHanoi-v0"]
TEXTS = ["", "a", "up", "a red door", "a blue door", "漢字 🙂", "\ud800 broken", "x" * 5000, "##.\n#@.\n"]


@pytest.mark.parametrize("size", [1, 7, 256])
def test_vectors_lie_in_their_space_whatever_the_text(size: int) -> None:
    for text, (encoding, encode) in product(TEXTS, [("ngrams", ngram_vector), ("characters", character_vector)]):
        view = NumericView(encoding, size)
        assert view.space(gymnasium.spaces.Dict()).contains(encode(text, size))
        assert (encode(text, size) == encode(text, size)).all() and encode(text, size).flags.writeable


def test_different_texts_have_different_vectors_and_similar_ones_near_ones() -> None:
    for encode in (ngram_vector, character_vector):
        vectors = {encode(text, 256).tobytes() for text in TEXTS}
        assert len(vectors) == len(TEXTS)
    near, far = ngram_vector("a red door and a key", 512), ngram_vector("nothing of that kind", 512)
    assert near @ ngram_vector("a red door", 512) > 0.5 > abs(near @ far)


def test_characters_are_the_codes_in_their_places() -> None:
    found = character_vector("a@Ā", 5)
    assert np.allclose(found * 127, [97, 64, 0x100 % 128, 0, 0])


@pytest.mark.parametrize("env_id", GAMES)
@pytest.mark.parametrize("encoding", ["ngrams", "characters"])
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasiums_own_checker_passes(env_id: str, encoding: Any) -> None:
    env = NumericEnv(gymnasium.make(env_id), encoding=encoding, features=64)
    check_env(env)


@pytest.mark.parametrize("env_id", GAMES)
def test_an_episode_is_that_of_the_texts_behind_the_numbers(env_id: str) -> None:
    plain, seen = gymnasium.make(env_id), NumericEnv(gymnasium.make(env_id), features=128)
    for seed in range(5):
        _, info = plain.reset(seed=seed)
        shown, told = seen.reset(seed=seed)
        generator, is_over = stream("numbers", seed), False
        while not is_over:
            assert (shown == ngram_vector(info["anchor"], 128)).all()
            assert {key: value for key, value in told.items() if key != "action_mask"} == info
            number = int(generator.integers(seen.menu.places))
            assert bool(told["action_mask"][number]) == (seen.menu.texts[number] in info["legal_actions"])
            _, reward, terminated, truncated, info = plain.step(seen.menu.texts[number])
            shown, *same, told = seen.step(np.int64(number))
            assert same == [reward, terminated, truncated]
            is_over = terminated or truncated


def test_the_observation_can_be_shown_instead_of_all_that_is_known() -> None:
    env = NumericEnv(
        gymnasium.make("turngym/GuessTheNumber-v0"), encoding="characters", source="observation", features=30
    )
    assert (env.reset(seed=0)[0] == character_vector("from 1 to 100", 30)).all()


def test_a_picture_is_shown_as_it_is() -> None:
    env = NumericEnv(gymnasium.make("turngym/FrozenLake-v0", image=True), encoding="image")
    shown, _ = env.reset(seed=0)
    assert env.observation_space.contains(shown) and shown.dtype == np.uint8 and shown.ndim == 3
    with pytest.raises(ConfigError, match="make it with image=True"):
        NumericEnv(gymnasium.make("turngym/FrozenLake-v0"), encoding="image")


def test_wrappers_may_be_around_the_environment() -> None:
    env = NumericEnv(wrap(gymnasium.make("turngym/FrozenLake-v0"), "turn_limit:limit=2"))
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[3]


def test_the_same_menu_is_found_every_time_and_finding_it_changes_no_seeded_episode() -> None:
    first, second = (NumericEnv(gymnasium.make("turngym/TicTacToeSeat-v0"), actions=None) for _ in range(2))
    assert first.menu == second.menu == Menu(tuple("012345678"), 9)
    given = NumericEnv(gymnasium.make("turngym/TicTacToeSeat-v0"), actions=list("012345678"))
    assert (given.reset(seed=3)[0] == first.reset(seed=3)[0]).all()


def test_numbers_can_stand_for_places_in_the_list_of_legal_actions() -> None:
    env = NumericEnv(gymnasium.make("turngym/TicTacToeSeat-v0"), actions=5)
    _, info = env.reset(seed=0)
    wanted = sorted(info["legal_actions"])[4]
    _, _, _, _, info = env.step(4)
    assert wanted not in info["legal_actions"] and info["action_is_valid"]
    while len(info["legal_actions"]) > 4:
        _, _, _, _, info = env.step(0)
    if info["legal_actions"]:
        assert info["action_mask"].tolist() == [place < len(info["legal_actions"]) for place in range(5)]
        assert not env.step(4)[4]["action_is_valid"]


def test_a_mask_always_leaves_something_to_choose() -> None:
    menu = Menu(("a", "b"), 2)
    assert menu.mask(["b", "c"]).tolist() == [False, True]
    assert menu.mask([]).tolist() == menu.mask(["c"]).tolist() == [True, True]
    assert Menu((), 3).mask([]).tolist() == [True] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "ngram"}, "encoding must be one of ngrams, characters, image, got 'ngram'."),
        ({"source": "state"}, "source must be one of anchor, observation, got 'state'."),
        ({"features": 0}, "features must be a whole number from 1 to 1000000, got 0."),
        ({"features": True}, "features must be a whole number"),
        ({"actions": []}, "a menu has 1 to 1000 different actions, got 0"),
        ({"actions": 0}, "a menu has 1 to 1000 different actions, got 0"),
        ({"actions": ["up", "up"]}, "a menu has 1 to 1000 different actions, got 2"),
    ],
)
def test_a_wrong_option_is_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NumericEnv(gymnasium.make("turngym/FrozenLake-v0"), **options)
    assert message in str(caught.value)


def test_an_environment_without_lists_of_actions_needs_a_menu() -> None:
    env = gymnasium.make("turngym/Wordle-v0")
    if not env.reset(seed=0)[1]["legal_actions"]:
        with pytest.raises(ConfigError, match="pass actions="):
            NumericEnv(env)
    assert NumericEnv(env, actions=["crane", "slate"]).menu.places == 2
