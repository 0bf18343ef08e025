"""The agent interface: batches of requests in, one decision for each out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from turngym.agents.usage import Usage
from turngym.columns import Value
from turngym.errors import ConfigError, PromptTooLong, TurngymError, error_text

if TYPE_CHECKING:
    from turngym.agents.chat import Note
    from turngym.agents.trajectory import Turn
    from turngym.envs.tools.tool_schema import ToolSet
    from turngym.envs.vector import TextVectorEnv


BuiltT = TypeVar("BuiltT")


@dataclass(frozen=True, slots=True)
class Request:
    """One slot that waits for an action.

    Args:
        slot: Slot of the vector.
        episode: Number of the episode; agents key their memory by it.
        turn: Position of the turn in the episode, from 0.
        observation: Current observation.
        info: The environment's info table for this observation.
        instructions: Rules and answer format.
        image: The image in the observation, [H, W, 3], if it has one.
        finds_action: Whether the environment finds an action in a whole answer by a notation that its rules give.
        tools: Tools for models with native tool calls, if the environment declares some.
    """

    slot: int
    episode: int
    turn: int
    observation: str
    info: Mapping[str, Any]
    instructions: str
    image: NDArray[np.uint8] | None = None
    finds_action: bool = False
    tools: ToolSet | None = None

    @property
    def legal_actions(self) -> tuple[str, ...]:
        """The legal actions, one at least.

        Raises:
            ConfigError: The environment lists none.
        """
        listed: tuple[str, ...] = self.info["legal_actions"]
        if not listed:
            about = self.instructions.strip().partition("\n")[0][:80]
            raise ConfigError(
                f"the environment ({about!r}) lists no legal actions, because any text may be one: write the action "
                "from request.instructions and request.observation, or play an environment that lists them, such as "
                "turngym/Sokoban-v0."
            )
        return listed


@dataclass(frozen=True, slots=True)
class Decision:
    """An agent's answer to one request.

    Args:
        action: The action text for the environment.
        completion: The text that the agent produced, reasoning included.
        prompt_ids: Token ids of the whole prompt; empty for agents without tokens.
        completion_ids: Token ids exactly as sampled.
        logprobs: The sampler's log-probability of each completion token, temperature included.
        usage: Cost of the answer, if the agent counts it.
        notes: Other text of the model, such as a summary.
        entropies: Entropy of the distribution of each completion token as a share of the largest possible one, where
            the agent was asked for it.
        fault: Why there is no answer, such as a prompt that could not be built; it ends this episode and no other.
        too_long: Why there is no answer if the prompt does not fit: not a fault, but it truncates this episode.
        columns: Named numbers and texts about the turn that the agent hands on to training methods, and tuples with one
            number for each completion token.
        cut_off: Whether the completion reached its longest length without an end token.
        restricted: Whether its tokens were sampled from a part of the vocabulary (top-p, top-k, min-p), so that
            ``logprobs`` are not those of the distribution that was sampled from.
        pictures: The images in the prompt as PNG files, in the order of their placeholders.
        policy_version: Version of the weights that wrote it, where they change during rollouts; -1 if unknown.
    """

    action: str
    completion: str = ""
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    usage: Usage | None = None
    notes: tuple[Note, ...] = ()
    entropies: tuple[float, ...] = ()
    fault: str = ""
    too_long: str = ""
    columns: Mapping[str, Value | tuple[float, ...]] = field(default_factory=dict)
    cut_off: bool = False
    restricted: bool = False
    pictures: tuple[bytes, ...] = field(default=(), repr=False)
    policy_version: int = -1


def build_each(requests: Sequence[Request], build: Callable[[Request], BuiltT]) -> list[BuiltT | Decision]:
    """Build something for each request; a request that fails gets a decision that says why.

    Raises:
        TurngymError: No first turn of an episode can be built because of a setting, and there is nothing else.
    """
    found: list[BuiltT | Decision] = []
    refusals: list[TurngymError] = []
    for request in requests:
        try:
            found.append(build(request))
        except PromptTooLong as error:
            found.append(Decision("", too_long=str(error)))
        except Exception as error:  # user code: a failure affects one episode's text
            found.append(Decision("", fault=f"prompt: {error_text(error)}"))
            if isinstance(error, TurngymError) and request.turn == 0:
                refusals.append(error)
    if refusals and len(refusals) == len(requests):
        raise refusals[0]
    return found


class Agent(ABC):
    """Picks the next action texts: backend, prompt building, memory and parsing in one object."""

    def pictures_of(self, request: Request) -> tuple[bytes, ...]:
        """Return the images in the prompt that was built last for a request's episode, as PNG files."""
        return ()

    def prepare(self) -> None:  # noqa: B027
        """Raise if the agent cannot play, for example because its server is down; called once, first."""

    def attach(self, vector: TextVectorEnv) -> None:  # noqa: B027
        """Set the vector that the next requests come from; called once before a rollout."""

    @abstractmethod
    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request, in order."""

    def final_prompt(self, request: Request) -> tuple[int, ...]:
        """Return the prompt that ``request`` would get, without acting; empty for agents without tokens.

        Raises:
            PromptTooLong: It does not fit; it needs no room for an answer.
        """
        return ()

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Load the history of an episode that branches from another.

        Raises:
            ConfigError: There are some, and this kind of agent cannot take them over.
        """
        if turns:
            raise ConfigError(
                f"{type(self).__name__} cannot continue from the middle of an episode. Let it define recall(), or play "
                "whole episodes."
            )

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Remember a turn that was decided elsewhere as if this agent had decided it, and return the decision.

        Args:
            request: What the agent would have been asked.
            action: The action that was taken.
            completion: The text that it was taken from; empty if it came from no model.

        Raises:
            ConfigError: This kind of agent cannot take over turns.
        """
        raise _cannot_follow(self)

    def forget(self, episode: int) -> None:  # noqa: B027
        """Forget an episode that has ended."""

    def room(self) -> int:
        """Return how many episodes are better played at once, the others waiting; 0 for any number."""
        return 0

    def details(self) -> dict[str, Any]:
        """Return what a reader of its results should know, as JSON-compatible data without secrets."""
        return {}


def checked_decisions(agent: Agent, requests: Sequence[Request], decisions: object) -> Sequence[Decision]:
    """Return what an agent answered.

    Raises:
        ConfigError: It is not one decision with a text for each request.
    """
    name = f"{type(agent).__name__}.act"
    if not isinstance(decisions, Sequence) or isinstance(decisions, str):
        raise ConfigError(f"{name} must return a list with a Decision for each request, got {decisions!r:.80}.")
    if len(decisions) != len(requests):
        raise ConfigError(
            f"{name} returned {len(decisions)} decisions for {len(requests)} requests: return one for each, in order."
        )
    for each in decisions:
        if not isinstance(each, Decision):
            raise ConfigError(f"{name} must return Decision objects, got {each!r:.80}: write Decision(action).")
        if not isinstance(each.action, str):
            raise ConfigError(f"{name} must decide on a text, got Decision({each.action!r:.80}): write it as a str.")
    return decisions


class EagerAgent(Agent):
    """An agent that computes answers in the background, so that no slot waits for another one's answer."""

    @abstractmethod
    def begin(self, requests: Sequence[Request]) -> None:
        """Start working on these requests and return immediately."""

    @abstractmethod
    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return newly answered requests, each once.

        Args:
            wait: Wait until there is one; without pending requests, return nothing.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Cancel all pending requests immediately; does nothing if there are none."""

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request, in order."""
        found: dict[int, Decision] = {}
        left = len(requests)
        try:
            self.begin(requests)
            while left:
                answered = self.decided(wait=True)
                found.update((id(request), decision) for request, decision in answered)
                left -= len(answered)
        except BaseException:
            self.abandon()
            raise
        return [found[id(request)] for request in requests]


def require_follow(agent: Agent) -> None:
    """Raise for an agent that cannot take over recorded turns.

    Raises:
        ConfigError: It defines no :meth:`Agent.follow`.
    """
    if type(agent).follow is Agent.follow:
        raise _cannot_follow(agent)


def _cannot_follow(agent: Agent) -> ConfigError:
    return ConfigError(
        f"{type(agent).__name__} cannot continue recorded episodes: define follow(), which notes a turn and "
        "returns Decision(action, completion), or play whole episodes."
    )
