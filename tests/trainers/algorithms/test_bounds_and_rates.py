"""Methods with targets of ratios, quantiles of scores, rates of tasks and running deviations: worked numbers."""

import json
from dataclasses import replace

import pytest
import torch
from test_group_methods import close, episode, of
from test_weighted_groups import table_of
from torch import tensor

from turngym.agents.trajectory import EpisodeSpec
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.clipped import PolicyMethod
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.turn_table import turn_table


def test_gbpo_pushes_those_off_the_median_alone_and_holds_the_others() -> None:
    table = table_of([[1, 0, 0, 0], [1, 1, 1, 0]])
    close(of("gbpo", table), [1.499997, *[-0.499999] * 3, *[0.499999] * 3, -1.499997], 2e-6)
    offsets = build("gbpo").credit(table).columns["gbpo_offset"]
    assert isinstance(offsets, torch.Tensor)
    close(offsets, [0.3, 0, 0, 0, 0, 0, 0, -0.3])
    soft = build("gbpo", {"gbpo": {"temperature": 1.0}}).credit(table).columns["gbpo_offset"]
    assert isinstance(soft, torch.Tensor)
    close(soft[:2], [0.6 / (1 + torch.exp(tensor(-1.999996)).item()) - 0.3, 0])


def test_gbpo_pulls_a_ratio_back_that_has_passed_its_target() -> None:
    method = build("gbpo")
    assert isinstance(method, PolicyMethod)
    logprobs = torch.tensor([[1.2, 1.4, 0.6, 1.1]], dtype=torch.float64).log().requires_grad_()
    zeros, mask = torch.zeros(1, 4).double(), torch.ones(1, 4).bool()
    advantages = tensor([[2.0, 2.0, -2.0, 2.0]]).double()
    columns = {"gbpo_offset": torch.tensor([[0.3, 0.3, -0.3, 0.0]], dtype=torch.float64)}
    inputs = LossInputs(logprobs, zeros, advantages, mask, tensor([[0, 1, 2, 3]]), {}, columns=columns)
    found = method.surrogate(inputs).policy
    close(found.loss, [[0.2, 0.2, 0.2, 0.2]], 1e-9)
    assert found.clipped.tolist() == [[False, True, True, False]]
    close(torch.autograd.grad(found.loss.sum(), logprobs)[0], [[-2.4, 2.8, -1.2, 2.2]], 1e-9)


def test_gbpo_draws_an_invalid_turn_of_equal_failures_down() -> None:
    table = turn_table([episode([0, 0], invalid=[1]), episode([0, 0])])
    credit = build("gbpo", {"gbpo": {"invalid_penalty": 0.1}}).credit(table)
    close(credit.advantages, [0, -0.1, 0, 0])
    offsets = credit.columns["gbpo_offset"]
    assert isinstance(offsets, torch.Tensor)
    close(offsets, [0, -0.3, 0, 0])


def test_riskpo_adds_the_answers_of_a_bundle_up_and_counts_its_lower_part() -> None:
    table = table_of([[1, 0, 1], [0, 0, 1]])
    method = build("riskpo", {"riskpo": {"share": "std"}})
    method.load_state({"followed": [0.25, 0.75]})
    close(method.credit(table).advantages, [-0.494870, -3.587795, 0] * 2, 2e-6)
    close(of("riskpo", table_of([[1, 0], [5, 5], [0, 1]]), quantiles="batch"), [0] * 6)
    more = table_of([[1, 0, 1], [0, 0, 1, 9], [1]])
    assert of("riskpo", more)[[6, 7]].tolist() == [0, 0], (
        "no paper has a place for the fourth answer, nor for one alone"
    )


def test_riskpo_makes_bundles_of_about_equal_size_and_follows_their_quantiles() -> None:
    table = table_of([[1, 0]] * 7)
    method = build("riskpo", {"riskpo": {"bundle": 3}})
    for _ in range(2):
        credit = method.credit(table)
        method.update_state([], credit)
    assert method.state() == {"followed": [pytest.approx(0.02), pytest.approx(1.04)]}
    with pytest.raises(ConfigError, match=r"low must be less than high=0\.1"):
        build("riskpo", {"riskpo": {"high": 0.1}})


def test_spo_remembers_the_rate_of_each_task_and_forgets_old_tasks() -> None:
    method = build("spo", {"spo": {"tasks": 2}})

    def played(*results: tuple[int, float]) -> list[float]:
        given = [replace(episode([reward]), spec=EpisodeSpec(k, seed, k)) for k, (seed, reward) in enumerate(results)]
        collected = method.collect(lambda: given)
        credit = method.credit(turn_table(collected))
        method.update_state(collected, credit)
        return [float(each) for each in credit.advantages]

    assert played((1, 1.0), (2, 0.0)) == pytest.approx([0.5**0.5, -(0.5**0.5)])
    rates = [4.5 / 8, 3.5 / 8]
    gaps = [1 - rates[0], 1 - rates[1]]
    middle, spread = sum(gaps) / 2, abs(gaps[0] - gaps[1]) / 2**0.5
    assert played((1, 1.0), (2, 1.0)) == pytest.approx([(each - middle) / spread for each in gaps])
    played((3, 0.0))
    assert [json.loads(name)[1] for name, *_ in method.state()["rates"]] == [2, 3]


def test_ppo_max_divides_rewards_by_the_deviation_of_all_returns_so_far() -> None:
    method = build("ppo_max", {"ppo_max": {"reward_kl_coef": 0.0, "lam": 1.0, "whiten": False, "reward_clip": 2.0}})

    def credited(*returns: float) -> list[float]:
        table = turn_table([episode([each]) for each in returns])
        nothing = torch.zeros(len(returns), dtype=torch.float64)
        credit = method.credit(table.with_values(nothing, nothing, nothing))
        method.update_state([], credit)
        return [float(each) for each in credit.advantages]

    assert credited(1, 3) == pytest.approx([1 / 2**0.5, 2])
    assert credited(2, 2, 7) == pytest.approx([2 / 2.345208, 2 / 2.345208, 2], abs=1e-6)
    assert method.state() == {"moments": [5, 3, 22]}
    assert credited(1e200, 2) == credited(1.7e308, -1.7e308) == [0, 0]  # nothing to learn, now or later
    assert method.state() == {"moments": [5, 3, 22]}


def test_rloo_with_the_divergence_in_its_reward_has_the_coefficients_of_copg() -> None:
    """Returns of 1 and 0, log-ratios to the reference of .5 and -.2, and a weight of .1."""
    table = table_of([[1, 0]])
    table = replace(table, token_reference_logprob=table.token_logprob - tensor([0.5, -0.2]).double())
    credit = build("rloo", {"rloo": {"reward_kl_coef": 0.1}}).credit(table)
    close(credit.advantages, [0.93, -0.93])


def test_rto_adds_what_the_teacher_prefers_to_the_reward_of_each_token() -> None:
    played = [replace(episode([0, 20], tokens=[1, 2]), terminated=True)]
    table = turn_table(played)
    own, none = tensor([-1.0, -1.0, -1.0]).double(), torch.zeros(3).double()
    table = table.with_values(none[:2], none, none[:1])
    table = replace(table, token_logprob=own, token_reference_logprob=own - tensor([0.0, 1.0, 0.0]).double())
    teacher = tensor([-0.5, -0.1, float("nan")]).double()
    method = build("rto", {"rto": {"lam": 0.0, "whiten": False}})
    credit = method.credit(replace(table, token_teacher_logprob=teacher))
    close(credit.advantages, [0.05 * 0.5, 0.05 - 0.01, 10.0], 1e-9)  # the second is cut, the third has no teacher
    assert credit.metrics["rto_preference"] == pytest.approx(0.075 / 3)
    with pytest.raises(ConfigError, match="no 'token_reference_logprob'"):
        method.credit(replace(table, token_teacher_logprob=teacher, token_reference_logprob=None))
