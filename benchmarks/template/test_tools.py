"""Treasure Hunt keeps the contract, its experts solve it, and wrong calls are answered."""

from turngym import check
from turngym.benchmarks.template.tools import TreasureHunt


def test_it_keeps_every_promise_of_an_environment() -> None:
    """Check every promise of the contract; a failure says what is broken, why it matters and how to fix it."""
    assert not check(TreasureHunt).failed


def test_the_expert_finds_every_treasure_and_every_turn_has_a_picture() -> None:
    """Play with pictures."""
    env = TreasureHunt(image=True)
    for seed in range(40):
        observation, info = env.reset(seed=seed)
        while info["success"] < 0:
            observation, _, _, _, info = env.step(env.expert_action())
            assert observation["image"].shape == (96, 96, 3)
        assert info["success"] == 1


def test_wrong_calls_are_answered() -> None:
    """A model may write anything: it gets a sentence, never an exception."""
    env = TreasureHunt()
    env.reset(seed=0)
    written = '<tool_call>{"name": "%s", "arguments": {"row": %s, "column": 1}}</tool_call>'
    for action in ("", "dig", written % ("dig", '"one"'), written % ("probe", 99), written % ("fly", 1)):
        observation, reward, terminated, _, info = env.step(action)
        assert observation and reward == 0 and not terminated and not info["action_is_valid"]
