"""Sequences with pictures in one packed row: the same numbers and gradients as in rows of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from layout_batches import exact_norms
from torch import Tensor
from vision_models import embedded_model, merging_model, square_model

from turngym.agents.models.loading import LanguageModel
from turngym.envs.png import png
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.engine.layouts import Layout
from turngym.trainers.engine.layouts.check import require_layout
from turngym.trainers.engine.layouts.pictures import layout_for
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.scoring import score


@pytest.fixture(params=[embedded_model, merging_model, square_model])
def model(request: pytest.FixtureRequest) -> Iterator[LanguageModel]:
    made: LanguageModel = request.param()
    torch.nn.Module.double(made.network)
    with pytest.MonkeyPatch.context() as patch:
        exact_norms(patch, made.network)
        yield made


def rows_of(model: LanguageModel) -> list[Row]:
    """Return sequences with two pictures, one, and none, of unequal lengths; a placeholder was sampled in each."""
    assert model.pictures is not None
    random = np.random.default_rng(0)
    found: list[Row] = []
    shapes: list[list[tuple[int, int]]] = [[(48, 64), (32, 32)], [(16, 96)], []]
    for sizes in shapes:
        pictures = tuple(png(random.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes)
        text = random.integers(5, 250, 9).tolist()
        prompt = [*text[:4], *[token for _ in pictures for token in (model.pictures.placeholder, text[4])], *text[5:]]
        ids = list(model.pictures.expanded(prompt, pictures))
        sampled = [*random.integers(5, 250, len(sizes) + 2).tolist(), model.pictures.placeholder, 7]
        start = len(ids) - 1
        reads = [Read(start + k, token, k, 0, len(found)) for k, token in enumerate(sampled)]
        found.append(replace(Row.of([*ids, *sampled], reads), pictures=pictures))
    return found


def outputs(model: LanguageModel, rows: list[Row], layout: Layout) -> list[Tensor]:
    """Return log-probabilities, entropies, and gradients of a function of both."""
    model.network.zero_grad()
    found = score(model.network, rows, 0.7, with_entropy=True, layout=layout)
    assert found.entropy is not None
    (found.logprobs.sin().sum() + found.entropy.cos().sum()).backward()
    gradients = [p.grad.clone() for p in model.network.parameters() if p.grad is not None]
    return [found.logprobs.detach(), found.entropy.detach(), *gradients]


def test_packed_pictures_give_the_numbers_and_gradients_of_rows(model: LanguageModel) -> None:
    rows, packed = rows_of(model), layout_for(model, "packed")
    inputs = packed.lay_out(rows, torch.device("cpu"))
    assert inputs.ids.shape == (1, sum(len(row.ids) for row in rows)) and inputs.mask is None
    expected = outputs(model, rows, layout_for(model, "rows"))
    found = outputs(model, rows, packed)
    assert max(float(each.abs().max()) for each in expected[2:]) > 0.1
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_the_check_of_layouts_lets_packed_pictures_pass(model: LanguageModel) -> None:
    require_layout(model.network, layout_for(model, "packed"))


def test_a_tree_of_pictures_is_refused_before_anything_is_played() -> None:
    with pytest.raises(
        ConfigError, match=r"images do not support the layout tree: pass --update\.layout rows or packed"
    ):
        Learner(embedded_model(), build("grpo"), UpdateConfig(layout="tree"))
