"""Values of the states of recorded episodes: mean success of playouts, from an evaluation that continued them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from turngym.agents.intervals import wilson
from turngym.benchmarks.pages.viewer.jsonl import Broken, each_line, items, mapping, number, parsed, text
from turngym.errors import ConfigError

FOLDER = "values"
"""Folder next to the transcripts that is looked for if no other one is named."""
MOST_TURNS = 10_000
Key: TypeAlias = tuple[str, int, int]
"""Label of an environment, task, attempt."""


class PlayoutValues:
    """Playouts from recorded states, as ``turngym eval --from FOLDER@every --repeats N`` writes them.

    Args:
        path: Folder of that evaluation. It is untrusted; its lines are read once.

    Raises:
        ConfigError: It holds no playouts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[Key, dict[int, list[Mapping[str, Any]]]] = {}
        try:
            for place, line in each_line(path / "episodes.jsonl"):
                with suppress(Broken):
                    self._note(parsed(line, place.line))
        except OSError as error:
            raise ConfigError(f"{path} holds no playouts ({error.strerror}): {_HOW}.") from error
        if not self._found:
            raise ConfigError(f"{path} holds no episode that continues a recorded one: {_HOW}.")

    def _note(self, row: Mapping[str, Any]) -> None:
        state = mapping(row.get("state"))
        key, turn = key_of({**state, "label": row.get("label")}), state.get("turn")
        if isinstance(turn, int) and 0 <= turn < MOST_TURNS and row.get("status") != "env_error":
            self._found.setdefault(key, {}).setdefault(turn, []).append(
                {name: row.get(name) for name in ("success", "score")} | {"sha256": state.get("sha256")}
            )

    def of(self, key: Key, transcript: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Return the values of an episode's states, in the order of its turns.

        Args:
            key: The episode.
            transcript: Its transcript, which the playouts must have continued.

        Returns:
            ``turn`` (turns before the state), ``value`` (share of playouts that succeed), ``low`` and ``high`` (95 %,
            Wilson), ``score`` (mean) and ``count`` of each; None if the playouts continue another recording.
        """
        turns = self._found.get(key, {})
        if turns and not self._fits(max(turns), turns[max(turns)], transcript):
            return None
        return [_value(turn, turns[turn]) for turn in sorted(turns)]

    def _fits(self, turn: int, playouts: list[Mapping[str, Any]], transcript: Mapping[str, Any]) -> bool:
        recorded = [each for each in items(transcript.get("turns")) if isinstance(each, dict)]
        if turn >= len(recorded):
            return False
        told: list[Any] = [[_seen(each), text(each.get("action"))] for each in recorded[:turn]]
        digest = hashlib.sha256(json.dumps([*told, _seen(recorded[turn])]).encode()).hexdigest()
        return all(each["sha256"] == digest for each in playouts)


_HOW = "write it with `turngym eval --from FOLDER:EPISODE@every --agent random --repeats 20 --out FOLDER/values`"


def key_of(row: Mapping[str, Any]) -> Key:
    """Return which episode a row is about."""
    task, attempt = row.get("task"), row.get("attempt")
    return text(row.get("label")), task if isinstance(task, int) else -1, attempt if isinstance(attempt, int) else -1


def _seen(turn: Mapping[str, Any]) -> str:
    observation = turn.get("observation")
    return str(observation["text"] if isinstance(observation, dict) and "text" in observation else observation)


def _value(turn: int, playouts: list[Mapping[str, Any]]) -> dict[str, Any]:
    count, solved = len(playouts), sum(each["success"] == 1 for each in playouts)
    scores = [number(each["score"]) for each in playouts]
    known = [score for score in scores if score is not None]
    low, high = wilson(solved, count)
    score = sum(known) / len(known) if known else None
    return {"turn": turn, "value": solved / count, "low": low, "high": high, "score": score, "count": count}
