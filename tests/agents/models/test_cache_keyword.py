"""Networks take their cache under the name that the installed transformers gives it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from small import small_model
from transformers import MambaConfig, MambaForCausalLM, PreTrainedModel, Qwen3ForCausalLM
from transformers.cache_utils import Cache, DynamicCache

from turngym.agents.models.forward_pass import cache_keyword, last_logits
from turngym.agents.models.loading import load_model
from turngym.errors import ModelError


class Early(PreTrainedModel):
    """Takes the cache as transformers before 5.24 does."""

    def forward(self, input_ids: torch.Tensor, past_key_values: Cache | None = None) -> None:
        """Do nothing."""


class Late(PreTrainedModel):
    """Takes the cache as transformers from 5.24 on does, and the old name among the rest."""

    def forward(self, input_ids: torch.Tensor, cache: Cache | None = None, **rest: object) -> None:
        """Do nothing."""


class Without(PreTrainedModel):
    """Takes none."""

    def forward(self, input_ids: torch.Tensor, **rest: object) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("kind", "name"), [(Early, "past_key_values"), (Late, "cache"), (Without, None)])
def test_the_name_is_that_of_the_forward(kind: type[PreTrainedModel], name: str | None) -> None:
    assert cache_keyword(kind) == name


def test_a_cache_that_is_passed_on_gives_the_logits_of_the_whole_without_a_warning(
    caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    network = small_model().network
    assert isinstance(network, Qwen3ForCausalLM)
    tokens = torch.arange(5, 17)[None]
    cache = DynamicCache(config=network.config)
    with torch.inference_mode(), caplog.at_level(logging.WARNING):
        last_logits(network, cache, input_ids=tokens[:, :7])
        found = last_logits(network, cache, input_ids=tokens[:, 7:])
        whole = network(input_ids=tokens).logits[:, -1]
    assert cache.get_seq_length() == tokens.shape[1]
    torch.testing.assert_close(found, whole)
    assert not [each for each in caplog.messages if "past_key_values" in each]
    assert not [each for each in recwarn.list if "past_key_values" in str(each.message)]


def test_a_recurrent_network_is_refused(tmp_path: Path) -> None:
    tokenizer = small_model().tokenizer
    size = max(len(tokenizer), 64)
    MambaForCausalLM(MambaConfig(vocab_size=size, hidden_size=16, num_hidden_layers=2)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="MambaForCausalLM, whose forward takes no key-value cache"):
        load_model(str(tmp_path))
