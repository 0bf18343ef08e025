"""Image handling of a model: placeholder tokens in a prompt, and the tensors passed with it."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor
from transformers import AutoImageProcessor, PretrainedConfig, PreTrainedTokenizerBase

from turngym.envs.png import png_size
from turngym.errors import MissingExtra, ModelError

Inputs: TypeAlias = dict[str, Tensor]
"""Arguments of a network's forward pass other than ids and mask."""


class PictureInputs(ABC):
    """Image handling of one family of models.

    A prompt with images is a sequence of ids in which each image is a fixed number of placeholders, and the images
    themselves, as PNG files, in the same order.

    Args:
        config: The model's configuration.
        processor: Its image processor.
        tokenizer: Its tokenizer.
    """

    def __init__(self, config: PretrainedConfig, processor: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        self.config = config
        self.processor = processor
        self.tokenizer = tokenizer
        self.placeholder = int(config.image_token_id)
        pad = tokenizer.pad_token_id
        self.neutral = int(tokenizer.eos_token_id if pad is None else pad)
        """What the network is fed for a placeholder that a model sampled, since no image belongs to it."""

    @abstractmethod
    def ids_of(self, width: int, height: int) -> list[int]:
        """Return the ids that stand for an image of that size, in pixels."""

    @abstractmethod
    def inputs(self, rows: Sequence[Sequence[bytes]], ids: Tensor) -> Inputs:
        """Return the tensors that go with some prompts.

        Args:
            rows: The images of each prompt, in the order of their placeholders.
            ids: The padded prompts, ``[row, token]``.
        """

    def positions(self, network: Any, ids: Tensor, mask: Tensor, inputs: Inputs) -> Tensor:
        """Return the position ids of left-padded prompts: ``[row, token]``, or ``[3, row, token]`` with a grid."""
        return (mask.cumsum(-1) - 1).clamp(min=0)

    def without_placeholders(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return sampled ids as the network is fed them."""
        return tuple(self.neutral if token == self.placeholder else token for token in ids)

    def expanded(self, ids: Sequence[int], pictures: Sequence[bytes]) -> tuple[int, ...]:
        """Return a prompt with its single placeholders replaced by all the ids of each picture.

        Raises:
            ModelError: There are more or fewer placeholders than pictures.
        """
        if sum(token == self.placeholder for token in ids) != len(pictures):
            raise ModelError(
                f"the chat template shows {sum(token == self.placeholder for token in ids)} of {len(pictures)} "
                "pictures: use a template that writes the model's image token for content of the type image."
            )
        waiting = iter(pictures)
        found: list[int] = []
        for token in ids:
            found += self.ids_of(*png_size(next(waiting))) if token == self.placeholder else [token]
        return tuple(found)


class GridPictures(PictureInputs):
    """Qwen2-VL and its successors: patches in a grid, as many placeholders as merged patches, positions in three parts.

    Source: transformers, ``models/qwen2_5_vl``.
    """

    def ids_of(self, width: int, height: int) -> list[int]:
        """Return a placeholder for each merged patch."""
        patches = int(self.processor.get_number_of_image_patches(height, width))
        return [self.placeholder] * (patches // int(self.processor.merge_size) ** 2)

    def inputs(self, rows: Sequence[Sequence[bytes]], ids: Tensor) -> Inputs:
        """Return patches ``[patch, value]``, grids ``[picture, 3]`` and a mask of placeholders, ``[row, token]``."""
        flat = [opened(picture) for row in rows for picture in row]
        if not flat:
            return {}
        found = self.processor(flat, return_tensors="pt")
        return {
            "pixel_values": found["pixel_values"].to(ids.device),
            "image_grid_thw": found["image_grid_thw"].to(ids.device),
            "mm_token_type_ids": (ids == self.placeholder).int(),
        }

    def positions(self, network: Any, ids: Tensor, mask: Tensor, inputs: Inputs) -> Tensor:
        """Return time, row and column of each token, ``[3, row, token]``; all three are equal in texts."""
        if not inputs:
            return super().positions(network, ids, mask, inputs)[None].expand(3, -1, -1)
        found, _ = network.base_model.get_rope_index(
            ids, inputs["mm_token_type_ids"], image_grid_thw=inputs["image_grid_thw"], attention_mask=mask
        )
        positions: Tensor = found
        return positions


class SquarePictures(PictureInputs):
    """SmolVLM and Idefics3: the whole image in one square, a fixed number of placeholders between three marks.

    Images are not cut into tiles, each of which would cost as much as the whole picture. Source: transformers,
    ``models/smolvlm``.
    """

    _MARKS = ("<fake_token_around_image>", "<global-img>", "<fake_token_around_image>")

    def __init__(self, config: PretrainedConfig, processor: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(config, processor, tokenizer)
        words = tokenizer.get_vocab()
        self._marks = [words[mark] for mark in self._MARKS]

    def ids_of(self, width: int, height: int) -> list[int]:
        """Return the placeholders of a square between the marks of an image that is whole."""
        vision = self.config.vision_config
        count = (vision.image_size // vision.patch_size) ** 2 // self.config.scale_factor**2
        first, second, last = self._marks
        return [first, second, *[self.placeholder] * count, last]

    def inputs(self, rows: Sequence[Sequence[bytes]], ids: Tensor) -> Inputs:
        """Return pixels ``[picture, 1, colour, height, width]`` and their mask without the colours."""
        flat = [[opened(picture)] for row in rows for picture in row]
        if not flat:
            return {}
        found = self.processor(flat, do_image_splitting=False, return_tensors="pt")
        return {name: found[name].to(ids.device) for name in ("pixel_values", "pixel_attention_mask")}


FAMILIES: Mapping[str, type[PictureInputs]] = {
    "qwen2_vl": GridPictures,
    "qwen2_5_vl": GridPictures,
    "qwen3_vl": GridPictures,
    "smolvlm": SquarePictures,
    "idefics3": SquarePictures,
}
"""``model_type`` of a configuration -> how such models take pictures."""


def picture_inputs(config: PretrainedConfig, source: str, tokenizer: PreTrainedTokenizerBase) -> PictureInputs | None:
    """Return how the model at a source takes images; None if it is a language model alone.

    Args:
        config: Its configuration.
        source: Origin.
        tokenizer: Its tokenizer.

    Raises:
        ModelError: It takes images in a way that is not known here, or its image processor is missing.
        MissingExtra: The package pillow is missing.
    """
    if not hasattr(config, "vision_config"):
        return None
    family = FAMILIES.get(config.model_type)
    if family is None:
        known = ", ".join(sorted(FAMILIES))
        raise ModelError(
            f"{source} is a vision model of the type {config.model_type}; known here are {known}. Serve it with "
            "vLLM, and play with openai:MODEL@URL."
        )
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise MissingExtra('models with images need the package pillow: pip install "turngym[train]".') from error
    try:
        processor = AutoImageProcessor.from_pretrained(source, backend="pil")
    except Exception as error:  # untrusted file: anything may be raised
        raise ModelError(f"the image processor of {source} could not be loaded ({error}).") from error
    try:
        return family(config, processor, tokenizer)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelError(
            f"{source} does not define the tokens of an image ({error}): its config.json needs image_token_id, "
            "and its tokenizer the marks of its family."
        ) from error


def opened(picture: bytes) -> Any:
    """Return a PNG file as the image object that image processors take."""
    from PIL import Image

    return Image.open(io.BytesIO(picture)).convert("RGB")


TEXT_ONLY = "text of the user"
"""Role of messages of the user without an image, for :class:`PictureTokenizer`."""


class PictureTokenizer:
    """A tokenizer whose chat template shows an image at the start of each message of the role ``user``.

    Args:
        tokenizer: The model's tokenizer, with a chat template that knows contents of the type image.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        """Return a conversation as text, with a placeholder in each message of the user."""
        shown: Any = [
            {**message, "content": [{"type": "image"}, {"type": "text", "text": message["content"]}]}
            if message["role"] == "user"
            else {**message, "role": "user"}
            if message["role"] == TEXT_ONLY
            else message
            for message in messages
        ]
        return self._tokenizer.apply_chat_template(shown, **options)
