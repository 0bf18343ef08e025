"""Functions as tools: schemas of their arguments, and calls that do not fit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import pytest
import tool_examples
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.tools.tool_schema import Tool, problem_with, schema_of, tool_of
from turngym.errors import ConfigError


def test_a_function_is_told_by_name_docstring_and_types() -> None:
    assert tool_of(tool_examples.add).schema == {
        "name": "add",
        "description": "Return the sum of two numbers.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first number."},
                "b": {"type": "integer", "description": "The second number."},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }


TYPES_BECOME_SCHEMAS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (list[list[str]], {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
    (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, Any], {"type": "object", "additionalProperties": {}}),
    (Literal["a", 2], {"enum": ["a", 2]}),
    (Annotated[int, "hm"], {"type": "integer"}),
    (dict, {"type": "object"}),
    (list, {"type": "array"}),
    (Any, {}),
]


def test_types_become_schemas() -> None:
    for kind, schema in TYPES_BECOME_SCHEMAS:
        assert schema_of(kind, "x") == schema


@pytest.mark.parametrize("kind", [None, object, dict[int, str], tuple[int, str], Callable[[], int], bytes, set[int]])
def test_types_that_json_does_not_know_are_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match="needs a type that JSON knows"):
        schema_of(kind, "x")


def test_what_is_no_tool_is_refused() -> None:
    def many(*numbers: int) -> None: ...
    def bare(x) -> None: ...  # type: ignore[no-untyped-def]

    for given_tool, told in (
        (many, "every argument needs a unique name"),
        (bare, "needs a type"),
        ("tool_examples:nothing", "there is no tool"),
        ("no_such_module:x", "there is no tool"),
        ("x", "there is no tool"),
        (3, "a tool is a function"),
        (print, r"cannot be found|every argument"),
    ):
        with pytest.raises(ConfigError, match=told):
            tool_of(given_tool)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the name of a tool"):
        Tool("a b", "", {}, print)


def test_texts_and_objects_are_tools_too() -> None:
    class Counter:
        """Count."""

        def __call__(self, step: int) -> int:
            """Return the step."""
            return step

    assert tool_of("tool_examples:add").call is tool_examples.add
    assert tool_of(Counter()).parameters["required"] == ["step"]
    made = Tool("x", "", {}, print)
    assert tool_of(made) is made and tool_of(tool_examples.add)(a=1) == 2


ARGUMENTS_ARE_CHECKED: list[tuple[dict[str, Any], str]] = [
    ({"a": 1}, ""),
    ({"a": 1, "b": 2}, ""),
    ({}, "a missing"),
    ({"a": "1"}, "a must be integer"),
    ({"a": True}, "a must be integer"),
    ({"a": 1.5}, "a must be integer"),
    ({"a": None}, "a must be integer"),
    ({"a": 1, "c": 2}, "there is no argument 'c'"),
]


def test_arguments_are_checked() -> None:
    for arguments, told in ARGUMENTS_ARE_CHECKED:
        found = problem_with(arguments, tool_of(tool_examples.add).parameters)
        assert found.startswith(told) and bool(found) == bool(told)


VALUES_FIT_SCHEMAS_OR_NOT: list[tuple[Any, dict[str, Any], bool]] = [
    (["a", "b"], {"type": "array", "items": {"type": "string"}}, True),
    (["a", 1], {"type": "array", "items": {"type": "string"}}, False),
    (5, {"type": "integer", "minimum": 1, "maximum": 4}, False),
    (4, {"type": "integer", "minimum": 1, "maximum": 4}, True),
    (None, {"type": ["string", "null"]}, True),
    ("c", {"enum": ["a", "b"]}, False),
    (1, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, True),
    (1.5, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, False),
    ({"x": {"y": 1}}, {"type": "object", "additionalProperties": {"type": "string"}}, False),
]


def test_values_fit_schemas_or_not() -> None:
    for value, schema, is_fine in VALUES_FIT_SCHEMAS_OR_NOT:
        assert (problem_with(value, schema) == "") == is_fine


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(), parts, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_any_value_is_judged(value: Any) -> None:
    schema = tool_of(tool_examples.join).parameters
    assert (problem_with(value, schema) == "") == (
        isinstance(value, dict)
        and isinstance(value.get("words"), list)
        and all(isinstance(word, str) for word in value["words"])
        and value.get("sign", "-") in ("-", "+")
        and value.keys() <= {"words", "sign"}
    )
