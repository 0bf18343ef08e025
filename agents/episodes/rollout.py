"""The loop over turns between a vector and an agent."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.agents.core import Agent, Decision, EagerAgent, Request, checked_decisions
from turngym.agents.episodes.branching import branch_state, bring_back, saved_states, text_and_image
from turngym.agents.episodes.turn_writer import TurnWriter
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.tools.tool_schema import ToolSet
from turngym.envs.vector import TextVectorEnv
from turngym.envs.vector.info import fault_info
from turngym.errors import ConfigError
from turngym.text import valid_text

Schedule = Literal["lockstep", "continuous"]
_LOST = "the environment broke right after its reset"


@dataclass(slots=True)
class Slot:
    """An episode in progress in a slot."""

    writer: TurnWriter
    observation: str
    info: dict[str, Any]
    instructions: str = ""
    image: NDArray[np.uint8] | None = None
    snapshot: bytes = b""
    finds_action: bool = False
    tools: ToolSet | None = None

    @property
    def trajectory(self) -> Trajectory:
        """The episode so far."""
        return self.writer.trajectory

    def request(self, slot: int) -> Request:
        """Return the request for the agent."""
        return Request(
            slot,
            self.trajectory.spec.episode,
            self.writer.num_turns,
            self.observation,
            self.info,
            self.instructions,
            self.image,
            self.finds_action,
            self.tools,
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
    final_prompts: bool = True,
) -> list[Trajectory]:
    """Play the given episodes and return their trajectories in the order of ``specs``.

    An episode with a branch starts from the environment's state before that turn, and the agent loads the earlier
    turns; its trajectory contains only new turns.

    A slot takes the next episode when its own ends. ``lockstep`` batches the requests of all slots and waits for every
    environment, so batches, and with them the last bits of a model's outputs, are reproducible. ``continuous`` acts for
    every slot that is ready. Equal actions give equal transcripts with both.

    An episode whose next prompt does not fit is truncated with the reason ``context``; if it is the first prompt, the
    trajectory has no turns.

    Args:
        vector: A vector with autoreset mode DISABLED.
        agent: Picks the actions.
        specs: The episodes; their numbers must differ.
        schedule: ``lockstep`` or ``continuous``.
        on_episode: Called with each trajectory as soon as its episode ends.
        may_begin: Called before episodes start; once it returns False, no further episodes are started or returned.
        snapshots: Keep the environment's state before every turn, for branching.
        final_prompts: Keep the next prompt of truncated episodes, for critics.

    Raises:
        ConfigError: The vector has autoreset, the schedule is unknown, two episodes have the same number, or a branch
            has no snapshot.
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
        branch_state(spec)  # a missing snapshot raises before the first episode
    runner = Runner(vector, agent, deque(specs), on_episode or (lambda trajectory: None), snapshots, final_prompts)
    agent.attach(vector)
    try:
        runner.play(schedule, may_begin)
    except BaseException:
        if isinstance(agent, EagerAgent):
            agent.abandon()  # an interrupt must not wait for answers that are no longer needed
        raise
    return [runner.finished[spec.episode] for spec in specs if spec.episode in runner.finished]


class Runner:
    """State of a rollout: the episodes of slots, and the slots waiting for agent or environment.

    Args:
        vector: A vector with autoreset mode DISABLED.
        agent: The agent.
        queue: The episodes to start.
        on_episode: Called with each trajectory as soon as its episode ends.
        snapshots: Keep the environment's state before every turn.
        final_prompts: Keep the next prompt of truncated episodes.
    """

    def __init__(
        self,
        vector: TextVectorEnv,
        agent: Agent,
        queue: deque[EpisodeSpec],
        on_episode: Callable[[Trajectory], None],
        snapshots: bool,
        final_prompts: bool,
    ) -> None:
        self.snapshots = snapshots
        self.final_prompts = final_prompts
        self.vector = vector
        self.agent = agent
        self.queue = queue
        self.on_episode = on_episode
        self.slots: dict[int, Slot] = {}
        self.waiting: list[int] = []  # slots that wait for an action
        self.in_flight: set[int] = set()  # slots whose environment is stepping
        self.free = list(range(vector.num_envs))
        self.finished: dict[int, Trajectory] = {}

    def play(self, schedule: Schedule, may_begin: Callable[[], bool] | None) -> None:
        """Play until all episodes have ended."""
        is_eager = schedule == "continuous" and isinstance(self.agent, EagerAgent)
        while self.queue or self.slots:
            if self.queue and self.free and may_begin is not None and not may_begin():
                self.queue.clear()
            self.fill()
            if is_eager:
                self.act_eagerly(wait=not self.in_flight)
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
                texts, state.finds_action, state.tools = known[slot]
                state.trajectory.env_id, state.trajectory.instance, state.instructions = texts
                self.waiting.append(slot)
            else:
                self._finish(slot, fault=faults[slot] or _LOST)

    def _facts(self, slots: list[int]) -> dict[int, tuple[tuple[str, ...], bool, ToolSet | None]]:
        """Return texts, ``finds_action`` and native tools of each slot, without slots that break."""
        names = ("env_id", "instance_hash", "instructions")
        try:
            texts = zip(*(map(valid_text, self.vector.call(name, indices=slots)) for name in names), strict=True)
            finds = map(bool, self.vector.call("finds_action", indices=slots))
            tools = self.vector.call("native_tools", indices=slots)
            return dict(zip(slots, zip(texts, finds, tools, strict=True), strict=True)) if slots else {}
        except Exception:  # user code: a failure is a fault of the slot
            if len(slots) == 1:
                return {}
            return {slot: facts for each in slots for slot, facts in self._facts([each]).items()}

    def _reset(self, specs: dict[int, EpisodeSpec]) -> dict[int, str]:
        """Start episodes in these slots; returns the fault of each slot."""
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
            self.slots[slot] = Slot(TurnWriter(Trajectory(spec)), text, infos.rows[slot], image=image)
        return {slot: infos.rows[slot]["fault"] for slot in specs}

    def _restore(self, specs: dict[int, EpisodeSpec]) -> dict[int, str]:
        """Start episodes in these slots at their branch points; returns the fault of each slot."""
        found = bring_back(self.vector, {slot: branch_state(spec) for slot, spec in specs.items()})
        for slot, seen in found.items():
            writer = TurnWriter(Trajectory(specs[slot]))
            self.slots[slot] = Slot(writer, seen.text, seen.info, image=seen.image)
            self.agent.recall(specs[slot].episode, writer.trajectory.earlier_turns)
        return {slot: seen.fault for slot, seen in found.items()}

    def _save(self, slots: list[int]) -> None:
        """Save the state of the environments in these slots, if requested."""
        if self.snapshots:
            for slot, state in saved_states(self.vector, slots).items():
                self.slots[slot].snapshot = state

    def act(self) -> None:
        """Let the agent decide for waiting slots, up to its limit, and send the actions."""
        first = set(list(self.slots)[: self.agent.room() or None])  # in the order in which they started
        waiting = sorted(first.intersection(self.waiting))
        if not waiting:
            return
        self._save(waiting)
        asked = time.perf_counter()
        requests = [self.slots[slot].request(slot) for slot in waiting]
        decisions = checked_decisions(self.agent, requests, self.agent.act(requests))
        self.waiting = [slot for slot in self.waiting if slot not in first]
        self._send(requests, decisions, time.perf_counter() - asked)

    def act_eagerly(self, wait: bool) -> None:
        """Pass every waiting slot to the agent, and send the actions that are ready.

        Args:
            wait: Wait for an answer if the agent is working on one.
        """
        assert isinstance(self.agent, EagerAgent)
        if self.waiting:
            self._save(sorted(self.waiting))
            self.agent.begin([self.slots[slot].request(slot) for slot in sorted(self.waiting)])
            self.waiting = []
        decided = {request.slot: decision for request, decision in self.agent.decided(wait)}
        if decided:
            slots = sorted(decided)
            self._send([self.slots[slot].request(slot) for slot in slots], [decided[slot] for slot in slots], 0.0)

    def _send(self, requests: Sequence[Request], decisions: Sequence[Decision], latency: float) -> None:
        """Send the actions; agents that do not count their own costs are charged ``latency``."""
        sent = {}
        for request, decision in zip(requests, decisions, strict=True):
            slot = request.slot
            state = self.slots[slot]
            if decision.fault:
                state.info = fault_info(decision.fault, running=False)
                self._finish(slot, fault=decision.fault)
            elif decision.too_long:
                state.writer.end_without_room(request, decision.too_long)
                self._release(slot)
            else:
                state.writer.decided(request, decision, latency=latency, snapshot=state.snapshot)
                sent[slot] = decision.action
        self.in_flight |= sent.keys()
        if sent:
            self.deciding(list(sent))
            self.vector.send(list(sent.values()), list(sent))

    def deciding(self, slots: Sequence[int]) -> None:
        """Called with the slots of open turns before their actions are sent."""

    def collect(self, wait_for_all: bool, timeout: float | None = None) -> None:
        """Process the environments' results, at most those available after ``timeout`` seconds if given."""
        if not self.in_flight:
            return
        ready = self.vector.recv(len(self.in_flight) if wait_for_all else 1, timeout)
        indices, observations, rewards, terminations, truncations, infos = ready
        for position in np.argsort(np.asarray(indices)):
            slot = int(indices[position])
            state, info = self.slots[slot], infos.rows[position]
            state.observation, state.image = text_and_image(observations, int(position))
            state.info = info
            state.writer.earned(float(rewards[position]), info)
            self.in_flight.remove(slot)
            if terminations[position] or truncations[position]:
                self._finish(slot, terminated=bool(terminations[position]), fault=info["fault"])
            else:
                self.waiting.append(slot)

    def _finish(self, slot: int, *, terminated: bool = False, fault: str = "") -> None:
        state = self.slots[slot]
        state.writer.end(state.observation, state.info, terminated=terminated, fault=fault)
        self._release(slot)

    def _release(self, slot: int) -> None:
        """Deliver the trajectory of a finished episode, and free its slot."""
        state = self.slots.pop(slot)
        trajectory = state.trajectory
        if self.final_prompts and trajectory.truncated and not trajectory.fault:
            state.writer.keep_final_prompt(self.agent, state.request(slot))
        self.agent.forget(trajectory.spec.episode)
        self.finished[trajectory.spec.episode] = trajectory
        self.free = sorted([*self.free, slot])
        self.on_episode(trajectory)
