"""What must not change the credit of an episode: order, other groups, faults, turns without a token, how it is cut."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from algorithm_batches import COMPARING, CREDITS, VARIANTS
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.core.turn_table import TurnTable, turn_table

torch.set_num_threads(1)
FEW = settings(max_examples=3, derandomize=True)

WHITENED = "advantages are whitened over the batch"
SUMMED = "the sum of the parts is whitened over the batch"
PAIRED = "comparisons are averaged over the pairs of the batch"
NORMALISED = "returns are normalised over the batch: that is the method"
BATCH_STATISTICS = {
    **dict.fromkeys(("gdpo", "gdpo by trajectory"), SUMMED),
    **dict.fromkeys(("reinforce", "reinforce plain", "reinforce+turn_is"), NORMALISED),
    **dict.fromkeys(("reinforce_pp", "reinforce_pp_baseline", "spo"), NORMALISED),
    **dict.fromkeys(("bi_level_gae", "mappo", "poad", "vine_ppo", "ppo", "ppo per row, by trajectory"), WHITENED),
    **dict.fromkeys(("ppo+epo+turn_is", "t_ppo", "t_ppo ended", "turn_ppo", "turn_ppo at turn ends"), WHITENED),
    **dict.fromkeys(("turn_ppo+epo+s_ppo", "vc_ppo", "vc_ppo adaptive"), WHITENED),
    **dict.fromkeys(("icepop", "mis", "ppo+icepop, all counted", "tis"), WHITENED),
    **dict.fromkeys(("kl_cov", "m2po", "rto"), WHITENED),
    **dict.fromkeys(("dpo", "dpo apo_zero", "dpo ipo of means", "dpo lambda", "trpa"), PAIRED),
    **dict.fromkeys(("dpo tdpo1", "dpo tdpo2 of means", "dpo acceptance"), PAIRED),
    "a_lol": "episodes are drawn from the whole batch by their advantages",
    **dict.fromkeys(("aspo", "r2vpo"), WHITENED),
    **dict.fromkeys(("gpg", "lite_ppo"), "differences are scaled over the batch: that is the method"),
    **dict.fromkeys(("mmd", "ppo+mmd with both divergences"), WHITENED),
    **dict.fromkeys(("epo", "epo released", "s_ppo", "st_ppo", "turn_is", "replay", "offline"), WHITENED),
}
CHOSEN_OVER_BATCH = {
    "bnpo": "groups are weighted by a distribution over all of them",
    "clip_cov": "a few tokens of the whole batch are drawn",
    "d3s": "episodes and tokens are chosen from the whole batch",
    "dgpo": "groups are weighted by their rates among all of them",
    "kto": "likelihoods are compared with their mean over the batch",
    "pf_ppo": "episodes are drawn from the whole batch",
    "ppo_max": "rewards are divided by the deviation of all returns",
    "riskpo": "groups are bundled",
    "pf_ppo of a group": "what is weighted is whitened over the batch",
    "opd_advantage": "the advantages of its base are whitened over the batch, what the teacher adds is not",
}
ORDERED = {"rae": "its baselines move from episode to episode"}
COUNTING_TURNS = {
    "clip_cov": "tokens are drawn by the number of their turn",
    "gigpo over rows, by group": "mean and deviation count every turn",
    "hgpo with base": "mean and deviation of the base group count every turn",
    "stratified_grpo": "a stratum is the episodes with as many turns",
    "hgpo": "what is shared is a history of turns",
    "rank_grpo": "turns of the same number are compared",
    "infopo": "the gain of a turn is measured at the next one",
}
DISCOUNTED = {
    "gigpo": "the discounted returns of turns of different depth are compared",
    "hgpo": "the discounted returns of turns of different depth are compared",
}
SCALED_BY_RETURNS = {
    "bnpo": "groups are weighted by their mean returns",
    "gpg": "returns other than 0 are counted",
    "dgpo": "groups are weighted by their mean returns",
    "lite_ppo": "differences are divided by the deviation of all returns",
    "maxrl": "differences are divided by the mean return of the group",
    "otb": "the last tokens of the longest episode have no baseline",
    "grpo_s": "an episode is right from a return on",
    "kto": "an episode is desirable from a return on",
    "nft": "an episode is right from a return on",
    "nft by odds": "an episode is right from a return on",
    "trpa": "an episode is right from a return on",
    "var_tb of returns": "likelihoods follow the returns themselves",
}


def variants(*without: Mapping[str, str]) -> list[str]:
    return sorted(set(CREDITS.values()).difference(*without))


@functools.cache
def made(variant: str, **options: Any) -> Algorithm[Any]:
    """The method, with those options that it has; without divergences in the reward, which need a reference policy."""
    options = {"reward_kl_coef": 0.0, **options}
    name, configs = VARIANTS[variant]
    first = name.partition("+")[0]
    base = "ppo" if isinstance(build(first), Modifier) else first
    known = {field.name for field in dataclasses.fields(build(base).Config)}
    mine = {key: value for key, value in options.items() if key in known}
    return build(name, {**configs, base: {**configs.get(base, {}), **mine}})


@st.composite
def batches(draw: st.DrawFn, least: int = 1, groups: int = 3) -> list[Trajectory]:
    """A few episodes of a few groups: one to four turns of zero to three tokens, both ends, few anchors."""
    reward = st.sampled_from([0.0, 0.0, 1.0, -0.25, 0.5])

    def turn(number: int) -> Turn:
        tokens = draw(st.integers(0, 3))
        return Turn(
            "",
            f"state {draw(st.integers(0, 1))}" if number else "start",
            "",
            completion_ids=(1,) * tokens,
            logprobs=(-1.0,) * tokens,
            reward=draw(reward),
            action_is_valid=draw(st.integers(0, 4)) > 0,
            columns={"joint_view": f"joint {number % 2}", "sampled_value": number / 4, "action": f"go {number}"},
        )

    episodes = []
    for number in range(draw(st.integers(least, 7))):
        terminated = draw(st.booleans())
        turns = [turn(k) for k in range(draw(st.integers(1, 4)))]
        spec = EpisodeSpec(number, 0, draw(st.integers(0, groups - 1)))
        known: dict[str, float | str] = {
            "final_joint_view": "joint end",
            "greedy_return": 0.25,
            "mixture_return": 0.25,
            "final_anchor": "the end",
        }
        episodes.append(
            Trajectory(spec, turns=turns, terminated=terminated, truncated=not terminated, columns=dict(known))
        )
    return episodes


def valued(trajectories: list[Trajectory]) -> TurnTable:
    """The table with values, and log-probabilities of trainer and teacher, that depend on episode, turn and token."""
    table = turn_table(trajectories)

    def value(episode: int, turn: int, token: int) -> float:
        return math.sin(1 + 7 * episode + 3 * turn + token)

    rows = [(each.spec.episode, _position(turn), turn) for each in trajectories for turn in each.turns]
    tokens = [value(episode, at, k) for episode, at, turn in rows for k in range(len(turn.completion_ids))]
    turns = [value(episode, at, 0) for episode, at, _ in rows]
    final = [value(each.spec.episode, 50, 0) for each in trajectories]
    columns = [torch.tensor(column, dtype=torch.float64) for column in (turns, tokens, final)]
    return replace(
        table.with_values(*columns),
        token_reference_logprob=table.token_logprob + 0.4 * columns[1],
        token_trainer_logprob=table.token_logprob + 0.2 * columns[1],
        token_teacher_logprob=table.token_logprob - 0.3 * columns[1],
        token_squares=0.5 + 0.3 * columns[1],
        token_divergence=0.5 + 0.4 * columns[1],
        token_other_logprob=table.token_logprob - 0.5 * columns[1],
    )


EMPTY = Turn("", "nowhere else", "", columns={"joint_view": "joint 0", "action": "nothing"})
"""A turn in which the policy sampled nothing and the environment paid nothing."""


def _position(turn: Turn) -> int:
    """Where a turn was in its episode before an empty one came in."""
    return int(8 * float(str(turn.columns.get("sampled_value", 4.5))))


def of_episodes(algorithm: Algorithm[Any], trajectories: list[Trajectory]) -> dict[int, Tensor]:
    """Number of an episode -> credit of its tokens, and under minus the number the critic's targets."""
    table = valued(trajectories)
    credit = algorithm.credit(table)
    owner = table.episode[table.token_turn]
    found = {each.spec.episode: credit.advantages[owner == e] for e, each in enumerate(trajectories)}
    if credit.returns is not None:
        found |= {-1 - each.spec.episode: credit.returns[owner == e] for e, each in enumerate(trajectories)}
    return found


def assert_kept(
    algorithm: Algorithm[Any], variant: str, changed: list[Trajectory], trajectories: list[Trajectory]
) -> None:
    found = of_episodes(algorithm, changed)
    for number, credit in of_episodes(algorithm, trajectories).items():
        torch.testing.assert_close(
            found[number],
            credit,
            atol=1e-7,
            rtol=1e-7,
            equal_nan=True,
            msg=lambda text: f"{variant}: {text}",
        )


@given(trajectories=batches(), seed=st.integers(0, 99))
@FEW
def test_the_order_of_episodes_does_not_matter(trajectories: list[Trajectory], seed: int) -> None:
    order = torch.randperm(len(trajectories), generator=torch.Generator().manual_seed(seed)).tolist()
    for variant in variants(ORDERED):
        assert_kept(made(variant), variant, [trajectories[k] for k in order], trajectories)


@given(trajectories=batches())
@FEW
def test_groups_may_have_any_number(trajectories: list[Trajectory]) -> None:
    renamed = [replace(each, spec=replace(each.spec, group=10**6 - 7 * each.spec.group)) for each in trajectories]
    for variant in variants():
        assert_kept(made(variant), variant, renamed, trajectories)


def with_other_groups(trajectories: list[Trajectory], others: list[Trajectory]) -> list[Trajectory]:
    renumbered = [
        replace(each, spec=replace(each.spec, episode=100 + each.spec.episode, group=100 + each.spec.group))
        for each in others
    ]
    return [*trajectories, *renumbered]


@given(trajectories=batches(), others=batches())
@FEW
def test_another_group_does_not_matter(trajectories: list[Trajectory], others: list[Trajectory]) -> None:
    for variant in variants(BATCH_STATISTICS, CHOSEN_OVER_BATCH):
        assert_kept(made(variant), variant, with_other_groups(trajectories, others), trajectories)


@given(trajectories=batches(least=3), others=batches(least=3))
@FEW
def test_another_group_shifts_and_scales_all_credit_alike(
    trajectories: list[Trajectory], others: list[Trajectory]
) -> None:
    """Whitening over the batch is the one way in which it may matter, and without whitening it does not."""
    more = with_other_groups(trajectories, others)
    for variant in sorted(BATCH_STATISTICS.keys() & set(variants())):
        algorithm = made(variant, invalid_penalty=0.0)
        if BATCH_STATISTICS[variant] == WHITENED:
            assert_kept(made(variant, whiten=False), variant, more, trajectories)
        compared = [e.spec.episode for e in trajectories if _members(trajectories, e) > 1 or not groups(algorithm)]
        before, after = (of_episodes(algorithm, each) for each in (trajectories, more))
        x, y = (torch.cat([torch.zeros(0).double(), *(found[n] for n in compared)]) for found in (before, after))
        if len(x) > 1 and float(x.std()) > 1e-6:
            slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
            expected = y.mean() + slope * (x - x.mean())
            assert torch.allclose(y, expected, atol=1e-6, rtol=1e-6), variant
            assert float(slope) > 0, variant


def groups(algorithm: Algorithm[Any]) -> bool:
    return Need.GROUPS in algorithm.needs


def _members(trajectories: list[Trajectory], one: Trajectory) -> int:
    return sum(each.spec.group == one.spec.group for each in trajectories)


@given(trajectories=batches(), where=st.integers(0, 7))
@FEW
def test_a_fault_takes_its_episode_out_and_nothing_else(trajectories: list[Trajectory], where: int) -> None:
    """Whatever it earned before it broke; and an episode that never had a turn is not a member of its group either."""
    turns = [replace(EMPTY, completion_ids=(1, 1), logprobs=(-1.0, -1.0), reward=1e6)]
    group = trajectories[0].spec.group
    broken = Trajectory(EpisodeSpec(90, 0, group), turns=turns, truncated=True, fault="exception: boom")
    without = Trajectory(EpisodeSpec(91, 0, group), truncated=True)
    kept = valued(trajectories)
    assert kept.turn_value is not None
    assert kept.token_value is not None
    assert kept.final_value is not None
    more = turn_table([*trajectories[:where], broken, without, *trajectories[where:]])
    more = more.with_values(kept.turn_value, kept.token_value, kept.final_value)
    more = replace(
        more,
        token_reference_logprob=kept.token_reference_logprob,
        token_trainer_logprob=kept.token_trainer_logprob,
        token_teacher_logprob=kept.token_teacher_logprob,
        token_squares=kept.token_squares,
        token_divergence=kept.token_divergence,
        token_other_logprob=kept.token_other_logprob,
    )
    for variant in variants():
        assert torch.equal(made(variant).credit(more).advantages, made(variant).credit(kept).advantages), variant


@given(trajectories=batches(), episode=st.integers(0, 6), place=st.integers(0, 4))
@FEW
def test_a_turn_without_a_token_does_not_matter(trajectories: list[Trajectory], episode: int, place: int) -> None:
    """Without discount and decay, in which it is one step more."""
    undiscounted = {"gamma": 1.0, "lam": 1.0, "turn_gamma": 1.0, "turn_lam": 1.0, "critic_lam": 1.0}
    each = trajectories[episode % len(trajectories)]
    turns = [*each.turns[:place], EMPTY, *each.turns[place:]]
    longer = [replace(other, turns=turns) if other is each else other for other in trajectories]
    for variant in variants(COUNTING_TURNS):
        assert_kept(made(variant, **undiscounted), variant, longer, trajectories)


@given(trajectories=batches(), bonus=st.sampled_from([-3.0, 0.5, 40.0]))
@FEW
def test_what_all_episodes_of_a_task_earn_teaches_nothing(trajectories: list[Trajectory], bonus: float) -> None:
    richer = []
    for each in trajectories:
        last = replace(each.turns[-1], reward=each.turns[-1].reward + bonus * (each.spec.group == 0))
        richer.append(replace(each, turns=[*each.turns[:-1], last]))
    for variant in set(COMPARING) & set(variants(SCALED_BY_RETURNS)):
        if VARIANTS[variant][0].partition("+")[0] not in DISCOUNTED:
            assert_kept(made(variant), variant, richer, trajectories)


@given(trajectories=batches())
@FEW
def test_an_episode_that_the_rules_ended_is_not_bootstrapped_though_time_was_up(trajectories: list[Trajectory]) -> None:
    """Time limits such as Gymnasium's say truncated at the last step whatever the rules said."""
    ended = [replace(each, terminated=True, truncated=False) for each in trajectories]
    both = [replace(each, terminated=True, truncated=True) for each in trajectories]
    for variant in variants():
        assert_kept(made(variant), variant, both, ended)
