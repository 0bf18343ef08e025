"""A small policy for Werewolf without talk, in the form of a causal language model with one token a turn.

The probability of a legal action is proportional to the exponential of a sum of weights, one for each fact that holds
of it (:func:`facts`), such as "most ballots of today name this seat, and I am a villager". Weights are shared by all
seats and begin at 0: the policy begins as random play. It reads only what its seat has been told.

A prompt is a list of tokens, each an action and a fact that holds of it; its answer is the token of an action. So games
are played, credited and trained by the same code as those of language models, at a hundredth of the cost.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.models.loading import LanguageModel
from turngym.seeding import stream
from turngym.trainers.loop.game_task import GameTask

SEATS = 5
ACTIONS = (*(f"{verb} player_{seat}" for verb in ("kill", "see", "save", "vote") for seat in range(SEATS)), "abstain")
SYMBOLS = {action: symbol for symbol, action in enumerate(ACTIONS)}
FACTS = 2048
_BLOCKED = -1e4
_NAME = re.compile(r"player_([0-9]+)")
_BALLOT = re.compile(r"player_([0-9]+) -> (?:abstain|player_([0-9]+))")


class Told:
    """What a seat has been told, by line.

    Args:
        lines: All lines, without the question.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.me, self.role = -1, ""
        self.living: tuple[int, ...] = ()
        self.seen: dict[int, bool] = {}
        self.today: list[tuple[int, int]] = []
        """Ballots of the day: voter and whom it named, -1 for nobody."""
        self.before: list[tuple[int, int]] = []
        """Ballots of the day before."""
        self.accusers: set[int] = set()
        """Who has voted for this seat on an earlier day."""
        self.named: set[int] = set()
        """Whom this seat has voted for on an earlier day."""
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        seats = _numbers(line)
        if line.startswith("You are "):
            self.me, self.role = seats[0], line.split("Role: ")[1].split(".")[0]
        elif line.startswith("Vote: "):
            self.today += _ballots(line)
        elif line.startswith("Night "):
            self.living = seats
            self.accusers |= {voter for voter, named in self.today if named == self.me}
            self.named |= {named for voter, named in self.today if voter == self.me}
            self.before, self.today = self.today, []
        elif line.startswith("Day ") and seats:
            self.living = tuple(seat for seat in self.living if seat != seats[0])
        elif line.startswith("[seer] ") and seats:
            self.seen[seats[0]] = not line.endswith("not a werewolf.")


@lru_cache(maxsize=4096)
def _numbers(line: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NAME.findall(line))


@lru_cache(maxsize=4096)
def _ballots(line: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(voter), int(named or -1)) for voter, named in _BALLOT.findall(line))


def facts(told: Told, action: str) -> list[str]:
    """Return what holds of an action, from what a seat has been told."""
    verb, _, name = action.partition(" ")
    now = Counter(named for _, named in told.today if named >= 0)
    most = max(now.values(), default=0)
    alive = f"{len(told.living)} alive"
    if not name:
        knows = "a wolf is known" if any(told.seen.get(seat) for seat in told.living) else "no wolf is known"
        return ["abstain", f"abstain, {alive}", f"abstain, {most} ballots lead", f"abstain, {knows}"]
    seat = int(name[-1])
    seen = {None: "not seen", True: "a wolf", False: "clear"}[told.seen.get(seat)]
    earlier = Counter(named for _, named in told.before)
    found = [verb, f"seat {seat}", seen, f"{min(earlier[seat], 2)} ballots before"]
    found += ["accused me before"] * (seat in told.accusers) + ["I accused it before"] * (seat in told.named)
    found += ["myself"] * (seat == told.me) + [f"{alive}, {seen}"]
    if verb != "vote":
        return [*found, "abstained before"] if (seat, -1) in told.before else found
    cast_by = dict(told.today)
    voted = "has to vote" if seat not in cast_by else "abstained" if cast_by[seat] < 0 else "has voted"
    count = min(now[seat], 3)
    leads = "leads" if count and now[seat] == most else "is behind" if most else "nobody is named"
    found += [f"{count} ballots", leads, f"{alive}, {leads}", f"{seen}, {leads}", voted, f"{voted}, {leads}"]
    return found + ["accuses me today"] * (cast_by.get(seat) == told.me)


@lru_cache(maxsize=65_536)
def _bucket(role: str, fact: str) -> int:
    return zlib.crc32(f"{role}: {fact}".encode()) % FACTS


def prompt_of(request: Request) -> tuple[int, ...]:
    """Return the tokens of a request: an action and a fact each."""
    told = Told(request.info["anchor"].splitlines()[:-1])
    return tuple(
        len(ACTIONS) + SYMBOLS[action] * FACTS + _bucket(told.role, fact)
        for action in request.info["legal_actions"]
        for fact in facts(told, action)
    )


class FactsConfig(PretrainedConfig):
    """The sizes of the policy."""

    model_type = "turngym-werewolf-facts"

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.hidden_size = len(ACTIONS)
        self.vocab_size = len(ACTIONS) * (1 + FACTS)


class _PreTrained(PreTrainedModel):
    config_class = FactsConfig
    base_model_prefix = "sums"

    def _init_weights(self, module: nn.Module) -> None:
        """Leave the weights as they were made."""


class Sums(_PreTrained):
    """The sums of weights of a prompt's actions, as the hidden state of every position."""

    def __init__(self, config: FactsConfig) -> None:
        super().__init__(config)
        self.weight = nn.Parameter(torch.zeros(FACTS))

    def forward(self, input_ids: Tensor, **ignored: Any) -> BaseModelOutput:
        """Return the sums, and a very small number for actions that are not legal."""
        places = input_ids - len(ACTIONS)
        is_fact = places >= 0
        action = torch.where(is_fact, places // FACTS, 0)
        weights = torch.where(is_fact, self.weight[places.clamp_min(0) % FACTS], 0.0)
        sums = weights.new_zeros(len(input_ids), len(ACTIONS)).scatter_add(1, action, weights)
        counts = torch.zeros_like(sums).scatter_add(1, action, is_fact.to(sums))
        hidden = torch.where(counts > 0, sums, _BLOCKED)
        return BaseModelOutput(last_hidden_state=hidden[:, None].expand(-1, input_ids.shape[1], -1))


class FactsPolicy(_PreTrained):
    """The sums, with the identity as its head."""

    def __init__(self, config: FactsConfig) -> None:
        super().__init__(config)
        self.sums = Sums(config)
        self.head = nn.Linear(len(ACTIONS), len(ACTIONS), bias=False)
        self.head.weight.data = torch.eye(len(ACTIONS))
        self.head.weight.requires_grad_(False)

    def get_output_embeddings(self) -> nn.Module:
        """Return the head."""
        return self.head

    def forward(self, input_ids: Tensor, **more: Any) -> CausalLMOutput:
        """Return the logits."""
        return CausalLMOutput(logits=self.head(self.sums(input_ids).last_hidden_state))


def random_policy() -> LanguageModel:
    """Return the policy before training: all legal actions are equally likely."""
    return LanguageModel(FactsPolicy(FactsConfig()), cast("Any", None), "werewolf")


class FactsAgent(Agent):
    """Plays with a policy.

    Args:
        model: The policy.
        key: Seeds its draws, together with episode and turn.
    """

    def __init__(self, model: LanguageModel, *key: int | str) -> None:
        self.model, self.key = model, key

    @torch.no_grad()
    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Sample an action for each request."""
        prompts = [prompt_of(request) for request in requests]
        longest = max(map(len, prompts))
        ids = torch.tensor([(*prompt, *[0] * (longest - len(prompt))) for prompt in prompts])
        logprobs = cast("FactsPolicy", self.model.network).sums(ids).last_hidden_state[:, 0].log_softmax(-1)
        cumulative = logprobs.double().exp().cumsum(-1)
        draws = [stream("werewolf", *self.key, each.episode, each.turn).random() for each in requests]
        below = torch.tensor(draws, dtype=torch.float64)[:, None] * cumulative[:, -1:] >= cumulative
        chosen = below.sum(-1).clamp_max(len(ACTIONS) - 1).tolist()
        return [
            Decision(ACTIONS[symbol], ACTIONS[symbol], prompt, (symbol,), (float(row[symbol]),))
            for symbol, prompt, row in zip(chosen, prompts, logprobs, strict=True)
        ]


class FactsTask(GameTask):
    """Werewolf as a task of the trainer, played by small policies instead of language models."""

    def agent(self, model: LanguageModel, iteration: int, temperature: float | None = None) -> Agent:
        """Return the agent of a policy."""
        return FactsAgent(model, self.config.seed, iteration)
