"""The base of the wrappers: snapshots, call order, options, names and specifications."""

import json
from typing import Any, ClassVar

import gymnasium
import pytest
import toy_envs

from turngym.envs.transcript import replay, transcript
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, EpisodeOver, UnknownName
from turngym.wrappers import Wrapping, wrap, wrapping
from turngym.wrappers.actions.invalid_action import InvalidAction
from turngym.wrappers.core import StepResult, TextWrapper
from turngym.wrappers.limits.turn_limit import TurnLimit
from turngym.wrappers.observations.history import History


def counter(*wrappers: str | Wrapping, **options: Any) -> Any:
    return wrap(gymnasium.make("toy/Counter-v0", **options), *wrappers)


class Tally(TextWrapper):
    """A third party's wrapper: counts turns in an episode and over all of them."""

    name: ClassVar[str] = "tally"

    def __init__(self, env: gymnasium.Env[Any, str], step: int = 1) -> None:
        super().__init__(env)
        self.step_size = step
        self.lasting = {"all": 0}

    def initial_state(self) -> dict[str, Any]:
        return {"turns": 0}

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        self.state["turns"] += self.step_size
        self.lasting["all"] += self.step_size
        return float(self.state["turns"]), False


def test_a_snapshot_holds_what_is_of_the_episode_and_what_lasts() -> None:
    env = Tally(counter())
    env.reset(seed=0)
    env.step("down")
    env.reset(seed=0)
    env.step("down")
    snapshot = env.snapshot()
    content = json.loads(snapshot)
    assert content["state"] == {"turns": 1} and content["lasting"] == {"all": 2}
    assert content["inner"]["env_id"] == "toy/Counter-v0"
    other = Tally(counter())
    other.restore(snapshot)
    assert other.snapshot() == snapshot and other.step("down")[1] == 2.0
    assert other.lasting == {"all": 3} and env.lasting == {"all": 2}  # nothing is shared


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ((), ("history",)),
        (("history",), ()),
        (("history",), ("turn_limit",)),
        (("history", "turn_limit"), ("turn_limit", "history")),
        (("history:k=2",), ("history:k=3",)),
    ],
)
def test_a_snapshot_of_another_wrapping_is_refused_and_changes_nothing(
    ours: tuple[str, ...], theirs: tuple[str, ...]
) -> None:
    env, other = counter(*ours), counter(*theirs)
    env.reset(seed=1)
    other.reset(seed=2)
    other.step("up")
    before = other.snapshot()
    with pytest.raises(ConfigError, match="snapshot"):
        other.restore(env.snapshot())
    assert other.snapshot() == before
    assert other.step("up")[0].endswith(counter_step_after(before, theirs))


def counter_step_after(snapshot: bytes, wrappers: tuple[str, ...]) -> str:
    env = counter(*wrappers)
    env.restore(snapshot)
    return str(env.step("up")[0])


def test_the_refusal_names_the_wrappers() -> None:
    env, other = counter("history:k=2"), counter("turn_limit")
    env.reset(seed=1)
    with pytest.raises(ConfigError, match=r"under the wrappers \[history\{'k': 2, .*not under \[turn_limit"):
        other.restore(env.snapshot())


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("state"),
        lambda content: content["state"].pop("pairs"),
        lambda content: content["state"].update(turns="one"),
        lambda content: content.update(is_running=1),
        lambda content: content["inner"].pop("state"),
        lambda content: content["inner"].update(turn=-1),
    ],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(change: Any) -> None:
    env = counter("history")
    env.reset(seed=1)
    content = json.loads(env.snapshot())
    change(content)
    before = env.snapshot()
    with pytest.raises(ConfigError):
        env.restore(json.dumps(content).encode())
    assert env.snapshot() == before


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b'{"format": "wrapped 1"}', b"[" * 100_000])
def test_what_is_no_snapshot_is_refused(text: bytes) -> None:
    env = counter("history")
    with pytest.raises(ConfigError):
        env.restore(text)


def test_the_call_order_is_kept_where_a_wrapper_ends_the_episode() -> None:
    env = counter("turn_limit:limit=1")
    with pytest.raises(EpisodeOver):
        env.step("up")
    with pytest.raises(EpisodeOver):
        env.snapshot()
    env.reset(seed=0)
    with pytest.raises(TypeError, match="pass a str"):
        env.step(3)
    assert env.step("up")[3] is True
    with pytest.raises(EpisodeOver):
        env.step("up")
    again = counter("turn_limit:limit=1")
    info = again.restore(env.snapshot())[1]
    assert info["success"] == 0 and info["legal_actions"] == ()
    with pytest.raises(EpisodeOver):
        again.step("up")
    again.close()
    again.close()


def test_an_episode_that_the_environment_ends_is_over_for_its_wrappers() -> None:
    env = counter("history", goal=1)
    env.reset(seed=0)
    assert env.step("up")[2] is True
    with pytest.raises(EpisodeOver):
        env.step("up")


def test_an_attribute_is_set_where_it_lives() -> None:
    env = counter("history", "turn_limit")
    env.set_wrapper_attr("max_turns", 5)  # passed on by the wrappers, so it must not stick to one of them
    assert env.unwrapped.max_turns == 5 and env.max_turns == 5
    env.set_wrapper_attr("limit", 2)
    assert env.limit == 2 and env.max_turns == 2
    vector = make_vec("toy/Counter-v0", 2, wrappers=wrapping("turn_limit:limit=7"))
    vector.set_attr("limit", [3, 4])
    assert vector.call("max_turns") == (3, 4)


def test_an_unknown_option_gets_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="history has no option 'kk'"):
        counter(Wrapping("history", {"kk": 3}))
    with pytest.raises(UnknownName, match="Did you mean 'history'"):
        counter("histroy")


OPTIONS_ARE_CHECKED: list[tuple[type, dict[str, Any]]] = [
    (History, {"k": -1}),
    (History, {"k": True}),
    (History, {"max_chars": 0}),
    (TurnLimit, {"limit": 0}),
    (TurnLimit, {"limit": 2.5}),
    (InvalidAction, {"penalty": float("nan")}),
    (InvalidAction, {"feedback": "all"}),
    (InvalidAction, {"max_total": 0}),
]


def test_options_are_checked() -> None:
    for kind, options in OPTIONS_ARE_CHECKED:
        with pytest.raises(ConfigError):
            kind(counter(), **options)


def test_an_environment_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"needs an environment of turngym, but .* has no 'env_id'"):
        History(toy_envs.Picture())


A_SPECIFICATION_IS_READ: list[tuple[str, dict[str, Any]]] = [
    ("history", {}),
    ("history:k=4", {"k": 4}),
    ("history:k=null,max_chars=80", {"k": None, "max_chars": 80}),
    (" parse_action : format = boxed ", {"format": "boxed"}),
    (
        'curriculum:levels=[{"discs": 2}, {"discs": 3}],window=3',
        {"levels": [{"discs": 2}, {"discs": 3}], "window": 3},
    ),
    ("record:folder=/tmp/a b/1", {"folder": "/tmp/a b/1"}),
    ("x:a=1,b=true,c=1.5,d=1a,e=", {"a": 1, "b": True, "c": 1.5, "d": "1a", "e": ""}),
    ('x:a="1,b=2"', {"a": "1,b=2"}),
]


def test_a_specification_is_read() -> None:
    for text, options in A_SPECIFICATION_IS_READ:
        assert Wrapping.read(text) == Wrapping(text.partition(":")[0].strip(), options)


@pytest.mark.parametrize("text", ["history:", "history:k", "history:k=1,k=2", "history:k=1,,", "history:2=3"])
def test_a_specification_that_cannot_be_read_says_how_to_write_it(text: str) -> None:
    with pytest.raises(ConfigError, match=r"option=value|twice"):
        Wrapping.read(text)


def test_options_belong_to_one_wrapper() -> None:
    assert wrap(counter(), "history:k=1", max_chars=9).get_wrapper_attr("options") == {"k": 1, "max_chars": 9}
    with pytest.raises(ConfigError, match="for 2 wrappers"):
        wrap(counter(), "history", "turn_limit", limit=3)
    assert wrap(counter()).get_wrapper_attr("env_id") == "toy/Counter-v0"


def test_the_wrappers_are_listed_from_the_inside_with_their_options() -> None:
    env = counter("parse_action:format=json", "record", "turn_limit:limit=3")
    assert env.wrappers == [
        {"name": "parse_action", "options": {"format": "json"}},
        {"name": "turn_limit", "options": {"limit": 3}},
    ]
    assert env.options == {"limit": 3}


def test_a_transcript_of_a_wrapped_environment_is_not_replayed_without_its_wrappers() -> None:
    text = transcript(counter("history"), 1, ["up"])
    with pytest.raises(ConfigError, match="rewrap"):
        replay(text)


def test_a_failed_reset_option_reaches_the_caller() -> None:
    with pytest.raises(ConfigError, match="got the option 'tsk'"):
        counter("history", "turn_limit").reset(options={"tsk": 1})


def test_what_is_asked_through_many_wrappers_is_asked_once() -> None:
    """Gymnasium's get_wrapper_attr evaluates a property twice at every level, which would be 2 to the power of 12."""
    asked = []

    class Asked(toy_envs.Counter):
        @property
        def env_id(self) -> str:
            asked.append(1)
            return "asked"

        @env_id.setter
        def env_id(self, value: str) -> None:
            pass

    env = wrap(Asked(), *["turn_limit"] * 12)
    env.reset(seed=0)
    asked.clear()
    assert env.get_wrapper_attr("env_id") == "asked" and len(asked) <= 4
