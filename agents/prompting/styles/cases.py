"""Cases: similar solved episodes of other tasks as examples in the prompt (few-shot).

They come from an evaluation, such as one of the expert or of the model itself on the train split, as in AgentFly's
memory of cases (Zhou et al. 2025, arXiv 2508.16153), with retrieval by BM25.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from turngym.agents.chat import Message
from turngym.agents.prompting.styles import (
    STYLES,
    ChatTurn,
    EpisodeMemory,
    Scene,
    Script,
    Style,
    answered_turns,
    fitted,
)
from turngym.agents.recordings.submission import key_of, load_submission
from turngym.envs.search.documents import Document
from turngym.envs.search.engines.fts5 import FTS5Retriever
from turngym.errors import ConfigError

_MOST = 1_000
_SHOWN = "Episodes of other tasks that were solved, as examples:"


@STYLES.register("cases")
@dataclass(frozen=True)
class Cases(Style):
    """Shows solved episodes of other tasks, those with the most similar first observations.

    Episodes of a test split or of another environment are rejected. If first observations differ between tasks,
    episodes with the same one are excluded, because they may be of the task itself.

    Args:
        folder: Folder of an evaluation (`turngym eval ... --out FOLDER`); for each task, its shortest solved attempt is
            used.
        k: Maximum number of cases in a prompt.
        share: Maximum share of a prompt's tokens for cases; those that do not fit are dropped.
        turns: Show cases as turns of the conversation, the most similar one last, instead of text in the system
            message, which small models would continue with further examples.
    """

    folder: str = ""
    k: int = 3
    share: float = 0.5
    turns: bool = False

    name: ClassVar[str] = "cases"
    texts: ClassVar[Mapping[str, str]] = {"shown": _SHOWN}

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", str(self.folder))  # a name of digits is parsed as a number
        if not self.folder:
            raise ConfigError("the style 'cases' needs an evaluation to take them from: cases:folder=FOLDER.")
        if type(self.k) is not int or not 1 <= self.k <= _MOST:
            raise ConfigError(f"k of the style 'cases' must be a whole number from 1 to {_MOST}, got {self.k!r}.")
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ConfigError(f"share of the style 'cases' must be above 0 and at most 1, got {self.share!r}.")
        if not isinstance(self.turns, bool):
            raise ConfigError(f"turns of the style 'cases' must be true or false, got {self.turns!r}.")
        assert self.known  # read now, so that an invalid folder is rejected at startup

    @cached_property
    def known(self) -> tuple[tuple[ChatTurn, ...], ...]:
        """The turns of each case, task by task.

        Raises:
            ConfigError: The folder is not an evaluation, or has no solved episode with its turns.
        """
        submission = load_submission(Path(self.folder))
        for each in submission.config["environments"]:
            if each["options"].get("split", "train") not in ("train", "dev"):  # names of test splits differ
                raise ConfigError(
                    f"{self.folder} was played on the split {each['options']['split']!r}; expected train or dev, since "
                    "no example may show a task of a test split: play cases with --split train."
                )
        solved = {key_of(row) for row in submission.episodes if row["success"]}
        best: dict[tuple[str, int], tuple[ChatTurn, ...]] = {}
        for told in sorted(submission.transcripts or (), key=key_of):
            task = told["label"], told["task"]
            turns = tuple(_turn_of(turn) for turn in told["turns"])
            if key_of(told) in solved and turns and (task not in best or len(turns) < len(best[task])):
                best[task] = turns
        if not best:
            raise ConfigError(
                f"none of the {len(submission.episodes)} episodes in {self.folder} is a solved one with its turns: "
                "pass an evaluation with solved tasks."
            )
        return tuple(dict.fromkeys(best.values()))

    @cached_property
    def environments(self) -> frozenset[str]:
        """Ids of the environments with solved episodes."""
        return frozenset(row["env"] for row in load_submission(Path(self.folder)).episodes if row["success"])

    def require_environments(self, env_ids: Iterable[str]) -> None:
        """Raise for environments without cases."""
        for env_id in env_ids:
            if env_id not in self.environments:
                raise ConfigError(
                    f"the cases in {self.folder} are of {', '.join(sorted(self.environments))}, but {env_id} is "
                    f"played: play cases with `turngym eval {env_id} --split train --out FOLDER`."
                )

    @cached_property
    def _index(self) -> FTS5Retriever:
        return FTS5Retriever([Document(str(n), "", turns[0].observation) for n, turns in enumerate(self.known)])

    def describe(self) -> dict[str, Any]:
        """Return name, options and texts, with a hash of the cases instead of their folder."""
        content = [[[turn.observation, turn.completion, turn.action] for turn in turns] for turns in self.known]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        return {
            "name": self.name,
            "options": {
                **{"k": self.k, "share": self.share, "cases": len(content), "cases_sha256": digest},
                **({"turns": True} if self.turns else {}),
            },
            "texts": dict(self.texts),
        }

    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Ask once, with the cases selected by the first observation."""
        if not memory.lessons:
            first = memory.turns[0].observation if memory.turns else scene.request.observation
            memory.lessons = tuple(map(str, self._chosen(first, scene)))
        return (yield scene.ask(fitted(memory, scene, self._shown(tuple(map(int, memory.lessons)), scene))))

    def _chosen(self, first: str, scene: Scene) -> tuple[int, ...]:
        """Return the indices of the cases that fit, those most similar to a first observation first."""
        seen = [turns[0].observation for turns in self.known]
        is_same = first in seen and len(set(seen)) > 1  # a case with this beginning may be the task itself
        [hits] = self._index.search([first], self.k + seen.count(first))
        order = dict.fromkeys([*(int(hit.document.id) for hit in hits), *range(len(seen))])
        others = [number for number in order if not (is_same and seen[number] == first)]
        limit = int(self.share * scene.model.fitting_limit)
        chosen: tuple[int, ...] = ()
        for number in others[: self.k]:
            if scene.fits(self._shown((*chosen, number), scene), limit):
                chosen = (*chosen, number)
        return chosen

    def _shown(self, chosen: tuple[int, ...], scene: Scene) -> list[Message]:
        """Return the messages before the conversation: the rules and the cases."""
        cases = [_answered(self.known[number], scene) for number in chosen]
        if not self.turns:
            return scene.system(_examples(cases))
        return [*scene.system(), *(message for case in reversed(cases) for message in answered_turns(case))]


def _turn_of(turn: Mapping[str, Any]) -> ChatTurn:
    seen = turn["observation"]
    text = seen["text"] if isinstance(seen, Mapping) and "text" in seen else seen
    return ChatTurn(str(text), str(turn["completion"] or ""), str(turn["action"] or ""))


def _answered(turns: tuple[ChatTurn, ...], scene: Scene) -> tuple[ChatTurn, ...]:
    """Return a case in the answer format of the model."""
    written = scene.model.format_of(scene.request).written
    return tuple(
        ChatTurn(turn.observation, written(turn.action, turn.completion, scene.model.thinking), turn.action)
        for turn in turns
    )


def _examples(cases: Sequence[tuple[ChatTurn, ...]]) -> str:
    parts = [_SHOWN] if cases else []
    for number, turns in enumerate(cases, 1):
        said = [f"Seen: {turn.observation}\nAnswer: {turn.completion}" for turn in turns]
        parts.append("\n".join([f"Example {number}", *said]))
    return "\n\n".join(parts)
