"""A trainer, a sampler with weights of its own, and hand-overs between them."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from turngym.agents.models.completion import Generate
from turngym.agents.models.embedded import build_tokenizer
from turngym.agents.models.loading import LanguageModel, set_format
from turngym.agents.models.policy_server.engine import token_logprobs
from turngym.agents.models.sampler import Sampler
from turngym.trainers.engine.adapters import adapted_layers, add_adapters, without_adapters
from turngym.trainers.engine.fingerprint import Fingerprints, Limits, Score, Verdict, handed_over
from turngym.trainers.engine.probe_sequences import probe_sequences

Weights = dict[str, Tensor]
TEMPERATURE = 0.7
TEXTS = [f"room {a} holds {b} boxes, {c} keys and a lamp <action>go {d}</action>" for a in range(9) for b, c, d in
         ((a + 1, 2 * a, "north"), (7 - a % 7, 3, "west"), (a * a, a, "down"))]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What is handed over.

    Args:
        trainer: Format of the trainer's weights; 16-bit ones have float32 masters.
        sampler: Format of the sampler's weights.
        lora: Whether adapters are trained, which are merged for the sampler.
        size: Width of the network.
        layers: Its layers.
    """

    trainer: str = "float32"
    sampler: str = "float32"
    lora: bool = False
    size: int = 64
    layers: int = 3

    def __str__(self) -> str:
        formats = self.trainer if self.trainer == self.sampler else f"{self.trainer} to {self.sampler}"
        return f"{formats}, {'adapters' if self.lora else 'all weights'}"


@functools.cache
def _tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer(TEXTS, 512)


def build(kind: Kind, seed: int) -> LanguageModel:
    """Return a model like the embedded one, with biases, which are not zero."""
    tokenizer = _tokenizer()
    settings = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=kind.size,
        intermediate_size=2 * kind.size,
        num_hidden_layers=kind.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=kind.size // 4,
        max_position_embeddings=512,
        initializer_range=0.1,
        attention_bias=True,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Qwen3ForCausalLM(settings).eval()
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                nn.init.normal_(parameter, std=0.1)
    return LanguageModel(network, tokenizer, "small")


class Policy:
    """What is trained: AdamW steps on random sequences that were good or bad, as in reinforcement learning.

    Args:
        kind: Formats and size.
        seed: Fixes weights and sequences.
    """

    def __init__(self, kind: Kind, seed: int = 0) -> None:
        model = build(kind, seed)
        set_format(model.network, getattr(torch, kind.trainer))
        self.model = add_adapters(model, 4, seed) if kind.lora else model
        self._random = torch.Generator().manual_seed(seed)
        self._trained = [p for p in self.model.network.parameters() if p.requires_grad]
        self._masters = [nn.Parameter(p.detach().float().clone()) for p in self._trained]
        self._optimizer = torch.optim.AdamW(self._masters, lr=0.0, weight_decay=0.0)

    def step(self, rate: float) -> None:
        """Take one optimiser step."""
        vocabulary = len(self.model.tokenizer)
        ids = torch.randint(vocabulary, (8, 24), generator=self._random)
        advantages = torch.randn(8, 1, generator=self._random)
        with torch.enable_grad():
            logits = self.model.network(ids[:, :-1]).logits.float()
            logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
            (-(advantages * logprobs).mean()).backward()
        for parameter, master in zip(self._trained, self._masters, strict=True):
            master.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        with torch.no_grad():
            for parameter, master in zip(self._trained, self._masters, strict=True):
                parameter.copy_(master)

    def weights(self) -> Weights:
        """Return what is handed over: whole weights, adapters merged."""
        network = without_adapters(self.model).network
        return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}

    def adapters(self) -> dict[str, tuple[Tensor, Tensor, float]]:
        """Return the factors and the scale of each adapted weight."""
        found = {}
        for name, layer in adapted_layers(self.model.network).items():
            first, second = (getattr(layer, part)["default"].weight.detach().clone() for part in ("lora_A", "lora_B"))
            found[f"{name}.weight"] = first, second, float(layer.scaling["default"])
        return found


class Side:
    """What samples: a network of its own, with kept keys, whose weights are replaced.

    Args:
        kind: Formats and size.
        weights: Its first weights.
    """

    def __init__(self, kind: Kind, weights: Weights) -> None:
        model = build(kind, seed=99)
        network = model.network
        set_format(network, getattr(torch, kind.sampler))
        head = nn.Linear(kind.size, len(model.tokenizer), bias=False, dtype=network.dtype)  # untied, as in vLLM
        cast(Any, network).lm_head = head
        network.config.tie_word_embeddings = False
        network.requires_grad_(False)
        self.model = model
        self.sampler = Sampler(model, cache_tokens=60_000, appends=True)
        self.generate: Generate = self.sampler
        self.score: Score = self.scores
        self.load(weights)

    @property
    def network(self) -> PreTrainedModel:
        """The network."""
        return self.model.network

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the weights that are given, by name."""
        for name, tensor in self.network.state_dict(keep_vars=True).items():
            if name in weights:
                tensor.copy_(weights[name])

    def scores(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """Return the log-probabilities of the sequences' tokens."""
        return [token_logprobs(self.network, each) for each in sequences]


class HandOvers:
    """A policy and a sampler that follows it, compared after each hand-over.

    Args:
        kind: Formats and size.
        seed: Fixes weights and sequences.
    """

    def __init__(self, kind: Kind, seed: int = 0) -> None:
        self.kind = kind
        self.policy = Policy(kind, seed)
        self.versions = [self.policy.weights()]
        self.side = Side(kind, self.versions[0])
        sequences = probe_sequences(len(self.policy.model.tokenizer))
        self.prints = Fingerprints(sequences, TEMPERATURE, Limits.of(kind.sampler))

    def check(self) -> Verdict:
        """Compare the sampler with the trainer as they are."""
        expected = self.prints.expect(handed_over(self.policy.model, self.kind.sampler))
        reading = self.prints.read(self.side.generate, self.side.score)
        return self.prints.compare("sampler", expected, reading)

    def sound(self, rate: float) -> Verdict:
        """Take a step, and hand the weights over."""
        self.policy.step(rate)
        self.versions.append(self.policy.weights())
        self.side.load(self.versions[-1])
        return self.check()

    def fork(self) -> HandOvers:
        """Return the same in a state of its own, so that many faults can follow the same sound hand-overs."""
        found = copy.copy(self)
        found.versions = list(self.versions)
        found.side = Side(self.kind, self.versions[-1])
        found.prints.read(found.side.generate, None)  # keys that are kept from now on
        found.prints = Fingerprints(self.prints.sequences, TEMPERATURE, self.prints.limits)
        for name in ("_expected", "_seen", "_gaps"):
            setattr(found.prints, name, copy.deepcopy(getattr(self.prints, name)))
        return found

    def faulty(self, fault: Callable[[HandOvers], Weights], weights: Weights) -> Verdict | None:
        """Hand weights over with a fault.

        Args:
            fault: Returns what arrives.
            weights: The policy's, after its step.

        Returns:
            The verdict; None if what arrives is the same in the sampler's format, and nothing else was changed.
        """
        case = self.fork()
        case.versions.append(weights)
        arrived = fault(case)
        case.side.load(arrived)
        own = case.side.network.state_dict(keep_vars=True)
        is_same = all(
            torch.equal(tensor.to(own[n].dtype), weights[n].to(own[n].dtype)) for n, tensor in arrived.items()
        )
        return None if is_same and arrived is not weights else case.check()
