"""Tests of programs as data: values that travel, assertions that are read and never run, damaged sets."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.tools.code_repair.cases import read_code_tasks, read_test
from turngym.envs.tools.code_repair.values import decode, encode, same
from turngym.errors import ConfigError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.complex_numbers(allow_nan=False),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.tuples(st.integers()), parts, max_size=3)
        | st.sets(st.integers(), max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_values_come_back_as_they_were(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
    assert same(back, value) or value != value or "nan" in repr(value)
    assert type(back) is type(value)


VALUES_ARE_COMPARED: list[tuple[Any, Any, bool]] = [
    ([1], (1,), False),
    (0.3, 0.1 + 0.2, True),
    (1, 1.0, True),
    ("1", 1, False),
    ({1: [0.5]}, {1: [0.5]}, True),
    ({1: 2}, {1: 3}, False),
    ({1}, {1, 2}, False),
    (float("nan"), float("nan"), True),
    ([1.0, 2], [1, 2.0], True),
    ("1.0", 1.0, False),
    ([1], [1, 2], False),
]


def test_values_are_compared() -> None:
    for first, second, expected in VALUES_ARE_COMPARED:
        assert same(first, second) is same(second, first) is expected


ASSERTIONS_ARE_READ_AND_NEVER_RUN: list[tuple[str, Any]] = [
    ("assert f(1, 'a') == [1.5]", ((1, "a"), [1.5])),
    ("assert f(-1) is None", ((-1,), None)),
    ("assert f((1,)), 'message'", (((1,),), True)),
    ("assert g(1) == 2", None),
    ("assert f(x) == 2", None),
    ("assert f(a=1) == 2", None),
    ("assert abs(f(1) - 2) < 3", None),
    ("assert f(1) == __import__('os').getpid()", None),
    ("f(1)", None),
]


def test_assertions_are_read_and_never_run() -> None:
    for line, found in ASSERTIONS_ARE_READ_AND_NEVER_RUN:
        assert read_test(ast.parse(line).body[0], "f") == found


@pytest.mark.parametrize("text", ['{"prompt": "x"}', '{"tests": ["assert ("], "prompt": "", "reference": ""}', "[1]"])
def test_damaged_sets_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.test.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_code_tasks(path, 1)
