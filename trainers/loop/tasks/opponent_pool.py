"""Frozen copies of a policy from earlier in its training, to play against."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from turngym.agents.models.loading import LanguageModel
from turngym.errors import CheckpointError
from turngym.trainers.engine.sharing import copy_sharing_frozen, distinct_tensors, frozen_parameters

PREFIX = "past-"


class PastSelves:
    """The newest frozen copies, by name; ``past-000020`` is the policy that iteration 20 started with.

    Args:
        keep: Number.
        every: Iterations between them.
    """

    def __init__(self, keep: int, every: int) -> None:
        self.keep, self.every = keep, every
        self._models: dict[str, LanguageModel] = {}
        self._shared: list[nn.Parameter] = []

    def newest(self, count: int) -> list[str]:
        """Return the names of the newest copies, oldest first."""
        return sorted(self._models)[-count:]

    def model(self, name: str) -> LanguageModel:
        """Return a frozen copy."""
        return self._models[name]

    def notice(self, model: LanguageModel, iteration: int) -> None:
        """Freeze a copy of the policy at the start of an iteration, if one is due."""
        name = f"{PREFIX}{iteration:06d}"
        if self.keep and iteration % self.every == 0 and name not in self._models:
            self._shared = frozen_parameters(model.network)
            network = copy_sharing_frozen(model.network).requires_grad_(False).eval()
            self._add(name, model.with_network(network, name))

    def _add(self, name: str, model: LanguageModel) -> None:
        self._models[name] = model
        for old in sorted(self._models)[: -self.keep]:
            del self._models[old]

    def save(self, folder: Path, oldest_checkpoint: int) -> None:
        """Write the copies that are not in a folder yet, and remove those that no checkpoint needs.

        Args:
            folder: Folder of copies.
            oldest_checkpoint: Iteration of the oldest checkpoint that a run may go back to.
        """
        if not self.keep:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for name, model in self._models.items():
            target = folder / f"{name}.safetensors"
            if not target.exists():
                temporary = target.with_suffix(".tmp")
                save_file(distinct_tensors([(name, model.network)], self._shared)[name], temporary)
                temporary.replace(target)
        reachable = [path for path in _copies(folder) if _iteration(path) <= oldest_checkpoint]
        for path in reachable[: -self.keep]:
            path.unlink()

    def load(self, folder: Path, model: LanguageModel, iteration: int) -> None:
        """Restore the copies of a checkpoint.

        Args:
            folder: Folder of copies.
            model: A model of the same shape.
            iteration: Iteration of the checkpoint.

        Raises:
            CheckpointError: A copy is damaged.
        """
        self._models.clear()
        self._shared = frozen_parameters(model.network)
        if not self.keep:
            return
        for path in [path for path in _copies(folder) if _iteration(path) < iteration][-self.keep :]:
            network = copy_sharing_frozen(model.network)
            try:
                network.load_state_dict(load_file(path), strict=False)
            except (OSError, ValueError, RuntimeError, SafetensorError) as error:
                raise CheckpointError(
                    f"the frozen copy {path} is damaged ({type(error).__name__}): delete it, and the run continues "
                    "with the others."
                ) from error
            self._add(path.stem, model.with_network(network.requires_grad_(False).eval(), path.stem))


def _copies(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*.safetensors"))


def _iteration(path: Path) -> int:
    return int(path.stem.removeprefix(PREFIX))
