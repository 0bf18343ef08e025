"""Earlier attempts at a task, for agents that learn from one try to the next.

They are read from transcripts, those of an earlier run among them: what an agent learns about its tries is the same
whether the evaluation was killed in between or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from turngym.agents.core import Agent
from turngym.agents.players.styled import StyledAgent, learns_between_tries
from turngym.agents.prompting.styles import ChatTurn, Try
from turngym.benchmarks.evaluation.folder import Key
from turngym.errors import ConfigError

ReadTranscript = Callable[[Key], Mapping[str, Any]]


def _try_of(transcript: Mapping[str, Any]) -> Try:
    """Return a transcript in the form in which the next try sees it."""
    turns = transcript["turns"]
    return Try(
        tuple(ChatTurn(str(turn["observation"]), turn["completion"], turn["action"]) for turn in turns),
        str(transcript["final_observation"]),
        transcript["success"] == 1,
        tuple((note["purpose"], note["text"]) for turn in turns for note in turn.get("notes", ())),
    )


def remind(agent: Agent, key: Key, episode: int, transcript_of: ReadTranscript) -> None:
    """Tell an agent of all earlier attempts at the task of an episode, where it learns from them."""
    if isinstance(agent, StyledAgent) and learns_between_tries(agent):
        label, task, attempt = key
        agent.remind(episode, [_try_of(transcript_of((label, task, earlier))) for earlier in range(attempt)])


def require_fitting_style(agent: Agent, env_ids: Iterable[str], repeats: int) -> None:
    """Refuse a style that has nothing for an environment, and a single try of one that learns from one to the next.

    Raises:
        ConfigError: The agent plays in such a style.
    """
    if not isinstance(agent, StyledAgent):
        return
    agent.style.require_environments(env_ids)
    if learns_between_tries(agent) and repeats < 2:
        raise ConfigError(
            f"the style {agent.style.name!r} learns from one try at a task to the next: pass --repeats 2 or more."
        )
