"""Trackers: TensorBoard, Weights & Biases, MLflow, Trackio and Prometheus behind one interface."""

from __future__ import annotations

import importlib
import io
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.errors import missing_extra
from turngym.trainers.records.prometheus import PrometheusFile
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

TrackerName: TypeAlias = Literal["tensorboard", "wandb", "mlflow", "trackio", "prometheus"]
PROJECT = "turngym"
"""Default name of the project or experiment."""
_FILES = "prometheus"
"""The tracker that needs no package."""
_PACKAGES = {"tensorboard": ("tensorboard", "train")}
_INVALID_IN_MLFLOW = re.compile(r"[^\w./ -]")
_MLFLOW_LIMITS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "15", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""A server that does not answer delays a run by less than a minute; the environment variables of the user win."""
_WANDB_LIMITS = {
    "WANDB_INIT_TIMEOUT": "60",
    "WANDB_FINISH_TIMEOUT": "300",
    "WANDB_HTTP_TIMEOUT": "15",
    "WANDB__GRAPHQL_RETRY_MAX": "3",
}
"""Without them, a server that does not answer holds up the end of the process without limit."""
_LOGIN_SECONDS = 60
"""A question of wandb for an API key that nobody answers does not hold up the run for longer."""
_LONGEST_PARAMETER = 500
_PARAMETERS_PER_REQUEST = 100


@dataclass(frozen=True)
class Detail:
    """Data of an iteration other than its metrics.

    Args:
        histograms: Name -> values.
        transcripts: Texts of a few episodes.
        images: PNG files of the prompts of an episode, in order.
    """

    histograms: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    transcripts: Sequence[str] = ()
    images: Sequence[bytes] = ()


class Tracker(Protocol):
    """A metrics backend in addition to the run folder."""

    def log(self, record: Mapping[str, Any], detail: Detail) -> None:
        """Log an iteration."""

    def close(self, failed: bool) -> None:
        """Flush and finish."""


def require_tracker(name: str) -> None:
    """Check that the package of a tracker is installed.

    Raises:
        MissingExtra: It is not.
    """
    if name == _FILES:
        return
    package, extra = _PACKAGES.get(name, (name, name))
    if find_spec(package) is None:
        raise missing_extra(f"--track {name}", package, extra)


def start_tracker(name: TrackerName, folder: RunFolder, config: TrainConfig) -> Tracker:
    """Start a tracker, or continue the run that it has of this folder.

    Args:
        name: The tracker; its environment variables apply, such as ``WANDB_MODE=offline``.
        folder: The run folder; its name is the name of the run.
        config: Settings of the run.
    """
    kinds: dict[str, Callable[[RunFolder, TrainConfig], Tracker]]
    kinds = {"tensorboard": _TensorBoard, "wandb": _Wandb, "mlflow": _MLflow, "trackio": _Trackio}
    kinds[_FILES] = lambda folder, config: PrometheusFile(folder.path)
    return kinds[name](folder, config)


class _TensorBoard:
    """Event files in the run folder."""

    def __init__(self, folder: RunFolder, config: TrainConfig) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(folder.path / "tensorboard"))

    def log(self, record: Mapping[str, Any], detail: Detail) -> None:
        step = record["iteration"]
        for name, value in record.items():
            self.writer.add_scalar(name, value, step)
        for name, values in detail.histograms.items():
            self.writer.add_histogram(name, values, step)
        for number, text in enumerate(detail.transcripts):
            self.writer.add_text(f"transcripts/{number}", _as_code(text), step)
        for number, image in enumerate(_opened(detail.images)):
            self.writer.add_image(f"images/turn_{number}", np.asarray(image), step, dataformats="HWC")

    def close(self, failed: bool) -> None:
        self.writer.close()


class _Media:
    """A run of wandb or trackio, which have the same classes of media; iterations are the steps."""

    def __init__(self, module: Any, run: Any) -> None:
        self.module = module
        self.run = run

    def log(self, record: Mapping[str, Any], detail: Detail) -> None:
        found: dict[str, Any] = dict(record)
        for name, values in detail.histograms.items():
            found[name] = self.module.Histogram(values)
        if detail.transcripts:
            rows = [[number, text] for number, text in enumerate(detail.transcripts)]
            found["transcripts"] = self.module.Table(columns=["episode", "transcript"], data=rows)
        for number, image in enumerate(_opened(detail.images)):
            found[f"images/turn_{number}"] = self.module.Image(image)
        self.run.log(found, step=int(record["iteration"]))


class _Wandb(_Media):
    """A run of Weights & Biases, with its files in the run folder."""

    def __init__(self, folder: RunFolder, config: TrainConfig) -> None:
        _set_unless_given(_WANDB_LIMITS)
        module = importlib.import_module("wandb")
        run = module.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=folder.path.name,
            id=folder.tracking_id("wandb", lambda: secrets.token_hex(6)),
            resume="allow",
            reinit="create_new",
            dir=str(folder.path),
            config=config.as_json(),
            settings=module.Settings(console="off", login_timeout=_LOGIN_SECONDS),
        )
        super().__init__(module, run)

    def close(self, failed: bool) -> None:
        self.run.finish(exit_code=int(failed))


class _Trackio(_Media):
    """A run of Trackio, in its local database, or on the server or Space of its environment variables."""

    def __init__(self, folder: RunFolder, config: TrainConfig) -> None:
        module = importlib.import_module("trackio")
        name = folder.tracking_id("trackio", lambda: f"{folder.path.name}-{secrets.token_hex(3)}")
        project = os.environ.get("TRACKIO_PROJECT", PROJECT)
        super().__init__(module, module.init(project, name, config=config.as_json(), resume="allow", embed=False))

    def close(self, failed: bool) -> None:
        self.module.finish()


class _MLflow:
    """A run of MLflow, on the server of MLFLOW_TRACKING_URI or in ``mlflow.db``; it has no histograms."""

    def __init__(self, folder: RunFolder, config: TrainConfig) -> None:
        _set_unless_given(_MLFLOW_LIMITS)
        mlflow = importlib.import_module("mlflow")
        self.entities = importlib.import_module("mlflow.entities")
        self.client: Any = mlflow.MlflowClient()
        self.run = folder.tracking_id("mlflow", lambda: self._new_run(folder, config))
        self.client.update_run(self.run, status="RUNNING")

    def _new_run(self, folder: RunFolder, config: TrainConfig) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self.client.get_experiment_by_name(name)
        key = experiment.experiment_id if experiment else self.client.create_experiment(name)
        run: str = self.client.create_run(key, run_name=folder.path.name).info.run_id
        values = [self.entities.Param(name, value) for name, value in _flat(config.as_json())]
        for start in range(0, len(values), _PARAMETERS_PER_REQUEST):
            self.client.log_batch(run, params=values[start : start + _PARAMETERS_PER_REQUEST])
        return run

    def log(self, record: Mapping[str, Any], detail: Detail) -> None:
        now, step = 1000 * int(time.time()), int(record["iteration"])  # MLflow dates metrics in milliseconds
        metric = self.entities.Metric
        found = [metric(_INVALID_IN_MLFLOW.sub("_", name), float(value), now, step) for name, value in record.items()]
        self.client.log_batch(self.run, metrics=found)
        for number, text in enumerate(detail.transcripts):
            self.client.log_text(self.run, text, f"transcripts/{step:06d}-{number}.txt")
        for number, image in enumerate(_opened(detail.images)):
            self.client.log_image(self.run, image, f"images/{step:06d}-{number}.png")

    def close(self, failed: bool) -> None:
        self.client.set_terminated(self.run, "FAILED" if failed else "FINISHED")


def _set_unless_given(variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings with dotted names.

    >>> list(_flat({"seed": 3, "update": {"epochs": 1}}))
    [('seed', '3'), ('update.epochs', '1')]
    """
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, str(value)[:_LONGEST_PARAMETER]


def _opened(images: Sequence[bytes]) -> Iterator[Any]:
    from PIL import Image

    for image in images:
        yield Image.open(io.BytesIO(image)).convert("RGB")


def _as_code(text: str) -> str:
    """Return a text as a Markdown code block, whose lines stay as they are."""
    return "".join(f"    {line}\n" for line in text.splitlines())
