"""Everything `turngym view` can open, as one list of episodes that grows while it is already shown."""

from __future__ import annotations

import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Condition, Thread
from typing import Any

from turngym.benchmarks.pages.viewer.forms import Form, broken_form, row_form, transcript_form
from turngym.benchmarks.pages.viewer.jsonl import (
    Broken,
    Lines,
    Place,
    each_line,
    items,
    mapping,
    numbered,
    parsed,
    read,
    text,
)
from turngym.benchmarks.pages.viewer.recordings import recording_form
from turngym.benchmarks.pages.viewer.recordings import scan as scan_recording
from turngym.benchmarks.pages.viewer.replayed import game_form_apart
from turngym.benchmarks.pages.viewer.summaries import BROKEN, Summary, of_record
from turngym.benchmarks.pages.viewer.values import FOLDER, Key, PlayoutValues, key_of
from turngym.envs.multiagent.registration import GAMES
from turngym.errors import ConfigError
from turngym.storage.bounded import read_json
from turngym.trainers.settings.mixture import labels_of

MOST_EPISODES = 2_000_000
"""Episodes of a list; the rest is counted and not listed."""
_TOLD_EVERY, _LOOKED_AT = 200, 100


class Run(ABC):
    """Episodes on disk, in the order in which they stand there.

    Args:
        path: Path given by the user.
        kind: Description.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        self.known: list[Summary] = []
        """The episodes found so far."""
        self.is_complete = False
        self.has_traces = False
        """Whether to compute traces of the actions, which comparing runs needs; set before :meth:`search`."""
        self.problem = ""
        """Why the search ended early; empty if it did not."""
        self._changed = Condition()
        self._is_searching = False

    @property
    def name(self) -> str:
        """Name of the folder or file."""
        return self.path.resolve().name or str(self.path)

    @abstractmethod
    def _scan(self) -> Iterator[Summary]:
        """Yield all episodes."""

    @abstractmethod
    def form(self, summary: Summary) -> Form:
        """Return an episode in the form that the viewer shows; one that cannot be read says so."""

    def search(self) -> Run:
        """Find the episodes in the background; returns itself."""
        if not self._is_searching:
            self._is_searching = True
            Thread(target=self._search, name="turngym-view", daemon=True).start()
        return self

    def _search(self) -> None:
        try:
            for summary in self._scan():
                if len(self.known) == MOST_EPISODES:
                    self.problem = f"Only the first {MOST_EPISODES:,} are listed."
                    break
                self.known.append(summary)
                if len(self.known) <= 2 or len(self.known) % _TOLD_EVERY == 0:
                    with self._changed:
                        self._changed.notify_all()
        except OSError as error:
            self.problem = f"Reading stopped: {error}"
        finally:
            with self._changed:
                self.is_complete = True
                self._changed.notify_all()

    def wait_for(self, count: int | None = None, seconds: float | None = None) -> int:
        """Wait until that many episodes are found, or all; return how many there are by now."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.is_complete or (count is not None and len(self.known) >= count), seconds
            )
        return len(self.known)

    def require_episodes(self) -> None:
        """Refuse files without a single episode that can be read; no more is read than the first one needs.

        Raises:
            ConfigError: There is none.
        """
        self.search().wait_for(1)
        if all(each.status == BROKEN for each in self.known):
            self.wait_for()
        if all(each.status == BROKEN for each in self.known):
            reason = self.problem or (self.known[0].fault if self.known else "it is empty")
            raise ConfigError(f"{self.path} holds no episode that can be read ({reason.rstrip('.')}): pass another.")


class _Files(Run):
    """Files with a line for each episode, or recorded ones.

    Args:
        path: Path given by the user.
        kind: Description.
        files: File -> what its episodes are called; empty for the name that they have themselves.
        configs: File -> what else is known of its episodes.
    """

    def __init__(
        self, path: Path, kind: str, files: Mapping[Path, str], configs: Mapping[Path, Mapping[str, Any]] | None = None
    ) -> None:
        super().__init__(path, kind)
        self._files, self._names = list(files), list(files.values())
        self._configs = configs or {}
        self._is_recording = [_is_recording(file) for file in files]

    def _scan(self) -> Iterator[Summary]:
        index = 0
        for number, (file, name) in enumerate(zip(self._files, self._names, strict=True)):
            if self._is_recording[number]:
                found = scan_recording(file, number, index, name)
            else:
                found = _scan(file, number, index, name, self.has_traces)
            for summary in found:
                yield summary
                index += 1

    def form(self, summary: Summary) -> Form:
        """Return an episode in the form that the viewer shows."""
        file = self._files[summary.file]
        content = b""
        try:
            content = read(file, summary.place)
            if self._is_recording[summary.file]:
                return recording_form(content, summary.place.line)
            record = parsed(content, summary.place.line)
            return {**self._form(record, self._configs.get(file, {})), **self._caller(summary, record)}
        except (Broken, OSError) as error:
            return broken_form(str(error), content)

    def _caller(self, summary: Summary, record: Mapping[str, Any]) -> Form:
        """Return who called the sub-agent of an episode, and in which turn, as far as that was recorded."""
        caller, turn = numbered(record.get("caller")), numbered(record.get("caller_turn"))
        if caller is None:
            return {}
        found = [each for each in self.known if each.file == summary.file and each.episode == caller]
        shown = {"n": found[0].index, "seat": found[0].seat} if found else {"n": None, "seat": ""}
        return {"caller": {**shown, "episode": caller, "turn": turn}}

    def _form(self, record: Mapping[str, Any], config: Mapping[str, Any]) -> Form:
        config = {**config, **mapping(mapping(config.get("of_env")).get(text(record.get("env"))))}
        if "seat_map" in record and "match" in record:
            return game_form_apart(record, config)
        if isinstance(record.get("turns"), list):
            return transcript_form(record, {}, config)
        if isinstance(record.get("actions"), list):
            return row_form(record, config)
        return broken_form(
            "This line is not an episode: it has neither turns nor actions.", json.dumps(record).encode()
        )


def _is_recording(file: Path) -> bool:
    """Return whether a file is one of the wrapper ``record``, by the first of its first lines that can be read."""
    try:
        for place, line in islice(each_line(file), _LOOKED_AT):
            with suppress(Broken):
                return parsed(line, place.line).get("kind") in ("episode", "reset", "turn", "end")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error
    return False


def _scan(file: Path, number: int, index: int, name: str, with_trace: bool) -> Iterator[Summary]:
    for place, line in each_line(file):
        try:
            yield of_record(parsed(line, place.line), index, number, place, name, with_trace)
        except Broken as error:
            yield Summary(index, number, place, name=name, status=BROKEN, fault=str(error))
        index += 1


class _Evaluation(_Files):
    """The folder of an evaluation, finished or not: lines of episodes, and their transcripts in another file."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        super().__init__(path, "evaluation", {path / "episodes.jsonl": ""})
        self._told = Lines(path / "transcripts.jsonl") if (path / "transcripts.jsonl").is_file() else None
        self._wrappers = {
            text(each.get("label")): {"wrappers": each.get("wrappers")}
            for each in items(config.get("environments"))
            if isinstance(each, dict)
        }
        self._by_key: dict[Key, Place] | None = None
        self.values: PlayoutValues | None = None

    def _form(self, row: Mapping[str, Any], config: Mapping[str, Any]) -> Form:
        config = self._wrappers.get(text(row.get("label")), {})
        return row_form(row, config)

    def form(self, summary: Summary) -> Form:
        """Return an episode; a transcript that is missing or broken leaves the actions."""
        form = super().form(summary)
        if self._told is None or summary.status == BROKEN:
            return form
        try:
            row = parsed(read(self._files[0], summary.place), summary.place.line)
            record = self._transcript(summary, row)
        except (Broken, OSError) as error:
            return {**form, "notes": [f"The transcript cannot be read: {error}", *form["notes"]]}
        if record is None:
            return {**form, "notes": ["There is no transcript of this episode.", *form["notes"]]}
        form = transcript_form(record, row, self._wrappers.get(text(row.get("label")), {}))
        return {**form, **self._continued(key_of(row), record, form["notes"])}

    def _continued(self, key: Key, record: Mapping[str, Any], notes: list[str]) -> Form:
        """Return the name of the episode for ``--from``, and the values of its states where there are some."""
        place = shlex.quote(f"{self.path}:{key[1]}.{key[2]}")
        values = [] if self.values is None else self.values.of(key, record)
        if values is None and self.values is not None:
            notes.append(f"The playouts in {self.values.path} continue another recording and are not shown.")
        return {"from": place, "values": values or []}

    def _transcript(self, summary: Summary, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the transcript of a row: that of the same line if it fits, else the one that does."""
        assert self._told is not None
        key = key_of(row)
        place = self._told.place(summary.place.line - 1)
        if place is not None:
            try:
                record = parsed(read(self._told.path, place), place.line)
                if key_of(record) == key:
                    return record
            except Broken:
                if self._place_of(key) is None:
                    raise
        place = self._place_of(key)
        return None if place is None else parsed(read(self._told.path, place), place.line)

    def _place_of(self, key: Key) -> Place | None:
        if self._by_key is None:
            assert self._told is not None
            found: dict[Key, Place] = {}
            for place, line in each_line(self._told.path):
                with suppress(Broken):
                    found[key_of(parsed(line, place.line))] = place
            self._by_key = found
        return self._by_key.get(key)


def show_values(run: Run, folder: Path | None) -> None:
    """Show the values of states next to the episodes of an evaluation.

    Args:
        run: The evaluation.
        folder: Playouts from its states; by default those in its folder ``values``, if there are some.

    Raises:
        ConfigError: There are no playouts in the folder, or the run is no evaluation.
    """
    if isinstance(run, _Evaluation):
        if folder is not None or (run.path / FOLDER).is_dir():
            run.values = PlayoutValues(folder or run.path / FOLDER)
    elif folder is not None:
        raise ConfigError(f"values are of states of an evaluation, and {run.path} is a {run.kind}: leave out --values.")


def open_run(path: Path) -> Run:
    """Return the episodes of a path; no more than the start of its files is read yet.

    Args:
        path: The folder of an evaluation, a tournament or a training run, a folder of JSONL files, or such a file.

    Raises:
        ConfigError: There is nothing to view.
    """
    if path.is_file():
        config = _config(path.parent)
        return _Files(path, "file", {path: ""}, {path: {"options": config.get("options")}})
    if not path.is_dir():
        raise ConfigError(
            f"there is nothing at {path}: pass the folder of an evaluation, tournament or run, or a file."
        )
    config = _config(path)
    samples = sorted((path / "samples").glob("*.jsonl")) or sorted((path / "evaluations").glob("*.episodes.jsonl"))
    if samples:
        return _training_run(path, samples, config)
    if (path / "episodes.jsonl").is_file():
        if "pairing" in config:
            file = path / "episodes.jsonl"
            return _Files(path, "tournament", {file: ""}, {file: config})
        return _Evaluation(path, config)
    files = sorted(path.glob("*.jsonl"))
    if not files:
        raise ConfigError(
            f"{path} holds no episodes: pass a folder that `turngym eval --out`, `turngym tournament --out` or "
            "`turngym train` wrote, or one with JSONL files of the wrapper `record`."
        )
    return _Files(path, "folder", {file: file.stem for file in files})


def _training_run(path: Path, samples: Sequence[Path], config: Mapping[str, Any]) -> Run:
    configs = {}
    is_game = config.get("env") in GAMES
    for file in samples:
        split = {"split": "train" if file.stem.startswith("iteration") else "test"}
        options = {**mapping(config.get("env_options")), **({} if is_game else split)}
        configs[file] = {"options": options, "wrappers": items(config.get("wrappers")), "is_game": is_game}
        configs[file]["of_env"] = _of_each(config, configs[file])
    order = sorted(samples, key=lambda file: (not file.stem.startswith("final"), file.stem))
    return _Files(path, "training run", {file: file.stem.removesuffix(".episodes") for file in order}, configs)


def _of_each(config: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return environment -> what else is known of its episodes, for a run on several."""
    names, found = [text(name) for name in items(config.get("envs"))], {}
    for name, label in zip(names, labels_of(names), strict=True):
        own = mapping(mapping(config.get("per_env")).get(label))
        options = {**shared["options"], **mapping(own.get("env_options"))}
        wrappers = items(own.get("wrappers", shared["wrappers"]))
        found[name] = {"options": options, "wrappers": wrappers, "is_game": name in GAMES}
    return found


def _config(folder: Path) -> dict[str, Any]:
    try:
        return mapping(read_json(folder / "config.json"))
    except (OSError, ValueError, RecursionError):
        return {}
