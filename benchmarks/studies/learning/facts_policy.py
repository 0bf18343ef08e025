"""Small policies for games between seats, in the form of a causal language model with one token a turn.

The probability of a legal action is proportional to the exponential of a sum of weights, one for each fact that holds
of the action, such as "most ballots of today name this seat, and I am a villager". Which facts those are is the game's
(:class:`FactsGame`); they come from what the seat has been told and nothing else. All weights begin at 0, so the
policy begins as random play.

A prompt is a list of tokens, each an action and a fact that holds of it; its answer is the token of an action. So games
are played, credited and trained by the same code as those of language models, at a hundredth of the cost.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.models.loading import LanguageModel
from turngym.seeding import stream
from turngym.trainers.loop.game_task import GameTask
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

_BLOCKED = -1e4
_WEIGHTS = "policy.safetensors"


class FactsGame(NamedTuple):
    """What a policy knows of a game.

    Args:
        name: Part of the key of its draws.
        actions: All actions of the game.
        num_facts: Size of the hash table of facts.
        facts: Anchor and legal actions of a seat -> the facts of each legal action.
    """

    name: str
    actions: tuple[str, ...]
    num_facts: int
    facts: Callable[[str, Sequence[str]], Mapping[str, Sequence[str]]]

    def prompt(self, anchor: str, legal: Sequence[str]) -> tuple[int, ...]:
        """Return the tokens of what a seat knows: an action and a fact each."""
        size = self.num_facts
        return tuple(
            len(self.actions) + self.actions.index(action) * size + _bucket(fact, size)
            for action, found in self.facts(anchor, legal).items()
            for fact in found
        )


@lru_cache(maxsize=65_536)
def _bucket(fact: str, size: int) -> int:
    return zlib.crc32(fact.encode()) % size


class FactsConfig(PretrainedConfig):
    """The sizes of a policy.

    Args:
        actions: Number of actions.
        facts: Size of the hash table of facts.
    """

    model_type = "turngym-facts"

    def __init__(self, actions: int = 2, facts: int = 2, **more: Any) -> None:
        super().__init__(**more)
        self.actions, self.facts = actions, facts
        self.hidden_size = actions
        self.vocab_size = actions * (1 + facts)


class _PreTrained(PreTrainedModel):
    config_class = FactsConfig
    base_model_prefix = "sums"

    def _init_weights(self, module: nn.Module) -> None:
        """Leave the weights as they were made."""


class Sums(_PreTrained):
    """The sums of weights of a prompt's actions, as the hidden state of every position."""

    def __init__(self, config: FactsConfig) -> None:
        super().__init__(config)
        self.weight = nn.Parameter(torch.zeros(config.facts))

    def forward(self, input_ids: Tensor, **ignored: Any) -> BaseModelOutput:
        """Return the sums, and a very small number for actions that are not legal."""
        size = self.config.facts
        places = input_ids - self.config.actions
        is_fact = places >= 0
        action = torch.where(is_fact, places // size, 0)
        weights = torch.where(is_fact, self.weight[places.clamp_min(0) % size], 0.0)
        sums = weights.new_zeros(len(input_ids), self.config.actions).scatter_add(1, action, weights)
        counts = torch.zeros_like(sums).scatter_add(1, action, is_fact.to(sums))
        hidden = torch.where(counts > 0, sums, _BLOCKED)
        return BaseModelOutput(last_hidden_state=hidden[:, None].expand(-1, input_ids.shape[1], -1))


class FactsPolicy(_PreTrained):
    """The sums, with the identity as its head."""

    def __init__(self, config: FactsConfig) -> None:
        super().__init__(config)
        self.sums = Sums(config)
        self.head = nn.Linear(config.actions, config.actions, bias=False)
        self.head.weight.data = torch.eye(config.actions)
        self.head.weight.requires_grad_(False)

    def get_output_embeddings(self) -> nn.Module:
        """Return the head."""
        return self.head

    def forward(self, input_ids: Tensor, **more: Any) -> CausalLMOutput:
        """Return the logits."""
        return CausalLMOutput(logits=self.head(self.sums(input_ids).last_hidden_state))


def random_policy(game: FactsGame) -> LanguageModel:
    """Return the policy before training: all legal actions are equally likely."""
    network = FactsPolicy(FactsConfig(len(game.actions), game.num_facts))
    return LanguageModel(network, cast("Any", None), game.name)


class FactsAgent(Agent):
    """Plays with a policy.

    Args:
        game: What it knows of the game.
        model: The policy.
        key: Seeds its draws, together with episode and turn.
    """

    def __init__(self, game: FactsGame, model: LanguageModel, *key: int | str) -> None:
        self.game, self.model, self.key = game, model, key

    @property
    def weight(self) -> Tensor:
        """The weights of all facts."""
        return cast("FactsPolicy", self.model.network).sums.weight

    @torch.no_grad()
    def logprobs(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Return the log-probability of each action after each prompt, ``[prompt, action]``."""
        longest = max(map(len, prompts))
        ids = torch.tensor([(*prompt, *[0] * (longest - len(prompt))) for prompt in prompts])
        hidden: Tensor = cast("FactsPolicy", self.model.network).sums(ids).last_hidden_state
        return hidden[:, 0].log_softmax(-1)

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Sample an action for each request."""
        prompts = [self.game.prompt(each.info["anchor"], each.info["legal_actions"]) for each in requests]
        logprobs = self.logprobs(prompts)
        cumulative = logprobs.double().exp().cumsum(-1)
        draws = [stream(self.game.name, *self.key, each.episode, each.turn).random() for each in requests]
        below = torch.tensor(draws, dtype=torch.float64)[:, None] * cumulative[:, -1:] >= cumulative
        chosen = below.sum(-1).clamp_max(len(self.game.actions) - 1).tolist()
        return [
            Decision(self.game.actions[symbol], self.game.actions[symbol], prompt, (symbol,), (float(row[symbol]),))
            for symbol, prompt, row in zip(chosen, prompts, logprobs, strict=True)
        ]


class FactsTask(GameTask):
    """A game as a task of the trainer, played by small policies instead of language models.

    Args:
        config: Settings of the run.
        game: What policies know of the game.
    """

    def __init__(self, config: TrainConfig, game: FactsGame) -> None:
        super().__init__(config)
        self.game = game

    def agent(self, model: LanguageModel, iteration: int, temperature: float | None = None) -> Agent:
        """Return the agent of a policy."""
        return FactsAgent(self.game, model, self.config.seed, iteration)


def train(game: FactsGame, config: TrainConfig, path: Path) -> None:
    """Train a policy, or go on with a run that was broken off; nothing happens if the run has ended."""
    if (path / _WEIGHTS).exists():
        return
    start, model = time.process_time(), random_policy(game)
    task, learner = FactsTask(config, game), build_learner(config, model, build_algorithm(config))
    is_begun = (path / "config.json").exists()
    trainer = Trainer(
        config, model, learner, task, RunFolder.open(path) if is_begun else RunFolder.create(path, config)
    )
    if is_begun:
        trainer.resume()
    trainer.run()
    if trainer.stop_requested:
        raise KeyboardInterrupt
    save_file({"weight": FactsAgent(game, model).weight.detach().clone()}, path / _WEIGHTS)
    print(f"{path.name}: {time.process_time() - start:.0f} s of one core since it began", flush=True)


def trained(game: FactsGame, path: Path) -> LanguageModel:
    """Return the policy that a run ended with."""
    model = random_policy(game)
    FactsAgent(game, model).weight.data = load_file(path / _WEIGHTS)["weight"]
    return model
