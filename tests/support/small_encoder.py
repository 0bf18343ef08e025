"""A sentence-embedding model of a few thousand random weights, as a folder."""

import json
import re
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from turngym.envs.search.documents import Document


def write_encoder(folder: Path, documents: tuple[Document, ...], takes_first: bool = False) -> Path:
    """Write a model that knows the words of some documents."""
    words = dict.fromkeys(word for document in documents for word in re.findall(r"\w+|[^\w\s]+", document.contents))
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config.initializer_range = 0.3
    BertModel(config).save_pretrained(folder)
    if takes_first:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    return folder
