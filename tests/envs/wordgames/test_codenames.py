"""Codenames: clues, guesses, ends, what guessers know, players, known play at random, and hostile answers."""

import pytest
from table_play import at_random, decisions, match, say, seen_by, started

from turngym.envs.multiagent import make_game
from turngym.envs.multiagent.players import RandomPlayer
from turngym.envs.multiagent.table import SeatView, Table
from turngym.envs.wordgames.codenames import Codenames
from turngym.errors import ConfigError
from turngym.seeding import stream

BOARD = {"words": ["apple", "pear", "lion", "drum", "rain", "castle"]}


def small() -> Table:
    game = Codenames(words=6, own=2)
    return started(game, options={**BOARD, "key": ["red", "red", "blue", "neutral", "assassin", "neutral"]})


def test_a_team_whose_words_are_all_revealed_wins_whoever_named_them() -> None:
    table = small()
    say(table, "[fruit 2]", "apple", "pear")
    assert table.winners() == (0, 1) and table.returns == [1.0, 1.0, -1.0, -1.0]
    table = small()
    say(table, "[fruit 2]", "lion")
    assert table.winners() == (2, 3) and [line.text for line in table.log[-2:]] == [
        "The red guesser names lion: blue.",
        "The game is over: blue wins.",
    ]


def test_an_assassin_loses_and_another_word_ends_the_turn() -> None:
    table = small()
    say(table, "[fruit 2]", "drum")
    assert table.pending == (2,)
    say(table, "[animal 1]", "rain")
    assert table.winners() == (0, 1) and table.game.metrics()["assassin"] == 1.0


def test_a_guesser_names_one_word_more_than_the_number_and_any_number_after_zero() -> None:
    game = Codenames(words=10, own=4)
    words = ["apple", "pear", "peach", "plum", "lion", "wolf", "fox", "drum", "rain", "castle"]
    key = [*["red"] * 4, *["blue"] * 3, "neutral", "assassin", "neutral"]
    table = started(game, options={"words": words, "key": key})
    say(table, "[fruit 1]")
    assert "pass" not in table.views[1].legal_actions and table.answer(1, "pass").reason.startswith(
        "You must name a word"
    )
    say(table, "apple")
    assert "up to 1 words, or [pass]" in table.views[1].observation
    say(table, "pear")
    assert table.pending == (2,)
    say(table, "animal 0", "lion", "wolf", "fox")
    assert table.winners() == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        *("[fruit 2]", "fruit 2", "Clue: FRUIT, 2.", '{"clue": "fruit", "number": 2}', "Hm: [clue fruit 2]"),
        pytest.param("Or [gun 3]? " * 1000 + "</think>[fruit 2]", id="long thinking"),
    ],
)
def test_many_notations_of_a_clue(text: str) -> None:
    assert small().answer(0, text).action == "fruit 2"


@pytest.mark.parametrize(
    "text", ['{"clue": "fruit [gun 3]", "number": 2}', '{"clue": "fruit", "number": "1.5"}', "fruit 1.5", "fruit"]
)
def test_what_is_more_or_less_than_a_clue_is_none(text: str) -> None:
    assert small().answer(0, text).reason.startswith("Your answer has no clue")


@pytest.mark.parametrize(
    ("text", "word"), [("apple 1", "apple"), ("[pineapple 1]", "apple"), ("rai 2", "rain"), ("a 1", "apple")]
)
def test_clues_that_are_part_of_the_board_are_illegal(text: str, word: str) -> None:
    reason = small().answer(0, text).reason
    assert reason.endswith(f"equals, contains or is contained in {word}, which is on the board.")


HOSTILE = ["", "fruit", "two words 2", "[fruit 2] [sour 1]", "\u0430pple 1", "fru\u200bit 2", "[fruit 99]", "fruit -1"]
HOSTILE += [
    "\ud800",
    "9" * 20_000,
    '{"clue": ["fruit"], "number": 2}',
    '{"clue": "red fruit", "number": 2}',
    "[" * 5000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_other_clues_are_refused_without_a_trace(text: str) -> None:
    table = small()
    before = [seen_by(table, seat) for seat in (1, 2, 3)]
    assert not table.answer(0, text).is_valid and [seen_by(table, seat) for seat in (1, 2, 3)] == before


@pytest.mark.parametrize("text", ["banana", "", "apple pear", "[apple] [pear]", "\ud800", "red"])
def test_other_guesses_are_refused_without_a_trace(text: str) -> None:
    table = small()
    say(table, "[fruit 2]")
    before = [seen_by(table, seat) for seat in (0, 2, 3)]
    assert not table.answer(1, text).is_valid and [seen_by(table, seat) for seat in (0, 2, 3)] == before


def test_a_seat_without_a_legal_action_loses_for_its_team() -> None:
    table = small()
    table.expire(0)
    assert table.winners() == (2, 3) and table.returns == [-1.0, -1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"words": ["apple"] * 25}, "words of codenames must be 25 different words"),
        ({"words": 5}, "words of codenames must be 25 different words"),
        ({"words": [["apple"]] * 25}, "words of codenames must be 25 different words"),
        ({"key": [None] * 25}, "key of codenames must be an order of"),
        ({"key": ["red"] * 25}, "key of codenames must be an order of"),
        ({"board": 1}, "no option 'board'"),
    ],
)
def test_impossible_boards_are_refused(options: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        started(Codenames(), options=options)
    with pytest.raises(ConfigError, match="own of codenames must be at most 3 on a board of 6 words, got 4"):
        Codenames(words=6, own=4)


def test_guessers_do_not_know_the_key() -> None:
    changed = 0
    for seed in range(3):
        table, generator = started(make_game("turngym/Codenames-v0"), seed), stream("swap", seed)
        for _ in decisions(table, at_random(generator)):
            for seat in table.game.everyone:
                state, before = table.game.state(), seen_by(table, seat)
                has_changed = table.game.swap_hidden(seat, generator)
                assert seen_by(table, seat) == before and (seat % 2 or not has_changed)
                changed += has_changed
                table.game.load(state)
    assert changed > 20


class OneGuess(RandomPlayer):
    """Names one random word, and passes if it may name another one."""

    def act(self, view: SeatView) -> str:
        return "pass" if "pass" in view.legal_actions else super().act(view)


def test_one_random_guess_per_turn_ends_as_it_is_known_to() -> None:
    games = [match(Codenames(), [OneGuess() for _ in range(4)], seed).game.metrics() for seed in range(100)]
    red, assassin, turns = (sum(each[name] for each in games) / 100 for name in ("red_wins", "assassin", "turns"))
    assert abs(red - 0.482) < 0.12 and abs(assassin - 0.845) < 0.09 and abs(turns - 12.5) < 1.5


def test_associating_players_never_name_the_assassin_and_beat_random_play() -> None:
    for seed in range(6):
        table = match(make_game("turngym/Codenames-v0"), ["associate", "associate", "random", "random"], seed)
        assert table.winners() == (0, 1)
        table = match(make_game("turngym/Codenames-v0"), ["associate"] * 4, seed)
        assert table.game.metrics()["assassin"] == 0.0
        assert not any(counts.illegal or counts.unreadable for counts in table.counts)


def test_states_continue_and_damaged_ones_are_refused() -> None:
    table, other = small(), Table(Codenames(words=6, own=2))
    say(table, "[fruit 2]", "apple")
    other.restore(table.snapshot())
    assert say(table, "pass", "animal 1", "lion") == say(other, "pass", "animal 1", "lion")
    assert table.snapshot() == other.snapshot() and table.winners() == (2, 3)
    for name, wrong in (("key", ["red"] * 6), ("turn", 2), ("winner", "green"), ("words", ["x"] * 6)):
        with pytest.raises(ValueError, match="the "):
            table.game.load({**table.game.state(), name: wrong})
