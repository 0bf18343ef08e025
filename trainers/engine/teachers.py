"""Teachers: networks that score the policy's sampled tokens and are not trained by gradients.

A teacher is another model with the same tokenizer, the policy before training (with low-rank adapters, the model
without them), an exponential moving average of the policy, or the policy itself. Its prompts may start with a lesson
that the policy did not see, such as a solution of the task.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import nn

from turngym.agents.models.loading import LanguageModel, require_same_tokens
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.engine.adapters import adapters_off, has_adapters
from turngym.trainers.engine.head import same_head
from turngym.trainers.engine.layouts.check import same_layouts
from turngym.trainers.engine.ranks.spread import Spread
from turngym.trainers.engine.sharing import copy_sharing_frozen

OwnTeacher: TypeAlias = Literal["base", "ema", "policy"]
OWN_TEACHERS: tuple[OwnTeacher, ...] = get_args(OwnTeacher)
"""The policy before training, its exponential moving average, and the policy itself."""
Lessons: TypeAlias = Callable[[Sequence[Trajectory]], Sequence[tuple[int, ...] | None]]
"""Maps the episodes of a batch to the tokens of their lessons; None for an episode without a lesson."""
_SHORT = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Teaching:
    """Choice of a teacher.

    Args:
        source: A model, or one of :data:`OWN_TEACHERS`.
        rate: Share of the policy in the moving average after each iteration.
        lessons: Tokens before the teacher's prompts; None for the policy's own prompts.
    """

    source: LanguageModel | OwnTeacher
    rate: float = 0.05
    lessons: Lessons | None = None


@dataclass(frozen=True)
class Teacher:
    """A network that scores sampled tokens.

    Args:
        network: The network.
        is_bare: True to disable its low-rank adapters.
        rate: Share of the policy in the moving average after each iteration; 0 for a fixed teacher.
        lessons: Tokens before the prompts of an episode.
    """

    network: Any
    is_bare: bool = False
    rate: float = 0.0
    lessons: Lessons | None = None

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Context in which the network computes as the teacher."""
        if not self.is_bare:
            yield
            return
        with adapters_off(self.network):
            yield

    @torch.no_grad()
    def follow(self, policy: nn.Module, exact: Callable[[nn.Parameter], nn.Parameter]) -> None:
        """Move the weights towards those of the policy.

        Args:
            policy: The trained network.
            exact: Returns the float32 master of a 16-bit parameter.
        """
        if not self.rate:
            return
        own = dict(self.network.named_parameters())
        for name, parameter in policy.named_parameters():
            if parameter.requires_grad:
                own[name].lerp_(exact(parameter).detach().to(own[name]), self.rate)


def frozen_copy(network: nn.Module) -> nn.Module:
    """Return an untrained copy that shares the frozen weights of the original."""
    frozen: nn.Module = copy_sharing_frozen(network)
    return _frozen(frozen, network)


def _frozen(network: nn.Module, like: nn.Module) -> nn.Module:
    same_head(network, like)
    same_layouts(network, like)
    return network.requires_grad_(False).eval()


def make_teacher(
    teaching: Teaching, model: LanguageModel, network: nn.Module, spread: Spread, reference: nn.Module | None = None
) -> Teacher:
    """Return the teacher of a policy, before its training.

    Args:
        teaching: Choice of the teacher.
        model: The sampling policy.
        network: The trained policy.
        spread: Distribution of networks over ranks.
        reference: Frozen copy of the policy that is never refreshed, if there is one.

    Raises:
        ConfigError: The teacher is another model, and its tokenizer differs from the policy's.
    """
    source, lessons = teaching.source, teaching.lessons
    if isinstance(source, LanguageModel):
        require_same_tokens(model, source, "teacher")
        return Teacher(spread.placed(source.network.requires_grad_(False).eval()), lessons=lessons)
    if source == "policy":
        return Teacher(network, lessons=lessons)
    if source == "ema":
        return Teacher(spread.placed(_average(model.network)), rate=teaching.rate, lessons=lessons)
    if source == "base":
        if has_adapters(network):
            return Teacher(network, is_bare=True, lessons=lessons)
        return Teacher(reference or spread.placed(frozen_copy(model.network)), lessons=lessons)
    raise ConfigError(f"a teacher is a model or one of {', '.join(OWN_TEACHERS)}; got {source!r}.")


def _average(network: nn.Module) -> nn.Module:
    """Return a copy with trained weights in float32, because small steps are lost in 16 bits."""
    if not any(parameter.requires_grad and parameter.dtype in _SHORT for parameter in network.parameters()):
        return frozen_copy(network)
    return _frozen(copy.deepcopy(network).float(), network)


def require_teacher(name: str, given: object) -> None:
    """Raise if a method needs a teacher and has none.

    Raises:
        ConfigError: The teacher is missing.
    """
    if given is None:
        raise ConfigError(
            f"{name} learns from a teacher and there is none: pass --teacher with a model, or base, ema or policy "
            "(in Python, teacher=)."
        )
