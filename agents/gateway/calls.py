"""The log of an episode: each sampled answer with its tokens, and the conversation that it belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from turngym.agents.gateway.conversations.messages import ChatMessage
from turngym.errors import ConfigError

if TYPE_CHECKING:
    from turngym.agents.gateway.episode import GatewayEpisode


Link: TypeAlias = Literal["root", "extended", "forked"]
"""How a prompt came about: ``root``, a new conversation; ``extended``, new messages behind kept ids; ``forked``, a
conversation with answers of the assistant that were not sampled there, or no longer say what was sampled."""


@dataclass(slots=True)
class SampledCall:
    """One sampled answer.

    Args:
        id: Its id, which the client was given; several answers to one request share it.
        choice: Place among these.
        number: Place in the episode, in the order in which answers were finished.
        agent: Name of the agent that asked.
        parent: Number of the answer whose ids the prompt starts with; -1 if there is none.
        link: Origin of the prompt.
        kept: Tokens of the prompt that were kept from the parent.
        key: Hash of the conversation up to the answer; equal for equal histories.
        prompt_ids: Prompt of the sampler.
        completion_ids: Sampled completion.
        logprobs: The log-probability of each sampled token at the sampling temperature.
        message: The answer as the client was given it.
        observation: Last message to the agent.
        stop: Why it ended: ``stop``, ``word`` (a stop word), or ``length``.
        temperature: Temperature that it was sampled with.
        restricted: Whether it was sampled from a part of the vocabulary.
        delivered: Whether the client received it.
        requests: Number of requests, including retries.
        seconds: Duration.
        version: Iteration of the policy that sampled it; -1 if unknown.
        columns: Named numbers and texts.
        reward: Reward that was given to it alone.
        prompt_text: The prompt of a completion without messages.
    """

    id: str
    choice: int
    number: int
    agent: str
    parent: int
    link: Link
    kept: int
    key: str
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    message: ChatMessage
    observation: str = ""
    stop: Literal["stop", "word", "length"] = "stop"
    temperature: float = 1.0
    restricted: bool = False
    delivered: bool = False
    requests: int = 1
    seconds: float = 0.0
    version: int = -1
    columns: Mapping[str, float | str] = field(default_factory=dict)
    reward: float = 0.0
    prompt_text: str = ""

    @property
    def ids(self) -> tuple[int, ...]:
        """Prompt and answer."""
        return self.prompt_ids + self.completion_ids

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON-compatible data, which shares the token ids."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**found, "message": asdict(self.message), "columns": dict(self.columns)}


@dataclass
class TokenCounts:
    """Token accounting of an episode or a run.

    Args:
        calls: Answers by link.
        kept: Tokens of prompts that were kept exactly as they were, sampled ones included.
        appended: Tokens that were rendered behind kept ones, or of new conversations.
        reencoded: Tokens of conversations with edited histories, encoded from text as context and never trained.
        sampled: Tokens that were sampled.
        abandoned: Those of them that no client received.
        unread: Answers with a call that could not be read, so that it stayed text.
    """

    calls: dict[str, int] = field(default_factory=lambda: {"root": 0, "extended": 0, "forked": 0})
    kept: int = 0
    appended: int = 0
    reencoded: int = 0
    sampled: int = 0
    abandoned: int = 0
    unread: int = 0

    def add(self, call: SampledCall) -> None:
        """Count an answer."""
        rendered = len(call.prompt_ids) - call.kept
        self.calls[call.link] += 1
        self.kept += call.kept
        if call.link == "forked":
            self.reencoded += rendered
        else:
            self.appended += rendered
        self.sampled += len(call.completion_ids)
        self.abandoned += 0 if call.delivered else len(call.completion_ids)
        self.unread += bool(call.columns.get("unread_call", 0))

    def merge(self, other: TokenCounts) -> None:
        """Count what another one has counted."""
        self.calls = {link: count + other.calls[link] for link, count in self.calls.items()}
        for name in ("kept", "appended", "reencoded", "sampled", "abandoned", "unread"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def report(self) -> dict[str, float]:
        """Return the counts, and the shares of the prompts' tokens."""
        prompts = max(self.kept + self.appended + self.reencoded, 1)
        return {
            **{f"calls/{link}": float(count) for link, count in self.calls.items()},
            "tokens/kept": float(self.kept),
            "tokens/appended": float(self.appended),
            "tokens/reencoded": float(self.reencoded),
            "tokens/sampled": float(self.sampled),
            "tokens/abandoned": float(self.abandoned),
            "share/kept": self.kept / prompts,
            "share/appended": self.appended / prompts,
            "share/reencoded": self.reencoded / prompts,
            "calls/unread": float(self.unread),
        }


class Records:
    """Appends each answer to the file of its episode before the client gets it, in a thread.

    Args:
        folder: New or empty folder.

    Raises:
        ConfigError: The folder cannot be made, or holds something.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(folder.iterdir())
        except OSError as error:
            raise ConfigError(f"the log cannot be written to {folder} ({error}): pass a new folder.") from error
        if not is_empty:
            raise ConfigError(f"{folder} holds something: pass a new folder for the log.")
        self._thread = ThreadPoolExecutor(1, "turngym-gateway-records")

    def write(self, episode: GatewayEpisode, calls: Sequence[SampledCall]) -> Future[None]:
        """Append the answers to a request, behind those of earlier calls of this method."""
        lines = [{"episode": episode.id, **call.as_json()} for call in calls]
        return self._thread.submit(self._append, self.folder / f"{episode.id}.jsonl", lines)

    def flush(self) -> None:
        """Wait until all answers so far are written."""
        self._thread.submit(int).result()

    def close(self) -> None:
        """Write what is waiting, and end the thread."""
        self._thread.shutdown()

    @staticmethod
    def _append(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
        with path.open("a", encoding="utf8") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=True) + "\n")
