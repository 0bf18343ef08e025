"""Agents with a prompting style: the style decides what the model is shown and asked."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from turngym.agents.chat import ACTION, Ask, ChatModel, Note, Reply, reasoning_notes
from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.chat_client.background import Background
from turngym.agents.core import Agent, Decision, EagerAgent, Request, build_each
from turngym.agents.prompting.styles import PLAIN, ChatTurn, EpisodeMemory, Scene, Style, Try, make_style
from turngym.agents.usage import Usage
from turngym.errors import ConfigError, PromptTooLong


class Conductor:
    """Plays turns in a style: keeps the memory, sums the cost of calls, and collects notes.

    Args:
        style: Decides what is asked.
        model: The model to call.
    """

    def __init__(self, style: Style, model: ChatModel) -> None:
        self.style = style
        self.model = model
        self._memories: dict[int, EpisodeMemory] = {}
        self._tries: dict[int, tuple[Try, ...]] = {}

    def remind(self, episode: int, tries: Sequence[Try]) -> None:
        """Record the earlier attempts at the task of an episode that has not started."""
        self._tries[episode] = tuple(tries)

    def forget(self, episode: int) -> None:
        """Forget an episode."""
        self._memories.pop(episode, None)

    def follow(self, request: Request, action: str, completion: str) -> Decision:
        """Remember a turn that was decided elsewhere."""
        text = self.model.format_of(request).written(action, completion, self.model.thinking)
        self._memory_of(request).turns.append(ChatTurn(Scene(request, self.model).shown, text, action))
        return Decision(action, text)

    def _memory_of(self, request: Request) -> EpisodeMemory:
        if request.turn == 0:  # an episode that broke starts again
            self._memories[request.episode] = EpisodeMemory(tries=self._tries.get(request.episode, ()))
        return self._memories.setdefault(request.episode, EpisodeMemory())

    def turn(self, request: Request) -> Generator[Ask, Reply, Decision]:
        """Play a turn: yield calls, be sent their answers, and return the decision."""
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
                if reply.too_long:  # start the turn again, within a limit that the model may have lowered
                    refused[ask.purpose], why = self.model.count(ask.messages), reply.too_long
                    vars(memory).update(remembered)
                    script = self.style.turn(memory, scene)
                    ask = next(script)
                    continue
                notes += reasoning_notes(reply.reasoning)
                if ask.purpose == ACTION:
                    last = reply
                else:
                    notes.append(Note(ask.purpose, reply.text))
                ask = script.send(reply.text)
        except StopIteration as stop:
            completion = str(stop.value)
        action = self.model.format_of(request).action_of(completion, self.model.thinking)
        memory.turns.append(ChatTurn(scene.shown, completion, action))
        ids = last.prompt_ids, last.completion_ids, last.logprobs
        return Decision(action, completion, *ids, usage, tuple(notes), cut_off=last.cut_off, restricted=last.restricted)


class StyledAgent(Agent):
    """Plays in a style with a model that answers calls in batches.

    Args:
        style: Decides what is asked.
        model: The agent around the model.
    """

    def __init__(self, style: Style, model: ChatModel) -> None:
        self.conductor = Conductor(style, model)

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
        """Style and how actions are written, in one line."""
        written = self.conductor.model.prompts_text.partition("; ")[2]
        return f"the style {self.style.name}; {written}"

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Play all turns together: pending calls go to the model as one batch."""
        turns = {id(request): self.conductor.turn(request) for request in requests}
        steps = dict(enumerate(build_each(requests, lambda request: next(turns[id(request)]))))
        while order := [i for i, step in steps.items() if isinstance(step, Ask)]:
            replies = self.conductor.model.ask([step for step in steps.values() if isinstance(step, Ask)])
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

    def prepare(self) -> None:
        """Let the inner agent check that it can play."""
        inside = self.conductor.model
        if isinstance(inside, Agent):
            inside.prepare()

    def details(self) -> dict[str, Any]:
        """Return the inner agent's details."""
        inside = self.conductor.model
        return inside.details() if isinstance(inside, Agent) else {}


_Turn: TypeAlias = Generator[Ask, Reply, Decision]


def _sent(turns: Mapping[int, _Turn], answers: Mapping[int, Reply], request: Request) -> Ask | Decision:
    """Send a turn the answer to its call, and return its next call or its decision."""
    try:
        return turns[id(request)].send(answers[id(request)])
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision


class StyledServerAgent(StyledAgent, EagerAgent):
    """Plays in a style with a model behind a server: turns do not wait for each other's calls.

    Args:
        style: Decides what is asked.
        server: The agent around the server.
    """

    def __init__(self, style: Style, server: ServerAgent) -> None:
        super().__init__(style, server)
        self.server = server
        self._background: Background[Decision] = Background(server.config.concurrency, "styled-agent")

    @property
    def problems(self) -> dict[str, str]:
        """Kind of failure -> message of the first one."""
        return self.server.problems

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request, in order."""
        return EagerAgent.act(self, requests)

    def begin(self, requests: Sequence[Request]) -> None:
        """Start playing turns, up to ``concurrency`` at a time."""
        for request in requests:
            if self._background.is_idle:
                self.server.ready()
            self._background.begin(request, partial(self._played, request))

    def _played(self, request: Request) -> Decision:
        turn = self.conductor.turn(request)
        [step] = build_each([request], lambda _: next(turn))
        while isinstance(step, Ask):
            [reply] = self.server.ask([step])
            [step] = build_each([request], partial(_sent, {id(request): turn}, {id(request): reply}))
        return step

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return newly played turns, each once."""
        return self._background.finished(wait)

    def abandon(self) -> None:
        """Close all connections, so that threads waiting for the server end at once."""
        self._background.abandon(self.server.server.abort)


def styled(agent: Agent, style: str | Style) -> Agent:
    """Return an agent that plays in a style; the agent itself for ``plain``.

    Args:
        agent: An agent around a language model.
        style: The style, or its name, with options as in ``summary:budget=1500``.

    Raises:
        UnknownName: There is no such style.
        ConfigError: An option is wrong, or the agent uses no language model.
    """
    made = make_style(style) if isinstance(style, str) else style
    if made.name == PLAIN:
        return agent
    if isinstance(agent, ServerAgent):
        return StyledServerAgent(made, agent)
    if isinstance(agent, ChatModel):
        return StyledAgent(made, agent)
    raise ConfigError(
        f"the style {made.name!r} is for agents that ask a language model, such as hf:PATH or openai:MODEL@URL; "
        f"{type(agent).__name__} asks none: leave --style out."
    )


def learns_between_tries(agent: Agent) -> bool:
    """Return whether an agent's attempts at a task must be played one after another."""
    return isinstance(agent, StyledAgent) and agent.style.learns_between_tries
