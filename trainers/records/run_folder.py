"""The folder of a run: its layout, and crash-safe writing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from turngym.agents.episodes.evaluate import EvaluationResult, write_episodes
from turngym.agents.models.settings import RUN_MODELS
from turngym.agents.trajectory import Trajectory
from turngym.errors import CheckpointError, RunFolderExists, UnknownName
from turngym.storage.files import append_line, read_content, read_jsonl, write_atomic, write_json
from turngym.storage.folders import is_free, is_left_over, require_folder, require_kind
from turngym.system.locks import FolderLock
from turngym.trainers.algorithms import parts
from turngym.trainers.records.samples import Decode, sample_of
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.memory import memory_settings, with_memory_settings

_RESERVED_BYTES = 256 * 1024


def _require_free(path: Path) -> None:
    require_folder(path)
    if not is_free(path):
        raise RunFolderExists(
            f"{path} exists already: pass --resume (resume=True in Python) to continue it, "
            "or another --run-dir (run_dir)."
        )


class RunFolder:
    """Paths and files of one run.

    ``config.json``, ``metrics.jsonl`` (one line an iteration), ``tensorboard/``, ``warmup/`` and ``control/`` (models),
    ``checkpoints/00025/``, ``evaluations/NAME.json`` and ``NAME.episodes.jsonl``, ``samples/NAME.jsonl``,
    ``tracking.json`` (ids of the run in trackers),
    ``instances.json`` (hashes of the task instances that training showed), ``curve.png``, ``report.html``;
    ``diagnosis.json`` if something stopped the run.

    Args:
        path: The folder.
    """

    is_written = True
    """True if this process writes it; metrics go to trackers only if it does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, config: TrainConfig) -> RunFolder:
        """Make a new folder.

        Raises:
            RunFolderExists: It is not empty, or a file.
        """
        _require_free(path)
        write_json(path / "config.json", config_to_store(config))
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of an earlier run.

        Raises:
            CheckpointError: There is no run in it.
            ConfigError: It is the folder of something else.
        """
        require_kind(path, "training run")
        if not (path / "config.json").is_file():
            raise CheckpointError(
                f"there is no run in {path} (no config.json): pass the folder of a run, or leave out --resume."
            )
        return cls(path)

    @classmethod
    @contextmanager
    def locked(cls, path: Path, config: TrainConfig | None = None) -> Iterator[RunFolder]:
        """Lock a folder against writing by other processes.

        Args:
            path: The folder.
            config: Settings of a new run; None opens the folder of an earlier one.

        Raises:
            FolderInUse: Another process writes it.
            RunFolderExists: The folder of a new run is not empty.
            CheckpointError: There is no earlier run.
        """
        is_new = not path.exists()
        if config is None:
            cls.open(path)
        else:
            _require_free(path)
            path.mkdir(parents=True, exist_ok=True)
        try:
            with FolderLock(path, "training run"):
                yield cls.open(path) if config is None else cls.create(path, config)
        finally:
            if is_new:
                with suppress(OSError):
                    path.rmdir()  # it is kept unless it is empty

    def config(self) -> TrainConfig:
        """Return the settings of the run."""
        try:
            return config_from_store(read_content(self.path / "config.json"))
        except UnknownName:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(
                f"{self.path / 'config.json'} is damaged ({error}): restore it, or start a new run."
            ) from error

    def resumed_config(self, given: TrainConfig) -> TrainConfig:
        """Return the settings of the run with those given that only bound memory, which are kept from now on."""
        stored = self.config()
        config = with_memory_settings(stored, given)
        if config != stored:
            content = read_content(self.path / "config.json")
            for part, values in memory_settings(config).items():
                content[part].update(values)
            write_json(self.path / "config.json", content)
        return config

    def remove_if_nothing_happened(self) -> None:
        """Empty the folder if it contains nothing but settings, so that a corrected command can use its name."""
        if {path.name for path in self.path.iterdir() if not is_left_over(path.name)} <= {"config.json"}:
            (self.path / "config.json").unlink(missing_ok=True)

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    def metrics(self) -> list[dict[str, Any]]:
        """Return the metrics of every iteration so far."""
        return read_jsonl(self.path / "metrics.jsonl")

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Append the metrics of one iteration."""
        append_line(self.path / "metrics.jsonl", json.dumps(dict(record), sort_keys=True))

    def keep_metrics(self, before_iteration: int) -> None:
        """Drop the metrics of iterations that a resumed run will repeat."""
        kept = [record for record in self.metrics() if record["iteration"] < before_iteration]
        write_atomic(self.path / "metrics.jsonl", "".join(json.dumps(r, sort_keys=True) + "\n" for r in kept))

    def write_evaluation(self, name: str, result: EvaluationResult) -> None:
        """Write an evaluation and its episodes."""
        write_json(self.path / "evaluations" / f"{name}.json", result.summary())
        write_episodes(self.path / "evaluations" / f"{name}.episodes.jsonl", result)

    def evaluations(self) -> dict[str, dict[str, Any]]:
        """Return name -> evaluation.

        Raises:
            CheckpointError: A file is damaged.
        """
        return {file.stem: _evaluation(file) for file in sorted((self.path / "evaluations").glob("*.json"))}

    @property
    def diagnosis(self) -> Path:
        """File with the reason for an early stop; absent if there was none."""
        return self.path / "diagnosis.json"

    @property
    def _reserve(self) -> Path:
        return self.path / ".reserve"

    def reserve(self) -> None:
        """Reserve disk space, so that a diagnosis can be written to a full disk."""
        if not self._reserve.exists():
            write_atomic(self._reserve, bytes(_RESERVED_BYTES))

    def release(self) -> None:
        """Release the reserved space."""
        self._reserve.unlink(missing_ok=True)

    def write_diagnosis(self, diagnosis: Mapping[str, Any]) -> None:
        """Write why the run stopped, into the reserved space."""
        self.release()
        write_json(self.diagnosis, dict(diagnosis))

    def forget_diagnosis(self) -> None:
        """Remove the diagnosis of a run that continues."""
        self.diagnosis.unlink(missing_ok=True)

    def evaluated_episodes(self, name: str) -> list[dict[str, Any]]:
        """Return the episodes of an evaluation."""
        return read_jsonl(self.path / "evaluations" / f"{name}.episodes.jsonl")

    def write_samples(
        self,
        name: str,
        trajectories: Sequence[Trajectory],
        decode: Decode | None = None,
        advantages: Sequence[Sequence[Sequence[float]] | None] | None = None,
    ) -> None:
        """Write whole trajectories for reading; see :func:`turngym.trainers.records.samples.sample_of`."""
        beside = [None] * len(trajectories) if advantages is None else advantages
        samples = [sample_of(each, decode, mine) for each, mine in zip(trajectories, beside, strict=True)]
        lines = [json.dumps(sample, ensure_ascii=False) for sample in samples]
        write_atomic(self.path / "samples" / f"{name}.jsonl", "".join(line + "\n" for line in lines))

    def samples(self) -> dict[str, list[dict[str, Any]]]:
        """Return name -> whole trajectories."""
        return {file.stem: read_jsonl(file) for file in sorted((self.path / "samples").glob("*.jsonl"))}

    def tracking_id(self, tracker: str, make: Callable[[], str]) -> str:
        """Return the id of this run in a tracker, so that a resumed run continues it.

        Args:
            tracker: Name of the tracker.
            make: Returns the id of a new run.
        """
        file = self.path / "tracking.json"
        known = read_content(file) if file.exists() else {}
        if tracker not in known:
            known[tracker] = make()
            write_json(file, known)
        return str(known[tracker])

    def instances(self) -> set[str]:
        """Return the hashes of the task instances that training showed."""
        file = self.path / "instances.json"
        return set(read_content(file)) if file.exists() else set()

    def write_instances(self, instances: Iterable[str]) -> None:
        """Write the hashes of the task instances that training showed."""
        write_json(self.path / "instances.json", sorted(instances))


def _evaluation(file: Path) -> dict[str, Any]:
    try:
        found = read_content(file)
        if not isinstance(found, dict):
            raise ValueError("no JSON object")
    except ValueError as error:
        raise CheckpointError(f"{file} is damaged ({error}): restore it, or start a new run.") from error
    return found


ALGORITHM_DEFAULTS = "algorithm_defaults"
"""Key of ``config.json`` with the defaults of the algorithm's parts at the time of the run."""
_RECORDED = (ALGORITHM_DEFAULTS, RUN_MODELS)
"""Keys of ``config.json`` that are not settings of a run."""


def config_to_store(config: TrainConfig) -> dict[str, Any]:
    """Return the settings as a value that JSON can hold, with the algorithm's current defaults and those of models."""
    defaults = {part: _defaults(kind) for part, kind in parts(config.algorithm)}
    models = dataclasses.asdict(config.model_settings("checkpoint"))
    return {**config.as_json(), ALGORITHM_DEFAULTS: defaults, RUN_MODELS: models}


def config_from_store(content: Mapping[str, Any]) -> TrainConfig:
    """Return the settings that a run folder keeps, also one that an earlier version wrote.

    An option that was left at its default keeps the value that it had then.

    Args:
        content: Content of ``config.json``.
    """
    config = TrainConfig.from_json({key: value for key, value in content.items() if key not in _RECORDED})
    changed = _changed(config.algorithm, content[ALGORITHM_DEFAULTS])
    chosen = {part: {**changed.get(part, {}), **config.algorithm_options.get(part, {})} for part in changed}
    return dataclasses.replace(config, algorithm_options={**config.algorithm_options, **chosen})


def _changed(algorithm: str, defaults: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for part, kind in parts(algorithm):
        today = _defaults(kind)
        before = {key: value for key, value in defaults.get(part, {}).items() if key in today and value != today[key]}
        if before:
            found[part] = before
    return found


def _defaults(kind: type[Any]) -> dict[str, Any]:
    default = kind()
    values = {field.name: getattr(default, field.name) for field in dataclasses.fields(kind)}
    found: dict[str, Any] = json.loads(json.dumps(values))
    return found
