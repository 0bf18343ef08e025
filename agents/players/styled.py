"""Agents with a prompting style, which determines the prompts of the model."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from turngym.agents.chat import ACTION, Ask, ChatModel, Message, Note, Reply, reasoning_notes
from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.chat_client.background import Background
from turngym.agents.core import Agent, Decision, EagerAgent, Request, build_each
from turngym.agents.players import AgentSettings
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.critics import Critic, Proposal, critic_of
from turngym.agents.prompting.styles import PLAIN, ChatTurn, EpisodeMemory, Scene, Style, Try, make_style
from turngym.agents.prompting.styles.critic import Checked
from turngym.agents.usage import Usage
from turngym.errors import ConfigError, PromptTooLong

if TYPE_CHECKING:
    from turngym.envs.vector import TextVectorEnv

REJECTED = "rejected"
"""Purpose of a note with a completion replaced after an objection."""


class AskedAgent(ChatModel):
    """Adapter of an agent without a language model, which answers calls with actions.

    Args:
        agent: The agent; repeated calls in a turn have a higher ``attempt`` in the request.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.prompt = PromptConfig(max_prompt_tokens=sys.maxsize)
        self.format = "plain"
        self._requests: dict[int, Request] = {}

    def see(self, requests: Sequence[Request]) -> None:
        """Process the requests of starting turns."""
        self._requests.update((request.episode, request) for request in requests)

    def ask(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return the agent's action for each call."""
        requests = [
            replace(self._requests[ask.episode], observation=ask.messages[-1].text, attempt=ask.attempt) for ask in asks
        ]
        return [Reply(decision.action, decision.usage or Usage(calls=1)) for decision in self.agent.act(requests)]

    def count(self, messages: Sequence[Message]) -> int:
        """Return 0: there are no tokens."""
        return 0

    def forget(self, episode: int) -> None:
        """Drop the memory of an episode."""
        self._requests.pop(episode, None)
        self.agent.forget(episode)


class Conductor:
    """Plays turns in a style, with memory, total cost of calls, and notes.

    Args:
        style: The style.
        model: The model to call.
        critic: Judges proposed actions, for the style ``critic``.
    """

    def __init__(self, style: Style, model: ChatModel, critic: Critic | None = None) -> None:
        self.style = style
        self.model = model
        self.critic = critic
        self._memories: dict[int, EpisodeMemory] = {}
        self._tries: dict[int, tuple[Try, ...]] = {}

    def remind(self, episode: int, tries: Sequence[Try]) -> None:
        """Record the earlier attempts at the task of an episode that has not started."""
        self._tries[episode] = tuple(tries)

    def forget(self, episode: int) -> None:
        """Forget an episode."""
        self._memories.pop(episode, None)
        if isinstance(self.model, AskedAgent):
            self.model.forget(episode)
        if self.critic is not None:
            self.critic.forget(episode)

    def see(self, requests: Sequence[Request]) -> None:
        """Process the requests of starting turns, in the thread that steps the environments."""
        if isinstance(self.model, AskedAgent):
            self.model.see(requests)
        if self.critic is not None:
            self.critic.see(requests)

    def ask(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return the answer to each call, from the critic for proposals, otherwise from the model."""
        proposals = [ask for ask in asks if isinstance(ask, Proposal)]
        others = [ask for ask in asks if not isinstance(ask, Proposal)]
        verdicts = iter(self.critic.ask(proposals) if proposals and self.critic else ())
        answers = iter(self.model.ask(others) if others else ())
        return [next(verdicts if isinstance(ask, Proposal) else answers) for ask in asks]

    def follow(self, request: Request, action: str, completion: str) -> Decision:
        """Remember a turn that was decided elsewhere."""
        text = self.model.format_of(request).written(action, completion, self.model.thinking)
        self._memory_of(request).turns.append(ChatTurn(Scene(request, self.model).shown, text, action))
        return Decision(action, text)

    def _memory_of(self, request: Request) -> EpisodeMemory:
        if request.turn == 0:  # a faulted episode starts again
            self._memories[request.episode] = EpisodeMemory(tries=self._tries.get(request.episode, ()))
        return self._memories.setdefault(request.episode, EpisodeMemory())

    def turn(self, request: Request) -> Generator[Ask, Reply, Decision]:
        """Play a turn as a generator: yields calls, receives answers, returns the decision."""
        memory = self._memory_of(request)
        scene = Scene(request, self.model)
        remembered = vars(memory).copy()
        script = self.style.turn(memory, scene)
        usage, last = Usage(), Reply("", Usage())
        notes: list[Note] = []
        refused, why = dict[str, int](), ""
        try:
            ask = next(script)
            while True:
                if ask.purpose in refused and self.model.count(ask.messages) >= refused[ask.purpose]:
                    raise PromptTooLong(why)
                reply = yield ask
                usage += reply.usage
                if reply.too_long and not isinstance(
                    ask, Proposal
                ):  # restart the turn, with a limit that the model may have lowered
                    refused[ask.purpose], why = self.model.count(ask.messages), reply.too_long
                    vars(memory).update(remembered)
                    script = self.style.turn(memory, scene)
                    ask = next(script)
                    continue
                notes += reasoning_notes(reply.reasoning)
                if ask.purpose == ACTION:
                    notes += [Note(REJECTED, last.text)] if ask.attempt else []
                    last = reply
                else:
                    notes.append(Note(ask.purpose, reply.text))
                ask = script.send(reply.text)
        except StopIteration as stop:
            completion = str(stop.value)
        action = self.model.format_of(request).action_of(completion, self.model.thinking)
        memory.turns.append(ChatTurn(scene.shown, completion, action))
        if completion != last.text:  # the critic's action, without tokens sampled by the player
            notes.append(Note(REJECTED, last.text))
            last = Reply("", usage)
        return Decision(
            action,
            completion,
            last.prompt_ids,
            last.completion_ids,
            last.logprobs,
            usage + self.style.counted(notes),
            tuple(notes),
            cut_off=last.cut_off,
            restricted=last.restricted,
            pictures=last.pictures,
        )


class StyledAgent(Agent):
    """Agent with a style and a model that answers calls in batches.

    Args:
        style: Decides what is asked.
        model: The agent around the model.
        critic: Judges proposed actions, for the style ``critic``.
    """

    def __init__(self, style: Style, model: ChatModel, critic: Critic | None = None) -> None:
        self.conductor = Conductor(style, model, critic)

    @property
    def style(self) -> Style:
        """The style."""
        return self.conductor.style

    @property
    def model(self) -> Any:
        """The inner agent's model, if it has one in this process."""
        return getattr(self.conductor.model, "model", None)

    @property
    def prompts_text(self) -> str:
        """One-line description of style and action format."""
        if isinstance(self.conductor.model, AskedAgent):
            return f"the style {self.style.name}"
        written = self.conductor.model.prompts_text.partition("; ")[2]
        return f"the style {self.style.name}; {written}"

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Play all turns together: pending calls go to the model as one batch."""
        self.conductor.see(requests)
        turns = {id(request): self.conductor.turn(request) for request in requests}
        steps = dict(enumerate(build_each(requests, lambda request: next(turns[id(request)]))))
        while order := [i for i, step in steps.items() if isinstance(step, Ask)]:
            replies = self.conductor.ask([step for step in steps.values() if isinstance(step, Ask)])
            answers = {id(requests[i]): reply for i, reply in zip(order, replies, strict=True)}
            go_on = partial(_sent, turns, answers)
            steps.update(zip(order, build_each([requests[i] for i in order], go_on), strict=True))
        return [step for step in steps.values() if isinstance(step, Decision)]

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Remember a turn that was decided elsewhere."""
        return self.conductor.follow(request, action, completion)

    def remind(self, episode: int, tries: Sequence[Try]) -> None:
        """Record the earlier attempts at the task of an episode that has not started."""
        self.conductor.remind(episode, tries)

    def forget(self, episode: int) -> None:
        """Drop the memory of an episode."""
        self.conductor.forget(episode)

    @property
    def _agents(self) -> dict[str, Agent]:
        """The inner agents: the player, and the critic's if different."""
        model, critic = self.conductor.model, self.conductor.critic
        found: dict[str, object] = {"player": model.agent if isinstance(model, AskedAgent) else model}
        if critic is not None and critic.agent is not model:
            found["critic"] = critic.agent
        return {name: each for name, each in found.items() if isinstance(each, Agent)}

    def prepare(self) -> None:
        """Let the inner agents check that they can play."""
        for each in self._agents.values():
            each.prepare()

    def attach(self, vector: TextVectorEnv) -> None:
        """Set the vector of the following requests."""
        for each in self._agents.values():
            each.attach(vector)

    def details(self) -> dict[str, Any]:
        """Return the player's details, and the critic's if different."""
        found = {name: each.details() for name, each in self._agents.items()}
        critic = found.get("critic", {})
        return {**found.get("player", {}), **({"critic": critic} if critic else {})}


_Turn: TypeAlias = Generator[Ask, Reply, Decision]


def _sent(turns: Mapping[int, _Turn], answers: Mapping[int, Reply], request: Request) -> Ask | Decision:
    """Send a turn the answer to its call; return its next call or its decision."""
    try:
        return turns[id(request)].send(answers[id(request)])
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision


class StyledServerAgent(StyledAgent, EagerAgent):
    """Agent with a style and a model behind a server; turns do not wait for each other's calls.

    Args:
        style: Decides what is asked.
        server: The agent around the server.
        critic: Judges proposed actions, for the style ``critic``.
    """

    def __init__(self, style: Style, server: ServerAgent, critic: Critic | None = None) -> None:
        super().__init__(style, server, critic)
        self.server = server
        self._background: Background[Decision] = Background(server.config.concurrency, "styled-agent")

    @property
    def problems(self) -> dict[str, str]:
        """Kind of failure -> message of the first one."""
        return {**getattr(self._agents.get("critic"), "problems", {}), **self.server.problems}

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request, in order."""
        return EagerAgent.act(self, requests)

    def begin(self, requests: Sequence[Request]) -> None:
        """Start playing turns, up to ``concurrency`` at a time."""
        if self._background.is_idle:
            self.server.ready()
        self.conductor.see(requests)
        for request in requests:
            self._background.begin(request, partial(self._played, request))

    def _played(self, request: Request) -> Decision:
        turn = self.conductor.turn(request)
        [step] = build_each([request], lambda _: next(turn))
        while isinstance(step, Ask):
            [reply] = self.conductor.ask([step])
            [step] = build_each([request], partial(_sent, {id(request): turn}, {id(request): reply}))
        return step

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return newly played turns, each once."""
        return self._background.finished(wait)

    def abandon(self) -> None:
        """Close all connections, so that threads waiting for the server end immediately."""
        self._background.abandon(self._abort)

    def _abort(self) -> None:
        for each in self._agents.values():
            if isinstance(each, ServerAgent):
                each.server.abort()


def styled(agent: Agent, style: str | Style, settings: AgentSettings | None = None) -> Agent:
    """Return an agent that plays in a style; the agent itself for ``plain``.

    Args:
        agent: An agent around a language model; any agent for the style ``critic``.
        style: The style, or its name, with options as in ``summary:budget=1500``.
        settings: Settings of the agent, which a critic shares.

    Raises:
        UnknownName: There is no such style.
        ConfigError: An option is invalid, or the agent uses no language model.
    """
    made = make_style(style) if isinstance(style, str) else style
    if made.name == PLAIN:
        return agent
    critic = critic_of(made.by, made.server, settings or AgentSettings(), agent) if isinstance(made, Checked) else None
    if isinstance(agent, ServerAgent):
        return StyledServerAgent(made, agent, critic)
    if isinstance(agent, ChatModel):
        return StyledAgent(made, agent, critic)
    if not made.needs_model:
        return StyledAgent(made, AskedAgent(agent), critic)
    raise ConfigError(
        f"the style {made.name!r} is for agents that ask a language model, such as hf:PATH or openai:MODEL@URL; "
        f"{type(agent).__name__} asks none: leave --style out."
    )


def learns_between_tries(agent: Agent) -> bool:
    """Return True if an agent's attempts at a task must be played in sequence."""
    return isinstance(agent, StyledAgent) and agent.style.learns_between_tries
