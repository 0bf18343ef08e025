"""The two-level search picks the tokens of the search of the whole cumulative distribution."""

import numpy as np
import pytest
import torch

from turngym.agents.models import distributions
from turngym.agents.models.distributions import choose
from turngym.agents.sampling import Sampling


def whole_search(logprobs: torch.Tensor, uniforms: torch.Tensor, top_p: float = 1.0) -> torch.Tensor:
    """The first token whose cumulative probability in float64 is above the draw, by plain NumPy."""
    probabilities = np.exp(logprobs.double().numpy())
    if top_p < 1:
        order = np.argsort(-probabilities, axis=-1, kind="stable")
        ordered = np.take_along_axis(probabilities, order, -1)
        kept = ordered * (ordered.cumsum(-1) - ordered < top_p)
        np.put_along_axis(probabilities, order, kept, -1)
    cumulative = probabilities.cumsum(-1)
    found = (cumulative <= uniforms.numpy()[:, None] * cumulative[:, -1:]).sum(-1)
    last = probabilities.shape[-1] - 1 - (probabilities > 0)[:, ::-1].argmax(-1)
    return torch.from_numpy(np.minimum(found, last))


@pytest.mark.parametrize("vocabulary", [4096, 5000, 49_152])
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0, 12.0])
def test_equal_to_the_whole_search_over_many_draws(vocabulary: int, spread: float) -> None:
    generator = torch.Generator().manual_seed(vocabulary + int(spread))
    for _ in range(4):
        logprobs = torch.log_softmax(torch.randn(64, vocabulary, generator=generator) * spread, -1)
        draws = torch.rand(64, dtype=torch.float64, generator=generator)
        assert torch.equal(choose(logprobs, draws, Sampling()), whole_search(logprobs, draws))


def test_equal_with_top_p() -> None:
    generator = torch.Generator().manual_seed(0)
    for top_p in (0.1, 0.5, 0.9, 0.999):
        logprobs = torch.log_softmax(torch.randn(64, 5000, generator=generator) * 3, -1)
        draws = torch.rand(64, dtype=torch.float64, generator=generator)
        found = choose(logprobs, draws, Sampling(top_p=top_p))
        assert torch.equal(found, whole_search(logprobs, draws, top_p))


def test_tokens_without_probability_are_never_taken() -> None:
    """Also where the draw is just below 1, at 0, or between blocks of which nothing is possible."""
    logits = torch.full((6, 6000), -torch.inf)
    logits[:, [700, 701, 5100]] = torch.tensor([1.0, 0.0, -1.0])
    logprobs = torch.log_softmax(logits, -1)
    edges = logprobs.double().exp()[0, [700, 701, 5100]].cumsum(0)
    draws = torch.tensor([0.0, np.nextafter(1.0, 0.0), 1e-300, 0.5, float(edges[0]), float(edges[1])])
    found = choose(logprobs, draws.double(), Sampling())
    assert set(found.tolist()) <= {700, 701, 5100}
    assert torch.equal(found, whole_search(logprobs, draws.double()))
    assert found[:3].tolist() == [700, 5100, 700]


def test_draws_at_the_borders_are_decided_in_float64() -> None:
    """At draws as near to a border as float64 allows, sums in float32 alone would take the neighbour."""
    generator = torch.Generator().manual_seed(1)
    row = torch.log_softmax(torch.randn(1, 8192, generator=generator), -1)
    cumulative = row.double().exp().cumsum(-1)[0]
    borders = (cumulative / cumulative[-1])[torch.randint(8191, (200,), generator=generator)]
    draws = torch.cat([borders - 1e-13, borders + 1e-13])
    rows = row.expand(len(draws), -1)
    assert torch.equal(choose(rows, draws, Sampling()), whole_search(rows, draws))
    rough, is_close = distributions._two_level_search(rows, draws)
    assert bool(is_close.all()) and not torch.equal(rough, whole_search(rows, draws))
