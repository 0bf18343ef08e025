"""The base of reward models that are fitted: features, a head, fitting with episodes held out, saving and loading."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from turngym.agents.trajectory import Trajectory
from turngym.errors import CheckpointError, ConfigError
from turngym.storage.bounded import require_file
from turngym.storage.files import write_atomic, write_json
from turngym.trainers.reward_models import FILE, FORMAT
from turngym.trainers.reward_models.base.features import NGRAMS, Features, make_features
from turngym.trainers.reward_models.base.model import RewardConfig, RewardModel, require
from turngym.trainers.reward_models.base.turns import offsets, turn_texts

if TYPE_CHECKING:
    from turngym.trainers.reward_models.base.head import Head, Loss

_WEIGHTS, _LARGEST_WEIGHTS = "head.safetensors", 2**30
_HELD_OUT = 10
"""One in this many episodes is held out, if there are at least twice as many."""


@dataclass(frozen=True)
class FittedConfig(RewardConfig):
    """Settings of reward models that are fitted."""

    path: str = ""
    """Folder of a fitted one, which then stays as it is; empty fits one to the run's own episodes."""
    refit_every: int = 10
    """Iterations between fits to the run's own episodes, the first one after the first iteration."""
    recent: int = 5
    """Iterations whose episodes a fit uses."""
    features: str = "ngrams"
    """Features of the head: ``ngrams``, or the last hidden state of a language model, frozen (``model:FOLDER``) or
    fitted with the head (``trained:FOLDER``)."""
    dimensions: int = 4096
    """Size of the table that n-grams are hashed into."""
    hidden: int = 32
    """Width of the head's hidden layer; 0 makes it linear."""
    epochs: int = 20
    """Passes of a fit."""
    learning_rate: float = 0.01
    """Step size of a fit."""
    weight_decay: float = 0.001
    """Decay of the weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("refit_every", "recent", "dimensions", "epochs"):
            require(name, getattr(self, name), 1, 1e9)
        require("hidden", self.hidden, 0, 1e6)
        require("learning_rate", self.learning_rate, 1e-9, 1)
        require("weight_decay", self.weight_decay, 0, 10)


FittedConfigT = TypeVar("FittedConfigT", bound=FittedConfig)


class FittedReward(RewardModel[FittedConfigT]):
    """A head over the turns of an episode."""

    is_trainable: ClassVar[bool] = True
    fixed: ClassVar[frozenset[str]] = frozenset({"features", "dimensions", "hidden"})
    """Settings that are fixed once a model is saved."""

    def __init__(self, config: FittedConfigT) -> None:
        super().__init__(config)
        self._head: Head | None = None
        self._features: Features | None = None

    @property
    def is_ready(self) -> bool:
        """True if it was fitted or loaded."""
        return self._head is not None

    @abstractmethod
    def targets(self, trajectories: Sequence[Trajectory]) -> list[Sequence[float] | None]:
        """Return what is fitted for each episode: one number, or one for every whole turn; None leaves it out."""

    @abstractmethod
    def loss(self, targets: Sequence[Sequence[float]]) -> Loss:
        """Return the loss for episodes with these targets."""

    def predictions(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return the head's output for every whole turn of each episode.

        Raises:
            ConfigError: It was not fitted.
        """
        if self._head is None:
            raise ConfigError(f"the reward model {self.name!r} was not fitted yet: fit it, or pass path=FOLDER.")
        texts = [turn_texts(each) for each in trajectories]
        flat = [text for own in texts for text in own]
        from turngym.trainers.reward_models.base.head import outputs  # a class of torch's

        found = outputs(self._head, self._reader().encode(flat), len(flat))
        return [[found[row] for row in rows] for rows in offsets([len(own) for own in texts])]

    def _reader(self) -> Features:
        if self._features is None:
            self._features = make_features(self.config.features, self.config.dimensions)
        return self._features

    def fit(self, trajectories: Sequence[Trajectory], seed: int = 0) -> dict[str, float]:
        """Fit the head from scratch.

        Args:
            trajectories: Recorded episodes; faulted ones and ones without a turn are left out, and so are those that
                have no target.
            seed: Seed of first weights, order and held-out episodes.

        Returns:
            How many episodes were used and left out, the loss of the last pass, and for held-out episodes the share
            of pairs of a solved and a failed one in which the solved one scores higher.

        Raises:
            ConfigError: There is no episode to fit to.
        """
        whole = [each for each in trajectories if not each.fault and each.turns]
        paired = [(each, target) for each, target in zip(whole, self.targets(whole), strict=True) if target is not None]
        if not paired:
            raise ConfigError(
                f"the reward model {self.name!r} found nothing to fit to in {len(trajectories)} episodes"
                f"{self.advice}: pass recordings of more episodes."
            )
        used = [each for each, _ in paired]
        texts = [turn_texts(each) for each in used]
        encoded = self._reader().encode([text for own in texts for text in own])
        rows = offsets([len(own) for own in texts])
        kept, held = _split(len(used))
        from turngym.trainers.reward_models.base.head import Head, fit_head, head_seed

        head = Head(self._reader(), self.config.hidden, head_seed(seed))
        if (size := 4 * sum(each.numel() for each in head.parameters())) > _LARGEST_WEIGHTS:
            raise ConfigError(
                f"a head with features={self.config.features!r} has {size / 2**30:.1f} GiB of weights, and at most "
                f"{_LARGEST_WEIGHTS // 2**30} GiB are saved: take a smaller model, or model:FOLDER, which is not saved."
            )
        loss = self.loss([paired[k][1] for k in kept])
        settings = self.config.epochs, self.config.learning_rate, self.config.weight_decay
        metrics = {"episodes": float(len(used)), "left_out": float(len(trajectories) - len(used))}
        metrics["loss"] = fit_head(head, encoded, [rows[k] for k in kept], loss, *settings, seed=seed)
        self._head = head.eval()
        held_out = [used[k] for k in held]
        return metrics | {f"held_out_{name}": value for name, value in self._report(held_out).items()}

    advice: ClassVar[str] = ""
    """Why episodes may be left out, for messages."""

    def _report(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        if not trajectories:
            return {}
        found = {"episodes": float(len(trajectories))}
        solved = [self.score(each) for each in trajectories if each.success == 1]
        failed = [self.score(each) for each in trajectories if each.success != 1]
        return found | ({"ranking": ranking(solved, failed)} if solved and failed else {})

    def save(self, folder: Path) -> None:
        """Write settings as JSON and weights as safetensors.

        Raises:
            ConfigError: It was not fitted.
        """
        if self._head is None:
            raise ConfigError(f"the reward model {self.name!r} was not fitted yet: there is nothing to save.")
        folder.mkdir(parents=True, exist_ok=True)
        from safetensors.torch import save

        write_atomic(folder / _WEIGHTS, save({k: v.contiguous() for k, v in self._head.state_dict().items()}))
        config = {key: value for key, value in dataclasses.asdict(self.config).items() if key != "path"}
        write_json(folder / FILE, {"format": FORMAT, "name": self.name, "config": config})

    def load(self, folder: Path, stored: Mapping[str, Any]) -> None:
        """Load what ``save`` wrote.

        Raises:
            CheckpointError: It is damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        from turngym.trainers.reward_models.base.head import Head

        try:
            require_file(folder / _WEIGHTS, _LARGEST_WEIGHTS)
            weights = load((folder / _WEIGHTS).read_bytes())
            self._require_size(sum(each.numel() for each in weights.values()))
            if not all(bool(each.isfinite().all()) for each in weights.values()):
                raise ValueError("its weights are not finite")
            head = Head(self._reader(), self.config.hidden, 0)
            head.load_state_dict(weights)
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise CheckpointError(
                f"the reward model in {folder} is damaged ({type(error).__name__}): fit it again with "
                "`turngym fit-reward`."
            ) from error
        self._head = head.eval()

    def _require_size(self, stored: int) -> None:
        """Raise if the settings ask for a larger table than the saved weights, before allocating it."""
        table = self.config.dimensions if self.config.features == NGRAMS else 1
        if table * max(self.config.hidden, 1) > stored:
            raise ValueError("the settings ask for more weights than there are")


def _split(count: int) -> tuple[list[int], list[int]]:
    """Return which episodes are fitted to and which are held out."""
    held = [k for k in range(count) if k % _HELD_OUT == _HELD_OUT - 1] if count >= 2 * _HELD_OUT else []
    return [k for k in range(count) if k not in set(held)], held


def ranking(better: Sequence[float], worse: Sequence[float]) -> float:
    """Return the share of pairs in which the better one scores higher; equal scores count half.

    >>> ranking([0.9, 0.4], [0.4, 0.1])
    0.875
    """
    pairs = [(one > two) + 0.5 * (one == two) for one in better for two in worse]
    return math.fsum(pairs) / len(pairs) if pairs else math.nan


def sigmoid(value: float) -> float:
    """Return the logistic function of a head's output.

    >>> sigmoid(0.0), sigmoid(-1000.0)
    (0.5, 0.0)
    """
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
