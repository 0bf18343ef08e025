"""An agent program that shows the model what the built-in agent shows it gives the same tokens and gradients."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small import agent_of, small_model, sokoban_vector
from torch import Tensor

from turngym.agents.agent_program import ProgramConfig
from turngym.agents.core import Agent
from turngym.agents.episodes.rollout import rollout
from turngym.agents.gateway import Gateway, GatewayLimits
from turngym.agents.gateway.programs import playing, with_tokens
from turngym.agents.models.completion import Completion
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.sampler import Sampler
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.trainers.algorithms import build
from turngym.trainers.engine.prepared import prepare

PLAYER = Path(__file__).parents[3] / "support" / "gateway_player.py"
SPECS = [EpisodeSpec(k, 100 + k, k // 3) for k in range(6)]
METHODS = ("grpo", "dapo", "reinforce", "gspo")


class ByPrompt:
    """A sampler whose random numbers depend on the prompt alone, so that the same prompts get the same answers."""

    def __init__(self, model: LanguageModel) -> None:
        self._sampler = Sampler(model, appends=True)

    def __call__(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        drawn = [turn_uniforms(0, 0, 0, 0, len(each), repr(list(p))) for p, each in zip(prompts, uniforms, strict=True)]
        found = []
        for prompt, draws in zip(prompts, drawn, strict=True):  # one at a time: batches differ between the two sides
            found += self._sampler([prompt], [draws], sampling)
        return found


def played_by(agent: Agent) -> list[Trajectory]:
    vector = sokoban_vector(len(SPECS))
    try:
        return rollout(vector, agent, SPECS, final_prompts=False)
    finally:
        vector.close()


def rewarded(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Other rewards in each turn: those of a random model are equal, and there would be no gradient."""
    return [
        replace(
            each,
            turns=[replace(turn, reward=float((7 * k + 3 * j) % 5)) for j, turn in enumerate(each.turns)],
            success=k % 2,
        )
        for k, each in enumerate(trajectories)
    ]


def gradients(model: LanguageModel, method: str, trajectories: list[Trajectory]) -> list[Tensor]:
    algorithm = build(method, {})
    model.network.zero_grad()
    reference = copy.deepcopy(model.network).requires_grad_(False)
    for inputs in prepare(trajectories, model, algorithm, reference=reference).micro_batches():
        algorithm.loss(inputs).total(inputs).backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.network.parameters()]


@pytest.mark.integration
def test_the_same_tokens_give_the_same_gradients() -> None:
    model = small_model()
    native = agent_of(model, "conversation")
    native.generate = ByPrompt(model)
    expected = played_by(native)
    gateway = Gateway(model, ByPrompt(model), context=model.context, limits=GatewayLimits(max_new_tokens=5))
    command = f"{sys.executable} -I -S {PLAYER} {{base_url}} {{env_url}} {{key}}"
    with playing(gateway, ProgramConfig(command=command)) as programs:
        played = played_by(programs)
        programs.settle()
        found = [with_tokens(each, programs.played[each.spec.episode]) for each in played]
        report = gateway.report()
    for mine, theirs in zip(found, expected, strict=True):
        assert len(mine.turns) == len(theirs.turns) > 2
        for a, b in zip(mine.turns, theirs.turns, strict=True):
            assert (a.prompt_ids, a.completion_ids, a.logprobs) == (b.prompt_ids, b.completion_ids, b.logprobs)
            assert (a.reward, a.action_is_valid) == (b.reward, b.action_is_valid)
    assert len({turn.completion_ids for each in found for turn in each.turns}) > 10
    assert report["calls/forked"] == 0 and report["calls/extended"] > report["calls/root"] == len(SPECS)
    for method in METHODS:
        ours, natives = (gradients(model, method, rewarded(each)) for each in (found, expected))
        assert max(float(each.abs().max()) for each in natives) > 1e-6
        assert all(torch.equal(a, b) for a, b in zip(ours, natives, strict=True)), method
