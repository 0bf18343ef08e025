"""The embedded model with a small vision encoder in front.

The architecture is that of Qwen3-VL, whose language model is that of the embedded model: what is written for such
models is used and tested by it.

What makes it learn within a few hundred updates:

- A token for every 16 x 16 pixels, the size of a cell in the pictures of grid worlds, and no merging of patches.
- Learned positions, whose first values are as large as those of patches.
- Small pixels around 0. A step of Adam changes the weighted sum of a patch's 768 pixels by up to 768 times their size
  times the learning rate; with the usual normalisation that is more than the sum itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from turngym.agents.models.embedded import END, EmbeddedConfig
from turngym.agents.models.vision.pictures import GridPictures

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3VLConfig, Qwen3VLForConditionalGeneration

START, STOP, PICTURE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ '" + START + PICTURE + STOP + "' }}{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{{ '" + END + "' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
_PATCH = 16
_MOST_PATCHES = 256
_PIXEL_MEAN, _PIXEL_STD = 0.5, 4.0
_POSITION_STD = 1.0


def with_pictures(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Add the tokens and the chat template of images to the embedded model's tokenizer, and return it."""
    tokenizer.add_special_tokens({"additional_special_tokens": [START, STOP, PICTURE, VIDEO]})
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def build_vision_model(
    tokenizer: PreTrainedTokenizerFast, config: EmbeddedConfig, seed: int
) -> tuple[Qwen3VLForConditionalGeneration, GridPictures]:
    """Build the network, with weights that depend on ``seed`` alone, and how it takes pictures.

    Args:
        tokenizer: Result of :func:`with_pictures`.
        config: Size of the language model; the vision encoder has one layer of the same width.
        seed: Of the first weights.
    """
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    settings = Qwen3VLConfig(
        text_config=_text_settings(tokenizer, config),
        vision_config=_vision_settings(config),
        image_token_id=tokenizer.vocab[PICTURE],
        video_token_id=tokenizer.vocab[VIDEO],
        vision_start_token_id=tokenizer.vocab[START],
        vision_end_token_id=tokenizer.vocab[STOP],
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Qwen3VLForConditionalGeneration(settings).eval()
        torch.nn.init.normal_(network.model.visual.pos_embed.weight, std=_POSITION_STD)
    return network, _pictures(settings, tokenizer)


def _text_settings(tokenizer: PreTrainedTokenizerFast, config: EmbeddedConfig) -> dict[str, Any]:
    width = config.hidden_size // config.heads
    third = width // 2 // 3  # half of a head is divided between time, row and column
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": config.hidden_size,
        "intermediate_size": 2 * config.hidden_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "head_dim": width,
        "max_position_embeddings": config.context,
        "initializer_range": config.initializer_range,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_interleaved": True,
            "mrope_section": [width // 2 - 2 * third, third, third],
        },
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }


def _vision_settings(config: EmbeddedConfig) -> dict[str, Any]:
    return {
        "depth": 1,
        "hidden_size": config.hidden_size,
        "intermediate_size": 2 * config.hidden_size,
        "num_heads": config.heads,
        "out_hidden_size": config.hidden_size,
        "patch_size": _PATCH,
        "spatial_merge_size": 1,
        "temporal_patch_size": 1,
        "num_position_embeddings": _MOST_PATCHES,
        "deepstack_visual_indexes": [],
        "initializer_range": config.initializer_range,
    }


def _pictures(settings: Qwen3VLConfig, tokenizer: PreTrainedTokenizerFast) -> GridPictures:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    processor = Qwen2VLImageProcessorPil(
        patch_size=_PATCH,
        merge_size=1,
        temporal_patch_size=1,
        min_pixels=_PATCH**2,
        max_pixels=_MOST_PATCHES * _PATCH**2,
        image_mean=[_PIXEL_MEAN] * 3,
        image_std=[_PIXEL_STD] * 3,
    )
    return GridPictures(settings, processor, tokenizer)
