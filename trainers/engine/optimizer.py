"""Optimiser, parameter groups and learning rate schedule of a run."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turngym.errors import ConfigError, MissingExtra
from turngym.lazy import nn, torch
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.ranks.sharding import by_kind, gathered

POLICY, OTHERS = "policy", "others"
_FUSED_ON = frozenset({"cpu", "cuda", "mps", "xpu"})


def parameter_groups(
    policy: Sequence[nn.Parameter], others: Sequence[nn.Parameter], config: UpdateConfig
) -> list[dict[str, Any]]:
    """Return an optimiser's parameter groups: the policy's, then those of the critic and the method's networks.

    With weight decay for matrices only, each is split in two: vectors (norms and biases) have no decay.
    """
    groups: list[dict[str, Any]] = []
    for whose, parameters, rate in (
        (POLICY, policy, config.learning_rate),
        (OTHERS, others, config.critic_learning_rate),
    ):
        found = decay_groups(parameters, config.weight_decay, config.decay == "matrices")
        groups += [{**group, "lr": rate, "whose": whose} for group in found]
    return groups


def decay_groups(parameters: Sequence[nn.Parameter], decay: float, only_matrices: bool = True) -> list[dict[str, Any]]:
    """Return parameters in groups with their weight decay.

    Args:
        parameters: The parameters.
        decay: AdamW's weight decay.
        only_matrices: Exclude vectors (norms and biases).
    """
    parts = [(list(parameters), decay)]
    if decay and only_matrices:
        parts = [([p for p in parameters if p.ndim >= 2], decay), ([p for p in parameters if p.ndim < 2], 0.0)]
    return [{"params": kind, "weight_decay": share} for part, share in parts for kind in by_kind(part)]


def make_optimizer(groups: Sequence[dict[str, Any]], config: UpdateConfig) -> torch.optim.Optimizer:
    """Return the optimiser named by the settings.

    Raises:
        MissingExtra: Its package is not installed.
    """
    settings: dict[str, Any] = {"betas": (config.beta1, config.beta2), "eps": config.epsilon}
    if config.optimizer == "adamw":
        return adamw(groups, **settings)
    found: torch.optim.Optimizer = eight_bit_adamw()(list(groups), **settings)
    return found


def adamw(params: Iterable[nn.Parameter] | Iterable[dict[str, Any]], **settings: Any) -> torch.optim.AdamW:
    """Return AdamW with its fused kernel, if possible.

    The fused kernel does not increment the version counter of parameters, so it is incremented here: samplers use it to
    discard caches of earlier weights.

    Args:
        params: Parameters or parameter groups, as in torch.
        settings: As in torch.

    Example:
        >>> weight = nn.Parameter(torch.ones(2))
        >>> weight.grad, before = torch.ones(2), weight._version
        >>> _ = adamw([weight]).step()
        >>> weight._version > before
        True
    """
    given: list[Any] = list(params)
    is_grouped = not given or isinstance(given[0], Mapping)
    groups = [dict(each) for each in given] if is_grouped else [{"params": given}]
    for group in groups:
        one = isinstance(group["params"], torch.Tensor)
        group["params"] = [group["params"]] if one else list(group["params"])  # a generator can be consumed only once
    settings.setdefault("fused", is_fusible(each for group in groups for each in group["params"]))
    found = torch.optim.AdamW(groups, **settings)
    found.register_step_post_hook(_count_writes)
    return found


def _count_writes(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    for group in optimizer.param_groups:
        torch.autograd.graph.increment_version(group["params"])


def is_fusible(parameters: Iterable[nn.Parameter]) -> bool:
    """Return True if the fused kernel supports all of the parameters; it takes a quarter of the time."""
    return all(each.device.type in _FUSED_ON and each.is_floating_point() for each in parameters)


def clip(parameters: Sequence[nn.Parameter], limit: float) -> float:
    """Clip the total norm of gradients and return it; non-finite gradients are not changed.

    Args:
        parameters: Parameters of the gradients.
        limit: Maximum norm.
    """
    groups = by_kind([parameter for parameter in parameters if parameter.grad is not None])
    gradients = [[parameter.grad for parameter in group if parameter.grad is not None] for group in groups]
    norms = [gathered(torch.nn.utils.get_total_norm(each)) for each in gradients]
    norm = norms[0] if len(norms) == 1 else torch.nn.utils.get_total_norm(norms)
    found = float(norm)
    if math.isfinite(found):
        for group in groups:
            torch.nn.utils.clip_grads_with_norm_(group, limit, norm)
    return found


def eight_bit_adamw() -> Any:
    """Return the class of AdamW with 8-bit state.

    Raises:
        MissingExtra: bitsandbytes is not installed.
    """
    if importlib.util.find_spec("bitsandbytes") is None:
        raise MissingExtra(
            "adamw_8bit needs the package bitsandbytes, which is not installed: pip install bitsandbytes, or pass "
            "--update.optimizer adamw."
        )
    return importlib.import_module("bitsandbytes.optim").AdamW8bit


def rate_share(config: UpdateConfig, count: int, total: int) -> float:
    """Return the factor of the learning rate at an update.

    It rises linearly over the warm-up and then decays, reaching 0 one update after the last.

    Args:
        config: Schedule and warm-up.
        count: Index of the update, from 1.
        total: Updates of the whole run; unused by a constant schedule.

    >>> config = UpdateConfig(warmup_updates=2, schedule="linear")
    >>> [round(rate_share(config, count, 6), 2) for count in range(1, 7)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    warmup = config.warmup_updates
    if config.schedule == "constant" or count <= warmup:
        return min(1.0, count / warmup) if warmup else 1.0
    progress = min((count - warmup - 1) / max(total - warmup, 1), 1.0)
    return 1.0 - progress if config.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))


class Schedule:
    """Sets the learning rates of an optimiser's groups; the policy's depends on its own updates.

    Args:
        optimizer: Optimiser with groups of :func:`parameter_groups`.
        config: Schedule and warm-up.
        policy_total: Updates of the policy in the whole run.
        total: Updates in the whole run.

    Raises:
        ConfigError: The schedule decays, and the number of updates is unknown.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, config: UpdateConfig, policy_total: int = 0, total: int = 0
    ) -> None:
        if config.schedule != "constant" and not total:
            raise ConfigError(f"the schedule {config.schedule} falls until the last update: pass iterations.")
        self._optimizer = optimizer
        self._config = config
        self._totals = {POLICY: policy_total, OTHERS: total}
        self._rates = [float(group["lr"]) for group in optimizer.param_groups]

    def set_rates(self, policy_updates: int, updates: int) -> None:
        """Set the learning rates of an update.

        Args:
            policy_updates: Updates of the policy, including this one.
            updates: All updates, including this one.
        """
        counts = {POLICY: policy_updates, OTHERS: updates}
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            whose = group["whose"]
            group["lr"] = rate * rate_share(self._config, counts[whose], self._totals[whose])
