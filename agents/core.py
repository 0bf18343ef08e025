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
    """Request for an action in one slot.

    Args:
        slot: Slot of the vector.
        episode: Number of the episode; agents key their memory by it.
        turn: Position of the turn in the episode, from 0.
        observation: Current observation.
        info: The environment's info table for this observation.
        instructions: Rules and answer format.
        image: The image in the observation, [H, W, 3], if it has one.
        finds_action: True if the environment finds the action in a whole completion, by a notation of its rules.
        tools: Tools for models with native tool calls, if the environment declares any.
        attempt: Number of proposals for this turn that a critic rejected.
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
    attempt: int = 0

    @property
    def legal_actions(self) -> tuple[str, ...]:
        """The legal actions, at least one.

        Raises:
            ConfigError: The environment does not enumerate them.
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
        action: The action for the environment, as text.
        completion: The whole text produced, reasoning included.
        prompt_ids: Token ids of the whole prompt; empty for agents without tokens.
        completion_ids: Token ids exactly as sampled.
        logprobs: The sampler's log-probability of each completion token, temperature included.
        usage: Cost of the answer, if the agent counts it.
        notes: Other text of the model, such as a summary.
        entropies: Entropy of the distribution of each completion token, relative to its maximum, if requested.
        fault: Reason for a missing answer, such as a prompt that could not be built; ends only this episode.
        too_long: Reason for a missing answer if the prompt does not fit; truncates the episode without a fault.
        columns: Named numbers and strings about the turn for training methods, or tuples with one number per completion
            token.
        cut_off: True if the completion reached the maximum length without an end token.
        restricted: True if tokens were sampled from part of the vocabulary (top-p, top-k, min-p), so ``logprobs`` are
            not those of the sampling distribution.
        pictures: The images in the prompt as PNG files, in the order of their placeholders.
        policy_version: Version of the sampling weights, if they change during rollouts; -1 if unknown.
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
    """Build an input for each request; a failed one becomes a decision with the reason.

    Raises:
        TurngymError: All requests are first turns that fail because of a setting.
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
    """Picks actions: backend, prompt building, memory and parsing in one object."""

    def pictures_of(self, request: Request) -> tuple[bytes, ...]:
        """Return the images in the latest prompt of a request's episode, as PNG files."""
        return ()

    def prepare(self) -> None:  # noqa: B027
        """Raise if the agent cannot play, for example because its server is down; called once at the start."""

    def attach(self, vector: TextVectorEnv) -> None:  # noqa: B027
        """Set the vector of the following requests; called once before a rollout."""

    @abstractmethod
    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request, in order."""

    def final_prompt(self, request: Request) -> tuple[int, ...]:
        """Return the prompt that ``request`` would get, without acting; empty for agents without tokens.

        Raises:
            PromptTooLong: The prompt does not fit; no room for an answer is required.
        """
        return ()

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Load the history of an episode that branches from another.

        Raises:
            ConfigError: There are earlier turns, and this agent cannot load them.
        """
        if turns:
            raise ConfigError(
                f"{type(self).__name__} cannot continue from the middle of an episode. Let it define recall(), or play "
                "whole episodes."
            )

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Record a turn decided elsewhere as this agent's own, and return it as a decision.

        Args:
            request: The request for that turn.
            action: The action taken.
            completion: The completion it was parsed from; empty if not from a model.

        Raises:
            ConfigError: This agent does not support recorded turns.
        """
        raise _cannot_follow(self)

    def forget(self, episode: int) -> None:  # noqa: B027
        """Drop the memory of a finished episode."""

    def room(self) -> int:
        """Return the recommended number of concurrent episodes; 0 for any number."""
        return 0

    def details(self) -> dict[str, Any]:
        """Return metadata for results, as JSON-compatible data without secrets."""
        return {}


def checked_decisions(agent: Agent, requests: Sequence[Request], decisions: object) -> Sequence[Decision]:
    """Check the return value of an agent.

    Raises:
        ConfigError: It is not one decision with a text per request.
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
            raise ConfigError(f"{name} must decide on a string, got Decision({each.action!r:.80}): write it as a str.")
    return decisions


class EagerAgent(Agent):
    """An agent that answers in the background, so no slot waits for another."""

    @abstractmethod
    def begin(self, requests: Sequence[Request]) -> None:
        """Start answering requests and return immediately."""

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
    """Check that an agent supports recorded turns.

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
