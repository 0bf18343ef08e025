"""Agents that are killed in mid-call: no answer is lost, none is in a log twice, the other episodes are complete."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from small import small_model

from turngym.agents.gateway import Gateway, GatewayLimits, GatewayRules, serving, trajectory_of
from turngym.agents.models.completion import Completion
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling

PROGRAM = Path(__file__).parents[3] / "support" / "caller_program.py"
AGENTS, KILLED, CALLS = 20, 2, 12
FREE = 10
"""Answers before the policy waits: fewer than an agent asks for, so that all of them are in mid-call then."""
PATIENCE = 120.0


class Numbered:
    """A policy that writes a number of its own each time, and waits after the first answers until it may continue."""

    def __init__(self, model: LanguageModel) -> None:
        self.waits, self.may_go_on = threading.Event(), threading.Event()
        self.written: list[tuple[int, ...]] = []
        self._model = model

    def __call__(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        if len(self.written) >= FREE:
            self.waits.set()
            assert self.may_go_on.wait(PATIENCE)
        found = []
        for _ in prompts:
            ids = (*self._model.tokenizer.encode(f"go {len(self.written)}"), min(self._model.stop_ids))
            self.written.append(ids)
            found.append(Completion(ids, (-0.5,) * len(ids)))
        return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.integration
def test_nothing_is_lost_when_agents_are_killed_in_mid_call() -> None:
    model = small_model()
    policy = Numbered(model)
    limits, rules = GatewayLimits(idle_seconds=PATIENCE), GatewayRules(timeout="truncated")
    gateway = Gateway(model, policy, context=model.context, limits=limits, rules=rules)
    episodes = [gateway.open(group=k // 4) for k in range(AGENTS)]
    with serving(gateway) as url:
        agents = [
            subprocess.Popen(
                [sys.executable, "-I", "-S", PROGRAM, f"{url}/episode/{episode.id}/v1", episode.key, str(CALLS)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for episode in episodes
        ]
        assert policy.waits.wait(PATIENCE)
        until(lambda: sum(len(episode.calls) for episode in episodes) == len(policy.written))
        until(lambda: all(episode.at_once == 1 for episode in episodes))
        for agent in agents[:KILLED]:
            agent.kill()
        printed = [agent.communicate()[0].split("\n")[:-1] for agent in agents[:KILLED]]
        policy.may_go_on.set()
        printed += [agent.communicate(timeout=PATIENCE)[0].split("\n")[:-1] for agent in agents[KILLED:]]
        until(lambda: all(episode.at_once == 0 for episode in episodes))
    assert [agent.returncode for agent in agents[KILLED:]] == [0] * (AGENTS - KILLED)
    logged = [call.completion_ids for episode in episodes for call in episode.calls]
    assert sorted(logged) == sorted(policy.written), "an answer is lost, or in two logs"
    assert [len(received) for received in printed[KILLED:]] == [CALLS] * (AGENTS - KILLED)
    assert [len(e.calls) - len(r) for e, r in zip(episodes, printed, strict=True)] == [1] * KILLED + [0] * (
        AGENTS - KILLED
    )
    for episode, received in zip(episodes, printed, strict=True):
        kept = [call.message.text for call in episode.calls if call.delivered]
        assert kept == received and len(trajectory_of(episode).turns) == len(received)
        assert len(trajectory_of(episode, with_abandoned=True).turns) == len(episode.calls)
    for episode in episodes:
        episode.last_use = -PATIENCE
    assert len(gateway.end_idle()) == AGENTS and {episode.status for episode in episodes} == {"truncated"}
    assert trajectory_of(episodes[0]).truncated and "silent" in trajectory_of(episodes[0]).truncation_detail
