"""A tiny environment whose episodes can all be listed, with exact probabilities, and a tabular policy in it.

There are two places, a hall and a vault, and at most three turns. A turn is one token or two; an action may be invalid;
what follows an action may be random; episodes end by the rules or are cut off. Places come back within an episode. The
policy is a table: the logits of the next token follow from the last token alone, and every place has a token for each
turn. It is a language model like others, so that batches go through the code that training runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import cycle, pairwise
from math import log
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.trainers.engine.scoring import Critic

PLACES = ("hall 1", "hall 2", "hall 3", "hall 4", "vault 2", "vault 3", "vault 4")
WORDS = (*PLACES, "take", "search", "left", "right", "wait", "long")
IDS = {word: number for number, word in enumerate(WORDS)}
MAX_TURNS = 3
_IMPOSSIBLE = -1000.0
"""Logit of a token that cannot follow; its probability is exactly 0."""
CONTINUATIONS = 32
"""A common multiple of the denominators of all continuations."""

Policy = Mapping[str, Mapping[str, Fraction]]
"""Last token -> next token -> probability."""


def _shares(**numbers: int) -> dict[str, Fraction]:
    return {word: Fraction(number, sum(numbers.values())) for word, number in numbers.items()}


SAMPLED: Policy = {
    "hall 1": _shares(take=1, wait=1),
    "hall 2": _shares(take=1, wait=3),
    "hall 3": _shares(take=1, wait=1),
    "vault 2": _shares(take=1, search=3),
    "vault 3": _shares(take=1, wait=1),
    "search": _shares(left=1, right=2),
    "wait": _shares(long=1),
}
REFERENCE: Policy = {
    **SAMPLED,
    "hall 1": _shares(take=2, wait=1),
    "hall 2": _shares(take=2, wait=3),
    "vault 2": _shares(take=4, search=3),
    "search": _shares(left=3, right=2),
}
SAMPLER: Policy = {
    **SAMPLED,
    "hall 1": _shares(take=3, wait=2),
    "hall 2": _shares(take=2, wait=5),
    "vault 2": _shares(take=3, search=4),
    "search": _shares(left=2, right=3),
}
"""What rollouts are drawn from where sampler and trainer differ."""
VALUES = {"hall 1": 0.3, "hall 2": 0.8, "hall 3": -0.4, "hall 4": 0.5, "vault 2": 1.1, "vault 3": 0.2, "vault 4": 0.9}
VALUES |= {"search": -0.6, "wait": 0.7}
"""A critic that is far from right."""


@dataclass(frozen=True)
class Rules:
    """What the environment is like.

    Args:
        is_binary: Whether an episode returns 0 or 1 and nothing else.
        is_single: Whether every episode is one turn of one token.
        is_timed: Whether anchors tell the turn, so that no place comes back.
    """

    is_binary: bool = False
    is_single: bool = False
    is_timed: bool = False

    @property
    def policy(self) -> Policy:
        """The policy that plays."""
        return {"hall 1": _shares(take=1, wait=1, search=2)} if self.is_single else SAMPLED


class Outcome(NamedTuple):
    """What may follow an action: its probability, the reward, and the next room, empty at the end."""

    probability: Fraction
    reward: float
    room: str = ""


def outcomes(room: str, words: tuple[str, ...], rules: Rules) -> tuple[Outcome, ...]:
    """Return what may follow an action in a room."""
    half, whole, first, last = Fraction(1, 2), Fraction(1), words[0], words[-1]
    if rules.is_single:
        likely, other = {"take": (1.0, 1.0), "wait": (0.5, -0.5), "search": (0.75, 0.25)}[first]
        if rules.is_binary:
            likely, other = {"take": (1.0, 1.0), "wait": (0.0, 0.0), "search": (1.0, 0.0)}[first]
        return Outcome(half, likely), Outcome(half, other)
    if room == "hall" and first == "take":
        return Outcome(half, 0.0 if rules.is_binary else 0.5), Outcome(half, 0.0 if rules.is_binary else 0.25, "vault")
    if room == "hall":
        return (Outcome(whole, 0.0, "hall"),)
    found = {"take": 1.0, "left": -0.5, "right": 2.0, "long": 0.75}[last]
    return (Outcome(whole, float(last in ("take", "right")) if rules.is_binary else found),)


def completions(place: str, policy: Policy) -> list[tuple[str, ...]]:
    """Return what the policy may write in a place."""
    found: list[tuple[str, ...]] = []
    for word in policy[place]:
        found += [(word, following) for following in policy[word]] if word in policy else [(word,)]
    return found


class Listed(NamedTuple):
    """One episode of the list: what the environment contributes to its probability, and the episode."""

    chance: Fraction
    trajectory: Trajectory

    def probability(self, policy: Policy) -> Fraction:
        """Return the probability of the episode under a policy."""
        found = self.chance
        for turn in self.trajectory.turns:
            for last, following in pairs(turn):
                found *= policy[last][following]
        return found


def pairs(turn: Turn) -> list[tuple[str, str]]:
    """Return the words of a turn, each with the one before it."""
    words = [WORDS[number] for number in (turn.prompt_ids[-1], *turn.completion_ids)]
    return list(pairwise(words))


@cache
def episodes(rules: Rules) -> tuple[Listed, ...]:
    """Return every episode that the environment's rules and the policy allow."""
    found: list[Listed] = []
    policy = rules.policy

    def play(turns: tuple[Turn, ...], chance: Fraction, room: str) -> None:
        number = len(turns) + 1
        if not room or number > MAX_TURNS:
            found.append(Listed(chance, _trajectory(turns, room, number)))
            return
        for words in completions(f"{room} {number}", policy):
            for outcome in outcomes(room, words, rules):
                turn = _turn(f"{room} {number}", words, outcome, rules)
                play((*turns, turn), chance * outcome.probability, outcome.room)

    play((), Fraction(1), "hall")
    return tuple(found)


def _turn(place: str, words: tuple[str, ...], outcome: Outcome, rules: Rules) -> Turn:
    room, policy = place.split()[0], rules.policy
    before = (place, *words)
    is_valid = not (room == "hall" and words[-1] == "long")
    step = 0.25 if outcome.room == "vault" and outcome.reward else 0.0
    return Turn(
        observation=place,
        anchor=place if rules.is_timed else room,
        action=" ".join(words),
        prompt_ids=(IDS[place],),
        completion_ids=tuple(IDS[word] for word in words),
        logprobs=tuple(log(policy[last][following]) for last, following in pairwise(before)),
        reward=outcome.reward,
        action_is_valid=is_valid,
        snapshot=place.encode(),
        columns={"joint_view": place, "reward/goal": outcome.reward - step, "reward/step": step},
    )


def _trajectory(turns: tuple[Turn, ...], room: str, number: int) -> Trajectory:
    return Trajectory(
        EpisodeSpec(0, 0),
        turns=list(turns),
        terminated=not room,
        truncated=bool(room),
        success=int(sum(turn.reward for turn in turns) >= 1),
        final_prompt_ids=(IDS[f"{room} {number}"],) if room else (),
        final_anchor=room,
        columns={"final_joint_view": f"{room} {number}" if room else "the end"},
    )


def batch_of(groups: Iterable[Sequence[Listed]], sampler: Policy | None = None) -> list[Trajectory]:
    """Return the episodes of some groups, numbered, as a sampler that may not be the policy gave them."""
    found: list[Trajectory] = []
    for group, members in enumerate(groups):
        for each in members:
            turns = each.trajectory.turns
            if sampler is not None:
                turns = [replace(turn, logprobs=_logprobs(turn, sampler)) for turn in turns]
            found.append(replace(each.trajectory, turns=turns, spec=EpisodeSpec(len(found), group, group)))
    return found


def _logprobs(turn: Turn, policy: Policy) -> tuple[float, ...]:
    return tuple(log(policy[last][following]) for last, following in pairs(turn))


class Played:
    """What a method's ``collect`` plays with: a batch, one greedy episode, continuations in exact proportion."""

    def __init__(self, rules: Rules, batch: list[Trajectory]) -> None:
        self.rules = rules
        self.batch = batch

    def __call__(
        self, *, greedy: bool = False, branches: Sequence[Branch] = (), mixture: float | None = None
    ) -> list[Trajectory]:
        """Return the batch, or one fixed episode for each of it, or a continuation for each branch."""
        if greedy or mixture is not None:
            return [replace(episodes(self.rules)[-1].trajectory, spec=each.spec) for each in self.batch]
        if not branches:
            return self.batch
        places = [each.trajectory.turns[each.turn].observation for each in branches]
        endless = {place: cycle(continuations(self.rules, place)) for place in set(places)}
        return [next(endless[place]) for place in places]


@cache
def continuations(rules: Rules, place: str) -> list[Trajectory]:
    """Return how episodes go on from a place, ``CONTINUATIONS`` of them in exact proportion to their probabilities."""
    chances: dict[tuple[str, ...], list[tuple[Fraction, Trajectory]]] = {}
    for each in episodes(rules):
        turns = each.trajectory.turns
        for k, turn in enumerate(turns):
            if turn.observation == place:
                rest = replace(each.trajectory, turns=turns[k:])
                before = tuple(earlier.action for earlier in turns[:k])
                chances.setdefault(before, []).append((each.probability(rules.policy), rest))
    found = next(iter(chances.values()))  # whatever came before a place, it goes on in the same way
    whole = sum(chance for chance, _ in found)
    return [rest for chance, rest in found for _ in range(int(CONTINUATIONS * chance / whole))]


class ExactCritic(nn.Module):
    """The true values of states and of actions in them, in place of the critic of ``archer``."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.sums: dict[tuple[str, ...], float] = {}
        self.chances: dict[tuple[str, ...], float] = {}
        for each in episodes(rules):
            chance, turns = float(each.probability(rules.policy)), each.trajectory.turns
            for k, turn in enumerate(turns):
                rest = sum(later.reward for later in turns[k:])
                for key in ((turn.anchor,), (turn.anchor, turn.action)):
                    self.sums[key] = self.sums.get(key, 0.0) + chance * rest
                    self.chances[key] = self.chances.get(key, 0.0) + chance

    def _twins(self, keys: Iterable[tuple[str, ...]]) -> Tensor:
        return torch.tensor([[self.sums[key] / self.chances[key]] * 2 for key in keys], dtype=torch.float64)

    def q(self, states: Sequence[str], actions: Sequence[str]) -> Tensor:
        """Return the value of each action in its state, twice."""
        return self._twins(zip(states, actions, strict=True))

    def v(self, states: Sequence[str]) -> Tensor:
        """Return the value of each state, twice."""
        return self._twins((state,) for state in states)


class Table(nn.Module):
    """The trunk of a tabular policy: the hidden state of a token is the token."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, input_ids: Tensor, **rest: object) -> BaseModelOutputWithPast:
        """Return the tokens, one-hot."""
        hidden = nn.functional.one_hot(input_ids.clamp_min(0), len(WORDS)).double()
        return BaseModelOutputWithPast(last_hidden_state=hidden)


class TabularPolicy(PreTrainedModel):
    """A causal language model whose next token follows from the last token alone, by a table of logits."""

    base_model_prefix = "trunk"

    def __init__(self, policy: Policy) -> None:
        super().__init__(PretrainedConfig.from_dict({"hidden_size": len(WORDS), "vocab_size": len(WORDS)}))
        self.trunk = Table(self.config)
        self.head = nn.Linear(len(WORDS), len(WORDS), bias=False, dtype=torch.float64)
        with torch.no_grad():
            self.head.weight.fill_(_IMPOSSIBLE)
            for last, following in policy.items():
                for word, probability in following.items():
                    self.head.weight[IDS[word], IDS[last]] = log(probability)

    def get_output_embeddings(self) -> nn.Linear:
        """Return the table."""
        return self.head

    def forward(self, input_ids: Tensor, **rest: object) -> CausalLMOutputWithPast:
        """Return the logits."""
        return CausalLMOutputWithPast(logits=self.head(self.trunk(input_ids).last_hidden_state))


def language_model(policy: Policy) -> LanguageModel:
    """Return a tabular policy as what trainers take."""
    tokenizer: Any = None
    return LanguageModel(TabularPolicy(policy), tokenizer, "table")


def critic(network: PreTrainedModel, values: Mapping[str, float] = VALUES) -> Critic:
    """Return a critic with given values."""
    found = Critic(network)
    with torch.no_grad():
        for word, value in values.items():
            found.head.weight[0, IDS[word]] = value
    return found
