"""Options declared as fields: what is accepted, the messages, and what follows from the declaration."""

import inspect
import math
import pickle
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from turngym.errors import ConfigError
from turngym.options import OptionError, Options, Rate, UnknownOption, above, at_least, between, kinds, one_of

COLOURS = ("green", "red")


class Base(Options):
    split: str = "train"
    """Share of the instances."""


class Lock(Options):
    pins: Annotated[int, at_least(1)] = 5


class Door(Base):
    width: Annotated[int, between(1, 9)]
    """Width in
    metres."""
    height: float = 2
    colour: Literal["green", "red"] = "green"
    handle: Annotated[str, one_of(*COLOURS)] = "red"
    gap: Annotated[float, above(0)] | None = None
    open: bool = False
    names: tuple[str, ...] = ()
    rooms: Literal[1, 2] = 1
    more: Mapping[str, Any] | None = None
    lock: Lock = Lock()

    def check(self) -> None:
        if self.width > 8 and self.open:
            raise OptionError("open", "must be False where width is above 8: pass a smaller width.")
        self.require("height", between(1, self.width + 1))


class Wide(Door):
    width: Annotated[int, between(5, 9)] = 6
    hinges: int = 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"width": 0}, "width of the door must be a whole number in [1, 9], got 0."),
        ({"width": True}, "width of the door must be a whole number in [1, 9], got True."),
        ({"width": 2.0}, "width of the door must be a whole number in [1, 9], got 2.0."),
        ({"width": 10**5000}, "a whole number in [1, 9], got a number that is too long to show."),
        ({"width": 2, "height": math.nan}, "height of the door must be a number, got nan."),
        ({"width": 2, "height": "high"}, "height of the door must be a number, got 'high'."),
        ({"width": 2, "height": 4}, "height of the door must be a number in [1, 3], got 4."),
        (
            {"width": 2, "colour": "gren"},
            "colour of the door must be one of 'green', 'red', got 'gren'. Did you mean 'green'?",
        ),
        ({"width": 2, "colour": ["red"]}, "colour of the door must be one of 'green', 'red', got ['red']."),
        ({"width": 2, "handle": 3}, "handle of the door must be one of 'green', 'red', got 3."),
        ({"width": 2, "gap": 0}, "gap of the door must be a number above 0 or None, got 0."),
        ({"width": 2, "open": 1}, "open of the door must be True or False, got 1."),
        ({"width": 2, "names": "ab"}, "names of the door must be a list, each text, got 'ab'."),
        ({"width": 2, "rooms": True}, "rooms of the door must be one of 1, 2, got True."),
        ({"width": 2, "more": 3}, "more of the door must be a mapping or None, got 3."),
        ({"width": 2, "lock": {"pins": 0}}, "lock.pins of the door must be a whole number of at least 1, got 0."),
        ({"width": 2, "lock": {"pin": 0}}, "the door has no option 'lock.pin'. Did you mean 'pins'?"),
        ({"width": 2, "lock": 5}, "lock of the door must be a table of options, got 5."),
        ({"width": 9, "open": True}, "open of the door must be False where width is above 8"),
        ({"wdith": 9}, "the door has no option 'wdith'. Did you mean 'width'?"),
        ({}, "width of the door is required."),
    ],
)
def test_what_is_wrong_is_named_with_its_owner(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        Door.build("the door", given)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)


def test_values_are_kept_and_lists_of_json_become_tuples() -> None:
    door = Door.build("the door", {"width": 3, "names": ["a", "b"], "lock": {"pins": 2}, "height": 2, "gap": 1})
    assert door == Door(width=3, names=("a", "b"), lock=Lock(pins=2), gap=1)
    assert type(door.height) is int and hash(door) == hash(Door(width=3, names=("a", "b"), lock=Lock(pins=2), gap=1))
    assert Door(width=3, height=np.float64(2.5)).height == 2.5
    assert pickle.loads(pickle.dumps(door)) == door


def test_a_class_alone_names_no_owner() -> None:
    with pytest.raises(OptionError, match=r"^width must be a whole number in \[1, 9\], got 12\.$"):
        Door(width=12)
    with pytest.raises(UnknownOption, match=r"^this has no option"):
        Lock.build("", {"nails": 3})


def test_options_by_position_are_those_of_the_class_itself() -> None:
    assert Wide.build("the door", {"open": True}, (7, 3)) == Wide(width=7, hinges=3, open=True)
    with pytest.raises(ConfigError, match=r"the door got the option width twice: by position and by name\."):
        Wide.build("the door", {"width": 7}, (7,))
    with pytest.raises(ConfigError, match=r"the door got 3 options by position and takes 2: pass names\."):
        Wide.build("the door", {}, (7, 3, "test"))


def test_the_signature_begins_with_the_options_of_the_class_itself() -> None:
    found = Wide.parameters()
    assert [each.name for each in found][:4] == ["width", "hinges", "split", "height"]
    assert [each.kind.name for each in found[:3]] == ["POSITIONAL_OR_KEYWORD"] * 2 + ["KEYWORD_ONLY"]
    width, *_ = Door.parameters()
    assert width.default is width.empty and found[0].default == 6
    assert inspect.Signature(found).bind(8, hinges=3).arguments == {"width": 8, "hinges": 3}
    assert inspect.Signature(Door.parameters())


def test_the_table_has_type_default_and_text_of_every_option() -> None:
    lines = Wide.table().splitlines()
    assert len(lines) == 2 + len(Wide.parameters())
    assert "| `split` | text | `'train'` | Share of the instances. |" in lines
    assert "| `width` | a whole number in [1, 9] |  | Width in metres. |" in Door.table().splitlines()


def test_only_free_text_is_unsafe_in_files_of_others() -> None:
    assert {name for name, kind in kinds(Door).items() if kind.is_free} == {"split", "names", "more"}
    assert kinds(Door)["colour"].accepts("red") and not kinds(Door)["colour"].accepts("blue")


def test_a_rate_lies_between_0_and_1() -> None:
    class Drop(Options):
        rate: Rate = 0.5

    with pytest.raises(OptionError, match=r"rate must be a number above 0 and below 1, got 1\."):
        Drop(rate=1)
    assert Drop(rate=0.9).rate == 0.9


def test_texts_of_other_types_are_read_as_the_choice_that_they_equal() -> None:
    door = Door(width=2, colour=np.str_("red"))  # type: ignore[arg-type]  # what rng.choice returns
    assert type(door.colour) is str and door.colour == "red"


@pytest.mark.parametrize("given", [None, [1], "pins"])
def test_options_are_a_table(given: Any) -> None:
    with pytest.raises(ConfigError, match="the lock must be a table of options, got "):
        Lock.build("the lock", given)
    with pytest.raises(ConfigError, match="the lock has no option '1'"):
        Lock.build("the lock", {1: 2})  # type: ignore[dict-item]  # a table of YAML may have such keys


def test_types_that_cannot_be_checked_are_refused() -> None:
    class Pair(Options):
        pair: tuple[int, str] = (1, "a")

    class Items(Options):
        items: list[int] | None = None

    class Anything(Options):
        anything: Any = None

    class Compared(Options):
        name: Annotated[str, between(1, 9)] = "a"

    for kind, option in ((Pair, "pair"), (Items, "items"), (Anything, "anything")):
        with pytest.raises(ConfigError, match=rf"the option {option} of .*{kind.__name__} cannot have the type"):
            kind()
    with pytest.raises(ConfigError, match="a rule does not apply to options of its type"):
        Compared()


def test_types_that_are_imported_for_type_checkers_alone_are_named() -> None:
    class Hidden(Options):
        items: "NotImported | None" = None  # type: ignore[name-defined]  # the subject of the test

    with pytest.raises(ConfigError, match=r"'NotImported' is not defined\. Import it outside of `if"):
        Hidden()
