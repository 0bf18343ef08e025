"""Tokens drawn for running requests, step by step, kept on the device until the host needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from turngym.agents.models.distributions import choose, entropy_share, sampling_logprobs
from turngym.agents.models.kv_cache.requests import Running
from turngym.agents.sampling import Sampling


class Draws:
    """Draws the next tokens of some requests.

    Args:
        requests: The requests, in the order of the logits.
        steps: Number of tokens that are drawn for each.
        device: Device of the logits.
    """

    def __init__(self, requests: Sequence[Running], steps: int, device: torch.device) -> None:
        self._requests = requests
        kinds = {id(request.sampling): request.sampling for request in requests}
        self._groups = [_Group(requests, each, steps, device, len(kinds) == 1) for each in kinds.values()]

    def __call__(self, logits: Tensor, step: int) -> Tensor:
        """Draw one token for each row of the logits, and note its log-probability."""
        found = [group.draw(logits, step) for group in self._groups]
        if len(found) == 1:
            return found[0]
        tokens = found[0].new_empty(len(logits))
        for group, drawn in zip(self._groups, found, strict=True):
            tokens[group.index] = drawn
        return tokens

    def finish(self, drafts: Mapping[int, Sequence[int]] | None = None) -> None:
        """Append what was drawn to the requests, each up to its end.

        Args:
            drafts: Row -> the tokens that the draws assumed; what was drawn after one that differs is left out.
        """
        for group in self._groups:
            for request, steps in zip(group.requests, torch.stack(group.drawn, 1).tolist(), strict=True):
                draft = None if drafts is None else drafts[request.row]
                for step, (token, logprob, *entropy) in enumerate(steps):
                    if request.is_done or (draft is not None and step and [request.ids[-1]] != draft[step - 1 : step]):
                        break
                    request.ids.append(int(token))
                    request.logprobs.append(logprob)
                    request.entropies.extend(entropy)


class _Group:
    """Requests that are sampled alike."""

    def __init__(
        self, requests: Sequence[Running], sampling: Sampling, steps: int, device: torch.device, is_only: bool
    ) -> None:
        rows = [row for row, request in enumerate(requests) if request.sampling is sampling]
        self.requests = [requests[row] for row in rows]
        self.index = slice(None) if is_only else torch.tensor(rows, device=device)
        self.drawn: list[Tensor] = []
        self._sampling = sampling
        uniforms = np.zeros((steps, len(rows)))
        for column, request in enumerate(self.requests):
            given = request.draws[len(request.ids) :][:steps]
            uniforms[: len(given), column] = given
        self._uniforms = torch.from_numpy(uniforms).to(device)

    def draw(self, logits: Tensor, step: int) -> Tensor:
        distribution = sampling_logprobs(logits[self.index], self._sampling.temperature)
        tokens = choose(distribution, self._uniforms[step], self._sampling)
        noted = [tokens, distribution.gather(-1, tokens[:, None]).squeeze(-1)]
        if self._sampling.entropies:
            noted.append(entropy_share(distribution))
        self.drawn.append(torch.stack([each.double() for each in noted], -1))
        return tokens
