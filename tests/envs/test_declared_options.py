"""Environments made from declared options: signature, settings, subclasses, and files of others."""

import copy
import inspect
import pickle
from typing import Any

import pytest
from gymnasium.envs.registration import load_env_creator

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.pictures import PictureEnv
from turngym.envs.registration import specs
from turngym.envs.seat import SeatEnv
from turngym.envs.textgames.guess_the_number import GuessTheNumber
from turngym.envs.textgames.sokoban.env import Sokoban
from turngym.errors import ConfigError
from turngym.options import OptionError, constructor_signature


class Padded(Sokoban):
    """A subclass with its own constructor."""

    def __init__(self, pad: int = 1, **rest: Any) -> None:
        super().__init__(**rest)
        self.pad = pad


class Coin(TextEnv[str]):
    """A subclass with more options."""

    class Options(TextEnv.Options):
        side: str = "heads"

        def check(self) -> None:
            if self.side not in ("heads", "tails"):
                raise OptionError("side", f"must be heads or tails, got {self.side!r}.")

    options: Options

    def setup(self) -> None:
        self.instructions = f"Say {self.options.side}."

    def begin(self, task: str | int | None) -> str:
        return "Say it."

    def apply_action(self, action: str) -> Outcome[str]:
        return Outcome("", float(action == self.options.side), terminated=True)


def test_options_become_settings_signature_and_attributes() -> None:
    env = Coin(side="tails")
    assert env.settings == {"side": "tails", "max_turns": 20, "split": "train"} and env.instructions == "Say tails."
    assert list(inspect.signature(Coin).parameters) == ["side", "max_turns", "split", "env_id", "render_mode"]
    assert constructor_signature(Coin) == inspect.signature(Coin)
    assert Coin("tails").options == env.options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": "edge"}, r"side of .*test_declared_options:Coin must be heads or tails, got 'edge'\."),
        ({"sides": 2}, r"Coin has no option 'sides'\. Did you mean 'side'\?"),
        ({"max_turns": 0}, r"max_turns of .*Coin must be a whole number in \[1, 100000\], got 0\."),
        ({"split": "trian"}, r"Coin has no split 'trian'\. Did you mean 'train'\?"),
        ({"split": 3}, r"split of .*Coin must be text, got 3\."),
        ({"render_mode": "human"}, r"cannot render 'human'"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Coin(**options)


def test_a_subclass_with_its_own_constructor_records_its_options_and_is_set_up() -> None:
    env = Padded(pad=3, size=7)
    assert env.settings == {"pad": 3, "size": 7} and env.options.size == 7 and env.reset(seed=0)[0].count("\n") == 6
    assert list(inspect.signature(Padded).parameters) == ["pad", "rest"]
    with pytest.raises(OptionError, match=r"Padded has no option 'boxs'\. Did you mean 'boxes'\?"):
        Padded(boxs=2)


def test_environments_are_pickled_and_copied_whole() -> None:
    env = Coin(side="tails")
    env.reset(seed=0)
    for other in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        assert other.options == env.options and other.settings == env.settings
        assert other.step("tails")[1] == 1.0


def test_without_pictures_image_is_not_recorded() -> None:
    assert "image" not in Sokoban().settings and Sokoban(image=True).settings["image"] is True
    assert "image" not in Padded(image=False).settings and not issubclass(Coin, PictureEnv)


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"low": 1, "view": "interval"}, False),
        ({"solve_reward": 2}, False),
        ({"view": "os:path"}, True),
        ({"low": True}, True),
        ({"step_reward": 1e12}, True),
        ({"env_id": "other"}, True),
        ({"split": "train"}, False),
        ({"split": "all"}, True),
        ({"lows": 1}, True),
    ],
)
def test_files_of_others_may_give_what_the_declaration_allows(options: dict[str, Any], refused: bool) -> None:
    assert bool(GuessTheNumber.refusal(options)) == refused
    assert bool(GuessTheNumber.misfit(options)) == (refused and "env_id" not in options)


def test_free_text_is_for_files_only_where_the_class_says_so() -> None:
    assert Coin.refusal({}) == "Coin is not declared safe for files of others to ask for"
    assert Coin.misfit({"side": "os:path"}) == "" and Coin.misfit({"side": 3})


def test_every_registered_environment_has_valid_defaults() -> None:
    for env_id, spec in specs().items():
        found: Any = load_env_creator(spec.entry_point)
        if found is not SeatEnv:  # which takes those of its game as well
            assert issubclass(found, TextEnv) and found.takes_declared(), env_id
            assert found.Options() and set(found.Options.parameters()) <= set(
                constructor_signature(found).parameters.values()
            )


def test_options_of_an_environment_derive_from_those_of_its_base() -> None:
    with pytest.raises(ConfigError, match=r"Loose\.Options must derive from TextEnv\.Options"):

        class Loose(TextEnv[str]):
            class Options:
                width: int = 1

    with pytest.raises(ConfigError, match=r"Short\.Options must derive from Sokoban\.Options"):

        class Short(Sokoban):
            class Options(TextEnv.Options):
                width: int = 1


def test_options_that_every_constructor_takes_are_not_declared_again() -> None:
    with pytest.raises(ConfigError, match=r"Named\.Options declares env_id, which every constructor takes already"):

        class Named(TextEnv[str]):
            class Options(TextEnv.Options):
                env_id: str = ""


def test_an_episode_needs_a_limit_of_turns() -> None:
    class Endless(Coin):
        class Options(Coin.Options):
            max_turns: int | None = None  # type: ignore[assignment]  # the subject of the test

    with pytest.raises(ConfigError, match="need a property turn_limit where max_turns is None"):
        Endless()


def test_changed_settings_leave_the_options_as_they_were() -> None:
    env = GuessTheNumber()
    high = env.options.high
    env.settings["high"] = high + 1  # type: ignore[index]  # a Mapping that is a dict
    assert env.options.high == high
