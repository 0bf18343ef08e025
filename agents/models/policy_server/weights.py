"""Weights of a policy server: new ones from safetensors files in an allowed folder, and low-rank adapters by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.policy_server.adapters import Adapter, is_finite, read_adapter
from turngym.agents.models.policy_server.requests import Refused
from turngym.agents.models.vllm.weights import HEAD
from turngym.storage.bounded import require_file

_MOST_ADAPTERS = 64
_MOST_FILES = 1024
_LARGEST_HEADER = 2**27


class ServedWeights:
    """The weights that a server computes with. Only the engine's thread changes them.

    Args:
        model: The model.
        name: Its name for clients.
        folder: Weights are read from below this folder alone; None reads none.
    """

    def __init__(self, model: LanguageModel, name: str, folder: Path | None = None) -> None:
        self.model = model
        self.name = name
        self.folder = None if folder is None else folder.resolve()
        self.is_whole = True
        """True if all weights are of one version: a file that ends half-way leaves others. True while they are read."""
        self._adapters: dict[str, Adapter] = {}
        self._active = ""
        self._below: dict[str, Tensor] = {}

    @property
    def names(self) -> list[str]:
        """The model and its adapters by name."""
        return [self.name, *list(self._adapters)]

    def has(self, name: str) -> bool:
        """Return whether there is a model or an adapter of a name; the empty one is the model's."""
        return not name or name == self.name or name in self._adapters

    def is_active(self, name: str) -> bool:
        """Return whether the network has the weights of a name now."""
        return self._key(name) == self._active

    def _key(self, name: str) -> str:
        return "" if name == self.name else name

    def activate(self, name: str) -> None:
        """Give the network the weights of a model or an adapter.

        Raises:
            Refused: There is none of the name.
        """
        key = self._key(name)
        if key == self._active:
            return
        if key and key not in self._adapters:
            raise Refused(f"there is no model {name!r} here", 404)
        self._remove()
        if key:
            self._below = self._adapters[key].add_to(self.model.network)
            self._active = key

    @torch.no_grad()
    def _remove(self) -> None:
        for name, weight in self._below.items():
            self.model.network.get_parameter(name).copy_(weight)
        self._below, self._active = {}, ""

    def load(self, path: str) -> None:
        """Replace all weights of the model by those of a folder; nothing changes if they are of another model.

        Raises:
            Refused: There are none, or of another model, or outside of the allowed folder.
        """
        folder = self._allowed(path)
        files = sorted(islice(folder.glob("*.safetensors"), _MOST_FILES + 1))
        if not 0 < len(files) <= _MOST_FILES:
            raise Refused(f"{folder.name} must hold 1 to {_MOST_FILES} .safetensors files")
        for file in files:
            self.require_readable(file)
        self._remove()
        try:
            with ExitStack() as stack:
                opened = [stack.enter_context(safe_open(str(file), framework="pt")) for file in files]
                where = {name: file for file in opened for name in file.keys()}  # noqa: SIM118
                targets = _targets(self.model.network, where)
                self._copy(targets, where)
        except (SafetensorError, OSError) as error:
            raise Refused(f"{folder.name} cannot be read: {error}"[:300]) from error

    @torch.no_grad()
    def _copy(self, targets: Mapping[str, Tensor], files: Mapping[str, Any]) -> None:
        for name in targets:
            if not is_finite(files[name].get_tensor(name)):
                raise Refused(f"{name} holds numbers that are not finite")
        try:
            for name, target in targets.items():
                target.copy_(files[name].get_tensor(name))
        except BaseException:
            self.is_whole = False
            raise
        self.is_whole = True

    def load_adapter(self, name: str, path: str, in_place: bool) -> None:
        """Read a low-rank adapter, which clients then use as a model.

        Args:
            name: Its name.
            path: Its folder, as peft writes it.
            in_place: Whether it may replace one of the same name.

        Raises:
            Refused: It cannot be used, or the name is taken.
        """
        if name == self.name or (name in self._adapters and not in_place):
            raise Refused(f"{name!r} is loaded already: pass load_inplace")
        if name not in self._adapters and len(self._adapters) >= _MOST_ADAPTERS:
            raise Refused(f"at most {_MOST_ADAPTERS} adapters are held: unload one")
        folder = self._allowed(path)
        for file in (folder / "adapter_config.json", folder / "adapter_model.safetensors"):
            self.require_readable(file)
        adapter = read_adapter(folder, self.model.network)
        if self._active == name:
            self._remove()
        self._adapters[name] = adapter

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter.

        Raises:
            Refused: There is none of the name.
        """
        if name not in self._adapters:
            raise Refused(f"there is no adapter {name!r}", 404)
        if self._active == name:
            self._remove()
        del self._adapters[name]

    def require_readable(self, file: Path) -> None:
        """Refuse what is not a regular file of a plausible size below the allowed folder; pipes would never end.

        Raises:
            Refused: It is something else.
        """
        largest = _LARGEST_HEADER + 8 * sum(tensor.numel() for tensor in self.model.network.state_dict().values())
        try:
            if self.folder is None or not file.resolve().is_relative_to(self.folder):
                raise ValueError("it is outside the server's --weights-folder")
            require_file(file, largest)
        except (OSError, ValueError, RuntimeError) as error:
            raise Refused(f"{file.name} of {file.parent.name} is not read: {error}"[:300]) from error

    def _allowed(self, path: str) -> Path:
        """Return a folder that weights may be read from.

        Raises:
            Refused: It is not below the allowed one, or is not a folder.
        """
        if self.folder is None:
            raise Refused("this server reads no weights: start it with --weights-folder", 403)
        try:
            found = Path(path).resolve()
            is_folder = found.is_relative_to(self.folder) and found.is_dir()
        except (OSError, ValueError, RuntimeError) as error:
            raise Refused("the path cannot be used") from error
        if not is_folder:
            raise Refused("the path is not a folder below the server's --weights-folder", 403)
        return found


def _targets(network: torch.nn.Module, files: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors of a network that files replace, by name; tied ones once.

    Raises:
        Refused: The files are of another model.
    """
    own: dict[str, Tensor] = network.state_dict(keep_vars=True)
    unknown = sorted(set(files) - set(own) - {HEAD})
    if unknown:
        raise Refused(f"the weights are of another model: it has no {_some(unknown)}")
    by_place: dict[tuple[int, torch.Size], list[str]] = {}
    for name, tensor in own.items():
        by_place.setdefault((tensor.data_ptr(), tensor.shape), []).append(name)
    missing = [names[0] for names in by_place.values() if not any(name in files for name in names)]
    if missing:
        raise Refused(f"the weights are not whole: {_some(missing)} missing")
    for name in set(files) & set(own):
        found = tuple(files[name].get_slice(name).get_shape())
        if found != tuple(own[name].shape):
            raise Refused(f"the weights are of another model: {name} is {found}, expected {tuple(own[name].shape)}")
    return {name: own[name] for name in [_one_of(names, files) for names in by_place.values()]}


def _one_of(names: Sequence[str], files: Mapping[str, Any]) -> str:
    """Return the name under which a tensor is in the files.

    Raises:
        Refused: It has several, with different numbers.
    """
    found = [name for name in names if name in files]
    for other in found[1:]:
        if not torch.equal(files[found[0]].get_tensor(found[0]), files[other].get_tensor(other)):
            raise Refused(f"{found[0]} and {other} are one tensor in this model, and differ in the files")
    return found[0]


def _some(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:3]) + (f" and {len(every) - 3} others" if every[3:] else "")
