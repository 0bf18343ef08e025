"""Episodes that begin in the middle of other ones: the same state, the same memory, new samples."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from small import agent_of, group_specs, small_model, sokoban_vector
from worker_envs import DiesWhenRestored, Unsaved

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.rollout import rollout
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, SnapshotUnsupported


def branches(parents: Sequence[Trajectory], turn: int, first: int = 100) -> list[EpisodeSpec]:
    return [EpisodeSpec(first + k, t.spec.seed, t.spec.group, branch=Branch(t, turn)) for k, t in enumerate(parents)]


def told(turns: Sequence[Turn]) -> list[tuple[object, ...]]:
    return [
        (t.observation, t.anchor, t.action, t.reward, t.action_is_valid, t.prompt_ids, t.completion_ids) for t in turns
    ]


@pytest.mark.parametrize("mode", ["window", "conversation"])
@pytest.mark.parametrize("schedule", ["lockstep", "continuous"])
def test_a_greedy_branch_goes_on_as_the_episode_did(mode: str, schedule: str) -> None:
    """State and memory are both back: the prompts, which show the turns before the branch, are equal to the token."""
    model, vector = small_model(), sokoban_vector(3, max_turns=5)
    agent = agent_of(model, mode, temperature=0.0, history=2) if mode == "window" else agent_of(model, mode, 0.0)
    whole = rollout(vector, agent, group_specs(2, 2), snapshots=True, schedule=schedule)  # type: ignore[arg-type]
    for turn in (0, 2, 4):
        found = rollout(vector, agent, branches(whole, turn), schedule=schedule)  # type: ignore[arg-type]
        for parent, branch in zip(whole, found, strict=True):
            assert told(branch.turns) == told(parent.turns[turn:])
            assert branch.earlier_turns == tuple(parent.turns[:turn])
            assert branch.reward_sum == parent.reward_sum
            assert (branch.success, branch.truncated, branch.instance) == (
                parent.success,
                parent.truncated,
                parent.instance,
            )
            assert branch.spec.group == parent.spec.group
            assert branch.final_anchor == parent.final_anchor != ""
    vector.close()


def test_a_memory_that_was_lost_would_be_noticed() -> None:
    """Negative oracle for the test above: with an empty memory the prompts differ."""
    model, vector = small_model(), sokoban_vector(2, max_turns=5)
    agent = agent_of(model, "conversation", temperature=0.0)
    whole = rollout(vector, agent, group_specs(1, 1), snapshots=True)
    agent.recall = lambda episode, turns: None  # type: ignore[method-assign]
    (found,) = rollout(vector, agent, branches(whole, 2))
    vector.close()
    assert told(found.turns) != told(whole[0].turns[2:])


def test_branches_sample_anew_and_the_same_ones_again() -> None:
    model, vector = small_model(), sokoban_vector(4)
    whole = rollout(vector, agent_of(model), group_specs(1, 1), snapshots=True)
    specs = branches(whole * 3, 1)
    first, again = (rollout(vector, agent_of(model), specs) for _ in range(2))
    vector.close()
    completions = [[turn.completion_ids for turn in t.turns] for t in first]
    assert completions == [[turn.completion_ids for turn in t.turns] for t in again]
    assert len({tuple(each) for each in completions}) == 3
    assert {t.turns[0].prompt_ids for t in first} == {whole[0].turns[1].prompt_ids}


def test_a_branch_of_a_branch_knows_all_turns_before_it() -> None:
    model, vector = small_model(), sokoban_vector(2)
    agent = agent_of(model, "conversation")
    whole = rollout(vector, agent, group_specs(1, 1), snapshots=True)
    (child,) = rollout(vector, agent, branches(whole, 1), snapshots=True)
    (grandchild,) = rollout(vector, agent, branches([child], 2, first=200))
    vector.close()
    assert grandchild.earlier_turns == (whole[0].turns[0], *child.turns[:2])
    before = child.turns[1].prompt_ids + child.turns[1].completion_ids
    assert grandchild.turns[0].prompt_ids[: len(before)] == before
    assert len(grandchild.earlier_turns) + len(grandchild.turns) == 4


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_snapshots_go_from_one_vector_to_another(backend: str) -> None:
    model, vector = small_model(), sokoban_vector(2)
    whole = rollout(vector, agent_of(model, temperature=0.0), group_specs(2, 1), snapshots=True)
    with make_vec(
        "turngym/Sokoban-v0", 2, backend=backend, autoreset_mode="disabled", view="coordinates", max_turns=4
    ) as other:
        found = rollout(other, agent_of(model, temperature=0.0), branches(whole, 2), snapshots=True)
    vector.close()
    assert [told(t.turns) for t in found] == [told(t.turns[2:]) for t in whole]
    assert [t.turns[0].snapshot for t in found] == [t.turns[2].snapshot for t in whole]


def test_without_being_asked_turns_keep_nothing() -> None:
    model, vector = small_model(), sokoban_vector(2)
    whole = rollout(vector, agent_of(model), group_specs(1, 1))
    assert {turn.snapshot for turn in whole[0].turns} == {b""}
    assert {turn.entropies for turn in whole[0].turns} == {()}
    with pytest.raises(ConfigError, match=r"branch off at turn 1 of episode 0, which has no snapshot.*snapshots=True"):
        rollout(vector, agent_of(model), branches(whole, 1))
    vector.close()


class Forgetful(Agent):
    """An agent that was written before there were branches."""

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        return [Decision("up") for _ in requests]


def test_an_agent_that_cannot_be_told_of_earlier_turns_says_so() -> None:
    vector = sokoban_vector(2)
    whole = rollout(vector, Forgetful(), group_specs(1, 1), snapshots=True)
    assert len(rollout(vector, Forgetful(), branches(whole, 0))) == 1, "the beginning needs no memory"
    with pytest.raises(ConfigError, match="Forgetful cannot continue from the middle of an episode"):
        rollout(vector, Forgetful(), branches(whole, 1))
    assert rollout(vector, make_agent("expert"), branches(whole, 1))[0].success == 1
    assert not rollout(vector, make_agent("random"), branches(whole, 1))[0].fault
    vector.close()


def test_a_snapshot_that_cannot_be_read_is_the_fault_of_its_branch_alone() -> None:
    model, vector = small_model(), sokoban_vector(3)
    agent = agent_of(model, temperature=0.0)
    whole = rollout(vector, agent, group_specs(3, 1), snapshots=True)
    damaged = [replace(turn, snapshot=b"{}") for turn in whole[1].turns]
    mixed = [whole[0], replace(whole[1], turns=damaged), whole[2]]
    found = rollout(vector, agent, branches(mixed, 1))
    assert found[1].fault.startswith("restore failed: ")
    assert found[1].turns == []
    assert [told(found[k].turns) for k in (0, 2)] == [told(whole[k].turns[1:]) for k in (0, 2)]
    again = rollout(vector, agent, group_specs(3, 1))
    vector.close()
    assert [told(t.turns) for t in again] == [told(t.turns) for t in whole], "the slot can be used again"


def test_an_environment_without_snapshots_is_told_by_its_error() -> None:
    with make_vec(env_fns=[Unsaved] * 2, autoreset_mode="disabled") as vector:
        with pytest.raises(SnapshotUnsupported, match="a live web page cannot be saved"):
            rollout(vector, make_agent("random"), group_specs(1, 2), snapshots=True)
        assert len(rollout(vector, make_agent("random"), group_specs(1, 2))) == 2


def test_a_worker_that_dies_over_a_restore_loses_that_branch_only() -> None:
    with make_vec(
        env_fns=[DiesWhenRestored] * 3, backend="process", num_workers=3, autoreset_mode="disabled"
    ) as vector:
        whole = rollout(vector, make_agent("expert"), group_specs(1, 1), snapshots=True)[0]
        assert len(whole.turns) == 3
        specs = [EpisodeSpec(10 + k, 0, branch=Branch(whole, k)) for k in range(3)]
        found = rollout(vector, make_agent("expert"), specs)
        assert [bool(t.fault) for t in found] == [False, True, False]
        assert [len(t.turns) for t in found] == [3, 0, 1]
        assert [t.success for t in found] == [1, -1, 1]


def test_entropies_are_those_of_the_distributions_that_are_sampled_from() -> None:
    model, vector = small_model(), sokoban_vector(4)
    agent = transformers_agent(model, AgentSettings(temperature=0.7, max_new_tokens=5, prompt={"instructions": False}))
    agent.sampling = replace(agent.sampling, entropies=True)
    for trajectory in rollout(vector, agent, group_specs(1, 2)):
        for turn in trajectory.turns:
            ids = turn.prompt_ids + turn.completion_ids
            with torch.no_grad():
                logits = model.network(torch.tensor([ids])).logits[0, len(turn.prompt_ids) - 1 : -1].double() / 0.7
            p = logits.softmax(-1)
            expected = -(p * p.log()).sum(-1) / math.log(p.shape[-1])
            assert turn.entropies == pytest.approx(expected.tolist(), abs=1e-5)
    vector.close()
