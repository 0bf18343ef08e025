"""The embedded model with a small vision encoder in front.

The architecture is Qwen2.5-VL's, so that everything written for those models is used and tested by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from turngym.agents.models.embedded import END, EmbeddedConfig
from turngym.agents.models.vision.pictures import GridPictures

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen2_5_VLForConditionalGeneration

START, STOP, PICTURE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ '" + START + PICTURE + STOP + "' }}{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{{ '" + END + "' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
_PATCH, _MERGED = 8, 2
_MOST_PATCHES = 256


def with_pictures(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Add the tokens and the chat template of pictures to the embedded model's tokenizer, and return it."""
    tokenizer.add_special_tokens({"additional_special_tokens": [START, STOP, PICTURE, VIDEO]})
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def build_vision_model(
    tokenizer: PreTrainedTokenizerFast, config: EmbeddedConfig, seed: int
) -> tuple[Qwen2_5_VLForConditionalGeneration, GridPictures]:
    """Build the network, with weights that depend on ``seed`` alone, and how it takes pictures.

    Args:
        tokenizer: What :func:`with_pictures` returned.
        config: Size of the language model; the vision encoder has two layers of the same width.
        seed: Of the first weights.
    """
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    number = {text: tokenizer.vocab[text] for text in (PICTURE, VIDEO, START, STOP)}
    part = config.hidden_size // config.heads // 2  # mrope divides half of a head between time, row and column
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": config.hidden_size,
        "intermediate_size": 2 * config.hidden_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "max_position_embeddings": config.context,
        "initializer_range": config.initializer_range,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_section": [part - 2 * (part // 3), part // 3, part // 3],
        },
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    vision = {
        "depth": 2,
        "hidden_size": config.hidden_size,
        "intermediate_size": 2 * config.hidden_size,
        "num_heads": config.heads,
        "out_hidden_size": config.hidden_size,
        "patch_size": _PATCH,
        "spatial_merge_size": _MERGED,
        "window_size": _PATCH * _MERGED * 8,
        "fullatt_block_indexes": [1],
        "initializer_range": config.initializer_range,
    }
    settings = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=number[PICTURE],
        video_token_id=number[VIDEO],
        vision_start_token_id=number[START],
        vision_end_token_id=number[STOP],
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Qwen2_5_VLForConditionalGeneration(settings).eval()
    side = (_PATCH * _MERGED) ** 2
    processor = Qwen2VLImageProcessorPil(
        patch_size=_PATCH, merge_size=_MERGED, min_pixels=side, max_pixels=_MOST_PATCHES * _PATCH**2
    )
    return network, GridPictures(settings, processor, tokenizer)
