"""Reference vectors: inputs and outputs of public implementations, read once and handed out in two precisions."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

FOLDER = Path(__file__).parents[3] / "shared" / "oracle"
FOLDERS = (FOLDER, FOLDER.with_name("oracle2"), FOLDER.with_name("oracle3"))
"""Folders of vectors, by their age; no file has the name of another."""
PRECISIONS = {"float64": (torch.float64, 1e-5), "float32": (torch.float32, 1e-3)}
CLOSER = {"float64": (1e-9, 1e-8), "float32": (1e-5, 1e-5)}
"""Absolute and relative tolerance of the vectors of the last folder, which have nine digits."""
READ: set[str] = set()
"""The files that a test module walks; each is walked from its first vector to its last one."""

NOT_PASSING: dict[str, str] = {}
"""``file-number-precision`` of a vector that our functions do not reproduce -> the reason. There is none."""

torch.set_num_threads(1)


class Vector(dict[str, Any]):
    """One case of a file, with the precision that it is computed in and the tolerance that belongs to it."""

    dtype = torch.float64
    atol = 1e-5
    rtol = 0.0

    def real(self, values: object) -> Tensor:
        """Numbers in this vector's precision."""
        return torch.tensor(values, dtype=self.dtype)

    def close(self, found: Tensor, expected: object) -> None:
        """The result must be in this precision and equal the reference."""
        assert found.dtype == self.dtype
        wanted = torch.tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(found.detach().double(), wanted, atol=self.atol, rtol=self.rtol)

    def like(self, content: dict[str, Any]) -> "Vector":
        """Other content in this vector's precision."""
        other = Vector(content)
        other.dtype, other.atol, other.rtol = self.dtype, self.atol, self.rtol
        return other

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self["settings"])

    def mask(self, *names: str) -> Tensor:
        """Where all of the named masks are 1."""
        return torch.stack([torch.tensor(self[name]).bool() for name in names or ("response_mask",)]).all(0)


def _path(name: str) -> Path | None:
    """Where a file of vectors is, if it is."""
    return next((path for folder in FOLDERS if (path := folder / f"{name}.json").exists()), None)


@cache
def _content(name: str) -> list[dict[str, Any]]:
    path = _path(name)
    assert path is not None
    return list(json.loads(path.read_text("utf8"))["cases"])


def vectors(name: str) -> list[Any]:
    """All vectors of a file as parameters, in both precisions; one skipped parameter where the file is absent."""
    READ.add(name)
    if _path(name) is None:
        reason = f"the reference vectors {name} are not beside the checkout"
        return [pytest.param(Vector(), marks=pytest.mark.skip(reason=reason), id=name)]
    found = []
    path = _path(name)
    for number, case in enumerate(_content(name)):
        for precision, (dtype, atol) in PRECISIONS.items():
            vector = Vector(case)
            vector.dtype, vector.atol = dtype, atol
            if path is not None and path.parent == FOLDERS[-1]:
                vector.atol, vector.rtol = CLOSER[precision]
            key = f"{name}-{number}-{precision}"
            reason = NOT_PASSING.get(key, "")
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            found.append(pytest.param(vector, marks=marks, id=key))
    return found


def every(name: str) -> pytest.MarkDecorator:
    """Run a test with every vector of a file."""
    return pytest.mark.parametrize("vector", vectors(name))


def cases(name: str) -> list[Any]:
    """All vectors of a file as they stand there; one skipped parameter where the file is absent."""
    if _path(name) is None:
        reason = f"the reference vectors {name} are not beside the checkout"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason))]
    return list(_content(name))


def all_cases(name: str) -> list[dict[str, Any]]:
    """All vectors of a file, inside of a test, which is skipped where the file is absent."""
    if _path(name) is None:
        pytest.skip(f"the reference vectors {name} are not beside the checkout")
    return _content(name)


def double(rows: object) -> Tensor:
    """Numbers in double precision."""
    return torch.tensor(rows, dtype=torch.float64)


def close(found: Tensor, expected: object, atol: float = 1e-5) -> None:
    """A result in double precision must equal what was expected, NaN where that was expected included."""
    torch.testing.assert_close(found.detach(), double(expected), atol=atol, rtol=0, equal_nan=True)
