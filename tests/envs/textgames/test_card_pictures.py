"""Pictures of cards and number lines: what can be seen is what the text says, and nothing hidden."""

from typing import Any

import numpy as np
import pytest

from turngym.envs.textgames import drawing
from turngym.envs.textgames.blackjack.env import Blackjack
from turngym.envs.textgames.card_pictures import BACK, CARD_HEIGHT, CARD_WIDTH, GAP, card, place_row, row_width
from turngym.envs.textgames.ez_points.deals import RANKS
from turngym.envs.textgames.ez_points.env import EZPoints
from turngym.envs.textgames.number_line import NumberLine

POINTS24: dict[str, Any] = {"cards": 4, "target": 24, "operators": "+-*/"}


def cards_in(picture: drawing.Picture, top: int) -> list[str]:
    """Read a row of cards that do not overlap back from a picture."""
    found = []
    for left in range(GAP, picture.shape[1] - CARD_WIDTH + 1, CARD_WIDTH + GAP):
        part = picture[top : top + CARD_HEIGHT, left : left + CARD_WIDTH]
        found += [rank for rank in (*RANKS, BACK) if (part == card(rank)).all()]
    return found


def test_every_card_looks_different() -> None:
    assert len({card(rank).tobytes() for rank in (*RANKS, BACK)}) == 14
    assert not card("A").flags.writeable


def test_a_row_holds_its_cards_from_the_left() -> None:
    picture = drawing.canvas(CARD_HEIGHT, row_width(4), drawing.GREEN)
    place_row(picture, 0, ["A", "10", "K", BACK])
    assert cards_in(picture, 0) == ["A", "10", "K", BACK]


@pytest.mark.parametrize("count", [1, 5, 6, 7, 12, 22])
def test_a_row_of_many_cards_stays_in_the_picture_and_shows_the_last(count: int) -> None:
    picture = drawing.canvas(CARD_HEIGHT, row_width(6), drawing.GREEN)
    place_row(picture, 0, ["2"] * (count - 1) + ["K"])
    assert (picture[:, :GAP] == drawing.GREEN).all() and (picture[:, -GAP:] == drawing.GREEN).all()
    lefts = range(picture.shape[1] - CARD_WIDTH + 1)
    assert any((picture[:, left : left + CARD_WIDTH] == card("K")).all() for left in lefts)


def test_blackjack_shows_the_dealers_hidden_card_only_after_standing() -> None:
    env = Blackjack(render_mode="rgb_array")
    for seed in range(30):
        env.reset(seed=seed)
        shown = env.render()
        assert isinstance(shown, np.ndarray)
        assert cards_in(shown, GAP) == [RANKS[env._deal[2] - 1], BACK]
        assert cards_in(shown, 2 * GAP + CARD_HEIGHT) == [RANKS[rank - 1] for rank in env._hand]
        env.resample_hidden()
        assert np.array_equal(np.asarray(env.render()), shown)
        env.step("stand")
        after = env.render()
        assert isinstance(after, np.ndarray)
        dealer = cards_in(after, GAP)
        names = str(env._observation).split("The dealer holds ")[1].split(" (")[0].split(" ")
        assert dealer == names[: len(dealer)] and (dealer == names or len(names) > 6)


@pytest.mark.parametrize("options", [{}, POINTS24])
def test_points_show_the_cards_and_the_formula(options: dict[str, Any]) -> None:
    env = EZPoints(**options, image=True)
    for seed in range(10):
        observation, info = env.reset(seed=seed)
        names = [RANKS[rank - 1] for rank in env._ranks]
        pictures = [observation["image"]]
        assert observation["text"] == info["anchor"] and ", ".join(names) in observation["text"]
        while env._running:
            observation = env.step(env.expert_action())[0]
            pictures.append(observation["image"])
        assert all(cards_in(picture, 24) == names for picture in pictures)
        assert len({picture.tobytes() for picture in pictures}) == len(pictures), "every token can be seen"
        assert all(picture in env.observation_space["image"] for picture in pictures)  # type: ignore[index]


def test_the_longest_formula_fits_into_its_picture() -> None:
    for cards in (2, 3, 4):
        env = EZPoints(cards=cards, target=1000 if cards == 4 else 12, operators="+*")
        height, width = env._frame
        brackets = 2 * (cards - 1) if cards > 2 else 0
        text = "+".join(["10"] * cards) + "(" * brackets + "="
        drawing.write(drawing.canvas(24, width, drawing.BLACK), text, drawing.WHITE, scale=2)
        drawing.write(drawing.canvas(24, width, drawing.BLACK), "MAKE 1000", drawing.WHITE, scale=2)
        assert height == 2 * 24 + CARD_HEIGHT


@pytest.mark.parametrize("highest", [1, 5, 25, 26, 60, 1000])
def test_a_number_line_shows_every_number_the_player_and_the_target(highest: int) -> None:
    env = NumberLine(highest=highest, max_turns=1000, render_mode="rgb_array")
    env.reset(seed=1)
    pictures = [env.render()]
    env.step(env.expert_action())
    pictures.append(env.render())
    for picture in pictures:
        assert isinstance(picture, np.ndarray) and picture.shape == (*env._frame, 3)
    assert not np.array_equal(np.asarray(pictures[0]), np.asarray(pictures[1]))
    while env._running:
        env.step(env.expert_action())
    tiles = np.asarray(env.render()).reshape(env._frame[0] // 28, 28, -1, 28, 3).transpose(0, 2, 1, 3, 4)
    plain = [number for number in range(highest + 1) if number != env._target]
    seen = {tile.tobytes() for tile in tiles.reshape(-1, 28, 28, 3)}
    assert len(seen) == len(plain) + 1 + (env._frame[0] // 28 * env._frame[1] // 28 > highest + 1)


@pytest.mark.parametrize("kind", [NumberLine, EZPoints, Blackjack])
def test_with_pictures_the_text_is_the_same(kind: type[NumberLine] | type[EZPoints] | type[Blackjack]) -> None:
    plain, seen = kind(), kind(image=True)
    for seed in range(5):
        observation, _ = plain.reset(seed=seed)
        picture, _ = seen.reset(seed=seed)
        while True:
            assert picture["text"] == observation and picture in seen.observation_space
            if not plain._running:
                break
            action = plain.expert_action()
            observation, picture = plain.step(action)[0], seen.step(action)[0]
