"""Rollouts whose kept keys and values do not fit into their budget: fewer episodes are played at once."""

from small import group_specs, small_model, sokoban_vector

from turngym.agents.episodes.rollout import Schedule, rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.sampler import Sampler
from turngym.agents.players import AgentSettings
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.trajectory import Trajectory

GROUPS, SIZE = 3, 4


def conversations(
    budget: int, schedule: Schedule = "lockstep", mode: str = "conversation"
) -> tuple[ModelAgent, int, list[Trajectory]]:
    """The agent, the tokens of prompts that it computed, and the episodes."""
    prompt = {"mode": mode, "instructions": False, "max_prompt_tokens": 900}
    settings = AgentSettings(max_new_tokens=5, prompt=prompt, server={"cache_tokens": budget})
    agent = transformers_agent(small_model(), settings)
    vector = sokoban_vector(GROUPS * SIZE, max_turns=6)
    try:
        played = rollout(vector, agent, group_specs(GROUPS, SIZE), schedule=schedule)
    finally:
        vector.close()
    assert isinstance(agent.generate, Sampler)
    return agent, agent.generate.counts.prefilled, played


def texts(episodes: list[Trajectory]) -> list[list[str]]:
    return [[turn.completion for turn in each.turns] for each in episodes]


def test_a_small_budget_computes_no_prompt_again() -> None:
    _, once, expected = conversations(100_000)
    longest = max(len(turn.prompt_ids) + len(turn.completion_ids) for each in expected for turn in each.turns)
    need = GROUPS * SIZE * (longest + 1)
    for share in (0.75, 0.31):
        _, prefilled, found = conversations(int(share * need))
        assert prefilled <= 1.1 * once
        assert texts(found) == texts(expected)


def test_continuous_rollouts_have_room_as_well() -> None:
    _, _, expected = conversations(100_000)
    _, _, found = conversations(1200, "continuous")
    assert texts(found) == texts(expected)


def test_the_room_before_the_first_turn_is_that_of_the_longest_prompts() -> None:
    sampler = Sampler(small_model(), 10_000, appends=True)
    assert [sampler.most_sequences(tokens) for tokens in (905, 99, 20_000)] == [11, 100, 1]
    agent, _, _ = conversations(1200, mode="window")
    assert agent.room() == 0  # windows are rewritten at every turn
