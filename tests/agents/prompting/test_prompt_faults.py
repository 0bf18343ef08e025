"""A text that no tokenizer takes, and a prompt that cannot be built: both concern one episode and no other."""

from typing import Any

import pytest
from chat_servers import Reply, chat_server
from small import small_model
from worker_envs import Odd, Surrogate

from turngym.agents.core import Agent
from turngym.agents.episodes.evaluate import play_all, summarise
from turngym.agents.episodes.rollout import rollout
from turngym.agents.episodes.self_play import LEARNER, GameSpec, SelfPlay
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.players.styled import styled
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.trajectory import EpisodeSpec
from turngym.envs.tablegames.kuhn_poker import KuhnPoker
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.trainers.loop.sft import DemonstrationAgent

RAISING = (
    "{% for m in messages %}{% if 'poison' in m.content %}{{ raise_exception('this text is not for me') }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def vector_of(kind: type[Odd], slots: int = 3, **options: Any) -> TextVectorEnv:
    return make_vec(env_fns=[kind] * slots, autoreset_mode="disabled", **options)


def raising_model() -> Any:
    model = small_model()
    model.tokenizer.chat_template = RAISING
    return model


SPECS = [EpisodeSpec(i, i, i) for i in range(6)]


def settings(**prompt: Any) -> AgentSettings:
    return AgentSettings(max_new_tokens=3, prompt={"instructions": False, **prompt})


@pytest.mark.parametrize("mode", ["window", "conversation"])
@pytest.mark.parametrize("backend", ["sync", "process"])
def test_a_lone_surrogate_from_an_environment_stops_nothing(mode: str, backend: str) -> None:
    vector = vector_of(Surrogate, backend=backend)
    agent = transformers_agent(small_model(), settings(mode=mode, legal_actions=True, history=2, instructions=True))
    try:
        played = rollout(vector, agent, SPECS)
    finally:
        vector.close()
    assert [trajectory.fault for trajectory in played] == [""] * 6
    assert {turn.anchor for t in played[1::2] for turn in t.turns} == {"an output \ufffd"}
    for trajectory in played:
        for text in (trajectory.instance, *(turn.observation for turn in trajectory.turns)):
            assert text.encode()


def test_an_episode_with_surrogates_can_be_saved_and_brought_back() -> None:
    vector = vector_of(Surrogate, slots=1)
    try:
        vector.reset(seed=[1])
        assert vector.step(["up"])[0] == ("an output \ufffd",)
        vector.restore(vector.snapshot([0]), [0])
        assert vector.step(["up"])[0] == ("an output \ufffd",)
    finally:
        vector.close()


@pytest.mark.parametrize("mode", ["window", "conversation"])
@pytest.mark.parametrize("schedule", ["lockstep", "continuous"])
def test_a_prompt_that_cannot_be_built_ends_its_episode_only(mode: str, schedule: str) -> None:
    vector = vector_of(Odd)
    agent = transformers_agent(raising_model(), settings(mode=mode))
    played = rollout(vector, agent, SPECS, schedule=schedule)  # type: ignore[arg-type]
    vector.close()
    assert [bool(trajectory.fault) for trajectory in played] == [False, True] * 3
    assert [len(trajectory.turns) for trajectory in played] == [3, 1] * 3
    assert "prompt: TemplateError: this text is not for me" in played[1].fault
    assert all(trajectory.truncated and not trajectory.terminated for trajectory in played[1::2])


def test_such_an_episode_counts_as_a_failure() -> None:
    vector = vector_of(Odd)
    result = summarise("odd", play_all(vector, transformers_agent(raising_model(), settings()), SPECS))
    vector.close()
    assert (result.success.count, result.faults) == (6, 3)


@pytest.mark.parametrize("style", ["react", "summary"])
def test_styles_end_such_an_episode_only(style: str) -> None:
    vector = vector_of(Odd)
    played = rollout(vector, styled(transformers_agent(raising_model(), settings()), style), SPECS)
    vector.close()
    assert [bool(trajectory.fault) for trajectory in played] == [False, True] * 3
    assert [len(trajectory.turns) for trajectory in played] == [3, 1] * 3


def test_demonstrations_leave_such_an_episode_out() -> None:
    vector = vector_of(Odd)
    played = rollout(vector, DemonstrationAgent(transformers_agent(raising_model(), settings())), SPECS)
    vector.close()
    assert [bool(trajectory.fault) for trajectory in played] == [False, True] * 3


def test_self_play_drops_such_a_game_only() -> None:
    model = small_model()
    model.tokenizer.chat_template = RAISING.replace("'poison' in", "'card is K' in")
    play = SelfPlay(KuhnPoker, 2, env_id="turngym/KuhnPoker-v0")
    agents: dict[str, Agent] = {LEARNER: transformers_agent(model, settings())}  # it cannot read who holds a king
    played = play.play([GameSpec(number, number, number) for number in range(6)], agents)
    faults = [bool(trajectory.fault) for trajectory in played]
    assert len(played) == 12 and any(faults) and not all(faults)
    assert all(len({t.fault for t in played[i : i + 2]}) == 1 for i in range(0, 12, 2))


def test_a_first_prompt_that_does_not_fit_leaves_an_episode_without_turns() -> None:
    agent = transformers_agent(small_model(), settings(max_prompt_tokens=3))
    vector = vector_of(Odd)
    played = rollout(vector, agent, SPECS)
    vector.close()
    assert [trajectory.truncation_reason for trajectory in played] == ["context"] * 6
    assert all(t.truncated and not t.fault and not t.turns and t.success == 0 and t.score == 0 for t in played)
    assert "more than max_prompt_tokens=3: raise it" in played[0].truncation_detail


class Long(Odd):
    shown = "wall " * 300


@pytest.mark.parametrize("schedule", ["lockstep", "continuous"])
@pytest.mark.parametrize("limit", [{"max_prompt_tokens": 200}, {"context": 200}])
def test_a_prompt_that_grows_too_long_truncates_its_episode_only(schedule: str, limit: dict[str, int]) -> None:
    agent = transformers_agent(small_model(), settings(**{k: v for k, v in limit.items() if k != "context"}))
    agent.context = limit.get("context", 0)
    vector = vector_of(Long)
    played = rollout(vector, agent, SPECS, schedule=schedule)  # type: ignore[arg-type]
    vector.close()
    assert [trajectory.truncation_reason for trajectory in played] == ["environment", "context"] * 3
    assert [len(trajectory.turns) for trajectory in played] == [3, 1] * 3
    assert not any(trajectory.fault for trajectory in played)
    assert all(t.truncated and not t.terminated and not t.final_prompt_ids for t in played[1::2])
    long = played[1].truncation_detail
    assert "more than max_prompt_tokens=200" in long or "more than the 197 that the model's context has room" in long


def test_a_server_is_sent_texts_that_are_valid() -> None:
    with chat_server(lambda body: Reply()) as server:
        agent = make_agent(f"openai:model@{server.url}", settings(history=2, legal_actions=True))
        vector = vector_of(Surrogate)
        played = rollout(vector, agent, SPECS[:2])
        vector.close()
    assert len(played) == 2 and not any(trajectory.fault for trajectory in played)
