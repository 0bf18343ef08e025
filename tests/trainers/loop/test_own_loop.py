"""The loop of the page "Own training loop" is short, and ends with the weights of ``turngym train``, bit for bit."""

import copy
import re
import runpy
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import group_specs, play, small_model

from turngym.__main__ import main
from turngym.agents import play_groups
from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.trainers import Critic, PreparedBatch, build, prepare

torch.set_num_threads(1)
PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "loop.md").read_text("utf8")


@pytest.mark.integration  # slow, and the tests below reach its parts one by one
def test_the_loop_of_the_page_equals_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (command,) = re.findall(r"^turngym (train (?:.*\\\n)*.*)$", PAGE, re.MULTILINE)
    loop, comparison = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len([line for line in loop.splitlines() if line]) <= 20
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command.replace("\\\n", " "))) == 0
    Path("loop.py").write_text(loop + comparison, "utf8")
    names = runpy.run_path("loop.py")
    before = load_model("runs/first/warmup").network.state_dict()
    after = names["model"].network.state_dict()
    assert not all(torch.equal(before[name], value) for name, value in after.items()), "something was learnt"


# prepare


def logprob_gap(batch: PreparedBatch) -> float:
    gaps = [(part.logprobs - part.old_logprobs)[part.action_mask].abs().max() for part in batch.micro_batches()]
    return float(torch.stack(gaps).max().detach())


PLAIN = {"grpo": {"kl_coef": 0.0}}
SHORT = AgentSettings(max_new_tokens=8)


@pytest.mark.parametrize(("temperature", "other"), [(1.0, 0.6), (0.6, 1.0)])
def test_log_probabilities_are_those_of_the_sampler_temperature_included(temperature: float, other: float) -> None:
    model = small_model()
    vector = make_vec("turngym/Sokoban-v0", 8, autoreset_mode="disabled", view="coordinates", max_turns=3)
    try:
        episodes = play_groups(vector, model, groups=2, group_size=4, temperature=temperature, settings=SHORT)
    finally:
        vector.close()
    assert logprob_gap(prepare(episodes, model, build("grpo", PLAIN), temperature=temperature)) < 1e-4
    assert logprob_gap(prepare(episodes, model, build("grpo", PLAIN), temperature=other)) > 1e-2


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_model()


@pytest.fixture(scope="module")
def episodes(model: LanguageModel) -> list[Trajectory]:
    return play(model, specs=group_specs(3, 4))


def gradient(model: LanguageModel, batch: PreparedBatch, max_tokens: int) -> list[torch.Tensor]:
    model.network.zero_grad()
    for inputs in batch.micro_batches(max_tokens=max_tokens):
        build("grpo", PLAIN).loss(inputs).total(inputs).backward()
    return [p.grad.clone() for p in model.network.parameters() if p.grad is not None]


def test_the_cut_into_micro_batches_changes_no_gradient(model: LanguageModel, episodes: list[Trajectory]) -> None:
    batch = prepare(episodes, model, build("grpo", PLAIN))
    assert len(list(batch.micro_batches(max_tokens=1))) == len(batch.sequences) > 1
    for a, b in zip(gradient(model, batch, 1), gradient(model, batch, 100_000), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def test_columns_of_the_credit_reach_every_micro_batch(model: LanguageModel, episodes: list[Trajectory]) -> None:
    batch = prepare(episodes, model, build("a3po", {"a3po": {"kl_coef": 0.0}}))
    staleness = torch.cat([part.numbers("staleness")[part.action_mask] for part in batch.micro_batches(max_tokens=300)])
    assert len(staleness) == len(batch.table.token_turn)


def test_what_a_method_needs_and_is_not_given_is_named(model: LanguageModel, episodes: list[Trajectory]) -> None:
    with pytest.raises(ConfigError, match=r"PPO needs values: pass critic=Critic\(policy\.network\)"):
        prepare(episodes, model, build("ppo"))
    with pytest.raises(ConfigError, match=r"GRPO needs reference logprobs: pass reference="):
        prepare(episodes, model, build("grpo", {"grpo": {"kl_coef": 0.1}}))
    critic = Critic(model.network)
    batch = prepare(episodes, model, build("ppo", {"ppo": {"kl_coef": 0.0}}), critic=critic)
    assert all(part.values is not None and part.returns is not None for part in batch.micro_batches())


def test_tokens_and_log_probabilities_that_do_not_match_are_refused(model: LanguageModel) -> None:
    def episode(**turn: Any) -> list[Trajectory]:
        turns = [Turn("", "", "go", completion_ids=(1, 2), **{"prompt_ids": (3,), "logprobs": (-1.0, -1.0), **turn})]
        return [Trajectory(EpisodeSpec(7, 0, 0), turns=turns, terminated=True)]

    with pytest.raises(
        ConfigError, match=r"turn 0 of episode 7 has 2 sampled tokens and 1 log-probabilities: an agent"
    ):
        prepare(episode(logprobs=(-1.0,)), model, build("rloo", {"rloo": {"reward_kl_coef": 0.0}}))
    with pytest.raises(ConfigError, match=r"turn 0 of episode 7 has 2 sampled tokens and no prompt: an agent"):
        prepare(episode(prompt_ids=()), model, build("rloo", {"rloo": {"reward_kl_coef": 0.0}}))


def test_a_batch_without_tokens_has_no_micro_batch(model: LanguageModel) -> None:
    scripted = Trajectory(EpisodeSpec(0, 0), turns=[Turn("", "", "go")], terminated=True)
    batch = prepare([scripted], model, build("rloo", {"rloo": {"reward_kl_coef": 0.0}}))
    assert batch.num_rows == 0 and list(batch.micro_batches()) == []
    assert list(prepare([], model, build("rloo", {"rloo": {"reward_kl_coef": 0.0}})).micro_batches()) == []


def test_a_reference_with_another_tokenizer_is_refused(model: LanguageModel, episodes: list[Trajectory]) -> None:
    with_kl = build("grpo", {"grpo": {"kl_coef": 0.1}})
    same = prepare(episodes, model, with_kl, reference=model).table.token_reference_logprob
    assert same is not None and same.isfinite().all()
    other = replace(model, tokenizer=copy.deepcopy(model.tokenizer))
    other.tokenizer.add_tokens(["another word"])
    with pytest.raises(ConfigError, match=r"tokenizer of the reference is not that of the policy: 1 of [\d,]+ token"):
        prepare(episodes, model, with_kl, reference=other)
