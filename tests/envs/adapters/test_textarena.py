"""TextArena's single-player games under turngym's contract, played for real where `make peers` put them."""

import random
from typing import Any

import pytest
from peers import play, word_lists

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.adapters.replayed import BROKEN_ACTION
from turngym.envs.check import check
from turngym.errors import ConfigError, MissingExtra, UnknownName

pytestmark = pytest.mark.integration
pytest.importorskip("textarena", reason="textarena is in .venvs/peers only: run make test-integration")

from turngym.envs.adapters.textarena import TextArena  # noqa: E402

__all__ = ["word_lists"]
GAMES = [
    *("2048-v0-ultra-easy", "Bandit-v0", "Blackjack-v0", "Crosswords-v0", "FifteenPuzzle-v0", "FrozenLake-v0"),
    *("FrozenLake-v0-random", "GuessTheNumber-v0", "LightsOut-v0", "LogicPuzzle-v0", "Mastermind-v0"),
    *("Minesweeper-v0-small", "PegJump-v0", "Secretary-v0", "Set-v0", "Sudoku-v0-very-easy", "TowerOfHanoi-v0"),
]
ASKED_ELSEWHERE = ("Crosswords-v0", "LogicPuzzle-v0")


@pytest.mark.parametrize("game", GAMES)
def test_it_keeps_every_promise(game: str) -> None:
    in_process = game not in ASKED_ELSEWHERE  # other processes have other hash seeds
    assert not check("turngym/TextArena-v0", options={"game": game}, episodes=2, in_process=in_process).failed


def test_hangman_keeps_every_promise_where_its_words_are(word_lists: None) -> None:
    assert not check("turngym/TextArena-v0", options={"game": "Hangman-v0"}, episodes=2, in_process=True).failed


def test_sokoban_plays(word_lists: None) -> None:
    """Its rooms take a tenth of a second and more to make, so it is not checked in full."""
    env = TextArena(game="Sokoban-v0", game_options={"num_boxes": 1})
    assert repr(play(env, 3, random.Random(3), 10)) == repr(play(env, 3, random.Random(3), 10))


@pytest.mark.parametrize("game", ["Hangman-v0", "Wordle-v0", "WordSearch-v0"])
def test_without_word_lists_the_way_out_is_named_and_nothing_is_downloaded(
    game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nltk

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(nltk, "download", fail)
    with pytest.raises(MissingExtra, match=r"python -m nltk\.downloader words"):
        TextArena(game=game)


def test_textarena_itself_piles_up_the_history_that_is_contained() -> None:
    """Negative oracle: a reused object of TextArena shows the episode before in the first observation."""
    import textarena

    bare = textarena.make("GuessTheNumber-v0")
    bare.reset(num_players=1, seed=1)
    first = bare.get_observation()[1]
    bare.reset(num_players=1, seed=1)
    assert len(bare.get_observation()[1]) > 1.5 * len(first)

    env = TextArena(game="GuessTheNumber-v0")
    lengths = []
    for _ in range(3):
        observation, info = env.reset(seed=1)
        lengths.append(len(observation) + len(info["anchor"]))
        env.step("[3]")
    assert len(set(lengths)) == 1


def test_observations_leave_out_the_rules_and_the_agents_own_words() -> None:
    env = TextArena(game="TowerOfHanoi-v0")
    observation, _ = env.reset(seed=0)
    assert env.instructions.startswith("You are playing Tower of Hanoi") and "You are playing" not in observation
    observation, *_ = env.step("I think I shall go from [A C], my friend")
    assert "friend" not in observation and observation.startswith("You moved disk 1 from A to C.")


def test_brackets_that_are_missing_are_put_as_textarena_does() -> None:
    env = TextArena(game="TowerOfHanoi-v0")
    env.reset(seed=0)
    assert env.step("A C")[-1]["action_is_valid"]


def test_the_turn_limit_truncates() -> None:
    env = TextArena(game="TowerOfHanoi-v0")
    env.reset(seed=0)
    moves = ["[A B]", "[B A]"] * 7 + ["[A B]"]  # its limit of 14 turns lets 15 pass
    *earlier, (observation, reward, terminated, truncated, info) = [env.step(move) for move in moves]
    assert not any(step[2] or step[3] for step in earlier) and all(step[1] == 0 for step in earlier)
    assert (terminated, truncated, info["success"]) == (False, True, 0)
    assert "turn limit" in observation and reward == 0.0


def test_invalid_moves_do_not_count_towards_the_limit_of_the_game_but_towards_ours() -> None:
    env = TextArena(game="TowerOfHanoi-v0", max_turns=16)
    env.reset(seed=0)
    flags = [env.step(move)[2:4] for move in (["[A B]", "[C A]", "[B A]"] * 6)[:16]]
    assert flags == [(False, False)] * 15 + [(False, True)]


def test_a_solved_game_brings_its_reward_with_the_last_turn() -> None:
    env = TextArena(game="TowerOfHanoi-v0")
    env.reset(seed=0)
    steps = [env.step(f"[{move}]") for move in ("A C", "A B", "C B", "A C", "B A", "B C", "A C")]
    assert [step[1] for step in steps] == [0.0] * 6 + [1.0]
    assert steps[-1][2] and steps[-1][-1]["success"] == 1 and "Congratulations" in steps[-1][0]


def test_one_invalid_move_is_answered_and_a_second_in_a_row_ends_the_game() -> None:
    env = TextArena(game="TowerOfHanoi-v0")
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step("[B A]")
    assert not terminated and not info["action_is_valid"] and "invalid move" in observation
    assert env.step("[A B]")[-1]["action_is_valid"]
    env.step("[C A]")
    _, _, terminated, truncated, info = env.step("nonsense")
    assert (terminated, truncated, info["success"], info["action_is_valid"]) == (True, False, 0, False)


def test_an_action_that_makes_the_game_raise_is_answered_and_undone() -> None:
    """Five thousand digits are more than ``int`` reads: the bare game raises ValueError."""
    import textarena

    action = f"[{'9' * 5000}]"
    bare = textarena.make("GuessTheNumber-v0")
    bare.reset(num_players=1, seed=1)
    with pytest.raises(ValueError, match="integer string conversion"):
        bare.step(action)

    env, twin = TextArena(game="GuessTheNumber-v0"), TextArena(game="GuessTheNumber-v0")
    first = env.reset(seed=1)
    assert repr(twin.reset(seed=1)) == repr(first)
    observation, _, terminated, _, info = env.step(action)
    assert observation == BROKEN_ACTION and not terminated and not info["action_is_valid"]
    assert repr(env.step("[4]")) == repr(twin.step("[4]"))


def test_snapshots_restore_by_replay_in_another_object() -> None:
    env, other = TextArena(game="2048-v0-ultra-easy"), TextArena(game="2048-v0-ultra-easy")
    play(env, 2, random.Random(2), 6)
    saved = env.snapshot()
    assert repr(other.restore(saved)) == repr(env.restore(saved))
    for move in ("[up]", "[left]", "[down]", "[right]"):
        assert repr(other.step(move)) == repr(env.step(move))


@pytest.mark.parametrize(
    ("game", "error", "words"),
    [
        ("TowerOfHanoi", UnknownName, "TowerOfHanoi-v0"),
        ("TicTacToe-v0", ConfigError, "several players are played as turngym/TextArenaGame-v0 with rules=TicTacToe-v0"),
        ("Klondike-v0", ConfigError, "cannot make Klondike"),
        ("TwentyQuestions-v0", ConfigError, "OPENROUTER_API_KEY"),
    ],
)
def test_games_that_cannot_be_played_are_named_with_the_reason(
    game: str, error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Klondike is one of the modules of TextArena 0.7.4 that Python 3.11 cannot compile."""
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    if game == "Klondike-v0" and __import__("sys").version_info >= (3, 12):
        pytest.skip("newer versions of Python compile it")
    with pytest.raises(error, match=words):
        TextArena(game=game)
