"""Liar's dice: bids and what makes them true, notations, the truthful player."""

import pytest
from table_play import match, say, started

from turngym.envs.tablegames.liars_dice import LiarsDice, bids
from turngym.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "dice", "actions", "won"),
    [
        ({}, [[1], [6]], "1x1 liar", 1),
        ({}, [[1], [6]], "2x1 liar", 1),
        ({}, [[1], [6]], "2x6 liar", -1),
        ({"wild": False}, [[1], [6]], "2x1 liar", -1),
        ({}, [[3], [5]], "1x2 1x5 liar", -1),
        ({}, [[3], [5]], "1x2 1x4 liar", 1),
        ({"dice": 2, "faces": 3}, [[1, 3], [1, 2]], "1x1 3x1 liar", -1),
        ({"dice": 2, "faces": 3}, [[1, 3], [2, 2]], "1x1 3x1 liar", 1),
    ],
)
def test_the_last_bid_decides(options: dict[str, int], dice: list[list[int]], actions: str, won: int) -> None:
    table = started(LiarsDice(**options), options={"dice": dice})
    assert say(table, *actions.split())[-1] == (won, -won) and table.is_over


def test_bids_rise_by_quantity_and_then_by_face() -> None:
    game = LiarsDice(faces=3)
    assert game.bids == ("1x1", "1x2", "1x3", "2x1", "2x2", "2x3") == bids(2, 3)
    table = started(game)
    assert table.game.legal_actions(0) == game.bids
    say(table, "1x3")
    assert table.game.legal_actions(1) == ("2x1", "2x2", "2x3", "liar")
    say(table, "2x3")
    assert table.game.legal_actions(0) == ("liar",)


@pytest.mark.parametrize(
    "text", ["2x5", "2 x 5", "[2×5]", "two fives", "I bid [2 5s]", '{"action": "bid 2x5"}', "Bid: 2x5."]
)
def test_many_notations_of_a_bid(text: str) -> None:
    assert started(LiarsDice()).answer(0, text).action == "2x5"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("liar", "There is no bid yet: answer with a bid, such as 1x2."),
        ("3x1", "There is no bid 3x1 here: the highest is 2x6."),
        ("seven", "No action was found in your answer."),
    ],
)
def test_reasons_of_invalid_answers(text: str, reason: str) -> None:
    assert started(LiarsDice()).answer(0, text).reason == reason


def test_a_lower_bid_is_illegal() -> None:
    table = started(LiarsDice())
    say(table, "2x2")
    assert table.answer(1, "2x1").reason == "2x1 is not higher than 2x2: bid more or answer liar."


def test_dice_are_told_to_their_own_seat_until_the_end() -> None:
    table = started(LiarsDice(), options={"dice": [[2], [4]]})
    assert table.views[0].lines == ["You roll 2. player_0 begins."]
    say(table, "1x3", "liar")
    assert table.views[0].lines[-2] == "player_0 shows 2; player_1 shows 4."
    assert table.game.metrics() == {"bids": 1.0, "last_bid_true": 0.0}


@pytest.mark.parametrize("dice", [5, [[1]], [[1], [7]], [[1], [True]], [[1, 2], [3]], ["1", "2"]])
def test_impossible_dice_are_refused(dice: object) -> None:
    with pytest.raises(ConfigError, match="dice must be two lists of 1 numbers from 1 to 6"):
        started(LiarsDice(), options={"dice": dice})


def test_the_truthful_player_bids_what_it_has_and_beats_random_play() -> None:
    table = match(LiarsDice(), ["truthful", "first_legal"], options={"dice": [[4], [2]]})
    assert table.actions[0] == (0, "1x4")
    won = sum(match(LiarsDice(dice=2), ["truthful", "random"], seed).returns[0] for seed in range(60))
    assert won > 20
