"""That the oracle tests leave nothing out: every file, every vector, both precisions; what does not pass is listed."""

import json

import oracle
import pytest
import test_oracle_credit
import test_oracle_losses
from oracle import FOLDER, NOT_PASSING, PRECISIONS, READ, Vector, vectors

PRESENT = sorted(path.stem for path in FOLDER.glob("*.json"))
needs_vectors = pytest.mark.skipif(not PRESENT, reason="the reference vectors are not beside the checkout")


@needs_vectors
def test_every_file_is_walked() -> None:
    assert test_oracle_credit.__doc__
    assert test_oracle_losses.__doc__
    assert set(PRESENT) <= READ


@needs_vectors
@pytest.mark.parametrize("name", PRESENT)
def test_every_vector_of_a_file_is_walked_in_both_precisions(name: str) -> None:
    cases = json.loads((FOLDER / f"{name}.json").read_text("utf8"))["cases"]
    found = [parameter.values[0] for parameter in vectors(name)]
    assert len(found) == len(cases) * len(PRECISIONS) > 0
    for dtype, _ in PRECISIONS.values():
        assert [dict(vector) for vector in found if vector.dtype is dtype] == cases


@needs_vectors
def test_what_does_not_pass_is_a_vector_that_exists_and_has_a_reason() -> None:
    keys = {parameter.id for name in PRESENT for parameter in vectors(name)}
    assert NOT_PASSING.keys() <= keys
    assert all(len(reason) > 20 for reason in NOT_PASSING.values())


def test_a_wrong_result_is_noticed_in_either_precision() -> None:
    """Negative oracle: the comparison must see a difference above its tolerance, and a lower precision."""
    import torch

    for dtype, atol in PRECISIONS.values():
        vector = Vector()
        vector.dtype, vector.atol = dtype, atol
        vector.close(vector.real([1.0 + atol / 2]), [1.0])
        with pytest.raises(AssertionError):
            vector.close(vector.real([1.0 + 2 * atol]), [1.0])
        with pytest.raises(AssertionError):
            vector.close(torch.tensor([1.0], dtype=torch.float16), [1.0])
    assert oracle.NOT_PASSING == {}
