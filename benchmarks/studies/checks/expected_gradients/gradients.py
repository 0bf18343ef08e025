"""Expected gradients by enumeration, and gradients of objectives, for ``bias.py``.

A batch is one group of two episodes, or what batches tend to as they grow: one batch with every group as often as its
probability says. Credit, loss weights and losses are those of training, through ``prepare``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn

from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory
from turngym.benchmarks.studies.checks.expected_gradients.world import (
    IDS,
    REFERENCE,
    ExactCritic,
    Played,
    Policy,
    Rules,
    TabularPolicy,
    batch_of,
    continuations,
    critic,
    episodes,
    language_model,
    pairs,
)
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.arpo import with_origins
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.core.update_config import OldLogprobs
from turngym.trainers.engine.prepared import prepare
from turngym.trainers.engine.teachers import Teacher

EXACT = 1e-9
Batches: TypeAlias = list[tuple[float, list[Trajectory]]]
"""Batches with their probabilities."""


class Figure(NamedTuple):
    """An expected gradient beside that of the objective.

    Args:
        cosine: Cosine of the angle between them.
        ratio: Norm of the first over that of the second.
        bias: Share of the first that is orthogonal to the second; 0 below 1e-9.
    """

    cosine: float
    ratio: float
    bias: float

    @classmethod
    def of(cls, found: Tensor, true: Tensor) -> Figure:
        """Compare an expected gradient with the gradient of the objective."""
        along = (found * true).sum() / true.norm() ** 2
        bias = float((found - along * true).norm() / found.norm())
        cosine, ratio = along * true.norm() / found.norm(), found.norm() / true.norm()
        return cls(float(cosine), float(ratio), bias if bias > EXACT else 0.0)

    @property
    def is_exact(self) -> bool:
        """True if the two have one direction."""
        return self.bias == 0 and self.cosine > 0

    @property
    def is_equal(self) -> bool:
        """True if they are equal."""
        return self.is_exact and abs(self.ratio - 1) < EXACT


@dataclass(frozen=True)
class Objective:
    """What a method maximises, as the expectation over episodes of the sum of what its turns and tokens give.

        turn k    discount^k * (reward - penalty if it was invalid - reward_divergence * log(p / p_reference))
        token     -divergence * KL(p, p_reference) + entropy * H(p)

    Args:
        discount: Discount per turn, from the first one.
        penalty: What an invalid action costs.
        reward_divergence: Weight of the divergence in the reward.
        divergence: Weight of the divergence from the reference policy at each token.
        entropy: Weight of the entropy at each token.
        reward: Weight of the reward.
    """

    discount: float = 1.0
    penalty: float = 0.0
    reward_divergence: float = 0.0
    divergence: float = 0.0
    entropy: float = 0.0
    reward: float = 1.0

    def gradient(self, rules: Rules) -> Tensor:
        """Return its exact gradient by the table of logits."""
        policy, reference = TabularPolicy(rules.policy), TabularPolicy(REFERENCE)
        logprobs = torch.log_softmax(policy.head.weight, 0).T
        gaps = logprobs - torch.log_softmax(reference.head.weight, 0).T.detach()
        divergences, entropies = (logprobs.exp() * gaps).sum(1), -(logprobs.exp() * logprobs).sum(1)
        values = []
        for each in episodes(rules):
            value, logprob = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
            for k, turn in enumerate(each.trajectory.turns):
                at = [(IDS[last], IDS[following]) for last, following in pairs(turn)]
                gap = torch.stack([gaps[cell] for cell in at]).sum()
                earned = self.reward * (turn.reward - self.penalty * (not turn.action_is_valid))
                value = value + self.discount**k * (earned - self.reward_divergence * gap)
                for last, _ in at:
                    value = value - self.divergence * divergences[last] + self.entropy * entropies[last]
                logprob = logprob + torch.stack([logprobs[cell] for cell in at]).sum()
            values.append(float(each.chance) * logprob.exp() * value)
        return torch.autograd.grad(torch.stack(values).sum(), policy.head.weight)[0]


@dataclass(frozen=True)
class Arm:
    """A method with its settings in an environment.

    Args:
        algorithm: Name of the method, or of a composition.
        settings: Settings of its parts.
        rules: The environment.
        exact_critic: Whether ``archer`` gets the true values.
        collects: Whether the method's own ``collect`` gathers the batch.
        sampler: What episodes are drawn from, where that is not the policy.
        old_logprobs: What ratios are taken against.
        state: State of the method that it begins with.
    """

    algorithm: str
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    exact_critic: bool = False
    collects: bool = True
    sampler: Policy | None = None
    old_logprobs: OldLogprobs = "sampler"
    state: Mapping[str, Any] = field(default_factory=dict)

    def made(self) -> Algorithm[Any]:
        """Return the method, with a critic that is far from right if it has one of its own."""
        found = cast("Any", build(self.algorithm, self.settings))
        found.begin_iteration(3, 10)
        if self.state:
            found.load_state(self.state)
        for module in found.modules().values():
            module.double()
            if hasattr(module, "head"):
                generator = torch.Generator().manual_seed(0)
                nn.init.normal_(module.head.weight, std=3.0, generator=generator)
        if self.exact_critic:
            found.critic = ExactCritic(self.rules)
        return cast("Algorithm[Any]", found)


def one_group(rules: Rules, size: int = 2, *, sampler: Policy | None = None, is_ordered: bool = False) -> Batches:
    """Return every batch of one group with its probability.

    Args:
        rules: The environment.
        size: Episodes of the group.
        sampler: What they are drawn from; the policy unless given.
        is_ordered: Whether to list every order of the episodes, for methods to which orders differ.
    """
    policy, listed = sampler or rules.policy, episodes(rules)
    each_number = range(len(listed))
    found = []
    for numbers in (
        product(each_number, repeat=size) if is_ordered else combinations_with_replacement(each_number, size)
    ):
        members = [listed[number] for number in numbers]
        orders = 1 if is_ordered else math.factorial(size)
        for number in () if is_ordered else set(numbers):
            orders //= math.factorial(numbers.count(number))
        chance = orders * math.prod(each.probability(policy) for each in members)
        found.append((float(chance), batch_of([members], sampler)))
    return found


def branched(rules: Rules) -> Batches:
    """Return every batch of an episode and one that branches off at its second turn, or a fresh one if it has none."""
    found = []
    for parent in episodes(rules):
        (first,) = batch_of([[parent]])
        if len(first.turns) > 1:
            rests = continuations(rules, first.turns[1].observation)
            spec = EpisodeSpec(1, 0, 0, branch=Branch(first, 1))
            seconds = [(1 / len(rests), replace(rest, spec=spec)) for rest in rests]
        else:
            spec = EpisodeSpec(1, 0, 0)
            seconds = [
                (float(each.probability(rules.policy)), replace(each.trajectory, spec=spec)) for each in episodes(rules)
            ]
        chance = float(parent.probability(rules.policy))
        found += [(chance * share, with_origins([first, second])) for share, second in seconds]
    return found


def large_batch(rules: Rules, size: int = 2) -> Batches:
    """Return one batch with every group as often as in the limit of a large batch.

    Args:
        rules: The environment.
        size: Episodes of a group; 1 for methods without groups, to which it makes no difference.
    """
    listed = [(each, each.probability(rules.policy)) for each in episodes(rules)]
    whole = math.lcm(*(chance.denominator for _, chance in listed))
    line = [each for each, chance in listed for _ in range(int(chance * whole))]
    return [(1.0, batch_of(product(line, repeat=size)))]


def expected_gradient(algorithm: Algorithm[Any], arm: Arm, batches: Batches) -> Tensor:
    """Return the expectation over batches of what a method's first update adds to the table of logits.

    Args:
        algorithm: The method.
        arm: Its environment.
        batches: Batches with their probabilities.
    """
    model = language_model(arm.rules.policy)
    weight = model.network.get_output_embeddings().weight
    values = critic(model.network) if Need.VALUES in algorithm.needs else None
    reference = TabularPolicy(REFERENCE) if Need.REFERENCE_LOGPROBS in algorithm.needs else None
    teacher = Teacher(TabularPolicy(REFERENCE)) if Need.TEACHER_LOGPROBS in algorithm.needs else None
    total = torch.zeros_like(weight)
    for chance, batch in batches:
        gathered = algorithm.collect(Played(arm.rules, batch)) if arm.collects else batch
        prepared = prepare(
            gathered,
            model,
            algorithm,
            critic=values,
            reference=reference,
            teacher=teacher,
            old_logprobs=arm.old_logprobs,
        )
        for inputs in prepared.micro_batches():
            output = algorithm.loss(inputs)
            probes = {
                name: [torch.autograd.grad(term.total(inputs), weight, retain_graph=True)[0]]
                for name, term in output.probes.items()
            }
            metrics = {name: float(term.total(inputs)) for name, term in output.metrics.items()}
            gradient = torch.autograd.grad(output.total(inputs), weight)[0]
            total -= chance * algorithm.transform_gradients([gradient], probes, metrics).values[0]
    return total
