"""Environments and wrappers written with the hook names of version 0.1 keep working, with a warning when defined."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import pytest

from turngym import check
from turngym.envs import Outcome, TextEnv
from turngym.envs.hooks import RenamedAttribute, RenamedHooks
from turngym.envs.pictures import PictureEnv
from turngym.envs.textgames.number_line import NumberLine
from turngym.wrappers import TextWrapper, wrap

OLD_GAME = '''
class Old(TextEnv[str]):
    """A number to find, in the words of version 0.1."""

    instructions = "Find a number from 0 to 999."

    def __init__(self, *, max_turns=20, split="train", env_id="", render_mode=None):
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self._require("max_turns", max_turns, 1, 100)

    def _begin(self, task):
        if task is not None:
            raise ValueError(task)
        self.score = 0  # data under a name that is a hook now
        self._secret = self._draw(lambda generator: int(generator.integers(1000)), str)
        self._said = "Guess."
        return self._said

    def _advance(self, action):
        found = action == str(self._secret)
        self._said = "Found." if found else "No."
        return Outcome(self._said, float(found), found, found)

    def _anchor(self):
        return self._said

    def _legal_actions(self):
        return ("1", "2")

    def _progress(self):
        return 0.5 * super()._score()

    def _score(self):
        return super()._score() + 0.25

    def _picture(self):
        return "picture"

    def _state(self):
        return [self._secret, self._said, self.score]

    def _load(self, state):
        self._secret, self._said, self.score = state
'''


def made(source: str, name: str) -> tuple[type[Any], list[warnings.WarningMessage]]:
    """Return a class from source text, and the warnings of its creation."""
    names: dict[str, Any] = {
        "__name__": __name__,
        "Outcome": Outcome,
        "TextEnv": TextEnv,
        "TextWrapper": TextWrapper,
        "NumberLine": NumberLine,
    }
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(source, names)
    return names[name], found


@pytest.mark.filterwarnings("ignore:(_draw|_require) of:DeprecationWarning")
def test_an_environment_with_the_old_names_plays_and_keeps_every_promise() -> None:
    kind, found = made(OLD_GAME, "Old")
    assert len(found) == 1 and found[0].category is DeprecationWarning
    assert "_begin, which is called begin now" in str(found[0].message)
    assert "_load, which is called load_state now" in str(found[0].message)
    env = kind(render_mode="ansi")
    text, info = env.reset(seed=1)
    assert text == "Guess." and info["legal_actions"] == ("1", "2") and info["score"] == 0.25
    assert info["progress"] == 0 and env.render() == "picture" and env.score == 0
    saved = env.snapshot()
    again = kind()
    again.restore(saved)
    assert [again.step(action) for action in "123"] == [env.step(action) for action in "123"]
    assert not check(kind, episodes=1).failed


def test_old_helpers_warn_when_they_are_called() -> None:
    kind, _ = made(OLD_GAME, "Old")
    with pytest.warns(DeprecationWarning, match="_require of Old is called require now"):
        env = kind()
    with pytest.warns(DeprecationWarning, match="_draw of Old is called draw now"):
        env.reset(seed=1)


def test_a_class_with_the_new_names_costs_and_warns_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class New(NumberLine):
            def progress(self) -> float:
                return super().progress()

    assert New.begin is NumberLine.begin and NumberLine.apply_action is vars(NumberLine)["apply_action"]
    assert vars(NumberLine)["_advance"] is vars(NumberLine)["apply_action"]


def test_the_old_names_extend_a_class_with_the_new_ones() -> None:
    source = """
class Shouting(NumberLine):
    def _advance(self, action):
        outcome = super()._advance(action)
        return outcome._replace(observation=outcome.observation.upper())
"""
    kind, found = made(source, "Shouting")
    assert len(found) == 1 and found[0].filename == "<string>", "the warning names the line of the class"
    env, plain = kind(), NumberLine()
    assert env.reset(seed=3) == plain.reset(seed=3)
    assert env.step("+")[0] == plain.step("+")[0].upper()


def test_a_mixin_that_is_no_environment_may_bring_old_hooks() -> None:
    source = """
class Shouting:
    def _advance(self, action):
        return super()._advance(action)._replace(observation="HA")
class Loud(Shouting, NumberLine):
    pass
class Louder(Loud):
    def apply_action(self, action):
        return super().apply_action(action)._replace(observation="HAHA")
"""
    kind, found = made(source, "Louder")
    assert ["Loud defines" in str(each.message) for each in found] == [True]
    for expected, each in (("HAHA", kind), ("HA", kind.__mro__[1])):
        env = each()
        env.reset(seed=0)
        assert env.step("+")[0] == expected


def test_an_old_hook_and_something_else_under_its_new_name_are_told_apart() -> None:
    with pytest.raises(TypeError, match="defines the hook _score and another score"):
        made("class Odd(NumberLine):\n    score = 3\n    def _score(self): return 1.0\n", "Odd")


def test_a_wrapper_with_the_old_names_works() -> None:
    source = """
class Counting(TextWrapper):
    name = "counting_test"
    def __init__(self, env):
        super().__init__(env)
        self._lasting = {"all": 0}
    def _fresh(self):
        return {"turns": 0}
    def _passed(self, action):
        return action.strip("!")
    def _turn(self, played):
        self._episode["turns"] += 1
        self._lasting["all"] += 1
        return played.reward + 1, self._episode["turns"] == 2
    def _shown(self, observation, info):
        return f"{observation} ({self._episode['turns']})"
    def _sentence(self):
        return "Turns are counted."
"""
    kind, found = made(source, "Counting")
    assert len(found) == 1 and "_shown, which is called transform_observation now" in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = kind(NumberLine())
        assert env.reset(seed=3)[0].endswith("(0)") and env.instructions.endswith("Turns are counted.")
        text, reward, _, truncated, _ = env.step("!-!")
        assert text.endswith("(1)") and reward == 1 and not truncated
        saved = env.snapshot()
        assert env.step("+")[3]
        again = kind(NumberLine())
        again.restore(saved)
        assert again.lasting == {"all": 1} and again.step("+")[3]


def test_renamed_data_is_read_and_set_under_both_names() -> None:
    class Box(RenamedHooks):
        content = 1
        _content = RenamedAttribute("content")

    box = Box()
    with pytest.warns(DeprecationWarning, match="_content of Box"):
        box._content = 2
    with pytest.warns(DeprecationWarning, match="_content of Box"):
        assert box._content == box.content == 2


def test_every_hook_of_every_base_is_public() -> None:
    for base in (TextEnv, PictureEnv, TextWrapper):
        for old, new in base.old_hooks.items():
            assert old.startswith("_") and not new.startswith("_") and callable(getattr(base, new)), old
    assert issubclass(TextEnv, gymnasium.Env) and callable(wrap)
