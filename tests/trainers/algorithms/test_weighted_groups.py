"""Methods that weigh groups, episodes or parts of the reward: worked numbers, and what they do at the edges."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from test_group_methods import close, episode, of
from test_multi_agent_credit import by_episode, game
from test_policy_losses import GROUPS
from torch import Tensor, tensor

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.clipped import PolicyMethod
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.turn_table import TurnTable, turn_table


def table_of(groups: Sequence[Sequence[float]], tokens: list[int] | None = None) -> TurnTable:
    """Episodes of one turn, in groups."""
    found = []
    for number, group in enumerate(groups):
        count = tokens[number] if tokens else 1
        found += [episode([r], tokens=[count], group=number) for r in group]
    return turn_table(found)


def firsts(name: str, table: TurnTable, **config: object) -> Tensor:
    """The advantage of each episode's first token."""
    return of(name, table, **config)[table.first_tokens()]


def test_dgpo_weighs_hard_groups_up_and_fills_the_place_of_groups_without_a_difference() -> None:
    expected = [2.248556, *[-0.749519] * 3, 0.583726, 0.583726, -1.751177, 0.583726]
    close(firsts("dgpo", table_of(GROUPS, [25, 20])), expected, 2e-6)
    idle = firsts("dgpo", table_of([*GROUPS, [1, 1]], [25, 20, 90]))
    close(idle, [2 * each for each in expected] + [0, 0], 4e-6)  # as many tokens again, in a group that teaches nothing


def test_dgpo_reads_its_rate_from_a_part_and_refuses_one_that_is_not_there() -> None:
    parts = [{"right": right, "short": short} for right, short in ((1, 0.5), (0, 0.25), (1, 0), (1, 0.25))]
    table = turn_table(
        [
            replace(episode([sum(each.values())], parts=[each]), spec=episode([], group=k // 2).spec)
            for k, each in enumerate(parts)
        ]
    )
    found = firsts("dgpo", table, rate="right", temperature=1.0)
    weight = 2 * math.exp(-0.5) / (math.exp(-0.5) + math.exp(-1))
    close(found[0], weight * 2 * 0.625 / (1.25 + 1e-4), 1e-9)
    with pytest.raises(ConfigError, match=r"dgpo reads 'rihgt', a part of no reward\. Did you mean"):
        of("dgpo", table, rate="rihgt")


def test_a_part_that_hardly_differs_fades_out_of_dvao() -> None:
    parts = [{"win": 1.0, "form": 0.2}, {"win": 0.0, "form": 0.4}, {"win": 1.0, "form": 0.0}, {"win": 0.0, "form": 0.2}]
    table = turn_table([episode([sum(each.values())], parts=[each]) for each in parts])
    close(of("dvao", table), [0.779517, -0.467712, 0.467712, -0.779517], 2e-6)
    close(of("dvao", table, weights="form=0"), [1, -1, 1, -1], 4e-6)
    with pytest.raises(ConfigError, match="the weight of form must be at least 0"):
        build("dvao", {"dvao": {"weights": "form=-1"}})


def test_nft_is_dr_grpo_at_first_and_leaves_out_groups_of_one_kind() -> None:
    close(of("nft", table_of([[1, 0, 0, 0], [1, 1], [0, 0]])), [0.75, *[-0.25] * 3, 0, 0, 0, 0])
    close(of("nft", table_of([[0.4, 0.1]]), threshold=0.2, negative=0.5, weight="none"), [1, -0.5])


def test_nft_weighs_wrong_tokens_by_what_remains_without_the_right_ones() -> None:
    method = build("nft")
    assert isinstance(method, PolicyMethod)
    before = torch.full((1, 3), -1.0, dtype=torch.float64)
    logprobs = (before + tensor([[0.5, math.log(0.5), 0.3]]).double()).requires_grad_()
    mask, ids = torch.ones(1, 3).bool(), tensor([[0, 1, 2]])
    half = torch.full((1, 3), 0.5, dtype=torch.float64)
    inputs = LossInputs(
        logprobs, before, tensor([[0.5, -0.5, -0.5]]).double(), mask, ids, {}, columns={"nft_rate": half}
    )
    found = method.surrogate(inputs).policy.loss
    close(found[0, :2], [-0.25, -0.5 * math.log(1.5)])
    gradient = torch.autograd.grad(found.sum(), logprobs)[0]
    close(gradient, [[-0.5, 0.5 * 0.5 / 1.5, 0.5 * math.exp(0.3)]])  # the last one is held at 1


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({}, [1.729730, 0.432432, 0.108108, 1.729730]),
        ({"filter": "max_min"}, [4 / 3, 4 / 3, 0, 4 / 3]),
        ({"filter": "max_random"}, [1.6, 0.4, 0.4, 1.6]),
        ({"power": 0.0}, [1, 1, 1, 1]),
        ({"among": "group"}, [1.6, 0.4, 2 / 17, 32 / 17]),
    ],
)
def test_pf_ppo_multiplies_by_how_often_an_episode_would_be_drawn(
    settings: dict[str, object], factors: list[float]
) -> None:
    table = table_of([[2, -1], [0.5, 2]])
    plain = build("dr_grpo").credit(table).advantages
    found = build("dr_grpo+pf_ppo", {"pf_ppo": settings}).credit(table)
    close(found.advantages / plain, factors, 1e-6)
    assert found.metrics["pf_ppo_largest"] == pytest.approx(max(factors), abs=1e-6)


@pytest.mark.parametrize(
    ("iteration", "kept"), [(0, [1, 0, 0, 0, 0, 1]), (1, [1, 0, 1, 0, 0, 1]), (8, [1, 1, 1, 1, 1, 1])]
)
def test_d3s_keeps_the_episodes_that_vary_most_and_of_their_tokens_the_uncertain_ones(
    iteration: int, kept: list[int]
) -> None:
    """The shares go from a half to 1 in eight steps; after one, three tokens of four episodes stay."""
    method = build("dr_grpo+d3s")
    found = [episode([each]) for each in (1.5, 0.5, 0.5, -0.5, -0.5, -1.5)]
    for number, each in enumerate(found):
        each.spec = replace(each.spec, episode=number)
        each.turns = [replace(turn, entropies=(0.1 + 0.1 * (number == 2),)) for turn in each.turns]
    method.begin_iteration(iteration, 9)
    masked = method.credit(turn_table(method.collect(lambda **_: found))).masked
    assert masked is not None and (~masked).int().tolist() == kept


def test_d3s_chooses_among_what_is_in_the_loss() -> None:
    found = [episode([each]) for each in (9.0, -9.0, 1.0, 0.0)]
    method = build("dr_grpo+d3s")
    method.begin_iteration(0, 9)
    masked = torch.tensor([True, True, False, False])
    table = replace(turn_table(method.collect(lambda **_: found)), masked=masked)
    chosen = method.credit(table).masked
    assert chosen is not None and int((~chosen & ~masked).sum()) == 1


def test_opmd_takes_a_soft_mean_and_asymre_one_below_it() -> None:
    table = table_of([[1, 0, 0, 0]])
    close(of("opmd", table), [0.75, *[-0.25] * 3])
    close(of("opmd", table, baseline="soft"), [0.642626, *[-0.357374] * 3], 2e-6)
    close(of("opmd", table, baseline="soft", tau=1e-3), [1e-3 * math.log(4), *[1e-3 * math.log(4) - 1] * 3], 1e-9)
    close(of("opmd", table, shift=-0.1), [0.85, *[-0.15] * 3])
    close(of("opmd", table_of([[700.0], [1]]), shift=-0.1, singleton="raw"), [700, 1])
    with pytest.raises(ConfigError, match="opmd has no importance ratio"):
        build("opmd+turn_is")


def test_hierarchical_grpo_compares_solvers_of_one_game_and_proposers_of_the_group() -> None:
    def played(proposed: float, first: float, second: float, group: int = 0) -> list[Trajectory]:
        return [
            game([proposed], 0, "proposer", group),
            game([first], 1, "solver", group),
            game([second], 2, "solver", group),
        ]

    episodes = [*played(0.2, 1, 0), *played(0.6, 1, 1), *played(5, 0, 3, group=1)]
    inside = build("hierarchical_grpo", {"hierarchical_grpo": {"within_game": "solver"}})
    close(by_episode(inside, episodes), [-0.2, 0.5, -0.5, 0.2, 0, 0, 0, -1.5, 1.5])
    over = build("hierarchical_grpo")
    close(by_episode(over, episodes), [-0.2, 0.25, -0.75, 0.2, 0.25, 0.25, 0, -1.5, 1.5])
    proposers = [each for each in episodes if each.role == "proposer"]
    close(by_episode(inside, proposers), [-0.2, 0.2, 0])  # a batch may lack a role of the game


def test_otb_compares_each_token_with_what_others_had_to_go_at_its_place() -> None:
    found = [episode([0, 0, 1], tokens=[1, 1, 1]), episode([0, 0], tokens=[1, 1])]
    logprobs, squares = [-0.5, -0.5, -0.5, -1.0, -1.0], [0.5, 0.5, 0.5, 0.3, 0.3]
    table = replace(turn_table(found), token_logprob=tensor(logprobs).double(), token_squares=tensor(squares).double())
    close(of("otb", table), [0.662893, 0.662893, 1, -0.337107, -0.337107], 1e-6)
    close(of("otb", table, leave_one_out=True), [1, 1, 1, -1, -1], 1e-9)


def doubtful(entropy: float, reward: float, group: int = 0) -> Trajectory:
    """An episode of two tokens whose entropies have this mean."""
    played = episode([reward], tokens=[2], group=group)
    return replace(played, turns=[replace(played.turns[0], entropies=(entropy - 0.01, entropy + 0.01))])


def test_grpo_s_pays_doubt_among_right_episodes_and_charges_certainty_among_wrong_ones() -> None:
    found = [doubtful(h, r) for h, r in ((0.25, 1), (0.21, 1), (0.27, 0), (0.21, 0))]
    found += [doubtful(h, 1, group=1) for h in (0.21, 0.27)] + [doubtful(0.25, 0, group=2)]
    method = build("grpo_s")
    credit = method.credit(turn_table(method.collect(lambda **kinds: found)))
    shaped = tensor([1 + 0.2 * 0.25 / 0.46, 1 + 0.2 * 0.21 / 0.46])
    shaped = torch.cat(
        [shaped, tensor([-1 - 0.2 / 0.27 / (1 / 0.27 + 1 / 0.21), -1 - 0.2 / 0.21 / (1 / 0.27 + 1 / 0.21)])]
    )
    expected = ((shaped - shaped.mean()) / (shaped.std(correction=0) + 1e-6)).tolist()
    close(credit.advantages[::2], [*expected, 0, 0, 0], 1e-5)
    assert credit.metrics["grpo_s_entropy"] == pytest.approx((0.25 * 2 + 0.21 * 3 + 0.27 * 2) / 7)


def test_grpo_s_tells_no_entropies_apart_outside_of_its_range_and_is_grpo_without_them() -> None:
    found = [doubtful(h, r) for h, r in ((1.5, 1), (0.9, 1), (0.01, 0), (0.02, 0))]
    method = build("grpo_s")
    for played in (method.collect(lambda **kinds: found), found):
        close(method.credit(turn_table(played)).advantages[::2], [1, 1, -1, -1], 1e-5)
    with pytest.raises(ConfigError, match=r"low must be at most high, got 0\.3 and 0\.28"):
        build("grpo_s", {"grpo_s": {"low": 0.3}})
