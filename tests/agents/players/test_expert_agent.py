"""The expert agent: what the solvers say, and episodes that it gives up where one is lost."""

from collections.abc import Iterator

import pytest
from small import agent_of, small_model
from worker_envs import Fork

from turngym.agents.episodes.rollout import rollout
from turngym.agents.players.expert import GIVEN_UP, ExpertAgent
from turngym.agents.trajectory import EpisodeSpec
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.errors import ConfigError
from turngym.trainers.loop.sft import demonstrations


@pytest.fixture(params=["sync", "process"])
def vector(request: pytest.FixtureRequest) -> Iterator[TextVectorEnv]:
    found = make_vec(env_fns=[Fork] * 4, backend=request.param, autoreset_mode="disabled")
    yield found
    found.close()


def test_an_episode_whose_solver_is_lost_is_lost_and_the_others_are_not(vector: TextVectorEnv) -> None:
    played = rollout(vector, ExpertAgent(), [EpisodeSpec(i, i, i) for i in range(16)])
    marked = [each for each in played if each.turns[0].observation == "marked"]
    plain = [each for each in played if each.turns[0].observation == "plain"]
    assert len(marked) > 2 and len(plain) > 2 and len(marked) + len(plain) == 16
    for each in plain:
        assert each.success == 1 and [turn.action for turn in each.turns] == ["walk"] * 5
    for each in marked:
        assert each.success == 0 and each.truncated and not each.fault
        assert [turn.action for turn in each.turns] == ["walk"] * 2 + [GIVEN_UP] * 5
        assert [turn.action_is_valid for turn in each.turns] == [True] * 2 + [False] * 5


def test_what_was_given_up_is_no_demonstration(vector: TextVectorEnv) -> None:
    shown = demonstrations(vector, agent_of(small_model()), 16, 0)
    assert 2 < len(shown) < 14 and all(each.success == 1 for each in shown)
    assert {each.turns[0].observation for each in shown} == {"plain"}


def test_an_expert_without_a_vector_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"call attach\(vector\) first"):
        ExpertAgent().act([])
