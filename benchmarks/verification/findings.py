"""The findings of ``turngym verify``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-9

FINDINGS = {
    "schema": "A file is missing, damaged, lacks a field, or has a value that cannot be, such as a negative cost.",
    "date": "A time is in the future, or an episode has another start than the evaluation.",
    "suite": "The suite, its version, metric, protocol or environments are not those that are known by this name.",
    "seeds": "The tasks are not those that the suite fixes.",
    "options": "An environment or wrapper has options that it does not take.",
    "ruleset": "An environment was another one than the one installed here.",
    "prompt": "The hash of the prompt settings does not fit the settings.",
    "missing-episode": "A task that was asked for has no episode.",
    "duplicate-episode": "A task has more episodes than were asked for.",
    "foreign-episode": "An episode belongs to no task that was asked for, or to another environment.",
    "wrong-seed": "An episode, or its transcript, has another seed than its task.",
    "block": "An episode's block is not its task: blocks decide how wide the intervals are.",
    "length": "An episode's number of turns is not the number of its actions.",
    "end": "An episode has no end, two ends, or a success that its end excludes.",
    "missing-transcript": "An episode has no transcript, or a transcript has no episode.",
    "transcript": "A transcript is not the one whose hash the episode names.",
    "actions": "The actions of an episode are not those of its transcript.",
    "reward": "The return of an episode is not the sum of its transcript's rewards.",
    "success": "The success of an episode is not that of its transcript.",
    "score": "The score of an episode is not that of its transcript, or no score of its environment at all.",
    "invalid-actions": "The number of invalid actions of an episode is not that of its transcript.",
    "env-errors": "More than 1 % of the episodes broke.",
    "unanswered": "The agent answered no turn, so there is no score.",
    "aggregate": "A number in results.json does not follow from the episodes.",
    "interval": "An interval or standard error in results.json does not follow from the episodes.",
    "count": "A number of episodes, blocks or turns in results.json does not follow from the episodes.",
    "normalised": "A normalised number does not follow from the results and the baselines.",
    "usage": "The tokens, calls or costs in results.json are not the sum over the episodes.",
    "verifier": "Episodes have scores of a verifier that config.json does not name, or lack them.",
    "results": "results.json holds a number that cannot be checked, lacks one, or describes it wrongly.",
    "baseline": "The numbers of a baseline do not follow from its episodes, or came out otherwise when played again.",
    "replay-instance": "The seed leads to another task than the one that was recorded.",
    "replay-observation": "Played again, an episode shows something else.",
    "replay-reward": "Played again, an episode gives other rewards.",
    "replay-success": "Played again, an episode ends with another success or score.",
    "replay-end": "Played again, an episode ends at another turn or in another way.",
    "replay-invalid-actions": "Played again, an episode has another number of invalid actions.",
}
"""Name -> what it means, in the order in which things are checked."""

_GAME_FINDINGS = {
    "plan": "The tournament or arena that config.json describes cannot be set up.",
    "missing-game": "A game of the schedule is missing.",
    "duplicate-game": "A game of the schedule is there more than once.",
    "foreign-game": "A game belongs to no schedule of this tournament.",
    "game-seed": "A game has another seed or block than the schedule.",
    "seats": "The players of a game are not those of the schedule.",
    "winner": "A game that broke has winners.",
    "forfeits": "The forfeits among the actions are not those that the seats tell, or a built-in player forfeited.",
    "replay-game": "Played again, a game of a tournament comes out otherwise.",
}
"""The same for what only the folder of a tournament can have wrong."""

_LIMIT_FINDINGS = {"limits": "The check took more time or memory than it may, or died."}
"""The same for what ends the check itself."""

MEANINGS = {**FINDINGS, **_GAME_FINDINGS, **_LIMIT_FINDINGS}


@dataclass(frozen=True)
class Finding:
    """Something wrong with a submission.

    Args:
        name: A name of :data:`MEANINGS`.
        place: Location.
        message: Found and expected values.
    """

    name: str
    place: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"name": self.name, "meaning": MEANINGS[self.name], "place": self.place, "message": self.message}


def differs(one: float, other: float) -> bool:
    """Return whether two numbers are further apart than rounding explains; nan differs from everything.

    >>> differs(0.1 + 0.2, 0.3), differs(0.3, 0.31), differs(float("nan"), float("nan"))
    (False, True, True)
    """
    return not abs(one - other) <= TOLERANCE * max(1.0, abs(one), abs(other))


def is_same(told: Any, expected: Any) -> bool:
    """Return whether two JSON values without parts are the same; numbers are the same within rounding."""
    if isinstance(expected, bool) or isinstance(told, bool) or not isinstance(expected, int | float):
        return bool(told == expected and type(told) is type(expected))
    return isinstance(told, int | float) and not differs(told, expected)


def place_of(row: Mapping[str, Any]) -> str:
    """Return how an episode is called in a finding."""
    return f"episodes.jsonl, {row['label']}, task {row['task']}, attempt {row['attempt']}"


def transcript_hash(turns: Iterable[Mapping[str, Any]]) -> str:
    """Return the hash of what was seen, done and given, turn by turn."""
    text = json.dumps([[turn["observation"], turn["action"], turn["reward"]] for turn in turns])
    return hashlib.sha256(text.encode()).hexdigest()
