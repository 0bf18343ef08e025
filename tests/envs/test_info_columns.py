"""Info columns equal those that Gymnasium's own vectors build, for rows of every shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import VectorEnv

from turngym.envs.vector.info import columns, fault_info

ROWS: dict[str, list[dict[str, Any]]] = {
    "one complete table": [fault_info("", running=True)] * 3,
    "numbers of every type": [{"i": 1, "f": 2.5, "b": True, "n": np.float32(3)}] * 2,
    "texts and tuples of equal length": [{"t": ("a", "b"), "s": "x"}, {"t": ("c", "d"), "s": "y"}],
    "a row that lacks everything": [{}, {"i": 1, "s": "x", "a": np.arange(3)}],
    "keys that appear later": [{"a": 1}, {"b": "x"}, {"a": 2, "b": "y", "c": None}],
    "arrays": [{"a": np.arange(6).reshape(2, 3)}, {"a": np.ones((2, 3))}],
    "nested": [{"d": {"x": 1, "y": "a"}}, {}, {"d": {"x": 2}}],
    "an empty nested dict": [{"d": {}}, {"d": {"x": 1}}],
    "final observations": [{"final_obs": np.arange(2), "final_info": {"score": 1.0}}, {"score": 2.0}],
    "a number after an int": [{"x": 1}, {"x": 2.75}],
    "nothing": [{}, {}],
}


def gymnasium_columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    vector: VectorEnv[Any, Any, Any] = VectorEnv()
    vector.num_envs = len(rows)
    found: dict[str, Any] = {}
    for slot, row in enumerate(rows):
        found = vector._add_info(found, row, slot)
    return found


def assert_equal(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_equal(ours[key], theirs[key])
    elif ours.dtype == object:
        assert ours.shape == theirs.shape
        for one, other in zip(ours, theirs, strict=True):
            assert type(one) is type(other)
            assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
    else:
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ROWS)
def test_columns_equal_those_of_gymnasium(name: str) -> None:
    assert_equal(columns(ROWS[name]), gymnasium_columns(ROWS[name]))


def test_random_rows_with_holes_equal_those_of_gymnasium() -> None:
    generator = np.random.default_rng(0)
    values = {"anchor": "text", "legal": ("a", "b"), "score": 0.5, "success": -1, "valid": True}
    for _ in range(100):
        rows = [
            {key: values[key] for key in generator.permutation(list(values)) if generator.random() < 0.7}
            for _ in range(int(generator.integers(1, 6)))
        ]
        assert_equal(columns(rows), gymnasium_columns(rows))


def test_columns_do_not_share_memory_with_the_rows() -> None:
    row = {"a": np.zeros(2)}
    columns([row])["a"][0, 0] = 5
    assert row["a"][0] == 0
