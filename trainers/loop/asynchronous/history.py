"""Contents of a run's journal: planned, started, finished and trained groups, and all their turns."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from turngym.agents.episodes.stream import OpenTurn
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.agents.trajectory_json import (
    trajectory_from_json,
    trajectory_to_json,
    turn_from_json,
    turn_to_json,
)

Record = dict[str, Any]


@dataclass
class EpisodeHistory:
    """Journal entries of an episode.

    Args:
        turns: Its turns; the last one is open unless the episode has finished.
        state: State of the environment before the last turn; empty if it could not be saved.
        whole: The complete episode, once finished.
        has_begun: True if it has started in a slot.
    """

    turns: list[Turn] = field(default_factory=list)
    state: bytes = b""
    whole: Trajectory | None = None
    has_begun: bool = False


@dataclass
class GroupHistory:
    """Journal entries of a group.

    Args:
        number: Number of the group in the run.
        version: Version of the weights that it started with.
        specs: Its episodes.
        episodes: Episode number -> its entries.
        costs: Sampler costs of the batch that starts with the group, if batches are played as a whole.
    """

    number: int
    version: int
    specs: Sequence[EpisodeSpec]
    episodes: dict[int, EpisodeHistory]
    costs: dict[str, int] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """True if all of its episodes have finished."""
        return all(each.whole is not None for each in self.episodes.values())

    def whole(self) -> list[Trajectory]:
        """Return its episodes, all of them finished."""
        found = [each.whole for each in self.episodes.values()]
        return [trajectory for trajectory in found if trajectory is not None]


@dataclass
class Batch:
    """Training data of an iteration.

    Args:
        rounds: The groups of each rollout.
        metrics: Metrics of these rollouts.
    """

    rounds: list[list[int]]
    metrics: dict[str, float]


@dataclass
class History:
    """Journal entries since a checkpoint.

    Args:
        iteration: The checkpoint.
        groups: Groups not trained on before the checkpoint.
        trained: Iteration since the checkpoint -> its batch.
        next_number: Number of the next group.
    """

    iteration: int
    groups: dict[int, GroupHistory] = field(default_factory=dict)
    trained: dict[int, Batch] = field(default_factory=dict)
    next_number: int = 0

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]], iteration: int) -> History:
        """Return the history of some records, for the checkpoint of an iteration."""
        found = cls(iteration)
        for record in records:
            getattr(found, f"_{record['is']}")(record)
        return found

    def to_train(self) -> set[int]:
        """Return the groups of iterations since the checkpoint, to be trained on again."""
        return {number for batch in self.trained.values() for each in batch.rounds for number in each}

    # One method for each kind of record.

    def _checkpoint(self, record: Mapping[str, Any]) -> None:
        self.next_number = max(self.next_number, record["next"])

    def _planned(self, record: Mapping[str, Any]) -> None:
        number = record["group"]
        self.next_number = max(self.next_number, number + 1)
        specs = [EpisodeSpec(episode, record["seed"], record["as"]) for episode in record["episodes"]]
        episodes = {spec.episode: EpisodeHistory() for spec in specs}
        self.groups[number] = GroupHistory(number, record["version"], specs, episodes)

    def _episode(self, record: Mapping[str, Any]) -> EpisodeHistory:
        return self.groups[record["group"]].episodes[record["episode"]]

    def _begun(self, record: Mapping[str, Any]) -> None:
        self._episode(record).has_begun = True

    def _turn(self, record: Mapping[str, Any]) -> None:
        episode, index = self._episode(record), record["index"]
        del episode.turns[index:]
        if index:
            _earn(episode.turns[-1], record["before"])
        content = dict(record["turn"])
        if record["shared"]:
            last = episode.turns[-1]
            content["prompt_ids"] = [*last.prompt_ids, *last.completion_ids, *content.get("prompt_ids", ())]
        episode.turns.append(turn_from_json(content))
        episode.state = base64.b64decode(record["state"])

    def _finished(self, record: Mapping[str, Any]) -> None:
        episode = self._episode(record)
        turns = episode.turns[: record["turns"]]
        if turns:
            _earn(turns[-1], record["last"])
        episode.whole = trajectory_from_json({**record["trajectory"], "turns": []})
        episode.whole.turns = turns

    def _played(self, record: Mapping[str, Any]) -> None:
        self.groups[record["group"]].costs = record["costs"]

    def _dropped(self, record: Mapping[str, Any]) -> None:
        self.groups.pop(record["group"], None)

    def _trained(self, record: Mapping[str, Any]) -> None:
        if record["iteration"] >= self.iteration:
            self.trained[record["iteration"]] = Batch(record["rounds"], record["metrics"])
            return
        for number in (number for each in record["rounds"] for number in each):
            self.groups.pop(number, None)


def _earned(turn: Turn) -> list[Any]:
    columns = {name: list(value) if isinstance(value, tuple) else value for name, value in turn.columns.items()}
    return [turn.reward, turn.action_is_valid, columns]


def _earn(turn: Turn, earned: Sequence[Any]) -> None:
    turn.reward, turn.action_is_valid = earned[0], earned[1]
    turn.columns = {name: tuple(value) if isinstance(value, list) else value for name, value in earned[2].items()}


def planned_record(number: int, version: int, specs: Sequence[EpisodeSpec]) -> Record:
    """Return the record of a planned group."""
    return {
        "is": "planned",
        "group": number,
        "version": version,
        "seed": specs[0].seed,
        "as": specs[0].group,
        "episodes": [spec.episode for spec in specs],
    }


def begun_record(number: int, episode: int) -> Record:
    """Return the record of a started episode."""
    return {"is": "begun", "group": number, "episode": episode}


def turn_record(number: int, decided: OpenTurn) -> Record:
    """Return the record of a decided turn, with the result of the previous turn.

    For a prompt that continues the previous turn, only the new tokens are written.
    """
    before, content, shared = decided.before, turn_to_json(decided.turn), 0
    if before is not None:
        known = before.prompt_ids + before.completion_ids
        if known and decided.turn.prompt_ids[: len(known)] == known:
            content["prompt_ids"], shared = list(decided.turn.prompt_ids[len(known) :]), len(known)
    return {
        "is": "turn",
        "group": number,
        "episode": decided.spec.episode,
        "index": decided.index,
        "turn": content,
        "shared": shared,
        "before": None if before is None else _earned(before),
        "state": base64.b64encode(decided.state).decode("ascii"),
    }


def finished_record(number: int, trajectory: Trajectory) -> Record:
    """Return the record of a finished episode; its turns have separate records."""
    header = trajectory_to_json(replace(trajectory, turns=[]))
    del header["turns"]
    return {
        "is": "finished",
        "group": number,
        "episode": trajectory.spec.episode,
        "turns": len(trajectory.turns),
        "last": _earned(trajectory.turns[-1]) if trajectory.turns else None,
        "trajectory": header,
    }


def whole_records(number: int, trajectory: Trajectory) -> list[Record]:
    """Return the records of an episode without written turns."""
    turns = trajectory.turns
    pairs = zip([None, *turns], turns, strict=False)
    opened = [OpenTurn(trajectory.spec, index, turn, before, b"") for index, (before, turn) in enumerate(pairs)]
    return [*(turn_record(number, each) for each in opened), finished_record(number, trajectory)]


def trained_record(iteration: int, rounds: Sequence[Sequence[int]], metrics: Mapping[str, float]) -> Record:
    """Return the record of a trained iteration."""
    return {"is": "trained", "iteration": iteration, "rounds": [list(each) for each in rounds], "metrics": {**metrics}}
