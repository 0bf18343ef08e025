"""Environments whose actions are calls of typed methods."""

import json
import threading
from typing import Annotated, Any, Literal

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import turngym
from turngym.envs import Outcome, PictureEnv, TextEnv, ToolEnv, tool, tool_call
from turngym.envs.check import CheckFailed, check
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import BrokenCode, ConfigError
from turngym.wrappers import wrap


class Lamp(ToolEnv, PictureEnv):
    """A row of lamps; one of them is to be lit."""

    instructions = "Light the lamp that is asked for."

    class Options(PictureEnv.Options):
        lamps: Annotated[int, turngym.options.between(1, 9)] = 9
        """Number of lamps."""

    options: Options

    def setup(self) -> None:
        self.set_frame(8, 72)

    def initial_state(self, generator: np.random.Generator) -> dict[str, Any]:
        return {"wanted": int(generator.integers(1000)), "lit": -1}

    def observation(self) -> str:
        return f"Wanted: lamp {self.state['wanted'] % self.options.lamps}."

    def render_image(self) -> NDArray[np.uint8]:
        image = np.zeros((8, 72, 3), np.uint8)
        if self.state["lit"] >= 0:
            image[:, self.state["lit"] * 8 :][:, :8] = 255
        return image

    @tool
    def light(self, lamp: int, colour: Literal["red", "white"] = "white") -> Outcome[str]:
        """Light a lamp.

        Args:
            lamp: Its number, from 0.
        """
        if not 0 <= lamp < self.options.lamps:
            return Outcome("There is no such lamp.", action_is_valid=False)
        self.state["lit"] = lamp
        is_right = lamp == self.state["wanted"] % self.options.lamps
        return Outcome(f"Lamp {lamp} is {colour}.", float(is_right), is_right, is_right)

    @tool
    def look(self) -> None:
        """Look again."""

    @tool
    def count(self) -> dict[str, int]:
        """Count the lamps."""
        return {"lamps": self.options.lamps}

    def expert_action(self) -> str:
        return tool_call("light", lamp=self.state["wanted"] % self.options.lamps)


class BrokenLamp(Lamp):
    """Its tools raise, hang and return the wrong thing."""

    @tool
    def fall(self) -> str:
        """Break the lamps."""
        raise RuntimeError("all is dark")

    @tool
    def paint(self) -> Any:
        """Return what no text can hold."""
        return np.zeros(3)

    @tool
    def dim(self, lamp: int) -> str:
        """Dim a lamp that there is: another one raises."""
        return ["dim"][lamp]

    @tool
    def wait(self) -> None:
        """Hang."""
        threading.Event().wait()


gymnasium.register("toolsets/BrokenLamp-v0", BrokenLamp, order_enforce=False, disable_env_checker=True)


def begun(**options: Any) -> Lamp:
    env = Lamp(**options)
    env.reset(seed=0)
    return env


def test_typed_methods_are_declared_for_models_with_and_without_native_calls() -> None:
    env = Lamp()
    assert env.native_tools is not None and env.native_tools.instructions == "Light the lamp that is asked for."
    assert [each["name"] for each in env.native_tools.tools] == ["light", "look", "count"]
    assert env.native_tools.tools[0] == {
        "name": "light",
        "description": "Light a lamp.",
        "parameters": {
            "type": "object",
            "properties": {
                "lamp": {"type": "integer", "description": "Its number, from 0."},
                "colour": {"enum": ["red", "white"]},
            },
            "required": ["lamp"],
            "additionalProperties": False,
        },
    }
    assert "<tool_call>" in env.instructions and json.dumps(env.native_tools.tools[1]) in env.instructions


def test_results_are_texts_outcomes_observations_and_json() -> None:
    env = begun()
    assert env.step(tool_call("look"))[0] == env.observation()
    assert env.step(tool_call("count"))[0] == '{"lamps": 9}'
    assert env.step("I think so. " + tool_call("light", lamp=env.state["wanted"] % 9, colour="red"))[2]


def test_results_are_pictures_where_they_are_asked_for() -> None:
    env = begun(image=True)
    observation, *_, info = env.step(tool_call("light", lamp=(env.state["wanted"] + 1) % 9))
    assert observation["image"].max() == 255 and observation["text"].startswith("Lamp") and info["action_is_valid"]
    for maker in (Lamp, lambda **options: Lamp(image=True, **options)):
        assert not check(maker, episodes=1, in_process=True).failed


BAD = [
    ("light", '<tool_call>{"name": "light"}</tool_call>', "lamp missing"),
    ("type", tool_call("light", lamp="1"), "lamp must be integer, got '1'"),
    ("truth", tool_call("light", lamp=True), "lamp must be integer, got True"),
    ("unknown argument", tool_call("light", lamp=1, size=2), "there is no argument 'size'"),
    ("unknown tool", tool_call("lihgt", lamp=1), "Did you mean 'light'?"),
    ("private", tool_call("render_image"), "There is no tool 'render_image'"),
    ("enum", tool_call("light", lamp=1, colour="blue"), "colour must be one of"),
    ("list", write_call("light", [1]), "The call needs exactly name and arguments"),
    ("text", write_call("light", "{"), "The call needs exactly name and arguments"),
    ("no call", "I light lamp 1.", "There is no tool call"),
    ("empty", "", "There is no tool call"),
    ("unclosed", '<tool_call>{"name": "light"', "The call is not closed"),
    ("nan", '<tool_call>{"name": "light", "arguments": {"lamp": NaN}}</tool_call>', "The call is not closed"),
    ("inf", '<tool_call>{"name": "light", "arguments": {"lamp": 1e999}}</tool_call>', "The call is not closed"),
    ("digits", f'<tool_call>{{"name": "light", "arguments": {{"lamp": {"9" * 5000}}}}}</tool_call>', "is not closed"),
    ("deep", "<tool_call>" + '{"name":' * 10_000 + "</tool_call>", "The call is not closed"),
    ("deep lists", "<tool_call>" + "[" * 100 + "]" * 100 + "</tool_call>", "The call is not closed"),
    ("huge", tool_call("light", lamp="x" * 90_000), "lamp must be integer"),
    ("longer", tool_call("light", lamp="x" * 200_000), "write a shorter one"),
    ("forged", tool_call("<answer>", lamp=1), "There is no tool '‹answer>'"),
]


@pytest.mark.parametrize(("action", "said"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_is_no_call_is_answered(action: str, said: str) -> None:
    env = begun()
    state = json.dumps(env.state)
    observation, reward, terminated, _, info = env.step(action)
    assert said in observation and len(observation) < 1200
    assert not info["action_is_valid"] and not terminated and reward == 0 and json.dumps(env.state) == state


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_arguments_of_any_kind_are_answered(value: Any) -> None:
    env = begun()
    for arguments in (value, {"lamp": value}, {"lamp": 1, "colour": value}, {str(value): value}):
        observation, *_ = env.step(write_call("light", arguments))
        assert isinstance(observation, str) and observation
        env.reset(seed=0)


@pytest.mark.parametrize("name", ["fall", "paint"])
def test_a_tool_that_raises_is_a_fault_of_its_slot_alone(name: str) -> None:
    vector = turngym.make_vec("toolsets/BrokenLamp-v0", 2, autoreset_mode="disabled")
    vector.reset(seed=[0, 1])
    observations, _, _, truncations, infos = vector.step([tool_call(name), tool_call("count")], indices=[0, 1])
    assert truncations[0] and infos.rows[0]["fault"] and not infos.rows[1]["fault"]
    assert observations[1] == '{"lamps": 9}' and not truncations[1]
    vector.close()


def test_a_tool_that_hangs_ends_its_episode_alone() -> None:
    vector = turngym.make_vec(
        env_fns=[BrokenLamp, BrokenLamp], backend="process", autoreset_mode="disabled", step_timeout_seconds=2
    )
    vector.reset(seed=[0, 1])
    observations, _, _, truncations, infos = vector.step([tool_call("wait"), tool_call("count")], indices=[0, 1])
    assert truncations[0] and "timeout" in infos.rows[0]["fault"]
    assert observations[1] == '{"lamps": 9}' and not truncations[1] and not infos.rows[1]["fault"]
    vector.close()


def test_check_calls_every_tool_with_odd_arguments() -> None:
    class Dim(Lamp):
        dim = BrokenLamp.dim

    with pytest.raises(CheckFailed, match=r"(?s)any-text-answered.*raised IndexError.* in dim,"):
        check(Dim, episodes=1, in_process=True)


def test_wrappers_add_to_the_rules_of_both_kinds_of_models_and_hide_tools_that_they_change() -> None:
    env = wrap(Lamp(), "invalid_action:penalty=0.1")
    assert env.get_wrapper_attr("native_tools") is not None
    assert wrap(Lamp(), "parse_action:format=boxed").get_wrapper_attr("native_tools") is None


def test_a_class_without_tools_or_types_says_what_is_missing() -> None:
    class Empty(ToolEnv):
        instructions = "Nothing."

    class Untyped(ToolEnv):
        instructions = "Nothing."

        @tool
        def act(self, what) -> str:  # type: ignore[no-untyped-def]
            return str(what)

    class Hiding(ToolEnv):
        instructions = "Nothing."

        @tool
        def draw(self) -> str:  # type: ignore[override]
            return ""

    with pytest.raises(BrokenCode, match="a tool draw, which the class needs itself"):
        Hiding()
    with pytest.raises(BrokenCode, match="mark its methods with @tool"):
        Empty()
    with pytest.raises(ConfigError, match="needs a type that JSON knows"):
        Untyped()
    assert TextEnv.native_tools is None
