"""GEM's games under turngym's contract, played for real in the environment that `make peers` builds."""

import logging
import random
from typing import Any

import numpy as np
import pytest
from peers import WORDS, word_lists

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.check import check
from turngym.errors import ConfigError, MissingExtra, UnknownName

pytestmark = pytest.mark.integration
pytest.importorskip("gem", reason="gem-llm is in .venvs/peers only: run make test-integration")

from turngym.envs.adapters.gem import Gem  # noqa: E402

__all__ = ["word_lists"]
GAMES = [
    *("GuessTheNumber-v0-easy", "GuessTheNumber-v0-random", "Mastermind-v0-hard", "Mastermind-v0-random"),
    *("Minesweeper-v0-easy", "Minesweeper-v0-random", "FifteenPuzzle-v0-easy", "Sudoku-v0-easy"),
    *("TowerofHanoi-v0-easy", "Game2048-v0-easy", "Game2048-v0-random", "Sokoban-v0-easy"),
]
ASKED_ELSEWHERE = ("game:Mastermind-v0-hard", "game:Game2048-v0-easy")
IDS = [*(f"game:{game}" for game in GAMES), "rg:leg_counting"]


@pytest.mark.parametrize("game", IDS)
def test_it_keeps_every_promise(game: str) -> None:
    in_process = game not in ASKED_ELSEWHERE  # other processes have other hash seeds, and take seconds to start
    assert not check("turngym/GEM-v0", options={"game": game}, episodes=2, in_process=in_process).failed


@pytest.mark.parametrize("game", ["game:Wordle-v0-easy", "game:Hangman-v0-easy", "game:Wordle-v0-random"])
def test_word_games_keep_every_promise_where_their_words_are(game: str, word_lists: None) -> None:
    assert not check("turngym/GEM-v0", options={"game": game}, episodes=2, in_process=True).failed


def test_without_word_lists_the_way_out_is_named_and_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(nltk, "download", fail)
    with pytest.raises(MissingExtra, match=r"python -m nltk\.downloader words"):
        Gem(game="game:Hangman-v0-easy")
    assert nltk.download is fail


def test_gem_itself_has_the_fault_that_is_contained() -> None:
    """Negative oracle: the bare game changes the caller's generators and mixes two copies up."""
    import gem

    def bare(others_play: bool) -> list[str]:
        ours, other = gem.make("game:Game2048-v0-easy"), gem.make("game:Game2048-v0-easy")
        ours.reset(seed=1)
        seen = []
        for move in ("up", "left", "down", "right", "up", "left"):
            seen.append(str(ours.step(f"\\boxed{{{move}}}")))
            if others_play:
                other.step("\\boxed{up}")
                other.step("\\boxed{left}")
        return seen

    random.seed(1)
    before = random.getstate()
    assert bare(False) != bare(True)
    assert random.getstate() != before


def test_copies_that_play_at_the_same_time_show_what_each_shows_alone() -> None:
    ours, other = Gem(game="game:Game2048-v0-easy"), Gem(game="game:Game2048-v0-easy")
    random.seed(5)
    np.random.seed(5)
    before, numpy_before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
    alone = [ours.reset(seed=1)[0], *(ours.step(f"\\boxed{{{move}}}")[0] for move in ("up", "left", "down"))]
    mixed = [ours.reset(seed=1)[0]]
    other.reset(seed=2)
    for move in ("up", "left", "down"):
        other.step("\\boxed{up}")
        mixed.append(ours.step(f"\\boxed{{{move}}}")[0])
    assert mixed == alone and random.getstate() == before
    assert np.random.get_state()[1].tolist() == numpy_before  # type: ignore[index]


def test_the_turn_limit_truncates_and_never_terminates_as_well() -> None:
    env = Gem(game="game:TowerofHanoi-v0-easy")
    env.reset(seed=0)
    moves = ["\\boxed{A B}", "\\boxed{B A}"] * 5
    *flags, (_, reward, terminated, truncated, info) = [env.step(move) for move in moves]
    assert not any(step[2] or step[3] for step in flags)
    assert (terminated, truncated, info["success"]) == (False, True, 0)
    assert reward == 0.0 and len(moves) == env._game.max_turns


def test_an_answer_that_gem_cannot_read_ends_the_episode_as_there_and_is_told() -> None:
    env = Gem(game="game:TowerofHanoi-v0-easy")
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("A C")
    assert (terminated, truncated) == (True, False) and reward == pytest.approx(-0.1)
    assert (info["action_is_valid"], info["success"]) == (False, 0)
    assert type(reward) is float


def test_an_answer_that_gem_cannot_read_at_the_limit_is_no_truncation() -> None:
    env = Gem(game="game:TowerofHanoi-v0-easy", game_options={"max_turns": 1})
    env.reset(seed=0)
    assert env.step("A C")[2:4] == (True, False)


def test_an_illegal_move_is_answered_as_invalid_and_a_legal_one_is_not() -> None:
    env = Gem(game="game:TowerofHanoi-v0-easy")
    env.reset(seed=0)
    assert env.step("\\boxed{A C}")[-1]["action_is_valid"]
    observation, reward, _, _, info = env.step("\\boxed{A C}")
    assert not info["action_is_valid"] and "larger" in observation and reward == 0.0
    assert env.step("\\boxed{A B}")[-1]["action_is_valid"]


def test_a_solved_game_is_a_success_with_the_rewards_of_gem() -> None:
    env = Gem(game="game:TowerofHanoi-v0-easy")
    env.reset(seed=0)
    for move in ("A C", "A B", "C B", "A C", "B A", "B C", "A C"):
        observation, reward, terminated, _, info = env.step(f"\\boxed{{{move}}}")
    assert terminated and info["success"] == 1 and reward == info["score"] == 1.0
    assert observation.startswith("Congratulations")


def test_a_single_turn_question_terminates() -> None:
    env = Gem(game="rg:leg_counting")
    question, _ = env.reset(seed=0)
    right = env._game.data["answer"]
    assert "legs" in question
    _, reward, terminated, truncated, info = env.step(f"\\boxed{{{right}}}")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, 1)
    assert env.reset(seed=0)[0] == question


def test_observations_hold_only_what_is_new_and_anchors_count_no_turns() -> None:
    env = Gem(game="game:Mastermind-v0-easy")
    first, info = env.reset(seed=3)
    assert env.instructions.startswith("You are playing Mastermind") and "Mastermind" not in first
    one, two = info["legal_actions"][:2]
    texts = [env.step(action)[0] for action in (one, two)]
    assert one[7:-1].split() != two[7:-1].split() and str([int(n) for n in one[7:-1].split()]) not in texts[1]
    anchor = env.snapshot() and env.anchor()
    env.reset(seed=3)
    env.step(two)
    env.step(one)
    assert env.anchor() == anchor and "turn" not in anchor


@pytest.mark.parametrize("game", ["FifteenPuzzle-v0-easy", "Game2048-v0-easy", "Game2048-v0-random", "Sokoban-v0-easy"])
def test_legal_actions_are_what_the_game_accepts_and_all_of_it_where_there_are_few(game: str) -> None:
    """Brute force over every move: what is not listed is answered as invalid, what is listed as valid."""
    env = Gem(game=f"game:{game}", split="test")
    choose = random.Random(1)
    for seed in range(6):
        _, info = env.reset(seed=seed)
        for _ in range(5):
            snapshot = env.snapshot()
            valid = set()
            for move in ("up", "down", "left", "right"):
                *_, after = env.step(f"\\boxed{{{move}}}")
                if after["action_is_valid"]:
                    valid.add(f"\\boxed{{{move}}}")
                env.restore(snapshot)
            assert set(info["legal_actions"]) == valid
            _, _, terminated, truncated, info = env.step(choose.choice(info["legal_actions"]))
            if terminated or truncated:
                break


def test_legal_hangman_letters_leave_out_the_guessed(word_lists: None) -> None:
    env = Gem(game="game:Hangman-v0-easy")
    _, info = env.reset(seed=0)
    assert len(info["legal_actions"]) == 26
    *_, info = env.step(info["legal_actions"][4])
    assert len(info["legal_actions"]) == 25 and "\\boxed{E}" not in info["legal_actions"]
    assert env._game.secret_word.lower() in WORDS


def test_the_root_logger_is_left_as_it_was() -> None:
    """GEM's import sets the level of the root logger to INFO and gives it a handler."""
    Gem()
    assert logging.getLogger().level == logging.WARNING


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"game": "game:Sokoban-v0"}, UnknownName, "game:Sokoban-v0-"),
        ({"game": "game:Sokoban-v0-easy", "game_options": {"boxes": 1}}, UnknownName, "num_boxes"),
        ({"game": "math:GSM8K"}, ConfigError, "datasets"),
        ({"game": "game:GuessTheNumber-v0-easy", "game_options": {"max_number": -5}}, ConfigError, "ValueError"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    """GEM takes any option and ignores those that it does not know."""
    with pytest.raises(error, match=words):
        Gem(**options)
