"""The one loop over turns: vectors on one side, an agent on the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError, TurngymError

Schedule = Literal["lockstep", "continuous"]
_LOST = "the environment broke right after its reset"


@dataclass(slots=True)
class _Slot:
    """An episode that is being played in a slot."""

    trajectory: Trajectory
    observation: str
    info: dict[str, Any]
    instructions: str

    def request(self, slot: int) -> Request:
        trajectory = self.trajectory
        return Request(
            slot, trajectory.spec.episode, len(trajectory.turns), self.observation, self.info, self.instructions
        )


def rollout(
    vector: TextVectorEnv,
    agent: Agent,
    specs: Sequence[EpisodeSpec],
    *,
    schedule: Schedule = "lockstep",
    on_episode: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play the given episodes and return their trajectories in the order of ``specs``.

    A slot whose episode ends takes the next one, so finished episodes cost nothing. ``lockstep`` asks the agent for
    all waiting slots together and waits for every environment, which makes batches, and so the last bits of a model's
    numbers, reproducible. ``continuous`` acts for whoever is ready; equal actions give equal transcripts either way.

    Args:
        vector: A vector with autoreset mode DISABLED.
        agent: Picks the actions.
        specs: The episodes; their numbers must differ.
        schedule: ``lockstep`` or ``continuous``.
        on_episode: Called with each trajectory as soon as its episode ends.

    Raises:
        ConfigError: The vector resets by itself, the schedule is unknown, or two episodes have one number.
    """
    if str(getattr(vector.metadata["autoreset_mode"], "value", "")) != "Disabled":
        raise ConfigError(
            'rollout needs a vector that does not reset by itself: make_vec(..., autoreset_mode="Disabled").'
        )
    if schedule not in ("lockstep", "continuous"):
        raise ConfigError(f"schedule must be 'lockstep' or 'continuous', got {schedule!r}.")
    if len({spec.episode for spec in specs}) != len(specs):
        raise ConfigError("two episodes of a rollout have the same number: give every EpisodeSpec its own.")
    runner = _Runner(vector, agent, deque(specs), on_episode or (lambda trajectory: None))
    agent.attach(vector)
    while runner.queue or runner.slots:
        runner.fill()
        runner.act()
        runner.collect(wait_for_all=schedule == "lockstep")
    return [runner.finished[spec.episode] for spec in specs]


class _Runner:
    """The state of one rollout: which slot plays which episode, who waits for the agent, who for the environment."""

    def __init__(
        self,
        vector: TextVectorEnv,
        agent: Agent,
        queue: deque[EpisodeSpec],
        on_episode: Callable[[Trajectory], None],
    ) -> None:
        self.vector = vector
        self.agent = agent
        self.queue = queue
        self.on_episode = on_episode
        self.slots: dict[int, _Slot] = {}
        self.waiting: list[int] = []  # slots that wait for an action
        self.in_flight: dict[int, Decision] = {}  # slots whose environment is at work
        self.free = list(range(vector.num_envs))
        self.finished: dict[int, Trajectory] = {}

    def fill(self) -> None:
        """Start queued episodes in free slots."""
        count = min(len(self.free), len(self.queue))
        if not count:
            return
        indices, self.free = self.free[:count], self.free[count:]
        rows = self._reset(indices)
        known = self._facts([slot for slot in indices if not rows[slot]["fault"]])
        for slot in indices:
            state = self.slots[slot]
            if slot in known:
                state.trajectory.env_id, state.trajectory.instance, state.instructions = known[slot]
                self.waiting.append(slot)
            else:
                state.trajectory.fault, state.trajectory.truncated = rows[slot]["fault"] or _LOST, True
                self._finish(slot)

    def _facts(self, slots: list[int]) -> dict[int, tuple[str, str, str]]:
        """Return id, instance and instructions of each slot; a slot that breaks while it is asked is left out."""
        names = ("env_id", "instance_hash", "instructions")
        try:
            answers = [self.vector.call(name, indices=slots) for name in names]
            return dict(zip(slots, zip(*answers, strict=True), strict=True)) if slots else {}
        except TurngymError:
            if len(slots) == 1:
                return {}
            return {slot: facts for each in slots for slot, facts in self._facts([each]).items()}

    def _reset(self, indices: list[int]) -> list[dict[str, Any]]:
        """Begin the next queued episodes in these slots; returns the info of every slot of the vector."""
        seeds: list[int | None] = [None] * self.vector.num_envs
        options: list[dict[str, Any] | None] = [None] * self.vector.num_envs
        mask = np.zeros(self.vector.num_envs, dtype=np.bool_)
        specs = {slot: self.queue.popleft() for slot in indices}
        for slot, spec in specs.items():
            seeds[slot], options[slot], mask[slot] = spec.seed, dict(spec.options or {}), True
        observations, infos = self.vector.reset(seed=seeds, options={"reset_mask": mask, "slot_options": options})
        for slot, spec in specs.items():
            self.slots[slot] = _Slot(Trajectory(spec), observations[slot], infos.rows[slot], "")
        return infos.rows

    def act(self) -> None:
        """Let the agent decide for every waiting slot and send the actions off."""
        if not self.waiting:
            return
        waiting = sorted(self.waiting)
        decisions = self.agent.act([self.slots[slot].request(slot) for slot in waiting])
        self.in_flight.update(zip(waiting, decisions, strict=True))
        self.waiting = []
        self.vector.send([decision.action for decision in decisions], waiting)

    def collect(self, wait_for_all: bool) -> None:
        """Take in what the environments answered."""
        if not self.in_flight:
            return
        ready = self.vector.recv(len(self.in_flight) if wait_for_all else 1)
        indices, observations, rewards, terminations, truncations, infos = ready
        for position in np.argsort(np.asarray(indices)):
            slot = int(indices[position])
            self._record(slot, float(rewards[position]), observations[position], infos.rows[position])
            trajectory = self.slots[slot].trajectory
            trajectory.terminated = bool(terminations[position])
            trajectory.truncated = bool(truncations[position])
            if trajectory.terminated or trajectory.truncated:
                self._finish(slot)
            else:
                self.waiting.append(slot)

    def _record(self, slot: int, reward: float, observation: str, info: dict[str, Any]) -> None:
        state, decision = self.slots[slot], self.in_flight.pop(slot)
        state.trajectory.turns.append(
            Turn(
                observation=state.observation,
                anchor=state.info["anchor"],
                action=decision.action,
                completion=decision.completion,
                prompt_ids=decision.prompt_ids,
                completion_ids=decision.completion_ids,
                logprobs=decision.logprobs,
                reward=reward,
                action_is_valid=bool(info["action_is_valid"]),
            )
        )
        state.trajectory.fault = info["fault"]
        state.observation, state.info = observation, info

    def _finish(self, slot: int) -> None:
        state = self.slots.pop(slot)
        trajectory = state.trajectory
        trajectory.success = int(state.info["success"])
        trajectory.score = float(state.info["score"])
        trajectory.final_observation = state.observation
        if trajectory.truncated and not trajectory.fault:
            trajectory.final_prompt_ids = self.agent.final_prompt(state.request(slot))
        self.agent.forget(trajectory.spec.episode)
        self.finished[trajectory.spec.episode] = trajectory
        self.free = sorted([*self.free, slot])
        self.on_episode(trajectory)
