"""Small random models that see, one for each way of taking pictures."""

from __future__ import annotations

import torch
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from turngym.agents.models.embedded import EmbeddedConfig, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vision.embedded import (
    CHAT_TEMPLATE,
    PICTURE,
    START,
    STOP,
    VIDEO,
    build_vision_model,
    with_pictures,
)
from turngym.agents.models.vision.pictures import GridPictures, SquarePictures

CONFIG = EmbeddedConfig(hidden_size=48, layers=2, heads=2, vocabulary=400)


def _tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer(["push the box left, right, up or down"] * 9, CONFIG.vocabulary)


def embedded_model() -> LanguageModel:
    """Return the embedded model with its vision encoder: Qwen3-VL's architecture, patches that are not merged."""
    tokenizer = with_pictures(_tokenizer())
    network, takes = build_vision_model(tokenizer, CONFIG, seed=3)
    return LanguageModel(network, tokenizer, "tiny", pictures=takes)


def merging_model() -> LanguageModel:
    """Return a model of Qwen2.5-VL's architecture, whose tokens are four patches each."""
    tokenizer = with_pictures(_tokenizer())
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "initializer_range": 0.1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [4, 4, 4]},
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    vision = {
        "depth": 2,
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_heads": 2,
        "out_hidden_size": 48,
        "patch_size": 8,
        "window_size": 128,
        "fullatt_block_indexes": [1],
        "initializer_range": 0.1,
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=tokenizer.vocab[PICTURE],
        video_token_id=tokenizer.vocab[VIDEO],
        vision_start_token_id=tokenizer.vocab[START],
        vision_end_token_id=tokenizer.vocab[STOP],
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = Qwen2_5_VLForConditionalGeneration(config).eval()
    processor = Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, min_pixels=256, max_pixels=128 * 128)
    return LanguageModel(network, tokenizer, "tiny", pictures=GridPictures(config, processor, tokenizer))


def square_model() -> LanguageModel:
    """Return a small random model of SmolVLM's architecture."""
    tokenizer = _tokenizer()
    tokenizer.add_special_tokens(
        {"additional_special_tokens": ["<fake_token_around_image>", "<global-img>", "<image>"]}
    )
    tokenizer.chat_template = CHAT_TEMPLATE.replace(f"{START}{PICTURE}{STOP}", "<image>")
    text = {
        "model_type": "llama",
        "vocab_size": len(tokenizer),
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    vision = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
    }
    config = SmolVLMConfig(
        text_config=text,
        vision_config=vision,
        scale_factor=2,
        image_token_id=tokenizer.vocab["<image>"],
    )
    with torch.random.fork_rng():
        torch.manual_seed(5)
        network = SmolVLMForConditionalGeneration(config).eval()
    size = {"longest_edge": 64}
    processor = SmolVLMImageProcessorPil(size=size, max_image_size=size)
    return LanguageModel(network, tokenizer, "tiny", pictures=SquarePictures(config, processor, tokenizer))
