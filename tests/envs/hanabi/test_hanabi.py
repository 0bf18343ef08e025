"""Hanabi: rules on stacked decks, what seats see, players by convention, and PettingZoo's tests."""

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from table_play import at_random, decisions, match, say, seen_by, started

from turngym.envs.hanabi import SPECS
from turngym.envs.hanabi.game import Hanabi
from turngym.envs.hanabi.players import Sight
from turngym.envs.hanabi.rules import COLOURS, Card, all_cards
from turngym.envs.multiagent import make_aec, make_game, make_parallel
from turngym.envs.multiagent.table import Table
from turngym.errors import ConfigError
from turngym.seeding import stream

TINY = {"colours": 2, "ranks": 2, "hand_size": 1, "hints": 2, "lives": 2}
DECK = ["red 1", "red 2", "yellow 1", "red 1", "yellow 2", "yellow 1", "red 1", "yellow 1"]
"""``player_0`` and ``player_1`` hold the first two cards and draw the others in this order."""


def tiny(**options: object) -> Table:
    return started(Hanabi(**{**TINY, **options}), options={"deck": DECK})


def test_cards_that_fit_pay_all_seats_and_a_complete_firework_gives_a_hint_back() -> None:
    table = tiny()
    paid = say(table, "hint player_1 2", "hint player_0 1", "play 1", "play 1")
    assert paid == [(0.0, 0.0), (0.0, 0.0), (1.0, 1.0), (1.0, 1.0)]
    assert table.game.metrics() == {"points": 2.0, "lives": 2.0, "hints": 1.0}
    assert table.log[-2].text == "player_1 plays card 1: red 2. It fits."
    assert table.log[-1] == ((0,), "player_1 draws red 1.")


def test_all_fireworks_are_a_success_for_all() -> None:
    table = tiny(lives=3)
    say(table, "play 1", "play 1", "play 1", "hint player_0 2", "hint player_1 1", "play 1", "play 1")
    assert table.game.metrics()["points"] == 4.0 and table.is_over
    assert table.winners() == (0, 1) and table.info(0)["success"] == 1 and table.info(1)["score"] == 4.0


@pytest.mark.parametrize(("strict", "last", "score"), [(True, -2.0, 0.0), (False, 0.0, 2.0)])
def test_without_lives_the_game_is_lost(strict: bool, last: float, score: float) -> None:
    table = tiny(strict=strict, lives=1)
    paid = say(table, "play 1", "play 1", "hint player_1 red", "play 1")
    assert paid[-1] == (last, last) and table.is_over and table.winners() == ()
    assert table.info(0)["score"] == score and sum(each[0] for each in paid) == score


def test_enough_points_are_a_success() -> None:
    table = started(Hanabi(**TINY, target=1), options={"deck": DECK})
    say(table, "play 1")
    assert table.winners() == () and "With lives and 1 points or more you have won." in table.instructions(0)
    while not table.is_over:
        say(table, table.game.legal_actions(table.pending[0])[1])
    assert table.winners() == (0, 1)
    with pytest.raises(ConfigError, match="target of hanabi must be at most the 4 points that there are, got 5"):
        Hanabi(**TINY, target=5)


def test_after_the_last_card_every_seat_has_one_more_turn() -> None:
    game = Hanabi(colours=1, ranks=2, hand_size=1, hints=1)
    table = started(game, options={"deck": ["red 1", "red 1", "red 1"]})
    assert len(game.round.deck) == 2 and game.round.turns_left == -1
    say(table, "hint player_1 1", "discard 1", "hint player_1 1", "discard 1")
    assert game.round.turns_left == 2 and not game.round.deck
    assert "; 2 turns left." in table.views[0].observation
    say(table, "hint player_1 2", "discard 1")
    assert table.is_over and table.winners() == () and table.info(0)["progress"] == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "hint player_1 red",
        "[Hint player 1 colour red]",
        "I tell [tell player_1 red]",
        "hint red to player_1",
        '{"action": "hint player_1 color red"}',
    ],
)
def test_many_notations_of_a_hint(text: str) -> None:
    assert tiny().answer(0, text).action == "hint player_1 red"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hint player_1 yellow", "player_1 has no card that is yellow: hint at one that it has."),
        ("hint player_0 red", "You cannot hint at your own cards."),
        ("discard 1", "You cannot discard while no hint has been used: play a card or give a hint."),
        ("pass", "No action was found in your answer."),
    ],
)
def test_reasons_of_invalid_answers(text: str, reason: str) -> None:
    assert tiny().answer(0, text).reason == reason


def test_a_seat_without_a_legal_action_loses_the_game_for_all() -> None:
    table = tiny()
    say(table, "play 1")
    table.expire(1)
    assert table.is_over and table.winners() == () and table.returns == [0.0, 0.0]
    assert table.info(0)["score"] == 0.0


def test_hints_say_what_cards_are_and_what_they_are_not() -> None:
    table = started(
        make_game("turngym/Hanabi-v0"),
        options={"deck": ["blue 5", "red 1", "red 1", "green 3", "red 2", "yellow 1"]},
    )
    say(table, "hint player_1 1")
    mine = table.views[1].anchor.split("\n")[-1]
    assert mine.startswith("You: card 1 (any 1), card 2")
    assert "red 1" not in mine and "player_0: card 1 blue 5 (any any)" in table.views[1].anchor


@pytest.mark.parametrize("deck", ["red 1", ["red 6"], ["yellow 2", "yellow 2"], [7]])
def test_impossible_decks_are_refused(deck: object) -> None:
    with pytest.raises(ConfigError, match="deck must be a list of cards of the game"):
        started(Hanabi(**TINY), options={"deck": deck})


def test_hands_that_leave_no_deck_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 hands of 5 need more than 8 cards"):
        Hanabi(colours=2, ranks=2, hand_size=5)


@pytest.mark.parametrize("game_id", SPECS)
def test_no_seat_sees_its_hand_or_the_deck(game_id: str) -> None:
    changed = 0
    for seed in range(6):
        table, generator = started(make_game(game_id), seed), stream("swap", seed)
        for _ in decisions(table, at_random(generator)):
            for seat in table.game.everyone:
                state, before = table.game.state(), seen_by(table, seat)
                has_changed = table.game.swap_hidden(seat, generator)
                assert has_changed == (table.game.state() != state)
                assert seen_by(table, seat) == before
                changed += has_changed
                table.game.load(state)
    assert changed > 20


@pytest.mark.parametrize("game_id", SPECS)
def test_snapshots_and_states_continue_the_game(game_id: str) -> None:
    table = started(make_game(game_id), 2)
    snapshots, progress = [], -1.0
    for seat in decisions(table, at_random(stream("one"))):
        assert progress <= table.info(seat)["progress"] < 1
        progress = table.info(seat)["progress"]
        assert sorted(json.loads(json.dumps(table.game.state()))) == sorted(table.game.state())
        if len(table.actions) % 9 == 0:
            snapshots.append(table.snapshot())
    for snapshot in snapshots:
        other = Table(make_game(game_id))
        other.restore(snapshot)
        for seat, action in table.actions[len(other.actions) :]:
            assert action is not None and other.answer(seat, action).is_valid
        assert other.snapshot() == table.snapshot()


def test_a_state_with_other_cards_is_refused() -> None:
    table = tiny()
    state = table.game.state()
    state["deck"][0] = [0, 2]
    with pytest.raises(ValueError, match="cards are not those of the game"):
        table.game.load(state)


def test_players_read_the_whole_anchor() -> None:
    table = tiny()
    say(table, "hint player_1 2", "play 1")
    sight = Sight.of(table.views[0].anchor, 2)
    assert (sight.fireworks, sight.hints, sight.lives) == ([0, 0], 1, 1)
    assert [COLOURS[card.colour] for card in sight.discarded] == ["red"]
    assert len(sight.hands["You"]) == 1 and sight.hands["player_1"][0].card is not None


@pytest.mark.parametrize(("options", "lowest"), [({}, 17.5), ({"num_seats": 5}, 14.5)])
def test_the_players_by_convention_score_well(options: dict[str, int], lowest: float) -> None:
    for name in ("certain", "likely"):
        scores = []
        for seed in range(8):
            table = match(Hanabi(**options), [name] * options.get("num_seats", 2), seed)
            scores.append(table.info(0)["score"])
            assert not any(counts.illegal or counts.unreadable for counts in table.counts)
        assert sum(scores) / len(scores) > lowest


def test_a_deck_has_fifty_cards() -> None:
    cards = all_cards(5, 5)
    assert len(cards) == 50 and [cards.count(Card(0, rank)) for rank in range(1, 6)] == [3, 2, 2, 2, 1]


@contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(NumPy|numpy|[Oo]bservation|Action space for each agent).*")
        yield


def test_both_views_pass_pettingzoos_tests() -> None:
    game_id = "turngym/HanabiSmall-v0"
    with quiet():
        api_test(make_aec(game_id), num_cycles=60)
        seed_test(lambda: make_aec(game_id), num_cycles=30)
        parallel_api_test(make_parallel(game_id), num_cycles=60)
        parallel_seed_test(lambda: make_parallel(game_id), num_cycles=30)
