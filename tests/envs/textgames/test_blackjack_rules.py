"""Blackjack's rules and solver: hands by trying both values of every ace, chances by enumeration, known tables."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.blackjack.rules import (
    dealer_hand,
    hand_text,
    outcomes,
    player_hand,
    result,
    total,
    worth,
)
from turngym.envs.textgames.blackjack.solver import (
    ENDLESS,
    MONEY,
    WINS,
    dealer_chances,
    deck_without,
    draws,
    game_value,
    play_value,
    should_hit,
)

ranks = st.integers(1, 13)
DEALS = st.lists(ranks, min_size=40, max_size=40)


@given(st.lists(ranks, min_size=1, max_size=12))
def test_a_hand_counts_the_best_choice_for_every_ace(cards: list[int]) -> None:
    choices = [(1, 11) if rank == 1 else (min(rank, 10),) for rank in cards]
    sums = {sum(choice) for choice in product(*choices)}
    best = max([count for count in sums if count <= 21], default=min(sums))
    count, is_soft = total(tuple(cards))
    assert count == best
    assert is_soft == (best != sum([min(rank, 10) for rank in cards]))


@pytest.mark.parametrize(
    ("cards", "number"), [((1, 13), 22), ((1, 10), 22), ((1, 5, 5), 21), ((7, 7, 7), 21), ((10, 10, 2), 0), ((2, 2), 4)]
)
def test_hands_are_compared_by_their_worth(cards: tuple[int, ...], number: int) -> None:
    assert worth(cards) == number


WHO_WINS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((10, 10), (10, 9), 1),
    ((10, 9), (10, 9), 0),
    ((10, 8), (10, 9), -1),
    ((10, 8), (10, 6, 8), 1),
    ((10, 8, 8), (10, 6, 8), -1),
    ((1, 10), (1, 10), 0),
    ((1, 10), (1, 4, 6), 1),
    ((1, 4, 6), (1, 10), -1),
    ((1, 4, 6), (7, 7, 7), 0),
]


def test_who_wins() -> None:
    for player, dealer, end in WHO_WINS:
        assert result(player, dealer) == end


def test_the_dealer_stands_on_every_seventeen() -> None:
    assert dealer_hand((2, 2, 1, 6, 10), 0) == (1, 6)  # soft 17
    assert dealer_hand((2, 2, 1, 5, 10, 10), 0) == (1, 5, 10, 10)  # soft 16, hard 16, 26
    assert dealer_hand((2, 2, 10, 6, 1), 0) == (10, 6, 1)
    assert dealer_hand((2, 2, 10, 6, 9, 8, 1), 2) == (10, 6, 1)  # the player took the 9 and the 8


@settings(max_examples=300)
@given(DEALS)
def test_outcomes_equal_those_of_hands_played_out(deal: list[int]) -> None:
    """Oracle: build both hands and compare them; see which cards they show."""
    found, hits, shown = [], 0, 4
    while total(player_hand(deal, hits))[0] <= 21:
        dealer = dealer_hand(deal, hits)
        found.append(result(player_hand(deal, hits), dealer))
        shown = max(shown, 4 + hits + len(dealer) - 2)
        hits += 1
    assert outcomes(deal) == (found, max(shown, 4 + hits))


@settings(max_examples=200)
@given(DEALS, st.lists(ranks, min_size=40, max_size=40))
def test_cards_beyond_those_that_a_play_shows_change_nothing(deal: list[int], others: list[int]) -> None:
    found, shown = outcomes(deal)
    assert outcomes([*deal[:shown], *others]) == (found, shown)
    assert shown <= 34


def test_many_small_cards_stay_within_a_deal() -> None:
    assert outcomes([1] * 40)[1] <= 40 and len(outcomes([1] * 40)[0]) == 20
    assert hand_text((1, 1, 1)) == "A A A (soft 13)"


def enumerated_dealer(cards: tuple[int, ...], share: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the chances of 17 to 21, more than 21 and a natural, by playing every row of cards out."""
    chances = np.zeros(7)
    count = total(cards)[0]
    if count >= 17:
        chances[6 if worth(cards) == 22 else 5 if count > 21 else count - 17] = share
        return chances
    for rank in range(1, 14):
        chances += enumerated_dealer((*cards, rank), share / 13)
    return chances


@pytest.mark.parametrize("shown", [6, 10])
def test_chances_of_the_dealer_equal_those_of_enumeration(shown: int) -> None:
    assert dealer_chances(shown, False, 1, ENDLESS) == pytest.approx(enumerated_dealer((shown,), 1.0).tolist())


@pytest.mark.parametrize("shown", range(1, 11))
def test_chances_of_the_dealer_sum_to_one(shown: int) -> None:
    for pool in (ENDLESS, deck_without((shown, 5, 9))):
        assert sum(dealer_chances(shown, shown == 1, 1, pool)) == pytest.approx(1.0)


def test_a_pool_loses_the_card_that_is_drawn() -> None:
    pool = deck_without((1, 1, 1, 1, 10))
    assert pool == (0, 4, 4, 4, 4, 4, 4, 4, 4, 15)
    coming = draws(pool)
    assert [value for value, _, _ in coming] == list(range(2, 11)), "no ace is left"
    assert sum([share for _, share, _ in coming]) == pytest.approx(1.0)
    assert all(sum(rest) == sum(pool) - 1 for _, _, rest in coming)
    assert coming[-1][1] == 15 / 47 and coming[-1][2][9] == 14


def test_best_play_for_money_is_the_published_basic_strategy() -> None:
    """Hit and stand of the usual table for several decks, dealer stands on soft 17; dealer cards 2 to 10, then ace."""
    table = {
        11: "HHHHHHHHHH",
        12: "HHSSSHHHHH",
        13: "SSSSSHHHHH",
        14: "SSSSSHHHHH",
        15: "SSSSSHHHHH",
        16: "SSSSSHHHHH",
        17: "SSSSSSSSSS",
        20: "SSSSSSSSSS",
    }
    dealer = [*range(2, 11), 1]
    for count, row in table.items():
        cards = (10, count - 10) if count > 11 else (5, 6)
        assert "".join(["SH"[should_hit(cards, shown, ENDLESS, MONEY)] for shown in dealer]) == row, count
    soft = {17: "HHHHHHHHHH", 18: "SSSSSSSHHH", 19: "SSSSSSSSSS"}
    for count, row in soft.items():
        assert "".join(["SH"[should_hit((1, count - 11), shown, ENDLESS, MONEY)] for shown in dealer]) == row, count


def test_the_value_of_the_game_is_the_published_one() -> None:
    """Hit and stand alone lose about 4.7 % of a stake, and win about 43 % of the games."""
    assert game_value(MONEY) == pytest.approx(-0.047, abs=0.001)
    assert 0.43 < game_value(WINS) < 0.44


def test_the_value_of_the_game_is_that_of_games_played_out() -> None:
    generator = np.random.Generator(np.random.Philox(1))
    wins = []
    for deal in generator.integers(1, 14, size=(6000, 40)).tolist():
        hits, found = 0, outcomes(deal)[0]
        while hits < len(found):
            cards = tuple([min(rank, 10) for rank in player_hand(deal, hits)])
            if not should_hit(cards, min(deal[2], 10), ENDLESS):
                break
            hits += 1
        wins.append(hits < len(found) and found[hits] == 1)
    assert np.mean(wins) == pytest.approx(game_value(WINS), abs=0.02)  # three standard errors


def test_eleven_is_hit_and_twenty_stands() -> None:
    """Eleven cannot exceed 21, twenty nearly always does; and all values are probabilities."""
    for count in range(4, 21):
        for shown in range(1, 11):
            stand, hit = play_value(count, False, shown, ENDLESS, WINS)
            assert 0 <= stand <= 1 and 0 <= hit <= 1
    for shown in range(1, 11):
        assert play_value(11, False, shown, ENDLESS, WINS)[1] > play_value(11, False, shown, ENDLESS, WINS)[0]
        assert play_value(20, False, shown, ENDLESS, WINS)[0] > play_value(20, False, shown, ENDLESS, WINS)[1]


def test_a_bound_is_used_only_where_standing_is_at_least_as_good() -> None:
    """Without the short cut, the best of the two values is the same."""

    def best(count: int, has_ace: bool, shown: int) -> float:
        stand = play_value(count, has_ace, shown, ENDLESS, MONEY)[0]
        hit = 0.0
        for value, share, _ in draws(ENDLESS):
            after = count + value
            hit += share * (-1.0 if after > 21 else best(after, has_ace or value == 1, shown))
        return max(stand, hit)

    for count in range(15, 21):
        for shown in (1, 5, 10):
            assert best(count, False, shown) == pytest.approx(max(play_value(count, False, shown, ENDLESS, MONEY)))


def test_the_deck_that_is_left_changes_the_play() -> None:
    """16 against 10 is nearly even: without fives it is right to stand, with few tens to hit."""
    no_fives = (4, 4, 4, 4, 0, 4, 4, 4, 4, 15)
    few_tens = (4, 4, 4, 4, 4, 4, 4, 4, 4, 4)
    assert not should_hit((10, 6), 10, no_fives, MONEY) and should_hit((10, 6), 10, few_tens, MONEY)
