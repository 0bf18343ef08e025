"""The agent of asynchronous rollouts: records the weights' version of each turn, and reuses recorded turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.models.agent import ModelAgent
from turngym.agents.trajectory import Turn
from turngym.envs.vector import TextVectorEnv
from turngym.errors import PromptTooLong


class VersionedAgent(Agent):
    """Wraps an agent, and adds the version of the sampling weights to each decision.

    Args:
        agent: The inner agent.
        refresh: Called before the agent acts; loads new weights and returns their version.
    """

    def __init__(self, agent: ModelAgent, refresh: Callable[[], int]) -> None:
        self.agent = agent
        self.refresh = refresh
        self.taken_over = 0
        """Reused turns."""
        self.diverged = 0
        """Episodes whose replay differs from the journal; they continue from there with new turns."""
        self._written: dict[int, list[Turn]] = {}

    def expect(self, episode: int, turns: Sequence[Turn]) -> None:
        """Reuse the recorded turns of an episode in the following requests."""
        self._written[episode] = list(turns)

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request, in order."""
        known = {request.slot: self._take_over(request) for request in requests}
        asked = [request for request in requests if known[request.slot] is None]
        fresh: dict[int, Decision] = {}
        if asked:
            version = self.refresh()
            for request, decision in zip(asked, self.agent.act(asked), strict=True):
                fresh[request.slot] = replace(decision, policy_version=version)
        return [known[request.slot] or fresh[request.slot] for request in requests]

    def _take_over(self, request: Request) -> Decision | None:
        """Return the recorded decision for a request; None without one, or if its prompt differs.

        The prompt is built again and must be equal.
        """
        turns = self._written.get(request.episode, [])
        if request.turn >= len(turns):
            self._written.pop(request.episode, None)
            return None
        turn = turns[request.turn]
        try:
            prompt = self.agent.next_prompt(request)
        except PromptTooLong:
            prompt = ()
        if prompt != turn.prompt_ids:
            self.diverged += 1
            del self._written[request.episode]
            return None
        self.agent.remember(request, turn.action, turn.completion, prompt, turn.completion_ids)
        self.taken_over += 1
        return Decision(
            turn.action,
            turn.completion,
            prompt,
            turn.completion_ids,
            turn.logprobs,
            entropies=turn.entropies,
            columns=turn.columns,
            cut_off=turn.cut_off,
            restricted=turn.restricted,
            pictures=turn.pictures,
            policy_version=turn.policy_version,
        )

    # Delegated to the agent.

    def attach(self, vector: TextVectorEnv) -> None:
        """Set the vector."""
        self.agent.attach(vector)

    def pictures_of(self, request: Request) -> tuple[bytes, ...]:
        """Return the images in the latest prompt of a request's episode."""
        return self.agent.pictures_of(request)

    def final_prompt(self, request: Request) -> tuple[int, ...]:
        """Return the prompt that a request would get, without acting."""
        return self.agent.final_prompt(request)

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Load the history of an episode that branches from another."""
        self.agent.recall(episode, turns)

    def forget(self, episode: int) -> None:
        """Drop the memory of a finished episode."""
        self._written.pop(episode, None)
        self.agent.forget(episode)
