"""Critics of the style ``critic``, which review proposed actions.

A critic is a language model, or an agent whose own action is compared. It answers with a text for
:func:`turngym.agents.prompting.styles.critic.read_verdict`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from turngym.agents.chat import Ask, ChatModel, Message, Reply
from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.core import Agent, Decision, Request
from turngym.agents.prompting.fitting import with_last_turns
from turngym.agents.usage import Usage
from turngym.errors import ConfigError

if TYPE_CHECKING:
    from turngym.agents.players import AgentSettings
    from turngym.agents.prompting.styles import ChatTurn


@dataclass(frozen=True, slots=True)
class Proposal(Ask):
    """A call of the critic.

    Args:
        request: Request of the player.
        shown: Observation shown to the player.
        rules: Rules and answer format shown to the player.
        past: Earlier turns shown to the player.
        action: The proposed action.
        task: Instruction of a critic that is a language model.
    """

    request: Request = field(kw_only=True)
    shown: str = field(kw_only=True)
    rules: str = field(kw_only=True)
    past: tuple[ChatTurn, ...] = field(kw_only=True)
    action: str = field(kw_only=True)
    task: str = field(kw_only=True)


class Critic(ABC):
    """Judges proposed actions."""

    def see(self, requests: Sequence[Request]) -> None:  # noqa: B027
        """Process the requests of starting turns; called in the thread that steps the environments."""

    @abstractmethod
    def ask(self, proposals: Sequence[Proposal]) -> list[Reply]:
        """Return a verdict as text for each proposal, in order; may be called from several threads."""

    def forget(self, episode: int) -> None:  # noqa: B027
        """Drop the memory of a finished episode."""

    @property
    def agent(self) -> object:
        """The judging agent, if there is one."""
        return None


class ModelCritic(Critic):
    """A language model as critic, which reads rules, earlier turns, observation and proposed action.

    Args:
        model: The model.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self._lock = threading.Lock()

    @property
    def agent(self) -> object:
        """The agent around the model."""
        return self.model

    def see(self, requests: Sequence[Request]) -> None:
        """Reset connections that were closed by an interrupt."""
        if isinstance(self.model, ServerAgent):
            self.model.ready()

    def ask(self, proposals: Sequence[Proposal]) -> list[Reply]:
        """Return the model's verdict on each proposal; empty if the prompt does not fit."""
        if isinstance(self.model, ServerAgent):
            with ThreadPoolExecutor(min(self.model.config.concurrency, len(proposals))) as pool:
                return list(pool.map(self._verdict, proposals))
        with self._lock:
            asks = [replace(each, messages=tuple(self._messages(each))) for each in proposals]
            fitting = [ask for ask in asks if self.model.count(ask.messages) <= self.model.prompt_limit]
            answers = dict(zip(map(id, fitting), self.model.ask(fitting), strict=True))
            return [answers.get(id(ask), Reply("", Usage())) for ask in asks]

    def _verdict(self, proposal: Proposal) -> Reply:
        """Ask a server, with fewer turns as long as it rejects the prompt as too long."""
        ask = replace(proposal, messages=tuple(self._messages(proposal)))
        [reply] = self.model.ask([ask])
        usage = reply.usage
        while reply.too_long and (shorter := tuple(self._messages(proposal))) != ask.messages:
            ask = replace(proposal, messages=shorter)
            [reply] = self.model.ask([ask])
            usage += reply.usage
        return replace(reply, usage=usage)

    def _messages(self, proposal: Proposal) -> list[Message]:
        """Return the prompt, without the first turns if it is too long."""
        turns = [f"Seen:\n{turn.observation}\nAction:\n{turn.action}" for turn in proposal.past]
        rules = f"\n\nWhat the player was told:\n{proposal.rules}" if proposal.rules else ""
        now = f"Seen now:\n{proposal.shown}\nProposed action:\n{proposal.action}\n\nGive your verdict."

        def prompt(first: int) -> list[Message]:
            note = [f"(The first {first} turns are left out.)"] if first else []
            text = "\n\n".join([*note, *turns[first:], now])
            return [Message("system", proposal.task + rules), Message("user", text, proposal.request.image)]

        return with_last_turns(self.model, len(turns), prompt)


class AgentCritic(Critic):
    """An agent without a language model as critic, such as ``expert``: objects to actions other than its own.

    The agent is asked once per turn, before the player.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._advice: dict[int, Decision] = {}

    @property
    def agent(self) -> Agent:
        """The agent."""
        return self._agent

    def see(self, requests: Sequence[Request]) -> None:
        """Ask the agent for its own action."""
        for request, decision in zip(requests, self._agent.act(requests), strict=True):
            self._advice[request.episode] = decision

    def ask(self, proposals: Sequence[Proposal]) -> list[Reply]:
        """Compare each proposal with the agent's own action; without one, the verdict is empty."""
        return [self._verdict(proposal) for proposal in proposals]

    def _verdict(self, proposal: Proposal) -> Reply:
        decision = self._advice[proposal.episode]
        usage = Usage() if proposal.attempt else decision.usage or Usage(calls=1)
        if not decision.action.strip():
            return Reply("", usage)
        if decision.action.strip() == proposal.action.strip():
            return Reply("Verdict: right", usage)
        one_line = " ".join(decision.action.split())
        return Reply(f"Verdict: wrong\nSuggestion: {one_line}\nAction: {decision.action}", usage)

    def forget(self, episode: int) -> None:
        """Drop the memory of a finished episode."""
        self._advice.pop(episode, None)
        self._agent.forget(episode)


def critic_of(by: str, server: dict[str, Any] | None, settings: AgentSettings, player: object) -> Critic:
    """Return a critic.

    Args:
        by: Judging agent, such as ``expert`` or ``openai:MODEL@URL``; empty for the player's model.
        server: Server settings of the judge; None for those of the player.
        settings: Settings of the player; the critic decodes greedily.
        player: The player.

    Raises:
        ConfigError: The player has no model to judge with, or the agent cannot be created.
    """
    from turngym.agents.players import make_agent
    from turngym.agents.verifiers.model import settings_of_judge  # both import styles

    if by:
        asked = settings if server is None else replace(settings, server=server)
        found = make_agent(by, settings_of_judge(by, asked))
        if server is None and isinstance(found, ServerAgent):
            found.share_limit(player)
        return ModelCritic(found) if isinstance(found, ChatModel) else AgentCritic(found)
    if isinstance(player, ChatModel):
        return ModelCritic(player)
    raise ConfigError(
        f"the style 'critic' needs a critic, since {type(player).__name__} asks no language model: name one, as in "
        "critic:by=expert or critic:by=openai:MODEL@URL."
    )
