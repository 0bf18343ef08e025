"""Twin critics of whole turns that read text with a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from turngym.agents.models.forward_pass import last_states
from turngym.agents.models.loading import load_model
from turngym.agents.prompting.text_encoder import TextEncoder
from turngym.trainers.engine.critics.twin import TwinCritic, with_action

_LONGEST, _BATCH = 512, 64


class LanguageTwinCritic(TwinCritic):
    """Two estimates of Q(s, a) and of V(s): four heads on one language model, all of which is trained.

    Args:
        source: Folder or name of the model, as for :func:``turngym.agents.models.loading.load_model``.
        width: Size of the heads' hidden layers.
    """

    def __init__(self, source: str, width: int) -> None:
        nn.Module.__init__(self)
        loaded = load_model(source)
        self._encoder = TextEncoder(loaded.tokenizer)
        self.trunk: Any = loaded.network.base_model.float().eval()
        size = int(loaded.network.config.get_text_config().hidden_size)
        self.action_values = nn.ModuleList(_head(size, width, seed) for seed in (0, 1))
        self.state_values = nn.ModuleList(_head(size, width, seed) for seed in (2, 3))

    def q(self, states: Sequence[str], actions: Sequence[str]) -> Float[Tensor, "turn twin"]:
        """Return both values of each state with an action."""
        return self._values(with_action(states, actions), self.action_values)

    def v(self, states: Sequence[str]) -> Float[Tensor, "turn twin"]:
        """Return both values of each state."""
        return self._values(states, self.state_values)

    def _values(self, texts: Sequence[str], heads: nn.ModuleList) -> Tensor:
        """Return [text, head] the values, equal texts computed once."""
        if not texts:
            return torch.zeros(0, len(heads), dtype=torch.float64)
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        ids = [list(self._encoder.encode_one(text))[-_LONGEST:] or [0] for text in place]
        order = sorted(range(len(ids)), key=lambda each: len(ids[each]))
        parts = ([ids[k] for k in order[at : at + _BATCH]] for at in range(0, len(order), _BATCH))
        states = torch.cat([last_states(self.trunk, part) for part in parts])
        states = states.to(next(heads.parameters()).dtype)
        values = torch.cat([head(states) for head in heads], -1)
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return values[back[torch.tensor([place[text] for text in texts])]].double()


def make_twin_critic(reader: str, buckets: int, width: int) -> TwinCritic:
    """Return the critic that ``words`` or ``model:FOLDER`` describes."""
    is_model = reader.startswith("model:")
    return LanguageTwinCritic(reader.removeprefix("model:"), width) if is_model else TwinCritic(buckets, width)


def _head(size: int, width: int, seed: int) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        last = nn.Linear(width, 1)
        nn.init.normal_(last.weight, std=0.1)
        nn.init.zeros_(last.bias)
        return nn.Sequential(nn.LayerNorm(size), nn.Linear(size, width), nn.Tanh(), last)
