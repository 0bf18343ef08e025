"""Actions that are too long are answered everywhere: an invalid action, the limit in words, nothing raised or kept."""

from typing import Any

import gymnasium
import pytest

from turngym.envs.core import LONGEST_ACTION, TextEnv
from turngym.envs.multiagent.table import Table
from turngym.envs.registration import specs
from turngym.envs.tablegames.kuhn_poker.game import KuhnPoker
from turngym.errors import MissingExtra
from turngym.wrappers.wrapping import wrap

TOO_LONG = "x" * (LONGEST_ACTION + 1)
WORDS = "The action has 100,001 characters, and at most 100,000 are read: write a shorter one."


@pytest.mark.parametrize("env_id", sorted(specs()))
def test_it_is_an_invalid_action_of_every_environment(env_id: str) -> None:
    try:
        env: Any = gymnasium.make(env_id)
        before = env.reset(seed=0)[1]
    except MissingExtra as missing:
        pytest.skip(str(missing))
    observation, _, terminated, _, info = env.step(TOO_LONG)
    text = observation if isinstance(observation, str) else observation["text"]
    assert WORDS in text and not terminated and not info["action_is_valid"] and env.turn == 1
    assert env.observation_space.contains(observation)
    if env_id.endswith("Seat-v0"):  # a table tells its seats what was wrong
        assert info["success"] == -1
    else:
        assert (info["anchor"], info["success"]) == (before["anchor"], -1)
    assert len(env.snapshot()) < LONGEST_ACTION
    env.close()


def test_the_longest_action_is_read() -> None:
    env: Any = gymnasium.make("turngym/GuessTheNumber-v0")
    env.reset(seed=0)
    assert "characters" not in env.step("50".rjust(LONGEST_ACTION))[0] and env._action_is_valid


def test_a_picture_is_shown_beside_the_words() -> None:
    env: Any = gymnasium.make("turngym/Sokoban-v0", image=True)
    first, _ = env.reset(seed=0)
    observation, *_ = env.step(TOO_LONG)
    assert observation["text"] == WORDS and (observation["image"] == first["image"]).all()


def test_a_seat_is_asked_again_and_then_forfeits() -> None:
    table = Table(KuhnPoker(), retries=1)
    table.reset(table.own_generator)
    seat = table.pending[0]
    first, second = table.answer(seat, TOO_LONG), table.answer(seat, TOO_LONG)
    assert (first.action, first.is_valid, first.reason) == (None, False, WORDS)
    assert (second.action, second.is_valid, table.winners()) == (None, False, (1 - seat,))
    assert table.counts[seat].unreadable == 2 and len(table.snapshot()) < LONGEST_ACTION


def test_an_environment_may_read_more(monkeypatch: pytest.MonkeyPatch) -> None:
    env: Any = gymnasium.make("turngym/GuessTheNumber-v0")
    monkeypatch.setattr(type(env), "longest_action", LONGEST_ACTION + 1)
    env.reset(seed=0)
    assert "characters" not in env.step(TOO_LONG)[0] and TextEnv.longest_action == LONGEST_ACTION


def test_a_window_of_earlier_turns_shows_no_more_of_it_than_is_read() -> None:
    env: Any = wrap(gymnasium.make("turngym/GuessTheNumber-v0"), "history", k=3)
    env.reset(seed=0)
    observation, *_ = env.step("x" * 1_000_000)
    assert len(observation) < LONGEST_ACTION + 1000 and len(env.snapshot()) < LONGEST_ACTION + 5000
