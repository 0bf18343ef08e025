"""The one loop over turns: vectors on one side, an agent on the other."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.agents.branching import branch_state, bring_back, saved_states, text_and_image
from turngym.agents.core import Agent, Decision, EagerAgent, Request, build_each
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.agents.usage import Usage
from turngym.envs.vector import TextVectorEnv
from turngym.envs.vector.info import fault_info
from turngym.errors import ConfigError
from turngym.text import valid_text

Schedule = Literal["lockstep", "continuous"]
_LOST = "the environment broke right after its reset"


@dataclass(slots=True)
class _Slot:
    """An episode that is being played in a slot."""

    trajectory: Trajectory
    observation: str
    info: dict[str, Any]
    instructions: str
    image: NDArray[np.uint8] | None = None
    snapshot: bytes = b""

    def request(self, slot: int) -> Request:
        trajectory = self.trajectory
        return Request(
            slot,
            trajectory.spec.episode,
            len(trajectory.earlier_turns) + len(trajectory.turns),
            self.observation,
            self.info,
            self.instructions,
            self.image,
        )


def rollout(
    vector: TextVectorEnv,
    agent: Agent,
    specs: Sequence[EpisodeSpec],
    *,
    schedule: Schedule = "lockstep",
    on_episode: Callable[[Trajectory], None] | None = None,
    may_begin: Callable[[], bool] | None = None,
    snapshots: bool = False,
) -> list[Trajectory]:
    """Play the given episodes and return their trajectories in the order of ``specs``.

    An episode whose spec names a branch begins with the environment's state before that turn, and the agent remembers
    the turns before it; its trajectory has only the turns that are new.

    A slot whose episode ends takes the next one, so finished episodes cost nothing. ``lockstep`` asks the agent for
    all waiting slots together and waits for every environment, which makes batches, and so the last bits of a model's
    numbers, reproducible. ``continuous`` acts for whoever is ready; equal actions give equal transcripts either way.

    Args:
        vector: A vector with autoreset mode DISABLED.
        agent: Picks the actions.
        specs: The episodes; their numbers must differ.
        schedule: ``lockstep`` or ``continuous``.
        on_episode: Called with each trajectory as soon as its episode ends.
        may_begin: Asked before episodes begin; once it says no, none begins any more, and those that did not are left
            out of what is returned.
        snapshots: Whether every turn keeps the environment's state before it, so that episodes can branch off there.

    Raises:
        ConfigError: The vector resets by itself, the schedule is unknown, two episodes have one number, or an episode
            shall branch off where there is no snapshot.
        SnapshotUnsupported: The environment cannot save its state.
    """
    if str(getattr(vector.metadata["autoreset_mode"], "value", "")) != "Disabled":
        raise ConfigError(
            'rollout needs a vector that does not reset by itself: make_vec(..., autoreset_mode="Disabled").'
        )
    if schedule not in ("lockstep", "continuous"):
        raise ConfigError(f"schedule must be 'lockstep' or 'continuous', got {schedule!r}.")
    if len({spec.episode for spec in specs}) != len(specs):
        raise ConfigError("two episodes of a rollout have the same number: give every EpisodeSpec its own.")
    for spec in specs:
        branch_state(spec)  # one that is missing is told before anything is played
    runner = _Runner(vector, agent, deque(specs), on_episode or (lambda trajectory: None), snapshots)
    agent.attach(vector)
    try:
        runner.play(schedule, may_begin)
    except BaseException:
        if isinstance(agent, EagerAgent):
            agent.abandon()  # an interrupt shall not wait for answers that nobody wants any more
        raise
    return [runner.finished[spec.episode] for spec in specs if spec.episode in runner.finished]


class _Runner:
    """The state of one rollout: which slot plays which episode, who waits for the agent, who for the environment."""

    def __init__(
        self,
        vector: TextVectorEnv,
        agent: Agent,
        queue: deque[EpisodeSpec],
        on_episode: Callable[[Trajectory], None],
        snapshots: bool = False,
    ) -> None:
        self.snapshots = snapshots
        self.vector = vector
        self.agent = agent
        self.queue = queue
        self.on_episode = on_episode
        self.slots: dict[int, _Slot] = {}
        self.waiting: list[int] = []  # slots that wait for an action
        self.in_flight: dict[int, Decision] = {}  # slots whose environment is at work
        self.usages: dict[int, Usage] = {}  # what the decision in flight cost
        self.free = list(range(vector.num_envs))
        self.finished: dict[int, Trajectory] = {}

    def play(self, schedule: Schedule, may_begin: Callable[[], bool] | None) -> None:
        """Play until every episode is over."""
        is_eager = schedule == "continuous" and isinstance(self.agent, EagerAgent)
        while self.queue or self.slots:
            if self.queue and self.free and may_begin is not None and not may_begin():
                self.queue.clear()
            self.fill()
            if is_eager:
                self.act_eagerly()
            else:
                self.act()
            self.collect(wait_for_all=schedule == "lockstep")

    def fill(self) -> None:
        """Start queued episodes in free slots."""
        count = min(len(self.free), len(self.queue))
        if not count:
            return
        indices, self.free = self.free[:count], self.free[count:]
        specs = {slot: self.queue.popleft() for slot in indices}
        faults = self._reset({slot: spec for slot, spec in specs.items() if spec.branch is None})
        faults |= self._restore({slot: spec for slot, spec in specs.items() if spec.branch is not None})
        known = self._facts([slot for slot in indices if not faults[slot]])
        for slot in indices:
            state = self.slots[slot]
            if slot in known:
                state.trajectory.env_id, state.trajectory.instance, state.instructions = known[slot]
                self.waiting.append(slot)
            else:
                state.trajectory.fault, state.trajectory.truncated = faults[slot] or _LOST, True
                self._finish(slot)

    def _facts(self, slots: list[int]) -> dict[int, tuple[str, str, str]]:
        """Return id, instance and instructions of each slot; a slot that breaks while it is asked is left out."""
        names = ("env_id", "instance_hash", "instructions")
        try:
            answers = [map(valid_text, self.vector.call(name, indices=slots)) for name in names]
            return dict(zip(slots, zip(*answers, strict=True), strict=True)) if slots else {}
        except Exception:  # the boundary: what breaks here is the slot's environment
            if len(slots) == 1:
                return {}
            return {slot: facts for each in slots for slot, facts in self._facts([each]).items()}

    def _reset(self, specs: dict[int, EpisodeSpec]) -> dict[int, str]:
        """Begin episodes in these slots; returns the fault of each slot."""
        if not specs:
            return {}
        seeds: list[int | None] = [None] * self.vector.num_envs
        options: list[dict[str, Any] | None] = [None] * self.vector.num_envs
        mask = np.zeros(self.vector.num_envs, dtype=np.bool_)
        for slot, spec in specs.items():
            seeds[slot], options[slot], mask[slot] = spec.seed, dict(spec.options or {}), True
        observations, infos = self.vector.reset(seed=seeds, options={"reset_mask": mask, "slot_options": options})
        for slot, spec in specs.items():
            text, image = text_and_image(observations, slot)
            self.slots[slot] = _Slot(Trajectory(spec), text, infos.rows[slot], "", image)
        return {slot: infos.rows[slot]["fault"] for slot in specs}

    def _restore(self, specs: dict[int, EpisodeSpec]) -> dict[int, str]:
        """Begin episodes in these slots where they branch off; returns the fault of each slot."""
        found = bring_back(self.vector, {slot: branch_state(spec) for slot, spec in specs.items()})
        for slot, seen in found.items():
            trajectory = Trajectory(specs[slot])
            self.slots[slot] = _Slot(trajectory, seen.text, seen.info, "", seen.image)
            self.agent.recall(trajectory.spec.episode, trajectory.earlier_turns)
        return {slot: seen.fault for slot, seen in found.items()}

    def _save(self, slots: list[int]) -> None:
        """Note the state of the environments in these slots, if asked."""
        if self.snapshots:
            for slot, state in saved_states(self.vector, slots).items():
                self.slots[slot].snapshot = state

    def act(self) -> None:
        """Let the agent decide for every waiting slot and send the actions off."""
        if not self.waiting:
            return
        waiting = sorted(self.waiting)
        self._save(waiting)
        asked = time.perf_counter()
        decisions = self.agent.act([self.slots[slot].request(slot) for slot in waiting])
        self._send(waiting, decisions, time.perf_counter() - asked)
        self.waiting = []

    def act_eagerly(self) -> None:
        """Let the agent begin with every waiting slot, and send off the actions that it has decided by now."""
        assert isinstance(self.agent, EagerAgent)
        self._save(sorted(self.waiting))
        self.agent.begin([self.slots[slot].request(slot) for slot in sorted(self.waiting)])
        self.waiting = []
        decided = {request.slot: decision for request, decision in self.agent.decided(wait=not self.in_flight)}
        if decided:
            slots = sorted(decided)
            self._send(slots, [decided[slot] for slot in slots], 0.0)

    def _send(self, slots: list[int], decisions: Sequence[Decision], latency: float) -> None:
        """Send the actions off; an agent that does not count its own costs is charged with ``latency``."""
        decided = list(zip(slots, decisions, strict=True))
        for slot, decision in decided:
            if decision.fault:
                self._end_with_fault(slot, decision.fault)
        decided = [(slot, decision) for slot, decision in decided if not decision.fault]
        for slot, decision in decided:
            self.in_flight[slot] = decision
            self.usages[slot] = decision.usage or Usage(
                len(decision.prompt_ids), len(decision.completion_ids), calls=1, latency=latency
            )
        if decided:
            self.vector.send([decision.action for _, decision in decided], [slot for slot, _ in decided])

    def collect(self, wait_for_all: bool) -> None:
        """Take in what the environments answered."""
        if not self.in_flight:
            return
        ready = self.vector.recv(len(self.in_flight) if wait_for_all else 1)
        indices, observations, rewards, terminations, truncations, infos = ready
        for position in np.argsort(np.asarray(indices)):
            slot = int(indices[position])
            seen = text_and_image(observations, int(position))
            self._record(slot, float(rewards[position]), *seen, infos.rows[position])
            trajectory = self.slots[slot].trajectory
            trajectory.terminated = bool(terminations[position])
            trajectory.truncated = bool(truncations[position])
            if trajectory.terminated or trajectory.truncated:
                self._finish(slot)
            else:
                self.waiting.append(slot)

    def _record(
        self, slot: int, reward: float, observation: str, image: NDArray[np.uint8] | None, info: dict[str, Any]
    ) -> None:
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
                usage=self.usages.pop(slot),
                notes=decision.notes,
                components=dict(info.get("reward_components", ())),
                entropies=decision.entropies,
                snapshot=state.snapshot,
                progress=float(state.info.get("progress", math.nan)),
            )
        )
        state.trajectory.fault = info["fault"]
        state.observation, state.image, state.info = observation, image, info

    def _end_with_fault(self, slot: int, fault: str) -> None:
        """End an episode that its agent cannot go on with."""
        state = self.slots[slot]
        state.trajectory.fault, state.trajectory.truncated = fault, True
        state.info = fault_info(fault, running=False)
        self._finish(slot)

    def _finish(self, slot: int) -> None:
        state = self.slots.pop(slot)
        trajectory = state.trajectory
        trajectory.success = int(state.info["success"])
        trajectory.score = float(state.info["score"])
        trajectory.progress = float(state.info.get("progress", math.nan))
        trajectory.final_observation = state.observation
        trajectory.final_anchor = str(state.info.get("anchor", ""))
        if trajectory.truncated and not trajectory.fault:
            [prompt] = build_each([state.request(slot)], self.agent.final_prompt)
            if isinstance(prompt, Decision):
                trajectory.fault = prompt.fault
            else:
                trajectory.final_prompt_ids = prompt
        self.agent.forget(trajectory.spec.episode)
        self.finished[trajectory.spec.episode] = trajectory
        self.free = sorted([*self.free, slot])
        self.on_episode(trajectory)
