"""Weights and masks against the sampler: public vectors, limits, and what rounding alone does to them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from turngym.trainers import functional as F

SHARED = Path(__file__).parents[4] / "shared"
PRECISIONS = ((torch.float64, 1e-9), (torch.float32, 1e-5))


def cases(name: str, folder: str = "oracle2") -> list[Any]:
    path = SHARED / folder / f"{name}.json"
    if not path.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason=f"the vectors {name} are not beside the checkout"))]
    return [pytest.param(case, id=str(case["settings"])) for case in json.loads(path.read_text("utf8"))["cases"]]


def flat(case: dict[str, Any], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """The gaps of the tokens of a vector, the row of each as its segment, and the mask of its response."""
    mask = torch.tensor(case["response_mask"]).bool()
    rows = torch.arange(len(mask))[:, None].expand_as(mask)
    return torch.tensor(case["log_ratio"], dtype=dtype)[mask], rows[mask], mask


@pytest.mark.parametrize(("dtype", "atol"), PRECISIONS, ids=str)
@pytest.mark.parametrize("case", cases("verl_rollout_is_weights"))
def test_weights_are_those_of_verl(case: dict[str, Any], dtype: torch.dtype, atol: float) -> None:
    gaps, rows, mask = flat(case, dtype)
    settings = case["settings"]
    segments = rows if settings["level"] == "sequence" else None
    found = F.truncated_weights(gaps, segments, cap=settings["upper"])
    if settings["lower"] is not None:
        found = found * F.within_limits(gaps, segments, low=settings["lower"], high=settings["upper"])
    if settings["batch_normalize"]:
        found = F.normalised_weights(found, segments)
    assert found.dtype == dtype
    expected = torch.tensor(case["weights"], dtype=torch.float64)[mask]
    torch.testing.assert_close(found.double(), expected, atol=atol, rtol=atol)


LEVELS = {"token": None, "seq_sum": "sum", "seq_mean": "mean", "seq_max": "max"}


@pytest.mark.parametrize(("dtype", "atol"), PRECISIONS, ids=str)
@pytest.mark.parametrize("case", cases("verl_rollout_rejection_mask"))
def test_masks_are_those_of_verl(case: dict[str, Any], dtype: torch.dtype, atol: float) -> None:
    """Their k1 has its limits on the sampler over the trainer, the reciprocal of ours."""
    gaps, rows, mask = flat(case, dtype)
    kept = torch.ones_like(gaps, dtype=torch.bool)
    settings = case["settings"]
    for option, limits in zip(settings["options"].split(","), settings["thresholds"].split(","), strict=True):
        level, _, divergence = option.rpartition("_")
        by = LEVELS[level]
        low, _, high = limits.partition("_")
        bounds = {"low": 1 / float(high), "high": 1 / float(low)} if high else {"high": float(low)}
        kept &= F.within_limits(
            gaps,
            None if by is None else rows,
            divergence="ratio" if divergence == "k1" else divergence,
            by=by or "sum",  # type: ignore[arg-type]
            **bounds,
        )
    assert torch.equal(kept, torch.tensor(case["mask"]).bool()[mask])
    assert not kept.all() or not mask.all()


def test_equal_distributions_have_weight_one_and_lose_nothing() -> None:
    gaps, segments = torch.zeros(6, dtype=torch.float64), torch.tensor([0, 0, 1, 2, 2, 2])
    for level in (None, segments):
        assert torch.equal(F.truncated_weights(gaps, level, cap=2.0), torch.ones_like(gaps))
        for by in ("sum", "mean"):
            assert F.within_limits(gaps, level, by=by, low=1.0, high=1.0).all()
        assert F.without_veto(gaps, level, least=1.0).all()
    assert F.normalised_weights(torch.zeros(3)).tolist() == [0.0] * 3
    for empty in (F.truncated_weights(torch.zeros(0), cap=2.0), F.normalised_weights(torch.zeros(0))):
        assert empty.shape == (0,)


def test_one_improbable_token_takes_its_segment_out() -> None:
    gaps, segments = torch.tensor([0.0, -9.3, 0.0, -9.1]), torch.tensor([0, 0, 0, 1])
    assert F.without_veto(gaps, segments, least=1e-4).tolist() == [False, False, False, True]
    assert F.without_veto(gaps, None, least=1e-4).tolist() == [True, False, True, True]


def test_huge_gaps_stay_finite() -> None:
    gaps = torch.tensor([1e4, -1e4, float("inf"), -float("inf")])
    assert torch.isfinite(F.truncated_weights(gaps, cap=1e30)).all()
    assert F.within_limits(gaps, divergence="k3", high=0.01).tolist() == [False] * 4


def rounding(tokens: int, sequences: int = 64) -> tuple[Tensor, Tensor]:
    """Gaps as between a sampler and a trainer in bfloat16, measured with 135 M parameters: mean |gap| 0.034."""
    generator = torch.Generator().manual_seed(0)
    gaps = torch.randn(sequences, tokens, generator=generator, dtype=torch.float64) * 0.043
    return gaps.flatten(), torch.arange(sequences).repeat_interleave(tokens)


def test_which_limits_leave_rounding_alone() -> None:
    gaps, segments = rounding(256)
    assert 0.02 < gaps.abs().mean() < 0.05
    assert F.truncated_weights(gaps, cap=2.0).max() < 2
    assert F.within_limits(gaps, low=0.5, high=5.0).all()
    assert F.within_limits(gaps, segments, by="mean", low=0.99, high=1.01).all()
    assert F.within_limits(gaps, segments, divergence="k3", by="mean", high=0.01).all()
    assert F.without_veto(gaps, segments, least=1e-4).all()
    narrow = F.within_limits(gaps, segments, by="mean", low=0.999, high=1.001)
    product = F.within_limits(gaps, segments, by="sum", low=0.5, high=2.0)
    assert narrow.double().mean() < 0.5 and product.double().mean() < 0.9


@pytest.mark.parametrize("case", cases("areal_prox_approximation", "oracle3"))
def test_the_proximal_policy_is_that_of_areal(case: dict[str, Any]) -> None:
    """Versions below 0 are positions that nothing sampled, whose proximal policy is never read."""
    now, then, versions = (torch.tensor(case[name]).double() for name in ("log_prob", "old_log_prob", "versions"))
    staleness = case["settings"]["current_version"] - versions
    found = F.proximal_logprobs(now, then, staleness)
    expected = torch.tensor(case["prox_log_prob"]).double()
    sampled = versions >= 0
    torch.testing.assert_close(found[sampled], expected[sampled], atol=1e-6, rtol=1e-6)
