"""What a rollout worker shows of its weights is compared with what the learner handed over."""

import pytest
import torch
from small import small_model

from turngym.agents.models.loading import LanguageModel
from turngym.trainers.engine.probe_sequences import probe_scores
from turngym.trainers.loop.rollout_workers.cluster import VersionCheck
from turngym.trainers.loop.rollout_workers.worker import Answer


def _answer(check: VersionCheck, model: LanguageModel, version: int) -> Answer:
    return Answer([], {}, version, probe_scores(model.network, check.probe(model))[0])


def _train(model: LanguageModel) -> None:
    with torch.no_grad():
        for tensor in model.network.parameters():
            tensor.mul_(1.05)


def test_sound_workers_show_their_weights_once_a_version() -> None:
    check, model = VersionCheck(1.0), small_model()
    for version in (1, 2, 3):
        synced = check.expect(model, version)
        silent = Answer([], {}, version, None)
        assert "has not shown" in check.fault_of("first", silent, synced)
        assert check.fault_of("first", _answer(check, model, version), synced) == ""
        assert check.fault_of("first", silent, synced) == ""
        assert "has not shown" in check.fault_of("second", silent, synced), "one worker does not speak for another"
        _train(model)


def test_stale_weights_are_found_by_their_number_and_without_it() -> None:
    check, model = VersionCheck(1.0), small_model()
    first = check.expect(model, 1)
    stale = _answer(check, model, 1)
    assert check.fault_of("first", stale, first) == ""
    _train(model)
    second = check.expect(model, 2)
    assert "version 1 of the weights, expected 2" in check.fault_of("first", stale, second)
    assert "1 hand-overs ago" in check.fault_of("first", stale._replace(version=2), second)
    assert check.fault_of("first", _answer(check, model, 2), second) == ""


@pytest.mark.parametrize("name", ["embed_tokens", "q_proj", "norm"])
def test_one_tensor_of_another_model_is_found(name: str) -> None:
    check, model = VersionCheck(1.0), small_model()
    synced = check.expect(model, 1)
    tensor = next(tensor for key, tensor in model.network.named_parameters() if name in key)
    with torch.no_grad():
        tensor.flatten()[:4].add_(0.3)
    assert "other weights" in check.fault_of("first", _answer(check, model, 1), synced)
